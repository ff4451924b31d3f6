//! Pages on bad days: damaged, cut short, without room, and of a process that was killed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tollkeeper_core::Usage;

use crate::changes::{NOW, copy_of, files, open};
use crate::full_disk::{limit_files_to, run_alone};
use crate::pages::{Opened, count, left_after_a_kill, pages_in};

pub(crate) const SLOT: usize = 256;
const KEYS: usize = 4;
const USED: Usage = Usage { requests: 4_000, denied: 0, bytes: 0, credits: 3 };

fn written() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let Opened { pages, .. } = pages_in(dir.path());
    for number in 0..KEYS {
        count(&pages, &format!("key_{number}"), NOW, USED);
    }
    drop(pages);
    // Every byte is damaged once, so what is empty is cut to what a test looks at.
    let file = fs::File::options().write(true).open(page_file(dir.path())).unwrap();
    file.set_len(((KEYS + 3) * SLOT) as u64).unwrap();
    dir
}

pub(crate) fn page_file(dir: &Path) -> PathBuf {
    let is_pages = |path: &PathBuf| {
        path.file_name().unwrap().to_string_lossy().starts_with("usage-")
            && path.extension().is_none()
    };
    files(dir, "").into_iter().find(is_pages).unwrap()
}

/// What a start finds of a damaged copy: components, slots set aside; and that the next start has nothing to complain of.
fn found(dir: &Path, damage: impl FnOnce(&mut Vec<u8>)) -> (Vec<Usage>, u64) {
    let copy = copy_of(dir);
    let path = page_file(copy.path());
    let mut bytes = fs::read(&path).unwrap();
    damage(&mut bytes);
    fs::write(&path, bytes).unwrap();
    let (mut usage, mut damaged) = (Vec::new(), 0);
    for former in pages_in(copy.path()).former {
        damaged += former.damaged;
        assert_eq!(former.set_aside.is_some(), former.damaged > 0);
        usage.extend(former.components.iter().map(|one| one.usage));
    }
    let again = pages_in(copy.path()).former;
    assert_eq!(again.iter().map(|former| former.damaged).sum::<u64>(), 0, "set aside twice");
    assert_eq!(again.iter().map(|former| former.components.len()).sum::<usize>(), usage.len());
    (usage, damaged)
}

#[test]
fn a_flipped_byte_costs_its_slot_at_most_and_never_adds_anything() {
    let dir = written();
    for at in 0..(KEYS + 2) * SLOT {
        let (usage, damaged) = found(dir.path(), |bytes| bytes[at] ^= 0xff);
        assert!(usage.iter().all(|one| USED.covers(one)), "byte {at}: {usage:?}");
        let whole = usage.iter().filter(|one| **one == USED).count();
        match at / SLOT {
            // Without its header nothing says whose it is.
            0 => assert_eq!((usage.len(), damaged), (0, 1), "byte {at}"),
            slot if slot <= KEYS => {
                assert!(whole >= KEYS - 1, "byte {at}: {usage:?}");
                assert!(usage.len() + usize::try_from(damaged).unwrap() == KEYS, "byte {at}");
            }
            _ => assert_eq!(whole, KEYS, "byte {at}"),
        }
    }
}

#[test]
fn pages_cut_off_anywhere_keep_every_whole_slot() {
    let dir = written();
    for cut in 0..(KEYS + 2) * SLOT {
        let (usage, damaged) = found(dir.path(), |bytes| bytes.truncate(cut));
        let whole = (cut / SLOT).saturating_sub(1).min(KEYS);
        assert_eq!(usage, vec![USED; whole], "cut at {cut}");
        assert!(damaged <= 1, "cut at {cut}");
    }
}

#[test]
fn files_that_are_not_pages_are_left_alone() {
    let dir = written();
    for name in ["usage-notes", "usage-0123.bak", "usage.txt"] {
        fs::write(dir.path().join(name), name).unwrap();
    }
    let (usage, damaged) = found(dir.path(), |_| ());
    assert_eq!((usage, damaged), (vec![USED; KEYS], 0));
    assert_eq!(fs::read(dir.path().join("usage-notes")).unwrap(), b"usage-notes");
}

#[test]
fn a_file_goes_when_it_is_in_the_ledger_and_its_process_long_gone() {
    let dir = written();
    let Opened { former, .. } = pages_in(dir.path());
    let mut one = former.into_iter().next().unwrap();
    let written_at = fs::metadata(page_file(dir.path())).unwrap().modified().unwrap();
    let written_at = written_at.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let now = tollkeeper_core::Millis(u64::try_from(written_at).unwrap());
    let later = now + tollkeeper_account::KEPT_MS + 1_000;
    assert!(!one.forget(later).unwrap(), "not in the ledger");
    one.settle();
    assert!(!one.forget(now).unwrap(), "a database may come back older");
    assert!(one.forget(later).unwrap());
    assert_eq!(left_after_a_kill(dir.path()).len(), 0);
}

#[test]
fn a_full_disk_costs_what_a_kill_would_lose_and_not_the_counts() {
    run_alone("pages_faults::alone_a_full_disk");
}

#[test]
#[ignore = "limits the whole process; run by the test above"]
fn alone_a_full_disk() {
    let dir = tempfile::tempdir().unwrap();
    let Opened { pages, .. } = pages_in(dir.path());
    // The first part is there; no second one fits.
    limit_files_to(Some(1_024 * 256));
    for number in 0..3_000 {
        count(&pages, &format!("key_{number}"), NOW, Usage::request());
    }
    let reading = pages.reading();
    assert_eq!(
        (reading.failures > 0, reading.lost, reading.overflowed),
        (true, 0, 0),
        "{reading:?}"
    );
    assert_eq!(reading.unkept, 3_000 - 1_023);
    assert_eq!(pages.untold(usize::MAX).len(), 3_000, "what is told is everything");
    assert_eq!(left_after_a_kill(dir.path()).len(), 1_023, "what a kill leaves is not");
    limit_files_to(None);
    for number in 0..3_000 {
        count(&pages, &format!("late_{number}"), NOW, Usage::request());
    }
    assert!(left_after_a_kill(dir.path()).len() > 3_000, "the next parts are on the disk again");
    // Once the ledger has it, nothing is at risk any more.
    let all = pages.untold(usize::MAX);
    pages.told(&all);
    pages.settle(&all, NOW + 300_000);
    assert_eq!(pages.reading().unkept, 0);
}

#[test]
fn a_disk_that_is_full_at_the_start_is_an_error_that_names_the_file() {
    run_alone("pages_faults::alone_a_start_without_room");
}

#[test]
#[ignore = "limits the whole process; run by the test above"]
fn alone_a_start_without_room() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, ..) = open(dir.path());
    limit_files_to(Some(10_000));
    let error = journal.pages().unwrap_err();
    assert!(error.to_string().contains("usage-"), "{error}");
}

#[test]
fn what_a_killed_process_had_counted_is_found_to_the_last_one_it_spoke_of() {
    for round in 0..3 {
        let dir = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", "pages_faults::alone_counts_for_ever"])
            .env("PAGES_DIR", dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut spoken_of = 0;
        while spoken_of < 20_000 + round * 7_777 {
            let line = said.next().expect("it goes on").unwrap();
            spoken_of = line.trim().parse().unwrap_or(spoken_of);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let rest = said.map_while(Result::ok).filter_map(|line| line.trim().parse().ok());
        let spoken_of: u64 = rest.fold(spoken_of, u64::max);
        let counted: u64 = left_after_a_kill(dir.path()).iter().map(|one| one.usage.requests).sum();
        assert!(counted >= spoken_of, "{counted} counted, {spoken_of} spoken of");
        assert!(counted <= spoken_of + 101, "{counted} counted, {spoken_of} spoken of");
    }
}

#[test]
#[ignore = "runs until it is killed; run by the test above"]
fn alone_counts_for_ever() {
    use std::io::Write;
    #[allow(clippy::disallowed_methods, reason = "how a test tells its child where to write")]
    let Some(dir) = std::env::var_os("PAGES_DIR") else { return };
    let Opened { pages, .. } = pages_in(Path::new(&dir));
    let mut out = std::io::stdout();
    for number in 1_u64.. {
        count(&pages, &format!("key_{}", number % 97), NOW, Usage::request());
        if number % 100 == 0 && writeln!(out, "\n{number}").is_err() {
            return;
        }
    }
}
