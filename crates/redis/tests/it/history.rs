//! Which servers have counted everything, and which must be told first.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::select;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tollkeeper_core::{Boot, Consistency, Cost, Limit, Millis, OnOutage, Quota, Width, Window};
use tollkeeper_decide::{
    CellKey, Fleet, History, LeaseAsk, LeaseTable, Mode, Origin, Patience, Scope, SharedAsk,
};
use tollkeeper_redis::{RedisOrigin, RedisUrl};
use tollkeeper_testkit::RedisServer;

use crate::{now, until};

/// One address, and the server behind it, which changes: as a virtual address or a name does.
struct Address {
    port: u16,
    server: Arc<AtomicU16>,
    changed: Arc<Notify>,
}

// === impl Address ===

impl Address {
    async fn of(server: &RedisServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let it = Self {
            port: listener.local_addr().unwrap().port(),
            server: Arc::new(server.port().into()),
            changed: Arc::default(),
        };
        let (server, changed) = (it.server.clone(), it.changed.clone());
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (port, changed) = (server.load(Ordering::Acquire), changed.clone());
                tokio::spawn(async move {
                    let upstream = TcpStream::connect(("127.0.0.1", port)).await;
                    let Ok(mut upstream) = upstream else { return };
                    select! {
                        _ = copy_bidirectional(&mut client, &mut upstream) => {}
                        () = changed.notified() => {}
                    }
                });
            }
        });
        it
    }

    fn leads_to(&self, server: &RedisServer) {
        self.turn(server.port());
    }

    fn leads_nowhere(&self) {
        self.turn(0);
    }

    fn turn(&self, port: u16) {
        self.server.store(port, Ordering::Release);
        self.changed.notify_waiters();
    }

    fn url(&self, login: &str) -> RedisUrl {
        format!("redis://{login}127.0.0.1:{}", self.port).parse().unwrap()
    }

    fn node(&self, boot: u64) -> RedisOrigin {
        RedisOrigin::start(&self.url(""), Boot(boot), &Handle::current())
    }
}

/// A whole node behind an address.
struct Node {
    fleet: Arc<Fleet>,
    origin: RedisOrigin,
    _upkeep: JoinSet<()>,
}

// === impl Node ===

impl Node {
    fn start(url: &RedisUrl, boot: u64) -> Self {
        let origin = RedisOrigin::start(url, Boot(boot), &Handle::current());
        let table = LeaseTable::new(64 * 1024, Boot(boot));
        let began = now();
        // Its own clock, hours from that of Redis.
        let clock = Arc::new(move || {
            Millis(1_000_000) + u64::try_from(began.elapsed().as_millis()).unwrap()
        });
        let shared = Arc::new(origin.clone());
        let here = Handle::current();
        let fleet = Fleet::new(table, shared, Mode::Redis, clock, Patience::USUAL, here);
        let mut upkeep = JoinSet::new();
        upkeep.spawn(Arc::clone(&fleet).keep());
        Self { fleet, origin, _upkeep: upkeep }
    }

    /// Asks for single units until `most` were admitted or one was refused for good.
    async fn spend(&self, most: u64) -> u64 {
        let scope = Arc::new(Scope::namespace("t", "s"));
        let day = Width::from_millis(86_400_000).unwrap();
        let ask = LeaseAsk {
            key: CellKey { subject: 1, exact: 1 },
            limit: Limit::fixed_window(Quota::new(LIMIT).unwrap(), Window::Aligned(day)),
            cost: Cost::ONE,
            consistency: Consistency::Exact,
            on_outage: OnOutage::Deny,
            bundled: false,
            beside: 0,
        };
        let mut admitted = 0;
        while admitted < most {
            let asks = [SharedAsk { ask, scope: &scope, identifier: "i" }];
            let gathered = self.fleet.obtain(&asks).await;
            if gathered.passed {
                admitted += u64::from(gathered.spend(self.fleet.now()));
            } else if gathered.dealt.iter().all(|dealt| !dealt.degraded) {
                break;
            } else {
                let _ = timeout(Duration::from_millis(5), std::future::pending::<()>()).await;
            }
        }
        admitted
    }
}

const LIMIT: u64 = 1_000;

async fn settled(origin: &RedisOrigin, on: &RedisServer) {
    let run_id = on.ask(&["INFO", "server"]);
    until("its history is whole", async || {
        let here = origin.redis().servers()[0].run_id.clone();
        let here = here.is_some_and(|id| run_id.contains(&*id));
        here && matches!(origin.probe(0).await, Ok(History::Whole))
    })
    .await;
}

fn epoch(of: &RedisServer) -> String {
    of.ask(&["GET", "tk:ep:{1}"])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_comes_back_learns_what_another_counted_in_its_place() {
    let (one, other) = (RedisServer::start().unwrap(), RedisServer::start().unwrap());
    let address = Address::of(&one).await;
    let origin = address.node(1);
    settled(&origin, &one).await;
    let at_first = epoch(&one);
    // A cut alone is no reason to doubt it.
    address.leads_to(&one);
    until("it is connected again", async || origin.redis().servers()[0].generation == 2).await;
    settled(&origin, &one).await;
    assert_eq!(epoch(&one), at_first);
    address.leads_to(&other);
    settled(&origin, &other).await;
    // The other is new to this node, and so is one that only it saw: neither is a reason to have it learn once more.
    let later = address.node(2);
    let learnt = epoch(&other);
    settled(&later, &other).await;
    assert_eq!(epoch(&other), learnt);
    drop(later);
    address.leads_to(&one);
    settled(&origin, &one).await;
    assert_ne!(epoch(&one), at_first, "taken for whole, though another counted meanwhile");
}

/// The one is whole, by an epoch of its own; its address leads to the other, and whoever saw it is gone.
async fn whole_one_and_other() -> (Address, RedisServer, String, RedisServer) {
    let (one, other) = (RedisServer::start().unwrap(), RedisServer::start().unwrap());
    let address = Address::of(&one).await;
    settled(&address.node(1), &one).await;
    let at_first = epoch(&one);
    address.leads_to(&other);
    (address, one, at_first, other)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_only_saw_the_stand_in_has_the_first_learn_when_that_is_back() {
    let (address, one, at_first, other) = whole_one_and_other().await;
    let node = address.node(2);
    settled(&node, &other).await;
    address.leads_to(&one);
    settled(&node, &one).await;
    assert_ne!(epoch(&one), at_first, "taken for whole, though another counted meanwhile");
    // Who comes now saw neither, and has no reason to doubt.
    let learnt = epoch(&one);
    settled(&address.node(3), &one).await;
    assert_eq!(epoch(&one), learnt);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_spent_at_a_stand_in_is_not_lent_again_by_the_first_when_that_is_back() {
    let (address, one, _, other) = whole_one_and_other().await;
    let nodes = [2, 3].map(|boot| Node::start(&address.url(""), boot));
    for node in &nodes {
        settled(&node.origin, &other).await;
    }
    assert_eq!(nodes[0].spend(900).await, 900);
    address.leads_to(&one);
    for node in &nodes {
        settled(&node.origin, &one).await;
    }
    // The one that spent it is not even asked.
    let again = nodes[1].spend(LIMIT).await;
    assert!(again <= 100, "{again} of 100");
}

/// Nodes that see the one, each through its address, and then the other.
async fn all_from_one_to_other(
    nodes: &[(&Address, &RedisOrigin)],
    one: &RedisServer,
    other: &RedisServer,
) {
    for (_, node) in nodes {
        settled(node, one).await;
    }
    for (address, _) in nodes {
        address.leads_to(other);
    }
    for (_, node) in nodes {
        settled(node, other).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_comes_back_to_many_nodes_learns_once() {
    let (one, other) = (RedisServer::start().unwrap(), RedisServer::start().unwrap());
    let address = Address::of(&one).await;
    let nodes = [1, 2, 3, 4].map(|boot| address.node(boot));
    all_from_one_to_other(&nodes.each_ref().map(|node| (&address, node)), &one, &other).await;
    let mut epochs = vec![epoch(&one)];
    address.leads_to(&one);
    for node in &nodes {
        until("it is connected", async || {
            epochs.push(epoch(&one));
            let view = &node.redis().servers()[0];
            view.connected && view.run_id.as_ref().is_some_and(|id| epochs[0].contains(&**id))
        })
        .await;
    }
    for node in &nodes {
        settled(node, &one).await;
    }
    epochs.push(epoch(&one));
    epochs.dedup();
    assert_eq!(epochs.len(), 2, "{epochs:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_late_has_nobody_learn_again_unless_it_heard_the_stand_in_later() {
    let (one, other) = (RedisServer::start().unwrap(), RedisServer::start().unwrap());
    let [here, lates, stays] =
        [Address::of(&one).await, Address::of(&one).await, Address::of(&one).await];
    let (early, late, staying) = (here.node(1), lates.node(2), stays.node(3));
    let nodes = [(&here, &early), (&lates, &late), (&stays, &staying)];
    all_from_one_to_other(&nodes, &one, &other).await;
    lates.leads_nowhere();
    here.leads_to(&one);
    settled(&early, &one).await;
    let learnt = epoch(&one);
    let _ = timeout(Duration::from_secs(1), std::future::pending::<()>()).await;
    lates.leads_to(&one);
    settled(&late, &one).await;
    assert_eq!(epoch(&one), learnt, "the other was gone before that was learnt");
    // This one was served by the other all the time.
    stays.leads_to(&one);
    settled(&staying, &one).await;
    assert_ne!(epoch(&one), learnt, "what the other counted last was not told");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_documented_rights_are_enough_to_have_a_server_learn() {
    const SCHEMA: &str = include_str!("../../../../docs/REDIS_SCHEMA.md");
    let rule: Vec<&str> = SCHEMA
        .lines()
        .skip_while(|line| !line.contains("ACL SETUSER"))
        .take_while(|line| line.starts_with("    "))
        .flat_map(str::split_whitespace)
        .filter(|word| *word != "\\")
        .collect();
    let servers = [RedisServer::start().unwrap(), RedisServer::start().unwrap()];
    for server in &servers {
        assert_eq!(server.ask(&rule), "OK");
        // Of those that some versions have not, or the client does without.
        server.ask(&["ACL", "SETUSER", "tollkeeper", "+client|setinfo"]);
    }
    let address = Address::of(&servers[0]).await;
    let url = address.url("tollkeeper:PASSWORD@");
    let node = RedisOrigin::start(&url, Boot(1), &Handle::current());
    settled(&node, &servers[0]).await;
    let at_first = epoch(&servers[0]);
    address.leads_to(&servers[1]);
    settled(&node, &servers[1]).await;
    address.leads_to(&servers[0]);
    settled(&node, &servers[0]).await;
    assert_ne!(epoch(&servers[0]), at_first);
    for server in &servers {
        let denied = server.ask(&["ACL", "LOG"]);
        assert!(!denied.contains("reason"), "{denied}");
    }
}
