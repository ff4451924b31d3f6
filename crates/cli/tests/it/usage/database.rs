//! PostgreSQL that is there and does not answer: locked, out of connections, left in the middle by callers who hang up.
//! Whoever is known is verified as ever, nobody waits for long, and usage only waits.

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::fleet::Fleet;
use super::{Books, Keys};
use crate::time::{eventually, now, pause};
use crate::world::{Client, side_by_side};

const HELD: &str =
    "BEGIN; LOCK TABLE keys, usage_ledger IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(5); COMMIT";
const IS_HELD: &str = "SELECT COUNT(*) FROM pg_locks WHERE granted AND mode = 'AccessExclusiveLock'
    AND relation = 'usage_ledger'::regclass";

fn verify(client: &mut Client, key: &str) -> (Duration, u16, Value) {
    let asked = now();
    let mut answer = client.post("keys.verifyKey", &json!({"key": key}));
    (asked.elapsed(), answer.status(), answer.json["data"]["code"].take())
}

#[test]
fn a_locked_database_costs_known_keys_nothing_unknown_ones_a_moment_and_usage_only_time() {
    let fleet = Fleet::of(1, "0");
    let (known, unseen) =
        (Keys::make(&mut fleet.client(0), 5), Keys::make(&mut fleet.client(0), 20));
    for key in &known.good {
        assert_eq!(verify(&mut fleet.client(0), key).2, "VALID");
    }
    thread::scope(|scope| {
        let held = scope.spawn(|| fleet.sql(HELD).expect("it is locked for a while"));
        eventually("it is locked", || fleet.sql(IS_HELD).is_ok_and(|count| count == "1"));
        // Usage waits for the lock, in a pool of its own.
        let flush = scope.spawn(|| fleet.client(0).post("usage.flush", &json!({})).status());
        // More at once than there are connections for those that are not known.
        let misses =
            scope.spawn(|| side_by_side(20, |at| verify(&mut fleet.client(0), &unseen.good[at])));
        let mut client = fleet.client(0);
        let mut took: Vec<_> = (0..200)
            .map(|number| {
                pause(Duration::from_millis(10));
                let (took, _, code) = verify(&mut client, &known.good[number % 5]);
                assert_eq!(code, "VALID");
                took
            })
            .collect();
        assert_eq!(fleet.sql(IS_HELD).expect("an answer"), "1", "all of it while it was locked");
        took.sort_unstable();
        assert!(took[100] < Duration::from_millis(5), "half of them took {:?}", took[100]);
        for (took, status, _) in misses.join().expect("answers") {
            assert_eq!(status, 503, "not known is not the same as unknown");
            assert!(took < Duration::from_secs(3), "{took:?}");
        }
        held.join().expect("it is free again");
        assert!([200, 503].contains(&flush.join().expect("an answer")));
    });
    for key in &unseen.good {
        let mut client = fleet.client(0);
        eventually("it is found", || verify(&mut client, key).2 == "VALID");
    }
    fleet.flush();
    let sums = "SELECT SUM(requests), SUM(denied) FROM usage_record";
    assert_eq!(fleet.sql(sums).expect("sums"), "225|0");
    fleet.assert_whole();
}

#[test]
fn callers_that_hang_up_in_the_middle_of_a_change_leave_no_transaction_open() {
    const CALLERS: u64 = 4;
    const CALLS: u64 = 200;
    let fleet = Fleet::of(1, "0");
    let keys = Keys::make(&mut fleet.client(0), 1);
    let api = fleet.client(0).data("apis.createApi", &json!({"name": "left"}))["apiId"].take();
    let (node, _) = &fleet.nodes[0];
    let address = node.url().trim_start_matches("http://");
    side_by_side(4, |caller| {
        for call in 0..CALLS {
            let (method, body) = if call % 3 == 0 {
                ("usage.flush", json!({}))
            } else {
                ("keys.createKey", json!({"apiId": api, "permissions": [format!("p{call}")]}))
            };
            let body = body.to_string();
            let mut stream = TcpStream::connect(address).expect("it listens");
            let head = format!(
                "POST /v2/{method} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n",
                node.root_key(),
                body.len()
            );
            stream.write_all((head + &body).as_bytes()).expect("sent");
            // Other moments of its work each time, from before it has begun to behind its end.
            pause(Duration::from_micros((call * CALLERS + caller as u64) * 7_919 % 9_000));
        }
    });
    let open = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database()
        AND state LIKE 'idle in transaction%'";
    eventually("nothing is left open", || fleet.sql(open).expect("an answer") == "0");
    let made = fleet.sql("SELECT COUNT(*) FROM keys WHERE project_id IN (SELECT id FROM projects WHERE name = 'left')");
    let made: u64 = made.expect("an answer").parse().expect("a number");
    assert!(
        (1..CALLERS * CALLS * 2 / 3).contains(&made),
        "{made}: some were given up, and some were not"
    );
    // And all its connections are of use.
    let books = Books::default();
    fleet.under_load(&books, &keys, || pause(Duration::from_millis(500)));
    fleet.flush();
    books.reconcile("after 800 hung up", &mut fleet.client(0));
    side_by_side(8, |_| fleet.client(0).data("keys.createKey", &json!({"apiId": api})));
}
