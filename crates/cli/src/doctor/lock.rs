//! Who holds the data folder, as far as the kernel tells. Only for information: a running server is no fault.
//! It never takes a lock itself; a doctor who did could keep a server from starting.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::finding::Finding;

/// The kernel's table of file locks, on Linux.
const LOCK_TABLE: &str = "/proc/locks";

/// Nothing where the kernel has no such table, or there is no folder to lock.
pub(super) fn check(data_dir: &Path) -> Option<Finding> {
    let table = std::fs::read_to_string(LOCK_TABLE).ok()?;
    let files = inodes(data_dir)?;
    let holders: BTreeSet<_> =
        table.lines().filter_map(lock).filter(|(_, inode)| files.contains(inode)).collect();
    let found = match holders.first() {
        None => "no other process works in the data folder".to_owned(),
        // Processes of another container are listed without their number.
        Some((pid, _)) if *pid <= 0 => "another process works in the data folder".to_owned(),
        Some((pid, _)) => format!("process {pid} works in the data folder"),
    };
    Some(Finding::ok("lock", found))
}

fn inodes(folder: &Path) -> Option<BTreeSet<u64>> {
    let entries = std::fs::read_dir(folder).ok()?;
    Some(entries.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.ino())).collect())
}

/// Process and inode of a line such as `1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF`.
fn lock(line: &str) -> Option<(i64, u64)> {
    let mut words = line.split_whitespace().skip(1).skip_while(|word| *word == "->");
    let pid = words.nth(3)?.parse().ok()?;
    let inode = words.next()?.rsplit(':').next()?.parse().ok()?;
    Some((pid, inode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernels_table_are_read_and_others_overlooked() {
        assert_eq!(lock("1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF"), Some((1234, 5678)));
        assert_eq!(lock("7: -> POSIX  ADVISORY  READ -1 00:2d:42 0 EOF"), Some((-1, 42)));
        assert_eq!(lock("7: LEASE"), None);
        assert_eq!(lock(""), None);
    }

    #[test]
    fn a_folder_in_use_names_the_process() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let file = std::fs::File::create(folder.path().join("journal"))?;
        let Some(before) = check(folder.path()) else { return Ok(()) };
        file.lock()?;
        let after = check(folder.path());
        assert_eq!(before, Finding::ok("lock", "no other process works in the data folder"));
        let named = format!("process {} works in the data folder", std::process::id());
        assert_eq!(after, Some(Finding::ok("lock", named)));
        Ok(())
    }
}
