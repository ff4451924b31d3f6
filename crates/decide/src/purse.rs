//! Credits in hand: units leased from the bank in chunks and spent with local arithmetic.
//! Nothing is spent that was not leased, and what is granted or spent travels as totals of this process' life,
//! so that a message that is lost, late or sent twice neither makes nor destroys credits. A lease of which the bank has not
//! heard for too long is not spent from before it has answered again.

mod books;
mod pocket;

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tollkeeper_core::Millis;

use crate::ports::{Bank, OriginError};
use books::Books;
use pocket::Pocket;

/// A key that nobody used for so long has its credits given back, where other nodes can spend them.
const IDLE_MS: u64 = 60_000;
/// Pockets held in memory, at most: some 200 bytes each, 20 MB when full. Making one takes a call to the bank and
/// so does giving one back, so that between two rounds of tidying no more come than a round can return.
const POCKETS_MAX: usize = 100_000;
/// Give-backs under way at once: a quarter of the leases that can be.
const GIVING_AT_ONCE: usize = 16;
/// A second time where the first answer showed that this process had forgotten what it held before;
/// a third for good measure.
const ROUNDS_MAX: usize = 3;

#[derive(Debug)]
pub struct Purse {
    books: Arc<Books>,
}

/// Credits set aside for one request: to be spent by its decision, or free again when dropped.
#[derive(Debug)]
pub struct Held {
    books: Arc<Books>,
    key_id: Arc<str>,
    cost: u64,
    life: u64,
}

/// What is there for a request.
#[derive(Debug)]
pub enum Filled {
    Held(Held),
    /// Neither in hand nor at the bank.
    Short,
    /// The bank knows no limit for this key (any more).
    Unlimited,
}

/// What a take came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub enough: bool,
    /// Spent by this process so far, this take included: what the journal keeps.
    pub spent: u64,
    /// In hand and at the bank, as far as is known here.
    pub balance: u64,
}

// === impl Purse ===

impl Purse {
    pub fn new(bank: Arc<dyn Bank>, boot: [u8; 16], backstage: Handle) -> Self {
        Self { books: Arc::new(Books::new(bank, boot, backstage)) }
    }

    /// Sets `cost` aside, if it is in hand or at the bank. Callers of one key share a call to the bank, and its
    /// failure too: trying again one after the other would make the last of them wait for ever.
    pub async fn fill(
        &self,
        key_id: &Arc<str>,
        cost: u64,
        now: Millis,
    ) -> Result<Filled, OriginError> {
        let seen = self.books.shard(key_id).get(key_id).map_or(0, Pocket::failures);
        for _ in 0..ROUNDS_MAX {
            if let Some(filled) = self.books.try_fill(key_id, cost, now) {
                return Ok(filled);
            }
            let flight = self.books.flight(key_id).await;
            if let Some(filled) = self.books.try_fill(key_id, cost, now) {
                return Ok(filled);
            }
            let failed = |pocket: &Pocket| pocket.failure_since(seen);
            if let Some(error) = self.books.shard(key_id).get(key_id).and_then(failed) {
                return Err(error);
            }
            let books = Arc::clone(&self.books);
            let leasing = books.lease(Arc::clone(key_id), cost, now, flight);
            if let Some(filled) = self.run(leasing).await? {
                return Ok(filled);
            }
        }
        Ok(Filled::Short)
    }

    /// Spends what was set aside. Synchronous: part of the decision. Not enough only where everything was
    /// given back in between.
    pub fn take(&self, mut held: Held) -> Taken {
        let (cost, life) = (std::mem::take(&mut held.cost), held.life);
        let mut shard = self.books.shard(&held.key_id);
        let taken = shard.get_mut(&held.key_id).map(|pocket| {
            let enough = pocket.spend(cost, life);
            Taken { enough, ..pocket.look() }
        });
        taken.unwrap_or(Taken { enough: cost == 0, spent: 0, balance: 0 })
    }

    /// What there is, without taking any.
    pub fn look(&self, key_id: &str) -> Taken {
        let none = Taken { enough: false, spent: 0, balance: 0 };
        self.books.shard(key_id).get(key_id).map_or(none, Pocket::look)
    }

    /// Gives everything of one key back, because its balance is about to be changed by hand. Requests that
    /// are between warm and decided may find it gone.
    pub async fn give_back(&self, key_id: &str) -> Result<(), OriginError> {
        let flight = self.books.flight(key_id).await;
        let giving = Arc::clone(&self.books).give_back(key_id.into(), |_| true, flight);
        self.run(giving).await.map(drop)
    }

    /// Forgets that a key has no credits left, because it is about to get some.
    pub async fn forget_empty(&self, key_id: &str) -> Result<(), OriginError> {
        let flight = self.books.flight(key_id).await;
        let giving = Arc::clone(&self.books).give_back(key_id.into(), Pocket::is_spent, flight);
        self.run(giving).await.map(drop)
    }

    /// Tells the bank what was spent since it last heard, for at most `most` keys.
    pub async fn report(&self, most: usize, now: Millis) -> Result<usize, OriginError> {
        let mut due = self.books.each(|key_id, pocket| {
            pocket.unreported().then(|| (Arc::clone(key_id), pocket.lease().spent))
        });
        due.truncate(most);
        let reported = due.len();
        for (key_id, spent) in due {
            self.run(Arc::clone(&self.books).report(key_id, spent, now)).await?;
        }
        Ok(reported)
    }

    /// Gives back what was not used for a while, and beyond the bound what was not used for longest.
    /// Returns how many keys that were. To be called every few seconds.
    pub async fn tidy(&self, now: Millis) -> Result<usize, OriginError> {
        let mut unused = self
            .books
            .each(|key_id, pocket| pocket.unused_since().map(|since| (since, Arc::clone(key_id))));
        let too_many = self.books.len().saturating_sub(POCKETS_MAX);
        let idle = unused.iter().filter(|(since, _)| now.since(*since) >= IDLE_MS).count();
        unused.sort_unstable();
        unused.truncate(idle.max(too_many));
        let keys = unused.into_iter().map(|(since, key_id)| (key_id, Some(since))).collect();
        self.run(give_back_all(Arc::clone(&self.books), keys)).await
    }

    /// Gives everything back, at the end, when nothing decides any more. What fails here, the next process
    /// gives back from the journal.
    pub async fn close(&self) -> Result<(), OriginError> {
        let keys = self.books.each(|key_id, _| Some((Arc::clone(key_id), None)));
        self.run(give_back_all(Arc::clone(&self.books), keys)).await.map(drop)
    }

    /// What this process has spent so far, key by key. A key that is missing was given back: the bank knows
    /// its total.
    pub fn totals(&self) -> Vec<(Arc<str>, u64)> {
        let total = |key_id: &Arc<str>, spent| (spent > 0).then(|| (Arc::clone(key_id), spent));
        self.books.each(|key_id, pocket| total(key_id, pocket.lease().spent))
    }

    /// Keys whose credits are in hand here.
    pub fn len(&self) -> usize {
        self.books.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where storage belongs, and to its end even if whoever asked is gone.
    async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, OriginError>> + Send + 'static,
    ) -> Result<T, OriginError> {
        self.books.backstage.spawn(work).await.map_err(OriginError::new)?
    }
}

/// Gives back what was not used since, some keys at a time. After a failure no more are tried.
async fn give_back_all(
    books: Arc<Books>,
    keys: Vec<(Arc<str>, Option<Millis>)>,
) -> Result<usize, OriginError> {
    let (mut under_way, mut given) = (JoinSet::new(), Ok(0));
    for (key_id, since) in keys {
        if under_way.len() >= GIVING_AT_ONCE {
            given = tally(given, under_way.join_next().await);
        }
        if given.is_err() {
            break;
        }
        let books = Arc::clone(&books);
        under_way.spawn(async move {
            let flight = books.flight(&key_id).await;
            let unused = move |pocket: &Pocket| since.is_none() || pocket.unused_since() == since;
            books.give_back(key_id, unused, flight).await
        });
    }
    while let Some(ended) = under_way.join_next().await {
        given = tally(given, Some(ended));
    }
    given
}

/// The first failure is the one that is told.
fn tally(
    so_far: Result<usize, OriginError>,
    ended: Option<Result<Result<bool, OriginError>, tokio::task::JoinError>>,
) -> Result<usize, OriginError> {
    let given = so_far?;
    match ended {
        None => Ok(given),
        Some(ended) => Ok(given + usize::from(ended.map_err(OriginError::new)??)),
    }
}

// === impl Held ===

impl Drop for Held {
    fn drop(&mut self) {
        if self.cost == 0 {
            return;
        }
        if let Some(pocket) = self.books.shard(&self.key_id).get_mut(&self.key_id) {
            pocket.release(self.cost, self.life);
        }
    }
}
