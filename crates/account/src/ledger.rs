//! The ledger: a decision goes in, and only what went in comes out as an answer.
//! It never waits and never fails; each thread writes a page of its own.

use std::sync::Arc;

use crossbeam_utils::CachePadded;
use tollkeeper_core::Millis;
use tollkeeper_decide::{Decided, Limited};

use crate::tally::{Code, Kind, Reading, Tally};

/// A handle for one thread: clones share the book, [`Ledger::at_page`] gives each thread its page.
#[derive(Clone, Debug)]
pub struct Ledger {
    book: Arc<[CachePadded<Tally>]>,
    page: usize,
}

/// A decision that has been recorded: the only thing a reply can be built from.
#[derive(Debug)]
pub struct Answer<T> {
    made: T,
    at: Millis,
}

// === impl Ledger ===

impl Ledger {
    pub fn new(pages: usize) -> Self {
        let book = (0..pages.max(1)).map(|_| CachePadded::new(Tally::default())).collect();
        Self { book, page: 0 }
    }

    #[must_use]
    pub fn at_page(&self, page: usize) -> Self {
        Self { book: Arc::clone(&self.book), page: page % self.book.len() }
    }

    pub fn record(&self, kind: Kind, decided: Decided<Limited>) -> Answer<Limited> {
        let at = decided.at();
        let made = decided.open();
        let code = if made.passed { Code::Valid } else { Code::RateLimited };
        self.page().check(kind, code);
        Answer { made, at }
    }

    /// This thread's page, for counts that are not decisions.
    pub fn page(&self) -> &Tally {
        &self.book[self.page]
    }

    /// All pages, added up.
    pub fn read(&self) -> Reading {
        let mut reading = Reading::default();
        self.book.iter().for_each(|page| page.add_to(&mut reading));
        reading
    }
}

// === impl Answer ===

impl<T> Answer<T> {
    pub fn made(&self) -> &T {
        &self.made
    }

    /// The moment the decision was made for: what "in how long" is counted from.
    pub fn at(&self) -> Millis {
        self.at
    }
}
