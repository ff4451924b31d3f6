//! Leases in the journal: how far each may have been spent is there before it is spent so far, and what the next process
//! gives back was spent by nobody.

use std::collections::VecDeque;
use std::fs;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use tollkeeper_account::{BootId, Entry, Keeper, LeaseLeft, LeaseMarks, Recovered, SharedJournal};
use tollkeeper_core::{
    Boot, Consistency, Cost, Limit, Millis, OnOutage, Quota, Record, State, Take, Taken, Totals,
    Width, Window,
};
use tollkeeper_decide::{
    Ceilings, CellHasher, CellName, Cells, Errand, Hold, LeaseAsk, LeaseMark, LeaseTable, Link,
    Missed, NearLease, Scope, Stage, Units,
};

use crate::changes::{NOW, copy_of, files, fixed, open, unlocked_open};
use crate::keeper::until;

fn quota(units: u64) -> Quota {
    Quota::new(units).unwrap()
}

fn width(ms: u64) -> Width {
    Width::from_millis(ms).unwrap()
}

pub(crate) fn left(boot: BootId, identifier: &str, granted: u64, ceiling: u64) -> LeaseLeft {
    let name = CellName::new(&Arc::new(Scope::namespace("acme", "api")), identifier);
    let mark = LeaseMark {
        name: Arc::new(name),
        limit: Limit::fixed_window(quota(1_000), Window::Aligned(width(600_000))),
        win: NOW.0 - NOW.0 % 600_000,
        totals: Totals { granted, ..Totals::default() },
        ceiling,
        lapse: Millis(7),
    };
    LeaseLeft { boot, mark }
}

/// What a process finds that starts in this very directory.
fn leases_in(dir: &std::path::Path) -> (Recovered, Vec<LeaseLeft>) {
    let mut leases = Vec::new();
    let (_, recovered) = unlocked_open(dir, |entry| {
        if let Entry::Lease(left) = entry {
            leases.push(left);
        }
    });
    (recovered, leases)
}

// === bytes ===

fn limit() -> impl Strategy<Value = Limit> {
    let numbers = (0..=9_007_199_254_740_991_u64, 1..=316_224_000_000_u64, 1..1_000_000_u64);
    (0..6_u8, numbers).prop_map(|(kind, (units, ms, burst))| match kind {
        0 => Limit::fixed_window(quota(units), Window::Aligned(width(ms))),
        1 => Limit::fixed_window(quota(units), Window::Day),
        2 => Limit::fixed_window(quota(units), Window::Month),
        3 => Limit::sliding_window(quota(units), width(ms)),
        4 => Limit::sliding_log(quota(units % 10_001), width(ms)).unwrap(),
        _ => Limit::token_bucket(quota(units), width(ms), Some(quota(burst))),
    })
}

fn any_left() -> impl Strategy<Value = LeaseLeft> {
    let amount = || 0..=9_007_199_254_740_991_u64;
    let totals = (amount(), amount(), amount(), amount())
        .prop_map(|(plain, granted, used, returned)| Totals { plain, granted, used, returned });
    let name = (".{0,12}", ".{0,12}", ".{0,300}", any::<bool>()).prop_map(
        |(tenant, space, identifier, of_owner)| {
            let scope = Scope { tenant: tenant.into(), space: space.into(), of_owner };
            Arc::new(CellName::new(&Arc::new(scope), &identifier))
        },
    );
    (any::<[u8; 16]>(), name, limit(), totals, (any::<u64>(), amount(), any::<u64>())).prop_map(
        |(boot, name, limit, totals, (win, ceiling, lapse))| {
            let lapse = Millis(lapse);
            let mark = LeaseMark { name, limit, win, totals, ceiling, lapse };
            LeaseLeft { boot: BootId(boot), mark }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn leases_are_read_back_as_they_were_written(leases in prop::collection::vec(any_left(), 0..20)) {
        let dir = tempfile::tempdir().unwrap();
        let (mut journal, _, _) = open(dir.path());
        for some in leases.chunks(3) {
            journal.note_leases(some).unwrap();
        }
        drop(journal);
        let (recovered, read) = leases_in(dir.path());
        prop_assert!(recovered.whole && !recovered.moved);
        prop_assert_eq!(read, leases);
    }
}

#[test]
fn damage_at_any_byte_keeps_the_leases_before_it_and_makes_the_journal_untrustworthy() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _, _) = open(dir.path());
    let leases: Vec<_> =
        (1..=3).map(|at| left(journal.boot(), &"x".repeat(5), 100 * at, at)).collect();
    let mut ends = vec![journal.bytes()];
    for one in &leases {
        journal.note_leases(std::slice::from_ref(one)).unwrap();
        ends.push(journal.bytes());
    }
    drop(journal);
    let bytes = fs::read(files(dir.path(), ".tkj").remove(0)).unwrap();
    for at in 0..bytes.len() {
        let cut = bytes[..at].to_vec();
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        for damaged in [cut, flipped] {
            let copy = copy_of(dir.path());
            fs::write(files(copy.path(), ".tkj").remove(0), damaged).unwrap();
            let (recovered, read) = leases_in(copy.path());
            let before = ends.iter().skip(1).filter(|end| **end <= at as u64).count();
            assert_eq!(read, leases[..before], "{at}");
            // A file that ends between two records looks whole: only a power cut leaves such a one, and then the machine
            // has started anew.
            assert!(!recovered.whole || ends.contains(&(at as u64)), "{at}");
            assert!(recovered.moved);
        }
    }
}

// === the place ===

#[test]
fn a_journal_is_in_place_only_in_its_own_files_and_directory() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, recovered, _) = open(dir.path());
    assert!(recovered.whole && !recovered.moved);
    journal.note_leases(&[left(journal.boot(), "ann", 100, 10)]).unwrap();
    drop(journal);
    assert!(!leases_in(dir.path()).0.moved);

    let copy = copy_of(dir.path());
    let (recovered, leases) = leases_in(copy.path());
    assert!(recovered.whole && recovered.moved);
    assert_eq!(leases.len(), 1);

    // Put back from a backup: the same directory, the same bytes, another file.
    let first = files(dir.path(), ".tkj").remove(0);
    let backup = dir.path().join("backup");
    fs::copy(&first, &backup).unwrap();
    fs::rename(&backup, &first).unwrap();
    assert!(leases_in(dir.path()).0.moved);
}

#[test]
fn a_journal_from_before_the_last_start_of_the_machine_is_not_in_place() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let path = files(dir.path(), ".tkj").remove(0);
    let mut bytes = fs::read(&path).unwrap();
    bytes[40] ^= 1;
    let crc = crc32fast::hash(&bytes[..80]).to_le_bytes();
    bytes[80..84].copy_from_slice(&crc);
    fs::write(&path, bytes).unwrap();
    let (recovered, _) = leases_in(dir.path());
    assert!(recovered.whole && recovered.moved);
}

#[test]
fn a_journal_of_the_first_version_is_still_read() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _, _) = open(dir.path());
    journal.append(&[fixed(1, 1)]).unwrap();
    drop(journal);
    let path = files(dir.path(), ".tkj").remove(0);
    let bytes = fs::read(&path).unwrap();
    let mut old = [b"TKJRNL01", &bytes[8..40]].concat();
    old.extend(crc32fast::hash(&old).to_le_bytes());
    old.extend(&bytes[84..]);
    fs::write(&path, old).unwrap();
    let (_, recovered, states) = open(dir.path());
    assert!(recovered.whole && recovered.moved && recovered.set_aside.is_empty());
    assert_eq!(states.len(), 1);
}

// === the keeper ===

#[test]
fn a_keepers_checkpoints_keep_living_leases_and_those_that_wait_to_be_given_back() {
    let dir = tempfile::tempdir().unwrap();
    let journal = SharedJournal::new(open(dir.path()).0);
    let boot = journal.lock().boot();
    let (own, dead) = (left(boot, "ann", 100, 40), left(BootId([3; 16]), "bob", 50, 1));
    journal.lock().note_leases(&[left(boot, "ann", 100, 20), left(boot, "gone", 9, 9)]).unwrap();
    let all = vec![own, dead];
    let kept = all.clone();
    let cells = Arc::new(Cells::new(100));
    let keeper = Keeper::start(journal, cells, Vec::new, move || kept.clone(), || NOW).unwrap();
    until(|| keeper.health().checkpoints() > 0);
    assert_eq!(files(dir.path(), ".tkj").len(), 1);
    assert_eq!(leases_in(copy_of(dir.path()).path()).1, all);
    keeper.stop().unwrap();
    let (recovered, leases) = leases_in(dir.path());
    assert_eq!((leases, recovered.clean, recovered.moved), (all, true, false));
}

// === a node and its origin ===

/// Everything that was written, in order.
#[derive(Default)]
struct Written(Mutex<Vec<LeaseMark>>);

impl Ceilings for Written {
    fn raise(&self, mark: LeaseMark) {
        self.0.lock().unwrap().push(mark);
    }
}

const BOOT: Boot = Boot(1);

/// One node with one cell, an origin, and another node that takes from the same record.
struct World {
    table: Arc<LeaseTable<u64>>,
    written: Arc<Written>,
    record: Option<Record>,
    limit: Limit,
    now: Millis,
    holds: VecDeque<(Hold<u64>, u64)>,
    /// What was admitted, by anybody.
    spent: u64,
    lent_most: u64,
    /// The last call that was made.
    sent: Option<Take>,
    others: u64,
    /// A bucket that everything admitted is spent from in the moment it is.
    model: State,
    passed: bool,
}

#[derive(Clone, Copy, Debug)]
enum Fate {
    Answered,
    /// Heard, but nothing came back.
    Unanswered,
    Unheard,
}

#[derive(Clone, Debug)]
enum Step {
    Ask { cost: u64, bundled: bool, fate: Fate },
    Settle { spend: bool },
    Recall(Fate),
    Other(u64),
    Tick(Fate),
    Wait(u64),
}

impl World {
    fn new(limit: Limit) -> Self {
        let written = Arc::new(Written::default());
        let kept: Arc<dyn Ceilings> = Arc::<Written>::clone(&written);
        let table = Arc::new(LeaseTable::new(1_000, BOOT).keeping(kept));
        let now = Millis(NOW.0 - NOW.0 % 600_000 + 5_000);
        let holds = VecDeque::new();
        let model = State::fresh(&limit);
        let (spent, lent_most, others, passed) = (0, 0, 0, false);
        let (record, sent) = (None, None);
        Self {
            table,
            written,
            record,
            limit,
            now,
            holds,
            spent,
            lent_most,
            sent,
            others,
            model,
            passed,
        }
    }

    fn admitted(&mut self, units: u64) {
        self.spent += units;
        let model = std::mem::replace(&mut self.model, State::fresh(&self.limit));
        let (outcome, next) = model.spend(&self.limit, Cost::new(units).unwrap(), self.now);
        (self.model, self.passed) = (next, self.passed || !outcome.admitted());
    }

    /// Set aside for a decision that has not been made.
    fn aside(&self) -> u64 {
        self.holds.iter().map(|(_, units)| units).sum()
    }

    fn name() -> CellName {
        CellName::new(&Arc::new(Scope::namespace("acme", "api")), "ann")
    }

    fn ask(&self, cost: u64, bundled: bool) -> LeaseAsk {
        let tag = CellHasher::new([3; 16]).namespace("acme", "api");
        LeaseAsk {
            key: tag.cell("ann", &self.limit),
            limit: self.limit,
            cost: Cost::new(cost).unwrap(),
            consistency: Consistency::Exact,
            on_outage: OnOutage::Deny,
            bundled,
            beside: 0,
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Ask { cost, bundled, fate } => self.spend(cost, bundled, fate),
            Step::Settle { spend } => {
                let Some((hold, units)) = self.holds.pop_front() else { return };
                if spend && hold.spend(self.now) {
                    self.admitted(units);
                }
            }
            Step::Recall(fate) => {
                self.now = self.now + 60;
                let errand = self.table.recall(self.ask(1, false).key, self.now);
                if let Some(errand) = errand {
                    self.run(errand, fate);
                }
            }
            Step::Other(units) => {
                self.others += 1;
                let call = other(units, self.others, &self.limit, self.now);
                if Record::take(&mut self.record, &call, false, self.now).took {
                    self.admitted(units);
                }
            }
            Step::Wait(ms) => self.now = self.now + ms,
            Step::Tick(fate) => {
                self.now = self.now + 500;
                for errand in self.table.tick(0, 1, self.now) {
                    self.run(errand, fate);
                }
            }
        }
    }

    fn spend(&mut self, cost: u64, bundled: bool, fate: Fate) {
        let ask = self.ask(cost, bundled);
        match self.table.near(&ask, Self::name, |id| id, Link::Up, self.now) {
            NearLease::Dealt(dealt, errand) => {
                self.got(dealt.units);
                if let Some(errand) = errand {
                    self.run(errand, fate);
                }
            }
            NearLease::Waits(id, errand) => {
                if let Some(errand) = errand {
                    self.run(errand, fate);
                }
                self.table.give_up(ask.key, id, self.now);
            }
        }
    }

    fn run(&mut self, errand: Errand, fate: Fate) {
        let mut next = Some(errand);
        while let Some(errand) = next {
            let sent = self.now;
            self.sent = Some(errand.take);
            let taken: Option<Taken> = match fate {
                Fate::Unheard => None,
                _ => Some(Record::take(&mut self.record, &errand.take, false, self.now)),
            };
            self.lent_most = self.lent_most.max(taken.as_ref().map_or(0, |taken| taken.lent));
            let answer = taken.as_ref().filter(|_| matches!(fate, Fate::Answered));
            let turn = self.table.absorb(&errand, answer.ok_or(Missed::Silent), sent, self.now);
            turn.dealt.into_iter().for_each(|(_, dealt)| self.got(dealt.units));
            next = turn.next;
        }
    }

    fn got(&mut self, units: Option<Units>) {
        let Some(units) = units else { return };
        if let Stage::Aside { .. } = units.stage {
            let mut hold = Hold::new(&self.table);
            hold.add(units);
            self.holds.push_back((hold, units.units));
        } else {
            self.admitted(units.units);
        }
    }

    /// What the record says is counted once the next process has given back what this one left, if it died now.
    fn counted_after_a_kill(&self, repeated: &[LeaseMark]) -> Option<u64> {
        let written = self.written.0.lock().unwrap().clone();
        self.counted_by(&[written, repeated.to_vec()].concat())
    }

    /// The same where these marks are all that the journal holds.
    fn counted_by(&self, marks: &[LeaseMark]) -> Option<u64> {
        let mut record = self.record.clone();
        Some(match self.give_back(&mut record, marks, self.now)?.state {
            State::Fixed(state) => state.used,
            State::Sliding(state) => state.used,
            State::Bucket(_) | State::Log(_) => return None,
        })
    }

    /// The answer to what the next process says, where it says anything.
    fn give_back(
        &self,
        record: &mut Option<Record>,
        marks: &[LeaseMark],
        now: Millis,
    ) -> Option<Taken> {
        let boot = BootId([0; 16]);
        let mut lefts = marks.iter().cloned().map(|mark| LeaseLeft { boot, mark });
        let mut left = lefts.next()?;
        lefts.for_each(|other| left.merge(&other));
        if left.is_late(now, now) {
            return None;
        }
        let mut take = left.mark.last_words(BOOT, 2);
        while left.mark.hear(&Record::take(record, &take, false, now)) {
            take = left.mark.last_words(BOOT, 2);
        }
        // What was still on its way when the process died gets nothing.
        if let Some(late) = self.sent {
            Record::take(record, &Take { seq: late.seq + 1, ..late }, false, now);
        }
        // Said twice it changes nothing.
        Some(Record::take(record, &take, false, now))
    }

    /// It dies; some time later another node spends something, and again later the next process gives back: then so much
    /// is free, and so much may be.
    fn free_after_a_kill(&self, times: [u64; 2], units: u64) -> Option<(u64, u64)> {
        let (mut record, mut model) = (self.record.clone(), self.model.clone());
        let now = self.now + times[0];
        let call = other(units, self.others + 1, &self.limit, now);
        if Record::take(&mut record, &call, false, now).took {
            model = model.spend(&self.limit, Cost::new(units).unwrap(), now).1;
        }
        let now = now + times[1];
        let written = self.written.0.lock().unwrap().clone();
        let marks = [written, self.table.marks()].concat();
        let taken = self.give_back(&mut record, &marks, now)?;
        Some((taken.free(&self.limit), model.probe(&self.limit, Cost::PEEK, now).remaining))
    }
}

/// Another node takes so much.
fn other(units: u64, seq: u64, limit: &Limit, now: Millis) -> Take {
    Take {
        boot: Boot(2),
        seq,
        win: limit.window_at(now).0.0,
        totals: Totals::default(),
        need: units,
        more: 0,
        forgotten: 0,
        ask: units,
        bundled: false,
        nodes: 2,
        limit: *limit,
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let fate = || {
        prop_oneof![
            6 => Just(Fate::Answered),
            1 => Just(Fate::Unanswered),
            1 => Just(Fate::Unheard)
        ]
    };
    let step = prop_oneof![
        10 => (1..6_u64, prop::bool::weighted(0.3), fate())
            .prop_map(|(cost, bundled, fate)| Step::Ask { cost, bundled, fate }),
        3 => any::<bool>().prop_map(|spend| Step::Settle { spend }),
        1 => fate().prop_map(Step::Recall),
        1 => (1..20_u64).prop_map(Step::Other),
        1 => fate().prop_map(Step::Tick),
        1 => prop_oneof![1..2_000_u64, 30_000..90_000_u64].prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..120)
}

fn windows() -> impl Strategy<Value = Limit> {
    (any::<bool>(), 20..400_u64).prop_map(|(fixed, units)| {
        if fixed {
            Limit::fixed_window(quota(units), Window::Aligned(width(600_000)))
        } else {
            Limit::sliding_window(quota(units), width(600_000))
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_given_back_after_a_kill_at_any_moment_was_spent_by_nobody(
        limit in windows(), steps in steps(), from in 0..120_usize
    ) {
        let mut world = World::new(limit);
        let mut old = Vec::new();
        let window = limit.window_at(world.now);
        for (at, step) in steps.iter().enumerate() {
            world.step(step);
            if limit.window_at(world.now) != window {
                // From here on what was spent in this window is not among what the record counts.
                break;
            }
            if at == from {
                // A checkpoint that is written much later than it was looked up.
                old = world.table.marks();
            }
            for repeated in [&old, &world.table.marks()] {
                let Some(counted) = world.counted_after_a_kill(repeated) else { continue };
                prop_assert!(counted >= world.spent, "{at}: {counted} counted, {} spent", world.spent);
            }
        }
    }

    #[test]
    fn units_of_a_bucket_and_a_log_are_never_given_back_when_they_are_free_already(
        bucket in any::<bool>(), rate in 20..2_000_u64, burst in 20..400_u64, steps in steps(),
        times in [0..14_000_u64, 0..14_000_u64], units in 1..100_u64
    ) {
        let limit = if bucket {
            Limit::token_bucket(quota(rate), width(60_000), Some(quota(burst)))
        } else {
            Limit::sliding_log(quota(burst), width(20_000)).unwrap()
        };
        let mut world = World::new(limit);
        for (at, step) in steps.iter().enumerate() {
            world.step(step);
            prop_assert!(!world.passed, "{at}: more than the limit");
            for times in [[0, 0], times] {
                let Some((free, left)) = world.free_after_a_kill(times, units) else { continue };
                prop_assert!(free <= left, "{at}: {free} are free, {left} are left after {times:?} ms");
            }
        }
    }

    #[test]
    fn all_but_an_eighth_of_the_last_lease_comes_back(
        limit in windows(), costs in prop::collection::vec(1..6_u64, 1..200)
    ) {
        let mut world = World::new(limit);
        for cost in costs {
            world.spend(cost, false, Fate::Answered);
            let Some(counted) = world.counted_after_a_kill(&[]) else { continue };
            let lost = counted - world.spent;
            prop_assert!(lost <= world.lent_most.div_ceil(8), "{lost} of {}", world.lent_most);
        }
    }

    /// Of a bundle, because what a request takes for itself alone is spent when it is taken.
    #[test]
    fn what_was_lent_by_answers_that_nobody_heard_comes_back_too(
        limit in windows(), costs in prop::collection::vec(1..6_u64, 1..60), unheard in 1..4_u64
    ) {
        let mut world = World::new(limit);
        for cost in costs {
            world.spend(cost, false, Fate::Answered);
        }
        for cost in 0..unheard {
            world.spend(limit.quota.get() / 3 + cost, true, Fate::Unanswered);
        }
        // By all that was written, and by a checkpoint that was just made.
        let marks = world.table.marks();
        let lent = world.record.is_some() && world.sent.is_some_and(|take| take.bundled);
        prop_assert!(!lent || !marks.is_empty());
        let counts = [world.counted_after_a_kill(&marks), world.counted_by(&marks)];
        for counted in counts.into_iter().flatten() {
            let lost = counted - world.spent - world.aside();
            prop_assert!(lost <= world.lent_most.div_ceil(8), "{lost} of {}", world.lent_most);
        }
    }
}

/// As when the process was stopped for half a minute between the lease and the decision.
#[test]
fn what_was_set_aside_in_a_cell_that_was_forgotten_is_not_spent_from_the_one_made_after_it() {
    let mut world = World::new(Limit::sliding_log(quota(20), width(20_000)).unwrap());
    world.spend(5, true, Fate::Answered);
    for step in [Step::Tick(Fate::Answered), Step::Wait(30_000), Step::Tick(Fate::Answered)] {
        world.step(&step);
    }
    assert_eq!((world.aside(), world.table.stats().cells), (5, 0));
    world.spend(3, false, Fate::Answered);
    world.step(&Step::Settle { spend: true });
    assert_eq!(world.spent, 3);
}

/// Forgotten everywhere after two widths of silence, it begins at nothing again, under the same name and the same zero.
#[test]
fn what_a_log_gave_back_before_it_began_anew_is_not_given_back_once_more() {
    let of = |granted, used, returned, lapse| {
        let mut one = left(BootId([7; 16]), "ann", granted, used);
        one.mark.limit = Limit::sliding_log(quota(50), width(3_600_000)).unwrap();
        one.mark.totals = Totals { plain: 0, granted, used, returned };
        one.mark.lapse = Millis(lapse);
        one
    };
    let (old, new) = (of(35, 5, 30, 100), of(30, 30, 0, 9_000_000));
    for (mut first, second) in [(old.clone(), new.clone()), (new.clone(), old)] {
        first.merge(&second);
        assert_eq!((first.mark.returned(), &first), (0, &new));
    }
}

#[test]
fn a_hot_cell_writes_some_ten_records_per_lease_and_not_one_per_decision() {
    const DECISIONS: u64 = 10_000;
    for (units, most) in [(1_000, 100), (20_000, 80), (1_000_000, 80)] {
        let dir = tempfile::tempdir().unwrap();
        let journal = SharedJournal::new(open(dir.path()).0);
        let limit = Limit::fixed_window(quota(units), Window::Aligned(width(600_000)));
        let mut world = World::new(limit);
        let marks = LeaseMarks::new(journal.clone(), Millis(0));
        let before = journal.lock().bytes();
        for _ in 0..DECISIONS {
            world.spend(1, false, Fate::Answered);
        }
        let written = world.written.0.lock().unwrap();
        written.iter().for_each(|mark| marks.raise(mark.clone()));
        let bytes = journal.lock().bytes() - before;
        assert_eq!(world.spent, DECISIONS.min(units));
        assert!(written.len() <= most, "{units}: {} records", written.len());
        assert!(bytes <= 70 * most as u64, "{units}: {bytes} bytes");
    }
}
