//! Damaged files: what came before the damage is kept, the rest is set aside, and the start goes on.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tollkeeper_decide::Change;

use crate::changes::{States, apply, change, copy_of, files, fixed, open};

const HEADER: u64 = 84;

/// Two segments: one whole, and one of three records that ends where `ends` says.
struct Written {
    dir: TempDir,
    before: Vec<Change>,
    records: Vec<Vec<Change>>,
    ends: Vec<u64>,
}

fn written() -> Written {
    use proptest::strategy::{Strategy, ValueTree};
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut some = |count| -> Vec<Change> {
        let strategy = proptest::collection::vec(change().no_shrink(), count);
        strategy.new_tree(&mut runner).unwrap().current()
    };
    let short = |changes: Vec<Change>| -> Vec<Change> {
        // Long logs would only make the files longer, and every byte of them is damaged once.
        let is_short = |change: &Change| !matches!(change, Change::Cell(cell) if matches!(cell.state, tollkeeper_core::State::Log(_)));
        changes.into_iter().filter(is_short).collect()
    };
    let dir = tempfile::tempdir().unwrap();
    let before = some(5);
    open(dir.path()).0.append(&before).unwrap();
    let records = vec![vec![fixed(1, 1)], short(some(8)), vec![fixed(2, 2), fixed(3, 3)]];
    let mut journal = open(dir.path()).0;
    let mut ends = Vec::new();
    for record in &records {
        journal.append(record).unwrap();
        ends.push(journal.bytes());
    }
    Written { dir, before, records, ends }
}

// === impl Written ===

impl Written {
    fn damaged(&self, damage: impl FnOnce(&mut Vec<u8>)) -> (TempDir, PathBuf, Vec<u8>) {
        let copy = copy_of(self.dir.path());
        let path = files(copy.path(), ".tkj").pop().unwrap();
        let mut bytes = fs::read(&path).unwrap();
        damage(&mut bytes);
        fs::write(&path, &bytes).unwrap();
        (copy, path, bytes)
    }

    /// What must be found when everything from `offset` on is damaged.
    fn until(&self, offset: u64) -> (States, u64) {
        let mut states = States::new();
        self.before.iter().cloned().for_each(|change| apply(&mut states, change));
        let mut good = if offset < HEADER { 0 } else { HEADER };
        for (record, end) in self.records.iter().zip(&self.ends) {
            if *end > offset {
                break;
            }
            record.iter().cloned().for_each(|change| apply(&mut states, change));
            good = *end;
        }
        (states, good)
    }
}

/// Opens, checks what is found and what is set aside, and that the next start finds nothing more to do.
fn check(dir: &Path, path: &Path, bytes: &[u8], expected: &States, good: u64) {
    let (journal, recovered, states) = open(dir);
    assert_eq!(&states, expected);
    assert!(!recovered.clean);
    let (kept, rest) = bytes.split_at(usize::try_from(good).unwrap());
    if rest.is_empty() && good > 0 {
        assert!(recovered.set_aside.is_empty());
    } else {
        let aside = path.with_extension("corrupt");
        assert_eq!(recovered.set_aside, [aside.as_path()]);
        assert_eq!(fs::read(&aside).unwrap(), rest);
    }
    assert_eq!(fs::read(path).unwrap_or_default(), kept);
    drop(journal);
    let (_, recovered, states) = open(dir);
    assert!(recovered.set_aside.is_empty());
    assert_eq!(&states, expected);
}

#[test]
fn a_segment_cut_off_at_any_byte_keeps_what_was_whole() {
    let written = written();
    let length = *written.ends.last().unwrap();
    for cut in 0..length {
        let (dir, path, bytes) =
            written.damaged(|bytes| bytes.truncate(usize::try_from(cut).unwrap()));
        let (expected, good) = written.until(cut);
        check(dir.path(), &path, &bytes, &expected, good);
    }
}

#[test]
fn a_flipped_byte_anywhere_costs_what_follows_and_nothing_before() {
    let written = written();
    let length = *written.ends.last().unwrap();
    for offset in 0..length {
        for flip in [0x01, 0xff] {
            let at = usize::try_from(offset).unwrap();
            let (dir, path, bytes) = written.damaged(|bytes| bytes[at] ^= flip);
            let (expected, good) = written.until(offset);
            check(dir.path(), &path, &bytes, &expected, good);
        }
    }
}

#[test]
fn garbage_and_zeroes_behind_the_last_record_are_set_aside() {
    let written = written();
    for tail in [vec![0; 5000], vec![0xff; 5000], b"TKJRNL01 not a record".to_vec(), vec![7]] {
        let (dir, path, bytes) = written.damaged(|bytes| bytes.extend(tail));
        let (expected, good) = written.until(u64::MAX);
        check(dir.path(), &path, &bytes, &expected, good);
    }
}

#[test]
fn damage_in_an_older_segment_does_not_cost_the_newer_ones() {
    let written = written();
    let copy = copy_of(written.dir.path());
    let first = files(copy.path(), ".tkj").remove(0);
    fs::write(&first, b"garbage").unwrap();
    let (_, recovered, states) = open(copy.path());
    assert_eq!(recovered.set_aside.len(), 1);
    let mut expected = States::new();
    written.records.iter().flatten().cloned().for_each(|change| apply(&mut expected, change));
    assert_eq!(states, expected);
}

#[test]
fn what_was_set_aside_is_never_overwritten() {
    let written = written();
    let copy = copy_of(written.dir.path());
    let path = files(copy.path(), ".tkj").pop().unwrap();
    for again in 0..3_u8 {
        let mut bytes = fs::read(&path).unwrap();
        bytes.extend([again; 30]);
        fs::write(&path, bytes).unwrap();
        open(copy.path());
    }
    let mut asides: Vec<Vec<u8>> =
        files(copy.path(), ".corrupt").iter().map(|path| fs::read(path).unwrap()).collect();
    asides.sort();
    assert_eq!(asides, [vec![0; 30], vec![1; 30], vec![2; 30]]);
}

#[test]
fn files_that_are_not_segments_are_left_alone() {
    let written = written();
    let copy = copy_of(written.dir.path());
    for name in ["notes.txt", "x.tkj", "000000000001.tkj.bak"] {
        fs::write(copy.path().join(name), name).unwrap();
    }
    let (_, recovered, states) = open(copy.path());
    assert!(recovered.set_aside.is_empty());
    assert_eq!(states, written.until(u64::MAX).0);
    for name in ["notes.txt", "x.tkj", "000000000001.tkj.bak"] {
        assert_eq!(fs::read(copy.path().join(name)).unwrap(), name.as_bytes());
    }
}
