//! The other ways to count, and what works over the whole fleet: fast, local, peek and reset.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;

use super::{Asked, Fleet, PATIENT, Tally, admitted, body, drive, one};
use crate::time::{eventually, now, pause};
use crate::world::LONG_MS;

#[test]
fn fast_never_waits_and_stays_within_its_bound() {
    const LIMIT: u64 = 300;
    let fleet = Fleet::of(3);
    let mut body = body("fast", LIMIT, LONG_MS, "fixed_window");
    body["consistency"] = json!("fast");
    let seen = drive(&fleet.nodes, 6, Duration::from_secs(2), 1_500, |_| Asked {
        body: body.clone(),
        cost: 1,
    });
    let got = admitted(&seen);
    // A tenth of the limit may be under way untold, over all nodes, and one cost of each.
    assert!(got <= LIMIT + LIMIT / 10 + 3, "{got}");
    assert!(got >= LIMIT * 9 / 10, "{got}");
}

#[test]
fn a_bundle_of_fast_limits_may_name_one_counter_twice() {
    let fleet = Fleet::of(3);
    let client = &mut fleet.clients()[0];
    for (limit, cost) in [(10, 1), (100, 2), (1_000, 20)] {
        let mut part = body(&format!("twice {limit}"), limit, LONG_MS, "fixed_window");
        (part["consistency"], part["cost"]) = (json!("fast"), json!(cost));
        let answer = client.data("ratelimit.multiLimit", &json!([part, part]));
        assert_eq!(answer["passed"], true, "{answer}");
    }
}

#[test]
fn local_counts_on_each_node_for_itself() {
    let fleet = Fleet::of(2);
    let mut clients = fleet.clients();
    let mut body = body("local", 5, LONG_MS, "sliding_window");
    body["consistency"] = json!("local");
    let asked = Asked { body, cost: 1 };
    for client in &mut clients {
        let got = (0..9).filter(|_| one(client, &asked).admitted).count();
        assert_eq!(got, 5);
    }
}

#[test]
fn a_peek_sees_what_the_whole_fleet_spent_and_spends_nothing_and_says_when_it_cannot() {
    let mut fleet = Fleet::with(3, &[PATIENT]);
    let mut clients = fleet.clients();
    let asked = Asked { body: body("seen", 1_000, LONG_MS, "sliding_window"), cost: 1 };
    let mut tally = Tally::default();
    (0..60).for_each(|n| tally.spend(&mut clients[n % 3], &asked, 1));
    let counted = tally.got..=tally.got + tally.unheard;
    let mut peek = asked.body.clone();
    peek.as_object_mut().expect("an object").retain(|name, _| name != "cost");
    for client in &mut clients {
        eventually("it sees all of it", || {
            let seen = client.data("limits.peek", &peek);
            seen["used"].as_u64().is_some_and(|used| counted.contains(&used))
                && seen.get("degraded").is_none()
        });
    }
    fleet.redis.kill();
    eventually("it says that it cannot see", || {
        clients[0].data("limits.peek", &peek)["degraded"] == true
    });
}

#[test]
fn a_peek_at_a_busy_counter_takes_for_spent_what_is_and_not_what_is_lent() {
    const LIMIT: u64 = 2_000;
    /// Spent while the others are asked, and while the answer is on its way, on a machine with other things to do.
    const MEANWHILE: u64 = 60;
    let fleet = Fleet::with(2, &[PATIENT]);
    let [spender, looker] = &mut fleet.clients()[..] else { panic!("two nodes") };
    let asked = Asked { body: body("busy", LIMIT, LONG_MS, "fixed_window"), cost: 1 };
    let mut peek = asked.body.clone();
    peek.as_object_mut().expect("an object").retain(|name, _| name != "cost");
    assert!(one(looker, &Asked { cost: 0, ..asked.clone() }).admitted);
    let (spent, over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while spent.load(Ordering::Relaxed) < LIMIT / 2 {
                assert!(one(spender, &asked).admitted);
                spent.fetch_add(1, Ordering::Relaxed);
                pause(Duration::from_millis(2));
            }
            over.store(true, Ordering::Relaxed);
        });
        while !over.load(Ordering::Relaxed) {
            let before = spent.load(Ordering::Relaxed);
            let used = looker.data("limits.peek", &peek)["used"].as_u64().expect("a number");
            let truth =
                before.saturating_sub(MEANWHILE)..=spent.load(Ordering::Relaxed) + MEANWHILE;
            assert!(truth.contains(&used), "{used} used, {truth:?} spent");
        }
    });
}

#[test]
fn a_reset_forgives_also_what_was_spent_of_leases_and_not_told_yet() {
    const LIMIT: u64 = 100;
    let fleet = Fleet::with(2, &[PATIENT]);
    let mut clients = fleet.clients();
    let asked = Asked { body: body("untold", LIMIT, LONG_MS, "fixed_window"), cost: 1 };
    let spend = |client: &mut crate::world::Client, times: u64| {
        (0..times).filter(|_| one(client, &asked).admitted).count() as u64
    };
    // Each node has a database of its own, and knows a namespace from the first request on.
    assert!(one(&mut clients[1], &Asked { cost: 0, ..asked.clone() }).admitted);
    for _ in 0..3 {
        assert_eq!(spend(&mut clients[0], 60), 60);
        clients[1].data("limits.reset", &json!({"namespace": "fleet", "identifier": "untold"}));
        // Whoever holds something gives it back when somebody else lacks it.
        let mut again = 0;
        eventually("all of it can be had again", || {
            again += spend(&mut clients[0], 1) + spend(&mut clients[1], 1);
            again >= LIMIT
        });
        assert_eq!((again, spend(&mut clients[0], 1)), (LIMIT, 0));
        clients[0].data("limits.reset", &json!({"namespace": "fleet", "identifier": "untold"}));
    }
}

#[test]
fn a_reset_reaches_what_other_nodes_count_for_themselves() {
    let fleet = Fleet::of(2);
    let mut clients = fleet.clients();
    let mut body = body("own", 5, LONG_MS, "sliding_window");
    body["consistency"] = json!("local");
    let asked = Asked { body, cost: 1 };
    assert!(one(&mut clients[0], &asked).admitted);
    assert_eq!((0..9).filter(|_| one(&mut clients[1], &asked).admitted).count(), 5);
    clients[0].data("limits.reset", &json!({"namespace": "fleet", "identifier": "own"}));
    eventually("the other node admits again", || one(&mut clients[1], &asked).admitted);
}

#[test]
fn who_only_looks_is_not_refused_while_redis_is_silent() {
    let fleet = Fleet::of(1);
    let mut client = fleet.clients().remove(0);
    for consistency in ["exact", "fast"] {
        let mut body = body("looked at", 100, LONG_MS, "fixed_window");
        body["consistency"] = json!(consistency);
        let looks = Asked { body, cost: 0 };
        let asked = Asked { cost: 1, ..looks.clone() };
        eventually("one is counted", || one(&mut client, &asked).admitted);
        fleet.redis.ask(&["CLIENT", "PAUSE", "200", "ALL"]);
        for _ in 0..5 {
            assert!(one(&mut client, &looks).admitted, "{consistency}");
        }
        eventually("redis answers again", || !one(&mut client, &looks).degraded);
    }
}

#[test]
fn a_reset_on_one_node_is_in_force_on_all_within_a_second() {
    let fleet = Fleet::of(3);
    let mut clients = fleet.clients();
    let asked = Asked { body: body("back", 20, LONG_MS, "fixed_window"), cost: 1 };
    eventually("it is used up", || !(0..3).any(|n| one(&mut clients[n], &asked).admitted));
    let reset =
        clients[1].data("limits.reset", &json!({"namespace": "fleet", "identifier": "back"}));
    assert!(reset["cells"].as_u64() >= Some(1), "{reset}");
    let begun = now();
    eventually("every node admits again", || {
        clients.iter_mut().all(|client| one(client, &asked).admitted)
    });
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
}
