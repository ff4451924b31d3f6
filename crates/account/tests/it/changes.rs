//! Changes to write, and what a journal says when it is read back.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;
use tollkeeper_account::{BootId, Entry, Journal, Recovered};
use tollkeeper_core::{FixedWindow, Millis, SlidingLog, SlidingWindow, State, TokenBucket};
use tollkeeper_decide::{CellKey, Change, ParkedCell};

pub(crate) const NOW: Millis = Millis(1_700_000_000_000);

/// The states that a sequence of changes leads to.
pub(crate) type States = BTreeMap<CellKey, ParkedCell>;

pub(crate) fn apply(states: &mut States, change: Change) {
    match change {
        Change::Cell(cell) => drop(states.insert(cell.key, cell)),
        Change::Left(key) => drop(states.remove(&key)),
    }
}

pub(crate) fn fixed(key: u64, used: u64) -> Change {
    let key = CellKey { subject: key, exact: !key };
    let state = State::Fixed(FixedWindow { start: NOW, used });
    Change::Cell(ParkedCell { key, namespace: 7, idle_at_s: u32::MAX, fill: 9, state })
}

/// Few keys, so that most changes replace an earlier one.
pub(crate) fn change() -> impl Strategy<Value = Change> {
    let key = (0..12_u64, 0..2_u64).prop_map(|(subject, exact)| CellKey { subject, exact });
    let cell = (key, any::<u64>(), any::<u32>(), any::<u16>(), state()).prop_map(
        |(key, namespace, idle_at_s, fill, state)| {
            Change::Cell(ParkedCell { key, namespace, idle_at_s, fill, state })
        },
    );
    let left =
        (0..12_u64, 0..2_u64).prop_map(|(subject, exact)| Change::Left(CellKey { subject, exact }));
    prop_oneof![4 => cell, 1 => left]
}

fn state() -> impl Strategy<Value = State> {
    let words = (any::<u64>(), any::<u64>(), any::<u64>());
    let entries = prop::collection::btree_map(any::<u32>(), any::<u32>(), 0..200);
    prop_oneof![
        words.prop_map(|(start, used, _)| State::Fixed(FixedWindow { start: Millis(start), used })),
        words.prop_map(|(start, used, previous)| {
            State::Sliding(SlidingWindow { start: Millis(start), used, previous })
        }),
        words.prop_map(|(missing, fraction, at)| {
            State::Bucket(TokenBucket { missing, fraction, at: Millis(at) })
        }),
        entries.prop_map(|entries| {
            let entries = entries.into_iter().map(|(at, cost)| (Millis(at.into()), cost.into()));
            State::Log(Box::new(SlidingLog::from_parts(Millis(u64::MAX), entries).unwrap()))
        }),
    ]
}

/// Opens a journal and folds what it says of cells.
pub(crate) fn open(dir: &Path) -> (Journal, Recovered, States) {
    let mut states = States::new();
    let (journal, recovered) = read(dir, |change| apply(&mut states, change));
    (journal, recovered, states)
}

/// Opens a journal and hands out what it says of cells.
pub(crate) fn read(dir: &Path, mut each: impl FnMut(Change)) -> (Journal, Recovered) {
    let cells = |entry| {
        if let Entry::Cell(change) = entry {
            each(change);
        }
    };
    unlocked_open(dir, cells)
}

/// Opens a journal and hands out all that it says.
pub(crate) fn unlocked_open(dir: &Path, each: impl FnMut(Entry)) -> (Journal, Recovered) {
    opened(|| unlocked(dir)).then(|| Journal::open(dir, NOW, each).unwrap()).expect("unlocked")
}

/// A child that another test starts holds our lock until it runs its own program: wait for that moment.
fn opened(free: impl Fn() -> bool) -> bool {
    (0..10_000_000).any(|_| {
        free() || {
            std::thread::yield_now();
            false
        }
    })
}

fn unlocked(dir: &Path) -> bool {
    let Ok(lock) = fs::File::open(dir.join("lock")) else { return true };
    lock.try_lock().is_ok()
}

/// What every boot has spent of every key: totals only grow, so the largest counts.
pub(crate) type Totals = BTreeMap<([u8; 16], String), u64>;

pub(crate) fn totals_after_a_kill(dir: &Path) -> (Recovered, Totals) {
    let mut totals = Totals::new();
    let copy = copy_of(dir);
    let (_, recovered) = Journal::open(copy.path(), NOW, |entry| {
        if let Entry::Spent(spent) = entry {
            let BootId(boot) = spent.boot;
            let total = totals.entry((boot, spent.key_id.to_string())).or_default();
            *total = spent.total.max(*total);
        }
    })
    .unwrap();
    (recovered, totals)
}

/// What another process would find if this one died now. Files that vanish meanwhile are left out.
pub(crate) fn copy_of(dir: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for path in files(dir, "") {
        let _ = fs::copy(&path, copy.path().join(path.file_name().unwrap()));
    }
    copy
}

pub(crate) fn found_after_a_kill(dir: &Path) -> (Recovered, States) {
    let copy = copy_of(dir);
    let (_, recovered, states) = open(copy.path());
    (recovered, states)
}

/// The files whose name ends so, in order.
pub(crate) fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        all.filter(|path| path.to_string_lossy().ends_with(ending)).collect();
    files.sort();
    files
}
