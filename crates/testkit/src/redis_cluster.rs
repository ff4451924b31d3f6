//! A Redis Cluster of three primaries with a replica each, and slots that a test moves step by step.

use crate::port::free_port;
use crate::redis::{RedisFailure, RedisServer, failed};

const PRIMARIES: usize = 3;
const NODES: usize = 2 * PRIMARIES;

/// What a node waits for another. Long while all of them live, so that a busy machine takes none for dead; short once one was
/// killed, so that its replica takes over within about two seconds.
const PATIENT_MS: &str = "10000";
const HASTY_MS: &str = "1000";

#[derive(Debug)]
pub struct RedisCluster {
    /// At first the primaries, then their replicas in the same order.
    pub nodes: Vec<RedisServer>,
}

// === impl RedisCluster ===

impl RedisCluster {
    /// Returns once every node says that the cluster is ok and every replica follows.
    pub fn start() -> Result<Self, RedisFailure> {
        let nodes: Result<Vec<_>, RedisFailure> = (0..NODES).map(|_| start_node()).collect();
        let cluster = Self { nodes: nodes? };
        cluster.deal_slots();
        cluster.meet()?;
        cluster.replicate()?;
        for node in &cluster.nodes {
            node.ask_until(&["CLUSTER", "INFO"], "cluster_state:ok")?;
            let slots = format!("cluster_size:{PRIMARIES}");
            node.ask_until(&["CLUSTER", "INFO"], &slots)?;
        }
        Ok(cluster)
    }

    /// `redis-cluster://127.0.0.1:P,127.0.0.1:P,127.0.0.1:P`, of the first primaries.
    pub fn url(&self) -> String {
        let hosts: Vec<String> =
            self.nodes.iter().take(PRIMARIES).map(RedisServer::address).collect();
        format!("redis-cluster://{}", hosts.join(","))
    }

    /// With kill -9; the others notice within a second.
    pub fn kill(&mut self, place: usize) {
        self.nodes[place].kill();
        for (_, node) in self.nodes.iter().enumerate().filter(|(other, _)| *other != place) {
            node.ask(&["CONFIG", "SET", "cluster-node-timeout", HASTY_MS]);
        }
    }

    /// From here on the source answers ASK for keys that it does not have (any more).
    pub fn begin_move(&self, slot: u16, from: usize, to: usize) {
        let (slot, source, target) = (slot.to_string(), self.id(from), self.id(to));
        self.nodes[to].ask(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source]);
        self.nodes[from].ask(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target]);
    }

    /// Moves the keys that the source still has.
    pub fn move_keys(&self, slot: u16, from: usize, to: usize) {
        let port = self.nodes[to].port().to_string();
        let keys = self.nodes[from].ask(&["CLUSTER", "GETKEYSINSLOT", &slot.to_string(), "1000"]);
        for key in keys.lines().filter(|key| !key.is_empty()) {
            self.nodes[from].ask(&["MIGRATE", "127.0.0.1", &port, key, "0", "1000"]);
        }
    }

    /// From here on the source answers MOVED.
    pub fn finish_move(&self, slot: u16, from: usize, to: usize) {
        let (slot, target) = (slot.to_string(), self.id(to));
        for place in [to, from] {
            self.nodes[place].ask(&["CLUSTER", "SETSLOT", &slot, "NODE", &target]);
        }
    }

    /// All slots of a primary but one go to another. None of them may have keys.
    pub fn give_all_but(&self, kept: u16, from: usize, to: usize) {
        let ((first, last), target) = (bounds(from), self.id(to));
        let given = (first..=last).filter(|slot| *slot != kept);
        let commands: Vec<String> =
            given.map(|slot| format!("CLUSTER SETSLOT {slot} NODE {target}")).collect();
        // Who claims slots with an older epoch than their owner's is told by any third node to give them back.
        self.nodes[to].ask(&["CLUSTER", "BUMPEPOCH"]);
        for place in [to, from] {
            self.nodes[place].ask_all(&commands);
        }
    }

    fn id(&self, place: usize) -> String {
        self.nodes[place].ask(&["CLUSTER", "MYID"])
    }

    fn deal_slots(&self) {
        for (place, node) in self.nodes.iter().enumerate() {
            if place < PRIMARIES {
                let (first, last) = bounds(place);
                node.ask(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]);
            }
            node.ask(&["CLUSTER", "SET-CONFIG-EPOCH", &(place + 1).to_string()]);
        }
    }

    fn meet(&self) -> Result<(), RedisFailure> {
        for node in self.nodes.iter().skip(1) {
            let (port, bus) =
                (node.port().to_string(), node.ask(&["CONFIG", "GET", "cluster-port"]));
            let bus = bus.lines().last().unwrap_or_default();
            self.nodes[0].ask(&["CLUSTER", "MEET", "127.0.0.1", &port, bus]);
        }
        let known = format!("cluster_known_nodes:{NODES}");
        self.nodes.iter().try_for_each(|node| node.ask_until(&["CLUSTER", "INFO"], &known))
    }

    fn replicate(&self) -> Result<(), RedisFailure> {
        for place in 0..PRIMARIES {
            let (primary, replica) = (self.id(place), &self.nodes[place + PRIMARIES]);
            replica.ask_until(&["CLUSTER", "REPLICATE", &primary], "OK")?;
        }
        let replicas = self.nodes.iter().skip(PRIMARIES);
        let follows = ["INFO", "replication"];
        replicas.into_iter().try_for_each(|node| node.ask_until(&follows, "master_link_status:up"))
    }
}

fn start_node() -> Result<RedisServer, RedisFailure> {
    let bus = free_port().map_err(|error| failed("a free port", &error))?.to_string();
    RedisServer::start_with(&[
        "--cluster-enabled",
        "yes",
        "--cluster-port",
        &bus,
        "--cluster-node-timeout",
        PATIENT_MS,
        "--repl-diskless-sync-delay",
        "0",
        // A lost primary takes the other slots with it, as the default is.
        "--cluster-require-full-coverage",
        "yes",
    ])
}

/// First and last slot of a primary.
fn bounds(place: usize) -> (u16, u16) {
    match place {
        0 => (0, 5460),
        1 => (5461, 10922),
        _ => (10923, 16383),
    }
}
