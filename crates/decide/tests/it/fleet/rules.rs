//! Single rules of the protocol, on one node whose origin is a record at hand.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tollkeeper_core::{
    Algorithm, Boot, Cost, Limit, Millis, Quota, Record, Take, Taken, Totals, Width, Window,
};
use tollkeeper_decide::{
    CellKey, CellName, Consistency, Dealt, Errand, LeaseAsk, LeaseTable, Link, NearLease, OnOutage,
    Place, Scope,
};

pub(super) const START: Millis = Millis(1_700_000_000_000);
pub(super) const SECOND: u64 = 1_000;
pub(super) const HOUR: u64 = 3_600_000;

/// A node, its origin, and the way between them, which takes no time.
pub(super) struct Desk {
    pub(super) table: LeaseTable<u64>,
    pub(super) records: HashMap<(u64, u64), Option<Record>>,
    pub(super) now: Millis,
    pub(super) calls: Vec<Take>,
    /// Answers that told of a record that is missing.
    pub(super) missed: u32,
}

// === impl Desk ===

impl Desk {
    pub(super) fn new() -> Self {
        Self::with_room_for(16)
    }

    /// So many cells in each shard; there are 64.
    fn with_room_for(cells: usize) -> Self {
        let table = LeaseTable::new(64 * cells, Boot(7));
        table.set_nodes(1);
        Self { table, records: HashMap::new(), now: START, calls: Vec::new(), missed: 0 }
    }

    pub(super) fn near(&self, ask: &LeaseAsk, link: Link) -> NearLease {
        let scope = Arc::new(Scope::namespace("t", "s"));
        let name = || CellName::new(&scope, &ask.key.exact.to_string());
        self.table.near(ask, name, |id| id, link, self.now)
    }

    /// The origin hears a call.
    pub(super) fn hear(&mut self, errand: &Errand) -> Taken {
        self.calls.push(errand.take);
        self.take(errand.key, &errand.take)
    }

    /// A call of somebody else.
    pub(super) fn take(&mut self, key: CellKey, take: &Take) -> Taken {
        let window = match take.limit.algorithm {
            Algorithm::FixedWindow(_) => take.win,
            _ => 0,
        };
        let record = self.records.entry((key.exact, window)).or_default();
        Record::take(record, take, false, self.now)
    }

    /// Runs a call, and those that follow.
    pub(super) fn run(&mut self, errand: Errand) {
        let mut errand = Some(errand);
        while let Some(call) = errand {
            let taken = self.hear(&call);
            errand = self.table.absorb(&call, Ok(&taken), self.now, self.now).next;
        }
    }

    /// Does what time makes necessary; says which calls that were.
    pub(super) fn tick(&mut self) -> Vec<Take> {
        let before = self.calls.len();
        for errand in self.table.tick(0, 1, self.now) {
            self.run(errand);
        }
        self.calls[before..].to_vec()
    }

    /// The origin lost its history: what it is told of it.
    pub(super) fn assert_all(&self) -> Vec<Errand> {
        self.table.assert_all(|_| true);
        self.table.tick(0, 1, self.now)
    }

    /// Asks, and runs every call that follows.
    pub(super) fn ask(&mut self, ask: &LeaseAsk) -> Dealt {
        let (mut dealt, mut errand, mine) = match self.near(ask, Link::Up) {
            NearLease::Dealt(dealt, errand) => (Some(dealt), errand, None),
            NearLease::Waits(id, errand) => (None, errand, Some(id)),
        };
        while let Some(call) = errand {
            let taken = self.hear(&call);
            let turn = self.table.absorb(&call, Ok(&taken), self.now, self.now);
            dealt = dealt
                .or_else(|| turn.dealt.iter().find(|(id, _)| Some(*id) == mine).map(|one| one.1));
            self.missed += u32::from(turn.lost);
            errand = turn.next;
        }
        dealt.unwrap()
    }

    pub(super) fn admits(&mut self, ask: &LeaseAsk) -> bool {
        self.ask(ask).outcome.admitted()
    }

    /// Asks until there is a lease that pays without a call.
    fn warm_up(&mut self, ask: &LeaseAsk) {
        for _ in 0..50 {
            let before = self.calls.len();
            assert!(self.admits(ask));
            if self.calls.len() == before {
                return;
            }
        }
        panic!("no lease after 50 asks");
    }
}

pub(super) fn ask(cell: u64, limit: Limit) -> LeaseAsk {
    LeaseAsk {
        key: CellKey { subject: 0, exact: cell },
        limit,
        cost: Cost::ONE,
        consistency: Consistency::Exact,
        on_outage: OnOutage::Share,
        bundled: false,
        beside: 0,
    }
}

pub(super) fn fixed(quota: u64, width: u64) -> Limit {
    let width = Width::from_millis(width).unwrap();
    Limit::fixed_window(Quota::new(quota).unwrap(), Window::Aligned(width))
}

pub(super) fn sliding(quota: u64, width: u64) -> Limit {
    Limit::sliding_window(Quota::new(quota).unwrap(), Width::from_millis(width).unwrap())
}

#[test]
fn what_is_lent_of_a_larger_limit_does_not_remain_of_a_smaller_one() {
    let mut desk = Desk::new();
    let large = ask(1, sliding(1_000, HOUR));
    for _ in 0..30 {
        assert!(desk.admits(&large));
    }
    assert!(desk.table.marks()[0].totals.held() > 10);
    let looks = LeaseAsk { cost: Cost::PEEK, ..ask(1, sliding(40, HOUR)) };
    let remaining = desk.table.standing(&looks, desk.now).unwrap().outcome.remaining;
    assert_eq!(remaining, 10, "30 of 40 are spent");
}

#[test]
fn a_lease_of_a_larger_limit_is_not_spent_for_a_smaller_one() {
    let mut desk = Desk::new();
    desk.warm_up(&ask(1, fixed(1_000, HOUR)));
    let calls = desk.calls.len();
    let small = fixed(5, HOUR);
    for _ in 0..5 {
        desk.admits(&ask(1, small));
    }
    let spent = desk.calls.last().unwrap().totals;
    assert!(desk.calls.len() > calls, "spent without asking");
    assert_eq!(desk.calls[calls].limit, small);
    assert_eq!(desk.calls[calls].ask, 0, "a smaller limit is lent nothing beyond its cost");
    assert_eq!(desk.calls[calls].totals.held(), 0, "the larger limit's lease goes back first");
    assert!(spent.plain + spent.used >= 5 && !desk.admits(&ask(1, small)));
}

#[test]
fn nothing_is_spent_from_a_lease_after_its_window() {
    let mut desk = Desk::new();
    let limit = fixed(1_000, SECOND);
    desk.warm_up(&ask(1, limit));
    let calls = desk.calls.len();
    // The node's reckoning of the origin's time is a little behind.
    desk.now = START + SECOND + 10;
    assert!(desk.admits(&ask(1, limit)));
    let call = desk.calls[calls];
    assert_eq!((call.win, call.totals), ((START + SECOND).0, Totals::default()));
}

#[test]
fn what_was_set_aside_in_a_lease_is_not_spent_after_its_lapse() {
    let mut desk = Desk::new();
    let bundled = LeaseAsk { bundled: true, ..ask(1, fixed(10, SECOND)) };
    let units = desk.ask(&bundled).units.unwrap();
    desk.now = START + SECOND;
    assert!(!desk.table.settle(&[units], desk.now));
}

#[test]
fn an_answer_that_comes_after_its_window_lends_nothing() {
    let mut desk = Desk::new();
    let limit = fixed(1_000, SECOND);
    for _ in 0..3 {
        desk.admits(&ask(1, limit));
    }
    let many = LeaseAsk { cost: Cost::new(30).unwrap(), ..ask(1, limit) };
    let NearLease::Waits(_, Some(errand)) = desk.near(&many, Link::Up) else { panic!("no call") };
    let taken = desk.hear(&errand);
    let sent = desk.now;
    desk.now = START + SECOND + 10;
    desk.table.absorb(&errand, Ok(&taken), sent, desk.now);
    let calls = desk.calls.len();
    assert!(desk.admits(&ask(1, limit)));
    assert!(desk.calls.len() > calls);
    assert_eq!(desk.calls.last().unwrap().win, (START + SECOND).0);
}

#[test]
fn an_answer_about_a_window_that_is_over_does_not_undo_what_was_admitted_alone_since() {
    let mut desk = Desk::new();
    let limit = sliding(100, SECOND);
    assert!(desk.admits(&ask(1, limit)));
    let NearLease::Waits(_, Some(errand)) = desk.near(&ask(1, limit), Link::Up) else {
        panic!("no call")
    };
    let (taken, sent) = (desk.hear(&errand), desk.now);
    desk.now = START + SECOND + 10;
    let NearLease::Dealt(alone, _) = desk.near(&ask(1, limit), Link::Away) else {
        panic!("waits for an origin that is away")
    };
    assert!(alone.outcome.admitted() && alone.degraded);
    desk.table.absorb(&errand, Ok(&taken), sent, desk.now);
    let told = desk.table.tick(0, 1, desk.now + 200);
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].take.win, told[0].take.totals.plain), ((START + SECOND).0, 1));
}

#[test]
fn a_cell_made_anew_adopts_what_its_boot_did_before() {
    let mut desk = Desk::new();
    let limit = fixed(3, HOUR);
    assert!(desk.admits(&ask(1, limit)));
    desk.now = START + 61 * SECOND;
    assert!(desk.table.tick(0, 1, desk.now).is_empty());
    assert_eq!(desk.table.stats().cells, 0, "what is idle is forgotten");
    assert!(desk.admits(&ask(1, limit)));
    assert_eq!(desk.calls.last().unwrap().totals, Totals::default());
    assert!(desk.admits(&ask(1, limit)));
    let known = desk.calls.last().unwrap().totals;
    assert_eq!(known.plain + known.used, 2);
    assert!(!desk.admits(&ask(1, limit)), "a fourth, or one counted twice");
}

#[test]
fn a_cell_that_still_counts_is_kept_for_an_origin_that_forgets() {
    let mut desk = Desk::new();
    assert!(desk.admits(&ask(1, fixed(3, HOUR))));
    desk.now = START + 10 * SECOND;
    desk.tick();
    let told = desk.assert_all();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].take.totals.counted(), 1);
    // That call is lost: a tick repeats it.
    let missed = Err(tollkeeper_decide::Missed::Silent);
    desk.table.absorb(&told[0], missed, START, START + 10 * SECOND);
    assert_eq!(desk.table.tick(0, 1, START + 10 * SECOND + 50).len(), 1);
}

/// So many cells of one shard, each with something that an origin which forgot must be told.
fn forgotten(cells: u64) -> Desk {
    let mut desk = Desk::new();
    for number in 1..=cells {
        assert!(desk.admits(&ask(number, fixed(3, HOUR))));
    }
    desk.table.assert_all(|_| true);
    desk
}

impl Desk {
    /// Looks through the table once, a few calls at a time, of which those to the cells that `fails` names are not answered.
    /// Says for which cells calls were made.
    fn look_through(
        &mut self,
        hears: impl Fn(&CellName) -> bool,
        fails: impl Fn(u64) -> bool,
    ) -> Vec<u64> {
        const AT_ONCE: usize = 5;
        let (mut called, mut from) = (Vec::new(), Some(Place::shard(0)));
        while let Some(place) = from {
            let (errands, next) = self.table.look(place, 1, AT_ONCE, &hears, self.now);
            assert!(errands.len() <= AT_ONCE);
            from = next;
            for errand in errands {
                let cell = errand.key.exact;
                called.push(cell);
                if fails(cell) {
                    let missed = Err(tollkeeper_decide::Missed::Silent);
                    self.table.absorb(&errand, missed, self.now, self.now);
                } else {
                    self.run(errand);
                }
            }
        }
        called.sort_unstable();
        called
    }
}

#[test]
fn an_origin_that_forgot_is_told_a_few_cells_at_a_time_and_all_of_them() {
    let mut desk = forgotten(12);
    assert_eq!(desk.look_through(|_| true, |_| false), (1..=12).collect::<Vec<_>>());
    assert!(desk.tick().is_empty(), "nobody is told twice");
}

#[test]
fn what_was_not_heard_holds_up_nothing_behind_it_and_is_told_the_next_time() {
    let mut desk = forgotten(16);
    let refuses = |cell| cell % 4 != 0;
    assert_eq!(desk.look_through(|_| true, refuses), (1..=16).collect::<Vec<_>>());
    let unheard: Vec<u64> = (1..=16).filter(|cell| refuses(*cell)).collect();
    assert_eq!(desk.look_through(|_| true, |_| false), unheard);
    assert!(desk.tick().is_empty());
}

#[test]
fn cells_that_come_meanwhile_keep_nobody_from_being_told() {
    let mut desk = Desk::with_room_for(1_000);
    (1..=100).for_each(|number| assert!(desk.admits(&ask(number, fixed(3, HOUR)))));
    desk.table.assert_all(|_| true);
    let (mut called, mut from) = (HashSet::new(), Some(Place::shard(0)));
    let mut newcomers = 1_000..;
    while let Some(place) = from {
        let (errands, next) = desk.table.look(place, 1, 5, |_| true, desk.now);
        from = next;
        called.extend(errands.iter().map(|errand| errand.key.exact));
        for errand in errands {
            desk.run(errand);
        }
        // Enough of them that the map grows, and has another order.
        for number in newcomers.by_ref().take(20) {
            assert!(desk.admits(&ask(number, fixed(3, HOUR))));
        }
    }
    assert!((1..=100).all(|number| called.contains(&number)), "{} of 100", called.len());
}

#[test]
fn cells_of_a_server_that_hears_nothing_are_passed_over_until_it_does() {
    let mut desk = forgotten(16);
    let hears = |name: &CellName| name.identifier.ends_with('3');
    assert_eq!(desk.look_through(hears, |_| false), [3, 13]);
    assert_eq!(desk.look_through(hears, |_| false), Vec::<u64>::new());
    assert_eq!(desk.look_through(|_| true, |_| false).len(), 14);
}

#[test]
fn an_origin_that_forgot_is_told_of_the_previous_window_first() {
    let mut desk = Desk::new();
    let limit = sliding(100, SECOND);
    assert!(desk.admits(&ask(1, limit)));
    desk.now = START + SECOND;
    assert!(desk.admits(&ask(1, limit)));
    let first = desk.assert_all();
    assert_eq!((first[0].take.win, first[0].take.totals.counted()), (START.0, 1));
    desk.records.clear();
    let taken = desk.hear(&first[0]);
    desk.table.absorb(&first[0], Ok(&taken), desk.now, desk.now);
    let second = desk.table.tick(0, 1, desk.now + 50);
    assert_eq!((second[0].take.win, second[0].take.totals.counted()), (desk.now.0, 1));
    let taken = desk.hear(&second[0]);
    assert_eq!(taken.free(&limit), 98);
}

#[test]
fn an_origin_that_forgot_takes_the_previous_window_in_also_when_it_hears_of_it_last() {
    let mut desk = Desk::new();
    let limit = sliding(100, SECOND);
    assert!(desk.admits(&ask(1, limit)));
    desk.now = START + SECOND;
    assert!(desk.admits(&ask(1, limit)));
    desk.records.clear();
    // One call leaves before the node knows of the loss.
    assert!(desk.admits(&ask(1, limit)));
    let told = desk.assert_all();
    assert_eq!(told[0].take.win, START.0);
    for _ in 0..2 {
        assert_eq!(desk.hear(&told[0]).free(&limit), 97, "once, however often it is told");
    }
}

#[test]
fn what_a_cell_made_anew_spends_fast_is_counted_beside_what_its_boot_did_before() {
    let mut desk = Desk::new();
    let limit = fixed(10, HOUR);
    let fast = LeaseAsk { consistency: Consistency::Fast, ..ask(1, limit) };
    assert!(desk.admits(&fast));
    desk.now = START + 61 * SECOND;
    assert!(desk.table.tick(0, 1, desk.now).is_empty());
    assert_eq!(desk.table.stats().cells, 0, "what is idle is forgotten");
    assert!(desk.admits(&fast));
    let told = desk.assert_all();
    assert_eq!(told[0].take.totals.plain, 2);
    assert_eq!(desk.hear(&told[0]).free(&limit), 8);
}

#[test]
fn what_is_admitted_without_a_lease_counts_only_if_the_whole_bundle_stands() {
    for (consistency, link) in [
        (Consistency::Fast, Link::Up),
        (Consistency::Fast, Link::Away),
        (Consistency::Exact, Link::Away),
    ] {
        let mut desk = Desk::new();
        let limit = fixed(1_000, HOUR);
        // Known to the origin, so that all that is counted is told.
        assert!(desk.admits(&LeaseAsk { consistency: Consistency::Fast, ..ask(1, limit) }));
        let bundled = LeaseAsk { consistency, bundled: true, ..ask(1, limit) };
        let units = || match desk.near(&bundled, link) {
            NearLease::Dealt(Dealt { units: Some(units), .. }, _) => units,
            other => panic!("{other:?}"),
        };
        let (refused, stands) = (units(), units());
        desk.table.release(refused);
        desk.table.commit(&[stands]);
        let told = desk.assert_all();
        assert_eq!(told[0].take.totals.plain, 2, "{consistency:?} {link:?}");
    }
}

#[test]
fn a_bundle_that_was_refused_leaves_a_nodes_share_as_it_was() {
    let desk = Desk::new();
    // One node of one: its share is the whole.
    let bundled = LeaseAsk { bundled: true, ..ask(1, fixed(3, HOUR)) };
    let units = || match desk.near(&bundled, Link::Away) {
        NearLease::Dealt(dealt, _) => dealt.units,
        other @ NearLease::Waits(..) => panic!("{other:?}"),
    };
    for _ in 0..10 {
        desk.table.release(units().unwrap());
    }
    let held: Vec<_> = std::iter::from_fn(units).take(5).collect();
    assert_eq!(held.len(), 3, "what waits for a decision is not free");
    desk.table.commit(&held);
    assert!(units().is_none());
}

#[test]
fn an_edge_costs_a_fast_cell_one_call_for_the_window_that_is_over() {
    let mut desk = Desk::new();
    let limit = sliding(1_000, SECOND);
    let fast = LeaseAsk { consistency: Consistency::Fast, ..ask(1, limit) };
    assert!(desk.admits(&fast));
    // Too little to be told at once.
    assert!(desk.admits(&fast));
    let calls = desk.calls.len();
    desk.now = START + SECOND + 100;
    assert!(desk.admits(&fast));
    assert_eq!((desk.calls[calls].win, desk.calls[calls].totals.plain), (START.0, 2));
    let calls = desk.calls.len();
    for _ in 0..10 {
        assert!(desk.admits(&fast));
    }
    let later = &desk.calls[calls..];
    assert!(later.len() <= 1 && later.iter().all(|call| call.win > START.0), "{later:?}");
}

#[test]
fn more_than_4096_do_not_wait_for_one_cell() {
    let desk = Desk::new();
    let one = ask(1, fixed(100_000, HOUR));
    for _ in 0..4096 {
        assert!(matches!(desk.near(&one, Link::Up), NearLease::Waits(..)));
    }
    let NearLease::Dealt(dealt, None) = desk.near(&one, Link::Up) else { panic!("it waits") };
    assert!(dealt.degraded && !dealt.outcome.admitted());
}

#[test]
fn a_remembered_denial_costs_no_call() {
    let mut desk = Desk::new();
    let one = ask(1, fixed(1, HOUR));
    assert!(desk.admits(&one));
    assert!(!desk.admits(&one));
    let calls = desk.calls.len();
    for _ in 0..100 {
        assert!(!desk.admits(&one));
    }
    assert_eq!(desk.calls.len(), calls);
}

#[test]
fn a_bundle_whose_second_cell_is_refused_gives_the_first_back() {
    let mut desk = Desk::new();
    let limit = fixed(1, HOUR);
    assert!(desk.admits(&ask(2, limit)));
    let bundled = |cell| LeaseAsk { bundled: true, ..ask(cell, limit) };
    let first = desk.ask(&bundled(1)).units.unwrap();
    assert!(!desk.ask(&bundled(2)).outcome.admitted());
    assert!(!desk.admits(&ask(1, limit)), "what is set aside is not for others");
    desk.table.release(first);
    desk.table.forget_copy(first.key);
    assert!(desk.admits(&ask(1, limit)));
}

#[test]
fn a_full_table_has_no_share_to_give_while_the_origin_is_away() {
    let table: LeaseTable<u64> = LeaseTable::new(1, Boot(7));
    let scope = Arc::new(Scope::namespace("t", "s"));
    let limit = fixed(100, HOUR);
    let near = |cell: u64, link| {
        let name = || CellName::new(&scope, &cell.to_string());
        table.near(&ask(cell, limit), name, |id| id, link, START)
    };
    assert!(matches!(near(1, Link::Up), NearLease::Waits(..)));
    let NearLease::Dealt(dealt, None) = near(2, Link::Away) else { panic!("it waits") };
    assert!(dealt.degraded && !dealt.outcome.admitted());
}

/// Another node's call about the same cell.
fn another(desk: &mut Desk, limit: Limit, seq: u64, totals: Totals, need: u64) {
    let (win, _) = limit.window_at(desk.now);
    let windowed = !matches!(limit.algorithm, Algorithm::TokenBucket { .. });
    let win = if windowed { win.0 } else { 0 };
    let record = desk.records.values_mut().next().unwrap();
    let take = Take {
        boot: Boot(8),
        seq,
        win,
        totals,
        need,
        more: 0,
        forgotten: 0,
        ask: 0,
        bundled: false,
        nodes: 2,
        limit,
    };
    Record::take(record, &take, false, desk.now);
}

#[test]
fn a_record_that_is_missing_is_missed_once_and_by_those_who_were_in_it() {
    let bucket =
        Limit::token_bucket(Quota::new(100).unwrap(), Width::from_millis(HOUR).unwrap(), None);
    for limit in [fixed(100, HOUR), sliding(100, HOUR), bucket] {
        let mut desk = Desk::new();
        for _ in 0..3 {
            assert!(desk.admits(&ask(1, limit)));
        }
        assert_eq!(desk.missed, 0, "a new cell misses nothing");
        desk.records.clear();
        while desk.calls.len() < 8 {
            assert!(desk.admits(&ask(1, limit)));
        }
        assert_eq!(desk.missed, 1, "{limit:?}");
        // Who is told of it says so without missing it once more.
        let errand = desk.table.assert_one(ask(1, limit).key, desk.now).unwrap();
        assert_eq!((errand.take.need, errand.take.ask), (0, 0));
        desk.records.clear();
        let taken = desk.hear(&errand);
        assert!(!desk.table.absorb(&errand, Ok(&taken), desk.now, desk.now).lost);
    }
    let nobody = Desk::new();
    assert!(
        nobody.table.assert_one(ask(1, bucket).key, nobody.now).is_none(),
        "who knows nothing says nothing"
    );
}

#[test]
fn a_record_that_another_made_anew_is_missed_by_what_it_counts() {
    for limit in [fixed(1_000, HOUR), sliding(1_000, HOUR)] {
        let mut desk = Desk::new();
        assert!(desk.admits(&ask(1, limit)));
        another(&mut desk, limit, 1, Totals::default(), 500);
        desk.warm_up(&ask(1, limit));
        desk.records.values_mut().for_each(|record| *record = None);
        another(&mut desk, limit, 2, Totals::default(), 7);
        let calls = desk.calls.len();
        while desk.calls.len() == calls {
            assert!(desk.admits(&ask(1, limit)));
        }
        assert_eq!(desk.missed, 1, "{limit:?}");
    }
}

#[test]
fn what_is_given_back_or_forgiven_is_not_missed() {
    let limit = fixed(1_000, HOUR);
    let mut desk = Desk::new();
    assert!(desk.admits(&ask(1, limit)));
    let lent = Totals { granted: 600, ..Totals::default() };
    another(&mut desk, limit, 1, lent, 0);
    desk.warm_up(&ask(1, limit));
    another(&mut desk, limit, 2, Totals { returned: 600, ..lent }, 0);
    let calls = desk.calls.len();
    while desk.calls.len() == calls {
        assert!(desk.admits(&ask(1, limit)));
    }
    desk.records.values_mut().flatten().for_each(Record::reset);
    desk.table.forget_copy(ask(1, limit).key);
    for _ in 0..100 {
        assert!(desk.admits(&ask(1, limit)));
    }
    assert_eq!(desk.missed, 0);
}

/// What the node admits without its origin, until it is refused.
fn alone(desk: &Desk, ask: &LeaseAsk) -> u64 {
    let admits = || match desk.near(ask, Link::Away) {
        NearLease::Dealt(dealt, _) => dealt.outcome.admitted(),
        other @ NearLease::Waits(..) => panic!("{other:?}"),
    };
    (0..1_000).take_while(|_| admits()).count() as u64
}

/// One of so many nodes, whose copy of the record says that so much is used.
fn one_of(nodes: u64, ask: &LeaseAsk, used: u64) -> Desk {
    let mut desk = Desk::new();
    desk.table.set_nodes(nodes);
    assert!(desk.admits(ask));
    another(&mut desk, ask.limit, 1, Totals::default(), used - 1);
    desk.ask(&LeaseAsk { cost: Cost::PEEK, ..*ask });
    desk
}

/// The origin came back empty, and has heard this node and nobody else.
fn begin_to_learn(desk: &mut Desk) {
    for errand in desk.assert_all() {
        let mut empty = None;
        let taken = Record::take(&mut empty, &errand.take, true, desk.now);
        desk.table.absorb(&errand, Ok(&taken), desk.now, desk.now);
        desk.records.values_mut().for_each(|record| record.clone_from(&empty));
    }
}

#[test]
fn a_share_goes_by_the_nodes_that_were_counted_and_who_counted_none_is_one() {
    let desk = || Desk { table: LeaseTable::new(64, Boot(7)), ..Desk::new() };
    let ask = ask(1, fixed(3, HOUR));
    assert_eq!(alone(&desk(), &ask), 3);
    let counted = desk();
    counted.table.set_nodes(3);
    assert_eq!(alone(&counted, &ask), 1);
}

#[test]
fn what_an_origin_says_while_it_learns_enlarges_nobodys_share() {
    let width = Width::from_millis(HOUR).unwrap();
    let log = Limit::sliding_log(Quota::new(1_000).unwrap(), width).unwrap();
    for limit in [fixed(1_000, HOUR), sliding(1_000, HOUR), log] {
        let ask = ask(1, limit);
        let mut desk = one_of(4, &ask, 900);
        begin_to_learn(&mut desk);
        assert_eq!(alone(&desk, &ask), 25, "a quarter of the 100 that were left: {limit:?}");
    }
}

#[test]
fn what_an_origin_was_told_by_others_while_it_learns_counts_for_a_share() {
    let limit = fixed(1_000, HOUR);
    let ask = ask(1, limit);
    let mut desk = one_of(4, &ask, 100);
    for errand in desk.assert_all() {
        another(&mut desk, limit, 2, Totals::default(), 800);
        let record = desk.records.values_mut().next().unwrap();
        let taken = Record::take(record, &errand.take, true, desk.now);
        desk.table.absorb(&errand, Ok(&taken), desk.now, desk.now);
    }
    assert_eq!(alone(&desk, &ask), 25);
}

#[test]
fn what_nobody_could_tell_an_origin_that_has_learnt_is_not_missed() {
    for limit in [fixed(1_000, HOUR), sliding(1_000, HOUR)] {
        let ask = ask(1, limit);
        let mut desk = one_of(4, &ask, 900);
        begin_to_learn(&mut desk);
        // Of the others' 899 units those of dead nodes are told by nobody.
        another(&mut desk, limit, 2, Totals::default(), 500);
        assert!(desk.admits(&ask));
        assert_eq!(desk.missed, 0, "{limit:?}");
    }
}

#[test]
fn what_was_spent_of_a_share_is_not_charged_once_more_when_the_origin_knows_it() {
    for limit in [fixed(100, HOUR), sliding(100, HOUR)] {
        let ask = ask(1, limit);
        let mut desk = one_of(2, &ask, 20);
        assert_eq!(alone(&desk, &ask), 40);
        desk.now = desk.now + 3 * SECOND;
        assert_eq!(desk.tick().last().unwrap().totals.plain, 41);
        assert_eq!(alone(&desk, &ask), 20, "half of the 40 that are left: {limit:?}");
    }
}

#[test]
fn a_share_is_not_begun_anew_before_the_origin_can_know_all_of_it() {
    let limit = fixed(100, HOUR);
    let ask = ask(1, limit);
    // The others had no time to tell theirs.
    let mut desk = one_of(2, &ask, 20);
    assert_eq!(alone(&desk, &ask), 40);
    desk.now = desk.now + SECOND;
    assert_eq!(desk.tick().last().unwrap().totals.plain, 41);
    assert_eq!(alone(&desk, &ask), 0);
    // A part of it was spent after the call had left.
    let mut desk = one_of(2, &ask, 20);
    assert!(matches!(desk.near(&ask, Link::Away), NearLease::Dealt(..)));
    desk.now = desk.now + 3 * SECOND;
    let errand = desk.table.tick(0, 1, desk.now).remove(0);
    assert_eq!(alone(&desk, &ask), 39);
    desk.now = desk.now + 3 * SECOND;
    let taken = desk.hear(&errand);
    desk.table.absorb(&errand, Ok(&taken), desk.now, desk.now);
    assert_eq!(alone(&desk, &ask), 0);
    // A bucket's is no part of what is left, and fills while nobody asks for it.
    let width = Width::from_millis(HOUR).unwrap();
    let bucket = self::ask(2, Limit::token_bucket(Quota::new(100).unwrap(), width, None));
    let mut desk = one_of(2, &bucket, 20);
    assert_eq!(alone(&desk, &bucket), 50);
    desk.now = desk.now + 3 * SECOND;
    assert_eq!(desk.tick().last().unwrap().totals.plain, 51);
    assert_eq!(alone(&desk, &bucket), 0);
}
