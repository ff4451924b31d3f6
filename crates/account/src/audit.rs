//! Decisions on their way into the audit: all denials, and a share of what was allowed.
//! Noting one costs a request next to nothing and never waits; what finds no room is counted, not kept.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_utils::CachePadded;
use tollkeeper_core::{AuditRow, Decision};

/// Rows that wait to be written, at most, those in the writer's hands included: what a busy node denies in the
/// seconds for which a database may be away, in about 30 MB.
const WAITING_MAX: usize = 65_536;

/// A handle for one thread: clones share the queue, [`Audit::at_page`] gives each thread its own end of it.
#[derive(Clone, Debug)]
pub struct Audit {
    queue: Arc<Queue>,
    page: usize,
}

#[derive(Debug)]
struct Queue {
    pages: Box<[CachePadded<Mutex<VecDeque<AuditRow>>>]>,
    waiting: AtomicUsize,
    written: AtomicU64,
    dropped: AtomicU64,
    sample: Sample,
}

/// The share of allowed decisions that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Of 2^32.
    below: u64,
}

/// What became of the rows so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditCounts {
    pub waiting: usize,
    pub written: u64,
    /// Not kept, for lack of room or because the database refused them.
    pub dropped: u64,
}

// === impl Audit ===

impl Audit {
    pub fn new(pages: usize, sample: Sample) -> Self {
        let queue = Queue {
            pages: (0..pages.max(1)).map(|_| CachePadded::default()).collect(),
            waiting: AtomicUsize::new(0),
            written: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            sample,
        };
        Self { queue: Arc::new(queue), page: 0 }
    }

    #[must_use]
    pub fn at_page(&self, page: usize) -> Self {
        Self { page: page % self.queue.pages.len(), ..self.clone() }
    }

    /// Whether to make a row of this decision. Asked first, because most are allowed and not kept; a row for which
    /// there is no room is counted here.
    pub fn keeps(&self, decision: Decision, request_id: &str) -> bool {
        if decision == Decision::Allowed && !self.queue.sample.takes(request_id) {
            return false;
        }
        let room = self.queue.waiting.load(Ordering::Relaxed) < WAITING_MAX;
        if !room {
            self.drop_rows(1);
        }
        room
    }

    pub fn note(&self, row: AuditRow) {
        self.queue.waiting.fetch_add(1, Ordering::Relaxed);
        self.page(self.page, |rows| rows.push_back(row));
    }

    /// At most so many rows, the oldest of each thread first. They count as waiting until they are said to be
    /// written or dropped.
    pub fn take(&self, most: usize) -> Vec<AuditRow> {
        let mut taken = Vec::new();
        for page in 0..self.queue.pages.len() {
            let room = most - taken.len();
            self.page(page, |rows| taken.extend(rows.drain(..rows.len().min(room))));
        }
        taken
    }

    /// What could not be written waits in front of everything else.
    pub fn give_back(&self, rows: Vec<AuditRow>) {
        self.page(0, |waiting| {
            for row in rows.into_iter().rev() {
                waiting.push_front(row);
            }
        });
    }

    pub fn wrote(&self, rows: usize) {
        self.queue.waiting.fetch_sub(rows, Ordering::Relaxed);
        self.queue.written.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// Rows that were taken and that nobody will ever write.
    pub fn gave_up(&self, rows: usize) {
        self.queue.waiting.fetch_sub(rows, Ordering::Relaxed);
        self.drop_rows(rows as u64);
    }

    pub fn counts(&self) -> AuditCounts {
        AuditCounts {
            waiting: self.queue.waiting.load(Ordering::Relaxed),
            written: self.queue.written.load(Ordering::Relaxed),
            dropped: self.queue.dropped.load(Ordering::Relaxed),
        }
    }

    fn drop_rows(&self, rows: u64) {
        self.queue.dropped.fetch_add(rows, Ordering::Relaxed);
    }

    fn page<T>(&self, page: usize, with: impl FnOnce(&mut VecDeque<AuditRow>) -> T) -> T {
        with(&mut self.queue.pages[page].lock().unwrap_or_else(PoisonError::into_inner))
    }
}

// === impl Sample ===

impl Sample {
    /// From 0 (none) to 1 (all).
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of 2^32 is within 64 bits"
    )]
    pub fn share(share: f64) -> Self {
        let whole = (1_u64 << 32) as f64;
        Self { below: (share.clamp(0.0, 1.0) * whole).round() as u64 }
    }

    /// By the request's own name, so that it needs no state and a request is kept or not wherever it is asked of.
    fn takes(self, request_id: &str) -> bool {
        // 1 in 2^32 is the finest share; a checksum of a random name is spread as evenly as that.
        self.below > 0 && u64::from(crc32fast::hash(request_id.as_bytes())) < self.below
    }
}

#[cfg(test)]
mod tests {
    use tollkeeper_core::Millis;

    use super::*;

    fn row(number: u64) -> AuditRow {
        AuditRow {
            at: Millis(number),
            tenant_id: "ws".into(),
            request_id: "req".into(),
            decision: Decision::Blocked,
            code: "NOT_FOUND".into(),
            status: 401,
            key_id: None,
            external_id: None,
            ip: None,
            method: None,
            endpoint: None,
            path: None,
            rule: None,
            limit: None,
            count: None,
            retry_after_ms: None,
            node: "n".into(),
            region: None,
            latency_us: 1,
            degraded: false,
        }
    }

    /// Counts ids as a server makes them up: a fixed part and a walk through all numbers.
    fn kept(share: f64) -> usize {
        let sample = Sample::share(share);
        let step = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let ids = (0..100_000).map(|number| format!("req_aZ09k{:011x}", step(number) >> 20));
        ids.filter(|id| sample.takes(id)).count()
    }

    #[test]
    fn the_share_of_allowed_decisions_that_is_kept_is_the_one_asked_for() {
        assert_eq!((kept(0.0), kept(1.0)), (0, 100_000));
        for (share, expected) in [(0.001, 100), (0.01, 1_000), (0.5, 50_000)] {
            let kept = kept(share);
            assert!(kept.abs_diff(expected) < expected / 3, "{share}: {kept}");
        }
    }

    #[test]
    fn every_denial_is_kept_and_an_allow_only_by_its_share() {
        let audit = Audit::new(1, Sample::share(0.0));
        assert!(audit.keeps(Decision::Blocked, "a") && audit.keeps(Decision::Throttled, "a"));
        assert!(!audit.keeps(Decision::Allowed, "a"));
        assert!(Audit::new(1, Sample::share(1.0)).keeps(Decision::Allowed, "a"));
    }

    #[test]
    fn what_finds_no_room_is_counted_and_room_that_is_free_again_is_used() {
        let audit = Audit::new(2, Sample::share(0.0));
        let keep = |number: u64| {
            if audit.keeps(Decision::Blocked, "a") {
                audit.at_page(usize::from(number % 2 == 1)).note(row(number));
            }
        };
        (0..WAITING_MAX as u64 + 10).for_each(keep);
        let full = AuditCounts { waiting: WAITING_MAX, written: 0, dropped: 10 };
        assert_eq!(audit.counts(), full);
        let taken = audit.take(1_000);
        assert_eq!((taken.len(), audit.counts()), (1_000, full), "not written yet");
        audit.give_back(taken);
        assert_eq!(audit.counts(), full);
        let taken = audit.take(1_000);
        audit.wrote(taken.len());
        keep(0);
        let counts = AuditCounts { waiting: WAITING_MAX - 999, written: 1_000, dropped: 10 };
        assert_eq!(audit.counts(), counts);
        let taken = audit.take(10);
        audit.gave_up(taken.len());
        assert_eq!(audit.counts().dropped, 20);
    }

    #[test]
    fn rows_come_out_as_they_went_in_also_after_a_write_that_failed() {
        let audit = Audit::new(1, Sample::share(0.0));
        (0..6).for_each(|number| audit.note(row(number)));
        audit.give_back(audit.take(4));
        let order: Vec<_> = audit.take(10).iter().map(|row| row.at.0).collect();
        assert_eq!(order, [0, 1, 2, 3, 4, 5]);
    }
}
