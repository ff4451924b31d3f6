//! The ledger: a decision goes in, and only what went in comes out as an answer.
//! It never waits and never fails; each thread writes a page of its own.

use std::sync::Arc;

use crossbeam_utils::CachePadded;
use tollkeeper_core::{Millis, Usage, Verdict};
use tollkeeper_decide::{Decided, Limited, Verified, VerifiedLimit, WarmKey};

use crate::journal::{CreditSpent, SharedJournal};
use crate::last_used::LastUsed;
use crate::meter::Meter;
use crate::tally::{Code, Kind, Reading, Tally};

/// A handle for one thread: clones share the book, [`Ledger::at_page`] gives each thread its page.
#[derive(Clone, Debug)]
pub struct Ledger {
    book: Arc<[CachePadded<Tally>]>,
    page: usize,
    journal: Option<SharedJournal>,
    last_used: Arc<LastUsed>,
    meter: Option<Meter>,
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
        Self { book, page: 0, journal: None, last_used: Arc::default(), meter: None }
    }

    /// With somewhere to keep what is money.
    #[must_use]
    pub fn keeping(self, journal: SharedJournal) -> Self {
        Self { journal: Some(journal), ..self }
    }

    /// With somewhere to count usage.
    #[must_use]
    pub fn metering(self, meter: Meter) -> Self {
        Self { meter: Some(meter), ..self }
    }

    #[must_use]
    pub fn at_page(&self, page: usize) -> Self {
        Self { page: page % self.book.len(), ..self.clone() }
    }

    pub fn record(&self, kind: Kind, decided: Decided<Limited>) -> Answer<Limited> {
        let at = decided.at();
        let made = decided.open();
        let code = if made.passed { Code::Valid } else { Code::RateLimited };
        self.page().check(kind, code);
        if made.limits.iter().any(|one| one.degraded) {
            self.page().fallback(made.passed);
        }
        // A look is no use of the limit.
        for one in made.limits.iter().filter(|_| kind != Kind::Peek) {
            one.count.hit();
            if !one.outcome.admitted() {
                one.count.deny();
            }
        }
        Answer { made, at }
    }

    /// Has fetched, while the decision is made, what recording it will add to.
    pub fn expect(&self, warm: &WarmKey, at: Millis) {
        if let (Some(meter), Some(key)) = (&self.meter, warm.key()) {
            meter.fetch(key, at);
        }
    }

    /// Every outcome is counted, `NOT_FOUND` too, unless it only says what would happen. Spent credits are in the
    /// journal before this returns.
    pub fn record_verified(
        &self,
        kind: Kind,
        decided: Decided<Box<Verified>>,
    ) -> Answer<Box<Verified>> {
        let at = decided.at();
        let made = decided.open();
        if made.dry {
            return Answer { made, at };
        }
        self.page().check(kind, made.verdict.into());
        if made.is_degraded() {
            self.page().fallback(made.passed());
        }
        if let Some(key) = made.key.as_ref().filter(|_| made.passed()) {
            self.last_used.note(key, at);
        }
        count(&made, at);
        if made.credits_spent > 0 {
            self.keep_spending(&made);
        }
        self.record_usage(&made, at);
        Answer { made, at }
    }

    /// Usage of a key that was found: admitted, or denied for whatever reason. In the kernel's hands when this returns.
    fn record_usage(&self, made: &Verified, at: Millis) {
        let (Some(meter), Some(key)) = (&self.meter, &made.key) else { return };
        let counted = if made.passed() {
            Usage { bytes: made.bytes, ..Usage::request() }
        } else {
            // What was refused moved nothing.
            Usage::denial()
        };
        meter.count(key, Usage { credits: made.credits_spent, ..counted }, at);
    }

    /// A write that fails leaves a gap, which the keeper sees and mends; the credits are spent all the same,
    /// and should this process die before, the next one takes none of its credits back.
    fn keep_spending(&self, made: &Verified) {
        if let (Some(journal), Some(key), Some(taken)) = (&self.journal, &made.key, &made.credits) {
            let mut journal = journal.lock();
            let boot = journal.boot();
            let spent =
                CreditSpent { boot, key_id: Arc::clone(&key.record.id), total: taken.spent };
            let _ = journal.note_spent(&[spent]);
        }
    }

    pub fn last_used(&self) -> &LastUsed {
        &self.last_used
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

/// Of a request that was refused, the limits count that refused it: the others would have let it pass.
fn count(made: &Verified, at: Millis) {
    for one in &made.limits {
        let Some(count) = &one.terms.count else { continue };
        count.hit();
        match (one.outcome.admitted(), one.is_shadow()) {
            (false, true) => count.shadow(),
            (false, false) => count.deny(),
            (true, _) => {}
        }
    }
    count_rules(made);
    if let Some(count) = made.owner_count() {
        count.hit();
        count.seen(at);
        if matches!(made.verdict, Verdict::RateLimited | Verdict::UsageExceeded) {
            count.deny();
        }
    }
}

/// Each rule once, however many of its limits were met. They stand side by side.
fn count_rules(made: &Verified) {
    let of_one_rule = |one: &VerifiedLimit, next: &VerifiedLimit| match (one.rule(), next.rule()) {
        (Some(one), Some(next)) => Arc::ptr_eq(one, next),
        _ => false,
    };
    for limits in made.limits.chunk_by(of_one_rule) {
        let Some(count) = limits.first().and_then(VerifiedLimit::whole_rule) else { continue };
        count.hit();
        match limits.iter().find(|one| !one.outcome.admitted()).map(VerifiedLimit::is_shadow) {
            Some(true) => count.shadow(),
            Some(false) => count.deny(),
            None => {}
        }
    }
    if let Some(count) = &made.ended_by {
        count.hit();
        if made.verdict == Verdict::Blocked {
            count.deny();
        }
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
