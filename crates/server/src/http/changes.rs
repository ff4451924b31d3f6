//! The one way to every call that changes something: bounded per root key, and done once per `Idempotency-Key`.
//! The key is claimed in the database before the change begins, so that a retry at another node does not do it again.

use std::time::Duration;

use sha2::{Digest, Sha256};
use tollkeeper_core::Millis;
use tollkeeper_store::{CallName, Remembered, Store, StoreError};

use super::call::Call;
use super::desk;
use super::idempotency::key_of;
use super::reply::Reply;
use super::route::Route;
use super::service::handle;
use super::sheet::Sheet;
use crate::status::Refusal;

/// As long as a job that runs every night may need to come back.
pub const REMEMBERED_MS: u64 = 24 * 60 * 60 * 1_000;
const BODY: &[u8] = b"body of a change ";
/// A claim this old without an answer belonged to a process that died: no change takes so long.
const ABANDONED_MS: u64 = 60_000;
/// 5 s in all, as long as the most impatient client waits; then it is told to come back. The first looks are close
/// together, because a change takes milliseconds; it may be another node's, so it is looked for in the database.
const WAITS_MS: [u64; 24] = [
    5, 10, 20, 40, 75, 100, 150, 200, 200, 200, 200, 250, 250, 250, 250, 300, 300, 300, 300, 300,
    300, 300, 350, 350,
];

pub async fn answer(route: &'static Route, call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let key = match key_of(call.headers) {
        Ok(key) => key,
        Err(fault) => {
            // No handler goes on behind it: whoever reads the body hears of it.
            call.is_wrong(fault);
            return handle(route.endpoint, call).await;
        }
    };
    // Whoever is not let in hears it from the handler, behind everything that is wrong with the body.
    let Ok(caller) = call.caller().await else { return handle(route.endpoint, call).await };
    call.settle_caller(&caller);
    call.app.throttles.change(&caller.id, call.now)?;
    let Some(key) = key else { return handle(route.endpoint, call).await };
    let claim = Claim {
        root_key_id: caller.id.to_string(),
        route: route.path,
        key: String::from_utf8_lossy(key).into_owned(),
        // Keyed: a body may hold a signing secret, and who reads the database must not be able to try secrets against it.
        // The label tells it from the hash of a key.
        body_hash: call.app.keyring.hash(&[BODY, Sha256::digest(call.body).as_slice()].concat()).0,
        at: call.now,
    };
    if let Some(given) = claim.stake(call).await? {
        return claim.again(call, &given);
    }
    let outcome = handle(route.endpoint, call).await;
    claim.settle(call, &outcome).await;
    outcome
}

/// One request's hold on its `Idempotency-Key`.
#[derive(Clone, Debug)]
struct Claim {
    root_key_id: String,
    route: &'static str,
    key: String,
    body_hash: [u8; 32],
    at: Millis,
}

// === impl Claim ===

impl Claim {
    /// The answer that was given before; without one, the key is ours from here on. While whoever came first is still
    /// being answered, the second waits for the same answer, or for its turn should the first be refused.
    #[allow(
        clippy::disallowed_methods,
        reason = "the first may be with another node: there is nothing to be woken by"
    )]
    async fn stake(&self, call: &Call<'_>) -> Result<Option<Vec<u8>>, Refusal> {
        for pause in WAITS_MS {
            match self.look(call).await {
                Err(Refusal::IdempotencyKeyBusy) => {
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                }
                settled => return settled,
            }
        }
        self.look(call).await
    }

    async fn look(&self, call: &Call<'_>) -> Result<Option<Vec<u8>>, Refusal> {
        let claim = self.clone();
        let found =
            desk::read(call, |store| async move { claim.find_or_hold(&store).await }).await?;
        let Some(found) = found else { return Ok(None) };
        if found.body_hash != self.body_hash {
            return Err(Refusal::IdempotencyKeyReused);
        }
        if found.answer.is_empty() {
            Err(Refusal::IdempotencyKeyBusy)
        } else {
            Ok(Some(found.answer))
        }
    }

    async fn find_or_hold(&self, store: &Store) -> Result<Option<Remembered>, StoreError> {
        let since = Millis(self.at.0.saturating_sub(REMEMBERED_MS));
        let held = self.remembered(Vec::new(), self.at);
        if store.remember(self.name(), &held, since).await? {
            return Ok(None);
        }
        let found = store.remembered(self.name(), since).await?.unwrap_or(held.clone());
        let abandoned = Millis(self.at.0.saturating_sub(ABANDONED_MS));
        let dead = found.answer.is_empty() && found.at < abandoned;
        if dead && store.remember(self.name(), &held, abandoned).await? {
            return Ok(None);
        }
        Ok(Some(found))
    }

    /// Keeps a success; frees the key after anything else, which changed nothing.
    async fn settle(&self, call: &Call<'_>, outcome: &Result<Reply, Refusal>) {
        let kept = match outcome {
            Ok(reply) if reply.status().is_success() => self.sealed(call, reply),
            _ => None,
        };
        // Moment 0 is older than anything that is still remembered.
        let kept = kept.map_or(self.remembered(Vec::new(), Millis(0)), |sealed| {
            self.remembered(sealed, self.at)
        });
        let (claim, over) = (self.clone(), Millis(self.at.0 + 1));
        let settled =
            desk::read(
                call,
                |store| async move { store.remember(claim.name(), &kept, over).await },
            );
        if let Err(refusal) = settled.await {
            let why = refusal.internal().unwrap_or("refused");
            tracing::warn!(request_id = call.id.as_str(), "an answer could not be kept: {why}");
        }
    }

    fn sealed(&self, call: &Call<'_>, reply: &Reply) -> Option<Vec<u8>> {
        call.app.keyring.envelope().seal(&self.row(), reply.body())
    }

    fn again(&self, call: &Call<'_>, sealed: &[u8]) -> Result<Reply, Refusal> {
        let body = call.app.keyring.envelope().open(&self.row(), sealed);
        let unreadable = || Refusal::Unexpected("a kept answer cannot be opened".into());
        let mut sheet = Sheet::new();
        sheet.timing(&call.timing);
        Ok(sheet.again(&body.ok_or_else(unreadable)?))
    }

    /// What a kept answer is bound to.
    fn row(&self) -> String {
        format!("{} {} {}", self.root_key_id, self.route, self.key)
    }

    fn name(&self) -> CallName<'_> {
        CallName { root_key_id: &self.root_key_id, route: self.route, key: &self.key }
    }

    fn remembered(&self, answer: Vec<u8>, at: Millis) -> Remembered {
        Remembered { body_hash: self.body_hash, answer, at }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const START: u64 = 1_800_000_000_000;

    fn claim(key: &str, body: u8, at: u64) -> Claim {
        let (root_key_id, key) = ("rk_1".to_owned(), key.to_owned());
        Claim { root_key_id, route: "/v2/x", key, body_hash: [body; 32], at: Millis(START + at) }
    }

    async fn keep(store: &Store, claim: &Claim, answer: &[u8]) {
        let kept = claim.remembered(answer.to_vec(), claim.at);
        assert!(store.remember(claim.name(), &kept, Millis(claim.at.0 + 1)).await.unwrap());
    }

    fn with_store<F: Future<Output = ()>>(test: impl FnOnce(Store) -> F) {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            test(Store::open(&folder.path().join("t.db")).await.unwrap()).await;
        });
    }

    #[test]
    fn an_answer_is_found_again_for_a_day_and_no_longer() {
        with_store(|store| async move {
            let first = claim("a", 1, 0);
            assert_eq!(first.find_or_hold(&store).await.unwrap(), None);
            keep(&store, &first, b"sealed").await;
            let within = claim("a", 1, REMEMBERED_MS).find_or_hold(&store).await.unwrap();
            assert_eq!(within.unwrap().answer, b"sealed");
            let after = claim("a", 1, REMEMBERED_MS + 1).find_or_hold(&store).await.unwrap();
            assert_eq!(after, None);
        });
    }

    #[test]
    fn a_key_that_is_held_is_busy_until_its_holder_must_be_dead() {
        with_store(|store| async move {
            assert_eq!(claim("a", 1, 0).find_or_hold(&store).await.unwrap(), None);
            let busy = claim("a", 1, ABANDONED_MS).find_or_hold(&store).await.unwrap();
            assert!(busy.unwrap().answer.is_empty());
            let dead = claim("a", 1, ABANDONED_MS + 1).find_or_hold(&store).await.unwrap();
            assert_eq!(dead, None);
            let taken = claim("a", 1, ABANDONED_MS + 2).find_or_hold(&store).await.unwrap();
            assert!(taken.is_some(), "by one, and not by two");
        });
    }

    #[test]
    fn whoever_took_over_keeps_the_key_from_the_one_that_was_slow() {
        with_store(|store| async move {
            let (slow, heir) = (claim("a", 1, 0), claim("a", 1, 2 * ABANDONED_MS));
            assert_eq!(slow.find_or_hold(&store).await.unwrap(), None);
            assert_eq!(heir.find_or_hold(&store).await.unwrap(), None);
            let late = slow.remembered(b"late".to_vec(), slow.at);
            assert!(!store.remember(slow.name(), &late, Millis(slow.at.0 + 1)).await.unwrap());
        });
    }
}
