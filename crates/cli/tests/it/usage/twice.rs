//! What is told twice: by a node that was killed before it heard that it was heard, and by many who flush at once.

use std::time::Duration;

use tollkeeper_testkit::{Fault, FaultProxy, Postgres};

use super::fleet::Fleet;
use super::{Books, Keys};
use crate::time::pause;

#[test]
fn a_node_killed_after_redis_or_the_ledger_heard_it_and_before_it_heard_them_counts_nothing_twice()
{
    const ROUNDS: u64 = 4;
    let mut fleet = Fleet::on(Postgres::start().expect("a database server"), "0");
    let proxy = |port| FaultProxy::start(port).expect("a proxy");
    let (to_postgres, to_redis) = (proxy(fleet.postgres.port()), proxy(fleet.redis.port()));
    let direct = format!("127.0.0.1:{}", fleet.postgres.port());
    fleet.url = fleet.url.replace(&direct, &to_postgres.address().to_string());
    fleet.redis_url = format!("redis://{}", to_redis.address());
    fleet.join();
    let keys = Keys::make(&mut fleet.client(0), 20);
    let books = Books::default();
    for round in 0..ROUNDS {
        let node = fleet.nodes[0].0.pid();
        fleet.under_load(&books, &keys, || {
            pause(Duration::from_millis(400));
            // Requests arrive and are carried out; that they were is not heard. Of a transaction's answers any may be lost,
            // so that some rounds end before its commit and some behind it.
            if round % 2 == 0 {
                to_postgres.set(Fault::LoseReplies { seed: round, per_mille: 120 });
            } else {
                to_redis.set(Fault::DropReplies);
            }
            pause(Duration::from_millis(500 + 97 * round));
            let killed =
                std::process::Command::new("kill").args(["-9", &node.to_string()]).status();
            assert!(killed.expect("a signal").success());
        });
        fleet.nodes[0].0.kill9().expect("it has ended");
        to_postgres.set(Fault::Pass);
        to_redis.set(Fault::Pass);
        fleet.nodes[0].0 = fleet.start(&fleet.nodes[0].1);
    }
    fleet.flush();
    books.reconcile(&format!("{ROUNDS} kills without an answer"), &mut fleet.client(0));
    fleet.assert_whole();
}

#[test]
fn four_nodes_that_flush_at_once_without_taking_turns_count_what_one_would() {
    let fleet = Fleet::of(4, "0");
    let keys = Keys::make(&mut fleet.client(0), 20);
    let books = Books::default();
    // Somebody who is gone has the lock: whoever flushes does so without it.
    fleet.redis.ask(&["SET", "usage:buffer:flush:lock", "nobody"]);
    fleet.under_load(&books, &keys, || pause(Duration::from_secs(4)));
    fleet.flush();
    books.reconcile("four at once", &mut fleet.client(0));
    fleet.assert_whole();
    assert_eq!(fleet.redis.ask(&["GET", "usage:buffer:flush:lock"]).trim(), "nobody");
    assert_eq!(fleet.redis.ask(&["KEYS", "usage:buffer:minute:*"]).trim(), "");
}
