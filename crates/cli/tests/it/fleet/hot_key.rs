//! One identifier that everybody asks for: what it costs Redis while it has units, and once it has none.

use std::time::Duration;

use super::{Asked, Fleet, admitted, body, drive, one};
use crate::time::eventually;
use crate::world::LONG_MS;

const NODES: u64 = 3;

/// Calls that nodes make whether anybody asks or not: links ten times a second, members twice.
fn idle(seconds: u64) -> u64 {
    NODES * 13 * seconds
}

#[test]
fn a_hot_key_costs_calls_by_its_limit_and_not_by_its_requests() {
    const LIMIT: u64 = 3_000;
    let fleet = Fleet::of(3);
    let asked = Asked { body: body("hot", LIMIT, LONG_MS, "fixed_window"), cost: 1 };
    let before = fleet.calls();
    let seen = drive(&fleet.nodes, 6, Duration::from_secs(3), 3_000, |_| asked.clone());
    let calls = (fleet.calls() - before).saturating_sub(idle(3));
    assert!(admitted(&seen) <= LIMIT);
    // αN(1 + ln(L/αN)) is 44 for three nodes; as much again for the first requests of each, for recalls of the last units, and
    // for calls that a busy machine heard too late and made twice.
    assert!(calls <= 3 * 44, "{calls} calls for {} requests", seen.len());
}

#[test]
fn a_key_that_is_refused_costs_each_node_hardly_a_call() {
    let fleet = Fleet::of(3);
    let mut clients = fleet.clients();
    let asked = Asked { body: body("refused", 10, LONG_MS, "fixed_window"), cost: 1 };
    eventually("it is used up", || {
        (0..9).all(|n| {
            let seen = one(&mut clients[n % 3], &asked);
            !seen.admitted && !seen.degraded
        })
    });
    let before = fleet.calls();
    let seen = drive(&fleet.nodes, 6, Duration::from_secs(2), 2_000, |_| asked.clone());
    let calls = (fleet.calls() - before).saturating_sub(idle(2));
    assert_eq!(admitted(&seen), 0);
    // One in 20 ms for each node would be 300.
    assert!(calls <= 30, "{calls} calls for {} refusals", seen.len());
}
