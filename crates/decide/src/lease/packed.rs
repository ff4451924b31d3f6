//! A shared cell that nothing is under way for, as bytes: numbers in as few as they need, moments by how far they are from the
//! last answer. It packs whatever it is given; which cells may be packed says `asleep.rs`.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;
use tollkeeper_core::{
    Algorithm, FixedWindow, Limit, Millis, Quota, SlidingLog, SlidingWindow, State, TokenBucket,
    Totals, Width, Window,
};

use super::CellName;
use super::ahead::NEVER;
use super::cell::LeaseCell;
use super::pace::Pace;
use super::past::Past;
use super::seen::Seen;
use super::sight::Sight;
use crate::CellKey;

/// What of a cell is yes or no, or is hardly ever there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags(u16);

/// Numbers, one after the other.
pub(super) struct Writer(SmallVec<[u8; 192]>);

/// The same numbers, in the same order.
pub(super) struct Reader<'a>(&'a [u8]);

// === impl Flags ===

impl Flags {
    pub(super) const COUNTS: Self = Self(1);
    pub(super) const HOLDS: Self = Self(1 << 1);
    pub(super) const REFUSED: Self = Self(1 << 2);
    pub(super) const OWES: Self = Self(1 << 3);
    pub(super) const OWES_BEFORE: Self = Self(1 << 4);
    pub(super) const BEFORE: Self = Self(1 << 5);
    const ADOPTED: Self = Self(1 << 6);
    const PAST: Self = Self(1 << 7);
    const ASKS_AHEAD: Self = Self(1 << 8);
    const MAY_DROP: Self = Self(1 << 9);

    pub(super) fn of<W>(cell: &LeaseCell<W>) -> Self {
        let so = [
            (Self::COUNTS, cell.totals != Totals::default()),
            (Self::HOLDS, cell.totals.held() > 0),
            (Self::REFUSED, cell.again_at > Millis(0) || cell.refusals > 0),
            (Self::OWES, cell.owes),
            (Self::OWES_BEFORE, cell.owes_before),
            (Self::BEFORE, cell.before.is_some()),
            (Self::ADOPTED, cell.adopted),
            (Self::PAST, cell.past.is_some()),
            (Self::ASKS_AHEAD, cell.ahead_from != NEVER),
            (Self::MAY_DROP, cell.unused_by != NEVER),
        ];
        let so = so.into_iter().filter_map(|(flag, is_so)| is_so.then_some(flag));
        so.fold(Self::default(), Self::and)
    }

    pub(super) fn from_bytes(bytes: [u8; 2]) -> Self {
        Self(u16::from_le_bytes(bytes))
    }

    pub(super) fn to_bytes(self) -> [u8; 2] {
        self.0.to_le_bytes()
    }

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    #[must_use]
    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

// === impl Writer ===

impl Writer {
    pub(super) fn behind(head: &[u8]) -> Self {
        Self(SmallVec::from_slice(head))
    }

    /// The last there is; where it begins is written at this place.
    pub(super) fn text(&mut self, text: &str, place: Range<usize>) {
        // A cell has some hundred bytes of numbers at most.
        let at = u16::try_from(self.0.len()).unwrap_or(u16::MAX);
        self.0[place].copy_from_slice(&at.to_le_bytes());
        self.0.extend_from_slice(text.as_bytes());
    }

    pub(super) fn into_bytes(self) -> Box<[u8]> {
        Box::from(&*self.0)
    }

    /// Seven bits to a byte, the lowest first.
    #[allow(clippy::cast_possible_truncation, reason = "seven bits at a time")]
    fn number(&mut self, number: u64) {
        let mut rest = number;
        while rest > 0x7f {
            self.0.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.0.push(rest as u8);
    }

    /// By its distance, either way.
    fn near(&mut self, number: u64, to: u64) {
        let away = number.wrapping_sub(to).cast_signed();
        self.number(((away << 1) ^ (away >> 63)).cast_unsigned());
    }

    fn limit(&mut self, limit: &Limit) {
        let (kind, width) = match limit.algorithm {
            Algorithm::FixedWindow(Window::Day) => (0, 0),
            Algorithm::FixedWindow(Window::Month) => (1, 0),
            Algorithm::FixedWindow(Window::Aligned(width)) => (2, width.millis()),
            Algorithm::SlidingWindow(width) => (3, width.millis()),
            Algorithm::SlidingLog(width) => (4, width.millis()),
            Algorithm::TokenBucket { width, .. } => (5, width.millis()),
        };
        self.number(limit.quota.get() << 3 | kind);
        self.number(width);
        if let Algorithm::TokenBucket { capacity, .. } = limit.algorithm {
            self.number(capacity.get());
        }
    }

    fn totals(&mut self, totals: &Totals) {
        let Totals { plain, granted, used, returned } = *totals;
        for number in [plain, granted, used, returned] {
            self.number(number);
        }
    }

    fn state(&mut self, state: &State, win: u64, at: u64) {
        match state {
            State::Fixed(FixedWindow { start, used }) => {
                self.number(0);
                self.near(start.0, win);
                self.number(*used);
            }
            State::Sliding(SlidingWindow { start, used, previous }) => {
                self.number(1);
                self.near(start.0, win);
                self.number(*used);
                self.number(*previous);
            }
            State::Bucket(TokenBucket { missing, fraction, at: filled }) => {
                self.number(2);
                self.number(*missing);
                self.number(*fraction);
                self.near(filled.0, at);
            }
            State::Log(log) => {
                self.number(3);
                self.near(log.newest().0, at);
                self.pairs(log.entries(), at);
            }
        }
    }

    fn pairs(&mut self, pairs: impl ExactSizeIterator<Item = (Millis, u64)>, at: u64) {
        self.number(pairs.len() as u64);
        for (moment, units) in pairs {
            self.near(moment.0, at);
            self.number(units);
        }
    }

    /// All that [`Reader::cell`] reads. `seen` is the cell's.
    pub(super) fn cell<W>(&mut self, cell: &LeaseCell<W>, seen: &Seen) {
        let (flags, at) = (Flags::of(cell), seen.sight.heard.0);
        self.limit(&cell.limit);
        self.near(cell.win, at);
        self.totals(&cell.totals);
        self.near(seen.sight.origin.0, at);
        self.near(seen.sight.sent.0, at);
        self.state(&seen.state, cell.win, at);
        self.number(seen.elsewhere);
        self.near(cell.pace.win, cell.win);
        self.number(cell.pace.spent);
        self.number(cell.pace.before);
        for moment in [cell.lapse, cell.answered, cell.spent_at] {
            self.near(moment.0, at);
        }
        for units in [cell.last_lent, cell.ceiling, cell.between] {
            self.number(units);
        }
        if flags.has(Flags::REFUSED) {
            self.near(cell.again_at.0, at);
            self.number(cell.refusals.into());
        }
        if flags.has(Flags::ASKS_AHEAD) {
            self.near(cell.ahead_from.0, at);
        }
        if flags.has(Flags::MAY_DROP) {
            self.near(cell.unused_by.0, at);
        }
        if let Some((win, totals)) = cell.before.as_deref() {
            self.near(*win, cell.win);
            self.totals(totals);
        }
        if let Some(past) = &cell.past {
            self.near(past.last.0, at);
            self.pairs(past.marks.iter().copied(), at);
        }
    }
}

// === impl Reader ===

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn number(&mut self) -> u64 {
        let (mut number, mut shift) = (0, 0);
        while let Some((byte, rest)) = self.0.split_first() {
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 || shift > 63 {
                break;
            }
        }
        number
    }

    fn near(&mut self, to: u64) -> u64 {
        let folded = self.number();
        to.wrapping_add(folded >> 1 ^ (folded & 1).wrapping_neg())
    }

    fn moment(&mut self, to: u64) -> Millis {
        Millis(self.near(to))
    }

    fn limit(&mut self) -> Limit {
        let first = self.number();
        let width = self.width();
        let algorithm = match first & 7 {
            0 => Algorithm::FixedWindow(Window::Day),
            1 => Algorithm::FixedWindow(Window::Month),
            2 => Algorithm::FixedWindow(Window::Aligned(width)),
            3 => Algorithm::SlidingWindow(width),
            4 => Algorithm::SlidingLog(width),
            _ => Algorithm::TokenBucket { width, capacity: quota(self.number()) },
        };
        Limit { quota: quota(first >> 3), algorithm }
    }

    fn width(&mut self) -> Width {
        Width::from_millis(self.number()).unwrap_or(Width::MIN)
    }

    fn totals(&mut self) -> Totals {
        Totals {
            plain: self.number(),
            granted: self.number(),
            used: self.number(),
            returned: self.number(),
        }
    }

    fn state(&mut self, win: u64, at: u64) -> State {
        match self.number() {
            0 => State::Fixed(FixedWindow { start: self.moment(win), used: self.number() }),
            1 => State::Sliding(SlidingWindow {
                start: self.moment(win),
                used: self.number(),
                previous: self.number(),
            }),
            2 => State::Bucket(TokenBucket {
                missing: self.number(),
                fraction: self.number(),
                at: self.moment(at),
            }),
            _ => {
                let newest = self.moment(at);
                let entries: SmallVec<[_; 4]> = self.pairs(at).collect();
                State::Log(Box::new(SlidingLog::from_parts(newest, entries).unwrap_or_default()))
            }
        }
    }

    fn pairs(&mut self, at: u64) -> impl Iterator<Item = (Millis, u64)> {
        let pairs = self.number();
        (0..pairs).map(move |_| (self.moment(at), self.number()))
    }

    /// The cell that [`Writer::cell`] wrote, with the key and the name it had. Its leases are numbered from here on: nothing of
    /// an earlier one is set aside.
    pub(super) fn cell<W>(
        mut self,
        key: CellKey,
        name: Arc<CellName>,
        flags: Flags,
        heard: Millis,
        lease: u64,
    ) -> LeaseCell<W> {
        let at = heard.0;
        let limit = self.limit();
        let win = self.near(at);
        let totals = self.totals();
        let sight = Sight { origin: self.moment(at), sent: self.moment(at), heard };
        let state = self.state(win, at);
        let seen = Some(Seen { state, elsewhere: self.number(), sight });
        let pace = Pace { win: self.near(win), spent: self.number(), before: self.number() };
        let (lapse, answered, spent_at) = (self.moment(at), self.moment(at), self.moment(at));
        let (last_lent, ceiling, between) = (self.number(), self.number(), self.number());
        let (again_at, refusals) = if flags.has(Flags::REFUSED) {
            (self.moment(at), u32::try_from(self.number()).unwrap_or(u32::MAX))
        } else {
            (Millis(0), 0)
        };
        let ahead_from = if flags.has(Flags::ASKS_AHEAD) { self.moment(at) } else { NEVER };
        let unused_by = if flags.has(Flags::MAY_DROP) { self.moment(at) } else { NEVER };
        let before = flags.has(Flags::BEFORE).then(|| Box::new((self.near(win), self.totals())));
        let past = flags.has(Flags::PAST).then(|| {
            let last = self.moment(at);
            Box::new(Past { last, marks: self.pairs(at).collect() })
        });
        LeaseCell {
            win,
            totals,
            acked: totals,
            adopted: flags.has(Flags::ADOPTED),
            strange: false,
            lease,
            lapse,
            last_lent,
            seen,
            pace,
            again_at,
            refusals,
            ceiling,
            answered,
            spent_at,
            past,
            owes: flags.has(Flags::OWES),
            before,
            owes_before: flags.has(Flags::OWES_BEFORE),
            ahead_from,
            between,
            unused_by,
            ..LeaseCell::new(key, name, limit, sight)
        }
    }
}

/// What was written was one.
fn quota(amount: u64) -> Quota {
    Quota::new(amount).unwrap_or(Quota::ZERO)
}
