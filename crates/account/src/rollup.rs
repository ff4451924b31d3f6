//! Decisions added up by the minute: per tenant, endpoint and identity, with a histogram of how long they took.
//! Each thread adds to a page of its own; a reader takes the pages away and adds them up by name.

mod whose;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_utils::CachePadded;
use tollkeeper_core::{Decision, Grain, Millis, RollupCounts, RollupKey};

use crate::histogram::bucket_of_ns;

use whose::ToldNames;
pub use whose::Whose;

/// Cells on one page between two readings, ten seconds apart: about 2 MB. Beyond them identities are not told
/// apart any more.
const CELLS_MAX: usize = 8_192;

/// Beyond these, which leave room for a cell per tenant and endpoint, decisions are not added up but counted.
const CELLS_LAST: usize = 2 * CELLS_MAX;

/// Endpoints of a tenant that are told apart.
pub const ENDPOINTS_MAX: usize = 200;
/// Tenants whose endpoints are remembered. When there are more, all begin anew.
const TENANTS_MAX: usize = 1_000;
/// Identities of a tenant that are told apart between two readings: the busiest thousand, usually.
const IDENTITIES_MAX: usize = 1_000;

/// The endpoint of all that are not told apart.
pub const OTHER_ENDPOINT: &str = "other";
/// The identity of all that are not told apart. No identity can be called so.
pub const OTHER_IDENTITIES: &str = "*";

/// A handle for one thread: clones share the book, [`Rollups::at_page`] gives each thread its page.
#[derive(Clone, Debug)]
pub struct Rollups {
    book: Arc<Book>,
    page: usize,
}

#[derive(Debug)]
struct Book {
    pages: Box<[CachePadded<Mutex<Page>>]>,
    /// The endpoints that have a name of their own, by tenant: the first that came.
    endpoints: Mutex<HashMap<Arc<str>, HashSet<Arc<str>>>>,
    region: Arc<str>,
    nothing: Arc<str>,
    others: Arc<str>,
    dropped: AtomicU64,
}

/// Where the texts of a cell stand in memory, which the cell itself keeps there: cheaper to compare than what they
/// say. A text that stands in two places makes two cells, which are one again when they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Place {
    minute: u64,
    tenant: usize,
    endpoint: usize,
    identity: usize,
}

#[derive(Debug, Default)]
struct Page {
    cells: Cells,
    told: ToldNames,
}

type Cells = HashMap<Place, Cell, BuildHasherDefault<PlaceHash>>;

/// Places in memory are nobody's choice, so that a hash that nobody can steer would only cost.
#[derive(Debug, Default)]
struct PlaceHash(u64);

#[derive(Debug)]
struct Cell {
    tenant_id: Arc<str>,
    endpoint: Arc<str>,
    external_id: Arc<str>,
    counts: RollupCounts,
}

/// One decision, as far as it is added up.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    pub at: Millis,
    pub tenant_id: &'a Arc<str>,
    pub endpoint: Option<&'a Arc<str>>,
    pub whose: Option<Whose<'a>>,
    pub decision: Decision,
    pub cache: Option<CacheSight>,
    pub latency_ns: u64,
}

/// Whether a key was near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheSight {
    Hit,
    Miss,
}

// === impl PlaceHash ===

impl Hasher for PlaceHash {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        // The low bits of a product know nothing of high ones, and places are multiples of sixteen.
        self.0 ^ (self.0 >> 32)
    }
}

// === impl Rollups ===

impl Rollups {
    pub fn new(pages: usize, region: Option<&str>) -> Self {
        let book = Book {
            pages: (0..pages.max(1)).map(|_| CachePadded::default()).collect(),
            endpoints: Mutex::default(),
            region: region.unwrap_or_default().into(),
            nothing: "".into(),
            others: OTHER_IDENTITIES.into(),
            dropped: AtomicU64::new(0),
        };
        Self { book: Arc::new(book), page: 0 }
    }

    #[must_use]
    pub fn at_page(&self, page: usize) -> Self {
        Self { page: page % self.book.pages.len(), ..self.clone() }
    }

    pub fn note(&self, sight: &Sight<'_>) {
        let book = &*self.book;
        let Page { cells: page, told } = &mut *lock(&book.pages[self.page]);
        let placed;
        let named = match sight.whose {
            None => &book.nothing,
            Some(Whose::Stored(name)) => name,
            Some(Whose::Told(name)) => {
                placed = told.place(name, CELLS_MAX);
                placed.as_ref().unwrap_or(&book.others)
            }
        };
        let mut identity = named;
        let full = page.len() >= CELLS_MAX && !named.is_empty();
        if full && !page.contains_key(&sight.place(book, named)) {
            identity = &book.others;
        }
        let place = sight.place(book, identity);
        if page.len() >= CELLS_LAST && !page.contains_key(&place) {
            book.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let cell = page.entry(place).or_insert_with(|| Cell {
            tenant_id: Arc::clone(sight.tenant_id),
            endpoint: Arc::clone(sight.endpoint.unwrap_or(&book.nothing)),
            external_id: Arc::clone(identity),
            counts: RollupCounts::default(),
        });
        cell.counts.count(sight.decision);
        match sight.cache {
            Some(CacheSight::Hit) => cell.counts.cache_hits += 1,
            Some(CacheSight::Miss) => cell.counts.cache_misses += 1,
            None => {}
        }
        if let Some(bucket) = cell.counts.latency.get_mut(bucket_of_ns(sight.latency_ns)) {
            *bucket += 1;
        }
    }

    /// All that was added up since the last time, by name and in the order of names.
    pub fn take(&self) -> BTreeMap<RollupKey, RollupCounts> {
        let mut identities: HashMap<Arc<str>, HashSet<Arc<str>>> = HashMap::new();
        let mut sums: BTreeMap<RollupKey, RollupCounts> = BTreeMap::new();
        let pages = self.book.pages.iter();
        let mut cells: Vec<(u64, Cell)> = pages
            .flat_map(|page| std::mem::take(&mut *lock(page)).cells)
            .map(|(place, cell)| (place.minute, cell))
            .collect();
        // The busiest first: they are the ones to be told apart.
        cells.sort_by_key(|(_, cell)| std::cmp::Reverse(cell.counts.total()));
        for (minute, cell) in cells {
            let known = identities.entry(Arc::clone(&cell.tenant_id)).or_default();
            let external_id = known_or(known, cell.external_id, IDENTITIES_MAX, &self.book.others);
            let key = RollupKey {
                time: Millis(minute * Grain::Minute.millis()),
                endpoint: self.endpoint(&cell.tenant_id, cell.endpoint),
                tenant_id: cell.tenant_id,
                external_id,
                region: Arc::clone(&self.book.region),
            };
            sums.entry(key).or_default().add(&cell.counts);
        }
        sums
    }

    /// What could not be stored is added up with what follows; beyond any bound it is counted and gone.
    pub fn give_back(&self, sums: BTreeMap<RollupKey, RollupCounts>) {
        let page = &mut lock(&self.book.pages[0]).cells;
        for (key, counts) in sums {
            let cell = Cell {
                tenant_id: key.tenant_id,
                endpoint: key.endpoint,
                external_id: key.external_id,
                counts,
            };
            let place = cell.place(key.time.0 / Grain::Minute.millis());
            if let Some(held) = page.get_mut(&place) {
                held.counts.add(&cell.counts);
            } else if page.len() >= CELLS_LAST {
                self.book.dropped.fetch_add(cell.counts.total(), Ordering::Relaxed);
            } else {
                page.insert(place, cell);
            }
        }
    }

    /// Decisions that are in no sum.
    pub fn dropped(&self) -> u64 {
        self.book.dropped.load(Ordering::Relaxed)
    }

    /// Its own name, for the first so many of a tenant since this process started.
    fn endpoint(&self, tenant_id: &Arc<str>, endpoint: Arc<str>) -> Arc<str> {
        if endpoint.is_empty() {
            return endpoint;
        }
        let mut known = lock(&self.book.endpoints);
        if known.len() >= TENANTS_MAX {
            known.clear();
        }
        let known = known.entry(Arc::clone(tenant_id)).or_default();
        if known.contains(&endpoint) {
            endpoint
        } else if known.len() < ENDPOINTS_MAX {
            known.insert(Arc::clone(&endpoint));
            endpoint
        } else {
            OTHER_ENDPOINT.into()
        }
    }
}

fn known_or(
    known: &mut HashSet<Arc<str>>,
    name: Arc<str>,
    most: usize,
    other: &Arc<str>,
) -> Arc<str> {
    if name.is_empty() || known.contains(&name) {
        return name;
    }
    if known.len() >= most {
        return Arc::clone(other);
    }
    known.insert(Arc::clone(&name));
    name
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn address(text: &Arc<str>) -> usize {
    text.as_ptr().addr()
}

// === impl Sight ===

impl Sight<'_> {
    fn place(&self, book: &Book, identity: &Arc<str>) -> Place {
        Place {
            minute: self.at.0 / Grain::Minute.millis(),
            tenant: address(self.tenant_id),
            endpoint: address(self.endpoint.unwrap_or(&book.nothing)),
            identity: address(identity),
        }
    }
}

// === impl Cell ===

impl Cell {
    fn place(&self, minute: u64) -> Place {
        Place {
            minute,
            tenant: address(&self.tenant_id),
            endpoint: address(&self.endpoint),
            identity: address(&self.external_id),
        }
    }
}

#[cfg(test)]
mod tests;
