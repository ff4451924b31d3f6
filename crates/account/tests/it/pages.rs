//! Pages: what was counted is told until the ledger shows it, and then no more; a slot is used anew only after that.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use tollkeeper_account::{Former, Journal, KEPT_MS, Kind, Ledger, Meter, Noted, Pages};
use tollkeeper_core::{Component, Millis, Minute, Usage};

use crate::changes::{NOW, copy_of, open};
use crate::node::Node;

const MINUTE_MS: u64 = 60_000;

pub(crate) struct Opened {
    pub(crate) pages: Pages,
    pub(crate) former: Vec<Former>,
    /// Keeps the directory locked.
    _journal: Journal,
}

pub(crate) fn pages_in(dir: &Path) -> Opened {
    let (journal, ..) = open(dir);
    let (pages, former) = journal.pages().unwrap();
    Opened { pages, former, _journal: journal }
}

/// What the next process would find if this one died now.
pub(crate) fn left_after_a_kill(dir: &Path) -> Vec<Component> {
    let copy = copy_of(dir);
    let opened = pages_in(copy.path());
    opened.former.into_iter().flat_map(|former| former.components).collect()
}

pub(crate) fn count(pages: &Pages, key: &str, at: Millis, usage: Usage) {
    let (project, key) = (Arc::from("api_1"), Arc::from(key));
    match pages.find(&project, &key, Minute::of(at)) {
        Some(slot) => pages.add(slot, usage),
        None => pages.lose(usage),
    }
}

fn by_key(components: &[Component]) -> HashMap<(Minute, String), Usage> {
    components.iter().map(|one| ((one.minute, one.key_id.to_string()), one.usage)).collect()
}

fn components(noted: &[Noted]) -> Vec<Component> {
    noted.iter().map(|one| one.component.clone()).collect()
}

fn after(minutes: u64) -> Millis {
    Millis(NOW.0 + minutes * MINUTE_MS)
}

#[test]
fn what_was_counted_is_found_by_the_next_process() {
    let dir = tempfile::tempdir().unwrap();
    let opened = pages_in(dir.path());
    let used = Usage { requests: 3, denied: 1, bytes: 1 << 40, credits: 7 };
    for number in 0..3_000 {
        count(&opened.pages, &format!("key_{number}"), NOW, used);
    }
    let left = left_after_a_kill(dir.path());
    assert_eq!(left.len(), 3_000);
    assert!(left.iter().all(|one| one.usage == used && one.minute == Minute::of(NOW)));
    assert_eq!(by_key(&left), by_key(&components(&opened.pages.untold(usize::MAX))));
}

#[test]
fn every_decision_on_a_key_that_was_found_is_usage_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, ..) = open(dir.path());
    let pages = Arc::new(journal.pages().unwrap().0);
    let node = Node::new();
    let ledger = Ledger::new(1).metering(Meter::new(Arc::clone(&pages)));
    for _ in 0..3 {
        ledger.record_verified(Kind::Verify, node.verify(150, 1));
    }
    ledger.record_verified(Kind::Verify, node.verify(1, 5));
    ledger.record_verified(Kind::Verify, node.verify(220, 1));
    let counted = by_key(&components(&pages.untold(usize::MAX)));
    let of = |key: &str| {
        counted.iter().find(|((_, one), _)| one == key).map(|(_, usage)| *usage).unwrap_or_default()
    };
    assert_eq!(of("key_150"), Usage { requests: 3, ..Usage::default() });
    assert_eq!(of("key_1"), Usage { requests: 1, credits: 5, ..Usage::default() });
    assert_eq!(counted.len(), 2);
}

#[test]
fn what_was_told_is_told_again_only_when_it_has_grown() {
    let dir = tempfile::tempdir().unwrap();
    let Opened { pages, .. } = pages_in(dir.path());
    count(&pages, "key_1", NOW, Usage::request());
    let first = pages.untold(10);
    assert_eq!(first.len(), 1);
    pages.told(&first);
    assert_eq!(pages.untold(10), []);
    count(&pages, "key_1", NOW, Usage::denial());
    let again = pages.untold(10);
    assert_eq!(again[0].component.usage, Usage { requests: 1, denied: 1, ..Usage::default() });
    assert!(again[0].component.is_about(&first[0].component));
}

#[test]
fn a_slot_settles_only_when_its_minute_is_over_and_nothing_was_added_since() {
    let dir = tempfile::tempdir().unwrap();
    let Opened { pages, .. } = pages_in(dir.path());
    count(&pages, "key_1", NOW, Usage::request());
    let noted = pages.untold(10);
    pages.told(&noted);
    assert_eq!(pages.unsettled(NOW, 10), []);
    pages.settle(&noted, NOW);
    assert_eq!(pages.reading().waiting, 1, "the minute is not over");
    let noted = pages.unsettled(after(3), 10);
    count(&pages, "key_1", NOW, Usage::request());
    pages.settle(&noted, after(3));
    assert_eq!(pages.reading().waiting, 1, "something came late");
    let noted = pages.untold(10);
    pages.told(&noted);
    pages.settle(&pages.unsettled(after(3), 10), after(3));
    assert_eq!((pages.reading().waiting, pages.unsettled(after(3), 10).len()), (0, 0));
    // A ledger that forgot hears all of it again.
    pages.tell_all_again();
    assert_eq!(pages.untold(10), noted);
    assert_eq!(pages.reading().waiting, 1);
}

#[test]
fn a_settled_slot_is_used_anew_after_a_while_and_what_came_late_is_never_lost() {
    let dir = tempfile::tempdir().unwrap();
    let Opened { pages, .. } = pages_in(dir.path());
    let kept = KEPT_MS / MINUTE_MS;
    for key in ["key_1", "key_2"] {
        count(&pages, key, NOW, Usage::request());
    }
    let late = pages.find(&"api_1".into(), &"key_2".into(), Minute::of(NOW)).unwrap();
    let noted = pages.untold(10);
    pages.told(&noted);
    pages.settle(&noted, after(2));
    // Too early: the slots stay as they are.
    count(&pages, "key_3", after(3), Usage::request());
    assert_eq!(by_key(&left_after_a_kill(dir.path())).len(), 3);
    // A thread that held the place of a slot for minutes.
    pages.add(late, Usage::request());
    for number in 4..8 {
        count(&pages, &format!("key_{number}"), after(3 + kept), Usage::request());
    }
    let left = by_key(&left_after_a_kill(dir.path()));
    assert!(!left.contains_key(&(Minute::of(NOW), "key_1".to_owned())), "it was used anew");
    assert_eq!(left[&(Minute::of(NOW), "key_2".to_owned())].requests, 2);
    let untold = by_key(&components(&pages.untold(10)));
    assert_eq!(untold[&(Minute::of(NOW), "key_2".to_owned())].requests, 2);
    assert_eq!(untold.len(), 6);
}

#[test]
fn a_full_book_counts_under_the_project_and_says_so() {
    const MANY: u64 = 262_144 + 1_000;
    let dir = tempfile::tempdir().unwrap();
    let Opened { pages, .. } = pages_in(dir.path());
    for number in 0..MANY {
        count(&pages, &format!("key_{number}"), NOW, Usage::request());
    }
    let reading = pages.reading();
    assert!(reading.overflowed > 1_000 && reading.lost == 0 && reading.unkept == 0, "{reading:?}");
    let all = pages.untold(usize::MAX);
    assert_eq!(all.iter().map(|one| one.component.usage.requests).sum::<u64>(), MANY);
    let shared = all.iter().find(|one| one.component.key_id.is_empty()).unwrap();
    assert_eq!(shared.component.usage.requests, reading.overflowed);
    // With everything in the ledger there is room again.
    pages.told(&all);
    pages.settle(&all, after(2));
    count(&pages, "key_new", after(2), Usage::request());
    assert_eq!(pages.reading().overflowed, reading.overflowed);
}

#[test]
fn an_id_that_is_too_long_counts_under_its_project() {
    let dir = tempfile::tempdir().unwrap();
    let Opened { pages, .. } = pages_in(dir.path());
    count(&pages, &"k".repeat(300), NOW, Usage::request());
    let noted = pages.untold(10);
    assert_eq!((noted.len(), &*noted[0].component.key_id), (1, ""));
    assert_eq!(pages.reading().overflowed, 1);
}

#[test]
fn threads_that_count_at_once_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let Opened { pages, .. } = pages_in(dir.path());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for number in 0..10_000_u64 {
                    count(&pages, &format!("key_{}", number % 50), NOW, Usage::request());
                }
            });
        }
    });
    let left = left_after_a_kill(dir.path());
    assert_eq!(left.len(), 50);
    assert_eq!(left.iter().map(|one| one.usage.requests).sum::<u64>(), 40_000);
}

#[derive(Clone, Debug)]
enum Step {
    Count { key: u8, minute: u64, usage: Usage },
    Tell,
    Settle { at: u64 },
    Forget,
    Kill,
}

fn step() -> impl Strategy<Value = Step> {
    let usage = (0..5_u64, 0..5_u64, 0..1_000_u64, 0..9_u64)
        .prop_map(|(requests, denied, bytes, credits)| Usage { requests, denied, bytes, credits });
    prop_oneof![
        6 => (0..6_u8, 0..40_u64, usage).prop_map(|(key, minute, usage)| Step::Count { key, minute, usage }),
        3 => Just(Step::Tell),
        3 => (0..60_u64).prop_map(|at| Step::Settle { at }),
        1 => Just(Step::Forget),
        1 => Just(Step::Kill),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// A ledger of highest totals, fed by whatever the pages tell and by what dead processes left, ends with every count.
    #[test]
    fn whatever_happens_the_ledger_ends_with_every_count_once(steps in prop::collection::vec(step(), 1..80)) {
        let dir = tempfile::tempdir().unwrap();
        let mut opened = pages_in(dir.path());
        let mut ledger: HashMap<([u8; 16], Minute, String), Usage> = HashMap::new();
        let mut counted = Usage::default();
        let apply = |ledger: &mut HashMap<_, Usage>, told: &[Component]| {
            for one in told {
                let highest = ledger.entry((one.boot, one.minute, one.key_id.to_string())).or_default();
                *highest = highest.max(one.usage);
            }
        };
        // Minutes only go forward, as the clock does.
        let mut now = 0;
        for step in steps {
            match step {
                Step::Count { key, minute, usage } => {
                    now = now.max(minute);
                    count(&opened.pages, &format!("key_{key}"), after(now), usage);
                    counted = counted.plus(usage);
                }
                Step::Tell => {
                    let noted = opened.pages.untold(7);
                    apply(&mut ledger, &components(&noted));
                    opened.pages.told(&noted);
                }
                Step::Settle { at } => {
                    let noted = opened.pages.unsettled(after(now.max(at)), 7);
                    opened.pages.settle(&noted, after(now.max(at)));
                }
                Step::Forget => {
                    // As it was before everything that can still be told again.
                    opened.pages.tell_all_again();
                }
                Step::Kill => {
                    drop(opened);
                    opened = pages_in(dir.path());
                    opened.former.iter().for_each(|former| apply(&mut ledger, &former.components));
                }
            }
        }
        apply(&mut ledger, &components(&opened.pages.untold(usize::MAX)));
        let sum = ledger.values().fold(Usage::default(), |sum, one| sum.plus(*one));
        prop_assert_eq!(sum, counted);
    }
}
