//! Usage from the request to the ledger, against the real binary: what was answered is counted, once, whatever happens.

mod calls;
mod database;
mod disk;
mod fleet;
mod kill;
mod last_used;
mod outage;
mod restart;
mod restored;
mod twice;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::time::pause;
use crate::world::Client;

const DAY_MS: u64 = 86_400_000;

/// What clients know for certain, and what they cannot know.
#[derive(Debug, Default)]
struct Books {
    admitted: AtomicU64,
    denied: AtomicU64,
    /// Asked, and no answer came.
    admitted_maybe: AtomicU64,
    denied_maybe: AtomicU64,
}

/// A key that is let in, and one that is not.
struct Keys {
    good: Vec<String>,
    bad: String,
}

impl Keys {
    fn make(client: &mut Client, good: usize) -> Self {
        let api = client.data("apis.createApi", &json!({"name": "metered"}));
        let mut make = |more: Value| {
            let mut body = json!({"apiId": api["apiId"]});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let made = client.data("keys.createKey", &body);
            made["key"].as_str().expect("a key").to_owned()
        };
        let bad = make(json!({"enabled": false}));
        Self { good: (0..good).map(|_| make(json!({}))).collect(), bad }
    }

    /// One in five asks is about the key that is never let in.
    fn ask(&self, number: usize) -> (&str, bool) {
        if number % 5 == 4 {
            (&self.bad, false)
        } else {
            (&self.good[number % self.good.len()], true)
        }
    }
}

impl Books {
    /// Asks until the server is gone or `stop` says so.
    fn drive(&self, mut client: Client, keys: &Keys, from: usize, stop: &dyn Fn() -> bool) {
        for number in from.. {
            if stop() {
                return;
            }
            if number % 20 == 0 {
                // Whoever else is on this machine gets a turn.
                pause(Duration::from_millis(2));
            }
            let (key, good) = keys.ask(number);
            let (sure, maybe) = if good {
                (&self.admitted, &self.admitted_maybe)
            } else {
                (&self.denied, &self.denied_maybe)
            };
            match client.try_post("keys.verifyKey", &json!({"key": key})) {
                Ok(answer) if answer.status() == 200 => {
                    let expected = if good { "VALID" } else { "DISABLED" };
                    assert_eq!(answer.json["data"]["code"], expected, "{}", answer.json);
                    sure.fetch_add(1, Ordering::Relaxed);
                }
                // A database that is away: refused before anything was decided.
                Ok(answer) => assert_eq!(answer.status(), 503, "{}", answer.json),
                Err(_) => {
                    maybe.fetch_add(1, Ordering::Relaxed);
                    return;
                }
            }
        }
    }

    /// Whether the ledger has all that was answered; not as long as it cannot be asked.
    fn are_in_the_ledger(&self, client: &mut Client) -> bool {
        let range = json!({"from": now_ms() - DAY_MS, "to": now_ms() + DAY_MS, "by": "day"});
        let answer = client.post("usage.query", &range);
        let Some(rows) = answer.json["data"].as_array() else { return false };
        let sum = |field: &str| rows.iter().map(|row| row[field].as_u64().unwrap()).sum::<u64>();
        sum("requests") >= self.admitted.load(Ordering::Relaxed)
            && sum("denied") >= self.denied.load(Ordering::Relaxed)
    }

    /// Prints and checks: definite answers ≤ ledger ≤ definite + ambiguous.
    fn reconcile(&self, what: &str, client: &mut Client) {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let rows = usage(client, "day");
        let sum = |field: &str| rows.iter().map(|row| row[field].as_u64().unwrap()).sum::<u64>();
        for (name, sure, maybe, ledger) in [
            ("requests", of(&self.admitted), of(&self.admitted_maybe), sum("requests")),
            ("denied", of(&self.denied), of(&self.denied_maybe), sum("denied")),
        ] {
            #[allow(clippy::print_stdout, reason = "the reconciliation is what the test is for")]
            {
                println!(
                    "{what}: {name}: answered {sure}, without an answer {maybe}, ledger {ledger}, lost {}, doubled {}",
                    sure.saturating_sub(ledger),
                    ledger.saturating_sub(sure + maybe)
                );
            }
            assert!(sure > 0, "{what}: nothing happened");
            assert!((sure..=sure + maybe).contains(&ledger), "{what}: {name}");
        }
    }
}

/// All rows of today and its neighbours.
fn usage(client: &mut Client, by: &str) -> Vec<Value> {
    let (mut rows, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let mut body = json!({"from": now_ms() - DAY_MS, "to": now_ms() + DAY_MS, "by": by});
        if !cursor.is_null() {
            body["cursor"] = cursor;
        }
        let mut answer = client.post_patiently("usage.query", &body);
        assert_eq!(answer.status(), 200, "{}", answer.json);
        rows.extend(answer.json["data"].as_array().expect("rows").iter().cloned());
        cursor = answer.json["pagination"]["cursor"].take();
        if cursor.is_null() {
            return rows;
        }
    }
}

pub(crate) fn now_ms() -> u64 {
    #[allow(clippy::disallowed_methods, reason = "a client asks by its own clock")]
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(since.unwrap().as_millis()).unwrap()
}

/// Four callers of this server until it is gone; `meanwhile` ends it.
fn under_load(books: &Books, keys: &Keys, client: impl Fn() -> Client, meanwhile: impl FnOnce()) {
    const CALLERS: usize = 4;
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            let client = client();
            scope.spawn(move || books.drive(client, keys, caller * 1_000, &|| false));
        }
        meanwhile();
    });
}
