//! Which servers have counted everything, and which must be told first.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::select;
use tokio::sync::Notify;
use tollkeeper_core::Boot;
use tollkeeper_decide::{History, Origin};
use tollkeeper_redis::RedisOrigin;
use tollkeeper_testkit::RedisServer;

use crate::until;

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
                    let mut upstream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
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
        self.server.store(server.port(), Ordering::Release);
        self.changed.notify_waiters();
    }
}

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
    let url = format!("redis://127.0.0.1:{}", address.port).parse().unwrap();
    let origin = RedisOrigin::start(&url, Boot(1), &Handle::current());
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
    let later = RedisOrigin::start(&url, Boot(2), &Handle::current());
    let learnt = epoch(&other);
    settled(&later, &other).await;
    assert_eq!(epoch(&other), learnt);
    drop(later);
    address.leads_to(&one);
    settled(&origin, &one).await;
    assert_ne!(epoch(&one), at_first, "taken for whole, though another counted meanwhile");
}
