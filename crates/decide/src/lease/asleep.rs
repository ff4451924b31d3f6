//! Most cells that a node keeps have nothing under way: the origin knows all that they did, and nobody asks. Such a cell sleeps,
//! in a quarter of the memory, until somebody asks or it is time to look at it. Asleep it neither spends nor tells.

use std::sync::Arc;

use tollkeeper_core::{Algorithm, Millis, State, Totals};

use super::cell::LeaseCell;
use super::packed::{Flags, Reader, Writer};
use super::seen::Seen;
use super::{CellName, Scope};
use crate::CellKey;
use crate::sync::{AtomicU64, Ordering};

/// A cell that nobody touched for so long, and that has nothing to tell, is forgotten; or else it sleeps.
pub(super) const IDLE_MS: u64 = 1_000;

/// One that still counts is kept longer, so that it can be told to an origin that lost its history; until others need its room.
pub(super) const HISTORY_MS: u64 = 60_000;

/// A bucket's lease is renewed or given back when it is this old: well before it lapses.
pub(super) const RENEW_MS: u64 = 4_000;

/// A log's copy has two. One with more was not heard from the origin.
const ENTRIES_MAX: usize = 4;

/// A place in the table.
#[derive(Debug)]
pub(super) enum Slot<W> {
    Awake(Box<LeaseCell<W>>),
    Asleep(Asleep),
}

/// What is asked for without waking the cell is at fixed places in front of the numbers: its key, when it was last heard of,
/// how long after that it is to be looked at and how long before it was spent from, its flags, and where its identifier
/// begins, which follows the numbers.
#[derive(Debug)]
pub(super) struct Asleep {
    scope: Arc<Scope>,
    bytes: Box<[u8]>,
}

const SUBJECT: usize = 0;
const EXACT: usize = 8;
const HEARD: usize = 16;
const LOOK_MS: usize = 24;
const SPENT_MS: usize = 28;
const FLAGS: usize = 32;
const TEXT: usize = 34;
const NUMBERS: usize = 36;

/// Numbers the lives of cells. One that was forgotten or slept, and is made again, must not take units for its own that were set
/// aside in an earlier life: each counts its leases from a place of its own, far from those of any other.
#[derive(Debug)]
pub(super) struct Births(AtomicU64);

// === impl Births ===

impl Births {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(1))
    }

    /// The number of a life's first lease.
    pub(super) fn next(&self) -> u64 {
        /// 2^64 by the golden ratio: multiples of it lie as far apart as they can.
        const APART: u64 = 0x9E37_79B9_7F4A_7C15;
        self.0.fetch_add(1, Ordering::Relaxed).wrapping_mul(APART) >> 1
    }
}

// === impl Slot ===

impl<W> Slot<W> {
    pub(super) fn key(&self) -> CellKey {
        match self {
            Self::Awake(cell) => cell.key,
            Self::Asleep(asleep) => asleep.key(),
        }
    }

    pub(super) fn wake(&mut self, births: &Births) -> &mut LeaseCell<W> {
        if let Self::Asleep(asleep) = self {
            *self = Self::Awake(Box::new(asleep.woken(births.next())));
        }
        match self {
            Self::Awake(cell) => cell,
            Self::Asleep(_) => unreachable!("it was woken"),
        }
    }

    pub(super) fn awake(&mut self) -> Option<&mut LeaseCell<W>> {
        match self {
            Self::Awake(cell) => Some(cell),
            Self::Asleep(_) => None,
        }
    }

    /// Lets the cell sleep if it may. Where it could be forgotten by now, it is not looked at for that before this moment.
    pub(super) fn lay_down(&mut self, kept_until: Millis) {
        if let Self::Awake(cell) = self
            && let Some(asleep) = cell.asleep(kept_until)
        {
            *self = Self::Asleep(asleep);
        }
    }

    /// Is there anything to give back, or somebody to ask for it?
    pub(super) fn is_awake_or_holds(&self) -> bool {
        match self {
            Self::Awake(_) => true,
            Self::Asleep(asleep) => asleep.holds(),
        }
    }

    /// Could there be something of it that the journal must keep?
    pub(super) fn may_be_unsettled(&self) -> bool {
        match self {
            Self::Awake(_) => true,
            Self::Asleep(asleep) => asleep.is_unsettled(),
        }
    }

    pub(super) fn owe(&mut self) {
        match self {
            Self::Awake(cell) => {
                cell.owe();
            }
            Self::Asleep(asleep) => asleep.owe(),
        }
    }

    pub(super) fn doubt_refusal(&mut self, births: &Births) {
        if self.may_be_refused() {
            self.change(births, |cell| (cell.again_at, cell.refusals) = (Millis(0), 0));
        }
    }

    fn may_be_refused(&self) -> bool {
        match self {
            Self::Awake(_) => true,
            Self::Asleep(asleep) => asleep.flags().has(Flags::REFUSED),
        }
    }

    /// Changes the cell, and if it slept lets it sleep again; but for one that owes.
    pub(super) fn change(&mut self, births: &Births, change: impl FnOnce(&mut LeaseCell<W>)) {
        let slept = matches!(self, Self::Asleep(_));
        change(self.wake(births));
        if slept {
            self.lay_down(Millis(0));
        }
    }

    /// Is it of this name? It goes on sleeping.
    pub(super) fn is_named(&self, which: impl FnOnce(&CellName) -> bool) -> bool {
        match self {
            Self::Awake(cell) => which(&cell.name),
            Self::Asleep(asleep) => which(&asleep.name()),
        }
    }

    /// A look at the cell, which goes on sleeping.
    pub(super) fn read<R>(&self, look: impl FnOnce(&LeaseCell<W>) -> R) -> R {
        match self {
            Self::Awake(cell) => look(cell),
            Self::Asleep(asleep) => look(&asleep.woken(0)),
        }
    }

    /// Nothing would be missed, if its room were needed: when it was last spent from.
    pub(super) fn idle_since(&self, now: Millis) -> Option<Millis> {
        match self {
            Self::Awake(cell) => cell.is_idle(now).then_some(cell.spent_at),
            Self::Asleep(asleep) => asleep.is_idle().then(|| asleep.spent_at()),
        }
    }
}

// === impl Asleep ===

impl Asleep {
    fn new<W>(cell: &LeaseCell<W>, seen: &Seen, look_at: Millis) -> Self {
        let heard = seen.sight.heard;
        let ms = |ms: u64| u32::try_from(ms).unwrap_or(u32::MAX).to_le_bytes();
        let mut head = [0; NUMBERS];
        head[SUBJECT..EXACT].copy_from_slice(&cell.key.subject.to_le_bytes());
        head[EXACT..HEARD].copy_from_slice(&cell.key.exact.to_le_bytes());
        head[HEARD..LOOK_MS].copy_from_slice(&heard.0.to_le_bytes());
        head[LOOK_MS..SPENT_MS].copy_from_slice(&ms(look_at.since(heard)));
        head[SPENT_MS..FLAGS].copy_from_slice(&ms(heard.since(cell.spent_at)));
        head[FLAGS..TEXT].copy_from_slice(&Flags::of(cell).to_bytes());
        let mut writer = Writer::behind(&head);
        writer.cell(cell, seen);
        writer.text(&cell.name.identifier, TEXT..NUMBERS);
        Self { scope: Arc::clone(&cell.name.scope), bytes: writer.into_bytes() }
    }

    fn at<const N: usize>(&self, place: usize) -> [u8; N] {
        self.bytes.get(place..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
    }

    pub(super) fn key(&self) -> CellKey {
        CellKey {
            subject: u64::from_le_bytes(self.at(SUBJECT)),
            exact: u64::from_le_bytes(self.at(EXACT)),
        }
    }

    /// When the origin last answered.
    fn heard(&self) -> Millis {
        Millis(u64::from_le_bytes(self.at(HEARD)))
    }

    fn flags(&self) -> Flags {
        Flags::from_bytes(self.at(FLAGS))
    }

    /// When it was last spent from, at the latest: it is for an order.
    fn spent_at(&self) -> Millis {
        let spent_ms = u32::from_le_bytes(self.at(SPENT_MS));
        Millis(self.heard().since(Millis(spent_ms.into())))
    }

    /// Is it time to look at it? Until then nothing becomes of it. One that owes waits for somebody who hears it.
    pub(super) fn is_due(&self, hears: impl FnOnce(&CellName) -> bool, now: Millis) -> bool {
        if self.flags().has(Flags::OWES) {
            return hears(&self.name());
        }
        let look_ms = u32::from_le_bytes(self.at(LOOK_MS));
        now >= self.heard() + u64::from(look_ms)
    }

    fn name(&self) -> CellName {
        let text = self.bytes.get(self.text_at()..).unwrap_or_default();
        CellName::new(&self.scope, std::str::from_utf8(text).unwrap_or_default())
    }

    fn text_at(&self) -> usize {
        u16::from_le_bytes(self.at(TEXT)).into()
    }

    /// Does it hold units?
    pub(super) fn holds(&self) -> bool {
        self.flags().has(Flags::HOLDS)
    }

    /// Must the journal know of it?
    pub(super) fn is_unsettled(&self) -> bool {
        self.holds() || self.flags().has(Flags::OWES)
    }

    fn is_idle(&self) -> bool {
        !self.is_unsettled()
    }

    /// See [`LeaseCell::owe`].
    pub(super) fn owe(&mut self) {
        let flags = self.flags();
        let before = flags.has(Flags::BEFORE);
        if flags.has(Flags::COUNTS) || before {
            let owing = flags.and(Flags::OWES);
            let owing = if before { owing.and(Flags::OWES_BEFORE) } else { owing };
            self.bytes[FLAGS..TEXT].copy_from_slice(&owing.to_bytes());
        }
    }

    fn woken<W>(&self, lease: u64) -> LeaseCell<W> {
        let reader = Reader::new(self.bytes.get(NUMBERS..).unwrap_or_default());
        reader.cell(self.key(), Arc::new(self.name()), self.flags(), self.heard(), lease)
    }
}

// === impl LeaseCell ===

impl<W> LeaseCell<W> {
    /// Does nobody wait for it, or for what it does next?
    fn is_quiet(&self) -> bool {
        let asked = self.flight.is_some() || !self.waiters.is_empty() || self.parked.is_some();
        let pending = self.aside > 0 || self.pledged > 0 || !self.dated.is_empty();
        let alone = self.share.is_some() || self.share_terms.is_some();
        !asked && !pending && !alone && self.ahead.is_none()
    }

    /// Does the origin know all of it, and it all that the origin said?
    fn is_told(&self) -> bool {
        let debts = self.owes || self.owes_before || self.doubts || self.missed || self.strange;
        !debts && self.totals == self.acked
    }

    /// The same cell asleep, if it may; see [`Slot::lay_down`].
    fn asleep(&self, kept_until: Millis) -> Option<Asleep> {
        let seen = self.seen.as_ref()?;
        let small = match &seen.state {
            State::Log(log) => log.entries().len() <= ENTRIES_MAX,
            _ => true,
        };
        let may = small && self.is_quiet() && self.is_told();
        may.then(|| Asleep::new(self, seen, self.next_look(kept_until)))
    }

    /// When something becomes of it though nobody asks: its lease ends, or it may be forgotten.
    fn next_look(&self, not_before: Millis) -> Millis {
        if self.totals.held() > 0 {
            let ends = match self.limit.algorithm {
                // What is left of its lease is told to nobody: both end with the window.
                Algorithm::FixedWindow(_) => self.is_history_until(),
                Algorithm::SlidingWindow(_) | Algorithm::SlidingLog(_) => self.lapse,
                Algorithm::TokenBucket { .. } => {
                    (self.spent_at + IDLE_MS + 1).min(self.answered + RENEW_MS)
                }
            };
            return ends.min(self.unused_by);
        }
        let touched = self.spent_at.max(self.answered);
        let kept = self.is_history_until().min(touched + HISTORY_MS);
        let forgotten = self.again_at.max(kept).max(touched + IDLE_MS) + 1;
        forgotten.max(not_before).min(self.unused_by)
    }

    /// May it be forgotten, because nobody touched it for long, and nobody would miss it?
    pub(super) fn is_forgettable(&self, now: Millis) -> bool {
        let quiet = now.since(self.spent_at.max(self.answered));
        let untouched = quiet > HISTORY_MS || (quiet > IDLE_MS && !self.is_history(now));
        untouched && now >= self.again_at && self.is_idle(now)
    }

    /// When [`LeaseCell::is_history`] may begin to say no, and not much later.
    fn is_history_until(&self) -> Millis {
        let (seen, limit) = (self.sight(), &self.limit);
        let by = |end: Millis| seen.after(end.since(seen.origin));
        match limit.algorithm {
            Algorithm::FixedWindow(_) | Algorithm::SlidingWindow(_)
                if self.totals == Totals::default() && self.before.is_none() =>
            {
                Millis(0)
            }
            Algorithm::FixedWindow(_) => by(limit.window_at(Millis(self.win)).1),
            Algorithm::SlidingWindow(width) => by(Millis(self.win) + 2 * width.millis()),
            Algorithm::SlidingLog(width) => self.spent_at + (width.millis() + 1),
            Algorithm::TokenBucket { width, capacity } => {
                let full = u128::from(width.millis()) * u128::from(capacity.get());
                let full = full / u128::from(limit.quota.get().max(1)) + 1;
                self.spent_at + u64::try_from(full).unwrap_or(u64::MAX)
            }
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
