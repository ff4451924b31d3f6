//! `kill -9`: what was answered more than 100 ms ago is kept, whatever the server was doing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::time::{now, pause};
use crate::world::{ALGORITHMS, Client, World};

/// What a kill may cost.
const LOSS: Duration = Duration::from_millis(100);

#[test]
fn nothing_that_was_answered_150_ms_before_a_kill_is_lost() {
    let mut world = World::new();
    for round in 1..=10 {
        let mut client = world.client();
        for algorithm in ALGORITHMS {
            (0..7).for_each(|_| client.spend("ann", algorithm, 1));
            client.spend("bob", algorithm, 5);
        }
        pause(Duration::from_millis(150));
        world.crash();
        let mut client = world.client();
        for algorithm in ALGORITHMS {
            let used = (client.used("ann", algorithm), client.used("bob", algorithm));
            assert_eq!(used, (7 * round, 5 * round), "{algorithm}, kill {round}");
        }
    }
}

/// Spends until the server is gone; hands back when each spend was acknowledged.
fn spend_to_the_end(mut client: Client, identifier: &str, sent: &AtomicU64) -> Vec<Instant> {
    let mut acknowledged = Vec::new();
    let body = crate::world::ask("api", identifier, 1_000_000);
    loop {
        sent.fetch_add(1, Ordering::Relaxed);
        let Ok(answer) = client.try_post("ratelimit.limit", &body) else { return acknowledged };
        assert_eq!(answer.json["data"]["success"], true, "{}", answer.json);
        acknowledged.push(now());
    }
}

#[test]
fn a_kill_in_the_middle_of_traffic_loses_at_most_the_last_100_ms() {
    let mut world = World::new();
    for round in 0..10_u64 {
        let identifiers = [format!("left-{round}"), format!("right-{round}")];
        let sent = [AtomicU64::new(0), AtomicU64::new(0)];
        let (killed, acknowledged) = thread::scope(|scope| {
            let spenders: Vec<_> = identifiers
                .iter()
                .zip(&sent)
                .map(|(identifier, sent)| {
                    let client = world.client();
                    scope.spawn(move || spend_to_the_end(client, identifier, sent))
                })
                .collect();
            // Different lengths, so that the kills fall on different moments of the server's own beat.
            pause(Duration::from_millis(250 + 17 * round));
            let killed = now();
            world.server.kill9().expect("it can be killed");
            let acknowledged: Vec<_> =
                spenders.into_iter().map(|spender| spender.join().expect("it ends well")).collect();
            (killed, acknowledged)
        });
        world.start_again();
        let mut client = world.client();
        for (at, identifier) in identifiers.iter().enumerate() {
            let kept = client.data("limits.peek", &crate::world::ask("api", identifier, 1_000_000));
            let kept = kept["used"].as_u64().expect("a count");
            let old = |ack: &&Instant| killed.saturating_duration_since(**ack) > LOSS;
            let due = acknowledged[at].iter().filter(old).count() as u64;
            let sent = sent[at].load(Ordering::Relaxed);
            assert!(due > 0, "round {round} was too short to say anything");
            assert!(kept >= due, "round {round}: {kept} kept, {due} were older than {LOSS:?}");
            assert!(kept <= sent, "round {round}: {kept} kept, only {sent} sent");
        }
    }
}
