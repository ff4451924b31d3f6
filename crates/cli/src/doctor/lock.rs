//! Who holds the data folder and the database file, as far as the kernel tells. A running server is no fault; one that has the file
//! and another data folder is. It never takes a lock itself; a doctor who did could keep a server from starting.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tollkeeper_server::settings::{Database, Settings};
use tollkeeper_store::FileLock;

use super::finding::Finding;

/// The kernel's table of file locks, on Linux.
const LOCK_TABLE: &str = "/proc/locks";

/// A line of it.
#[derive(Debug, PartialEq, Eq)]
struct Lock {
    pid: i64,
    disk: u64,
    inode: u64,
}

/// Nothing where the kernel has no such table, or there is no folder to lock.
pub(super) fn check(data_dir: &Path) -> Option<Finding> {
    let found = match in_folder(data_dir)?.first() {
        None => "no other process works in the data folder".to_owned(),
        // Processes of another container are listed without their number.
        Some(pid) if *pid <= 0 => "another process works in the data folder".to_owned(),
        Some(pid) => format!("process {pid} works in the data folder"),
    };
    Some(Finding::ok("lock", found))
}

/// Nothing where nobody holds the database, or it is held by whoever works in the data folder too.
pub(super) fn check_database(settings: &Settings) -> Option<Finding> {
    let Database::Sqlite { path } = &settings.database else { return None };
    let file = FileLock::beside(path).ok()?.metadata().ok()?;
    // Some file systems number their disk in two ways. There it is left to the start to say so: a doctor must not err on this side.
    let holders = holders(|lock| lock.inode == file.ino() && lock.disk == file.dev())?;
    let ours = in_folder(&settings.data_dir).unwrap_or_default();
    let other = holders.difference(&ours).next()?;
    let who = if *other <= 0 { "another process".to_owned() } else { format!("process {other}") };
    let found = format!("{} is in use by {who}, a server with another data folder", path.display());
    let next = "stop that one, or name a file of its own for this one in TOLLKEEPER_DATABASE_URL";
    Some(Finding::fail("database", found, next))
}

/// The processes that hold some file of a folder.
fn in_folder(folder: &Path) -> Option<BTreeSet<i64>> {
    let entries = std::fs::read_dir(folder).ok()?;
    let files: BTreeSet<_> =
        entries.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.ino())).collect();
    holders(|lock| files.contains(&lock.inode))
}

fn holders(of: impl Fn(&Lock) -> bool) -> Option<BTreeSet<i64>> {
    let table = std::fs::read_to_string(LOCK_TABLE).ok()?;
    Some(table.lines().filter_map(Lock::read).filter(of).map(|lock| lock.pid).collect())
}

// === impl Lock ===

impl Lock {
    /// A line such as `1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF`.
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace().skip(1).skip_while(|word| *word == "->");
        let pid = words.nth(3)?.parse().ok()?;
        let mut file = words.next()?.split(':');
        let mut number = || u32::from_str_radix(file.next()?, 16).ok();
        let disk = rustix::fs::makedev(number()?, number()?);
        Some(Self { pid, disk, inode: file.next()?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernels_table_are_read_and_others_overlooked() {
        let of = |pid, disk: (u32, u32), inode| {
            Some(Lock { pid, disk: rustix::fs::makedev(disk.0, disk.1), inode })
        };
        let held = "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF";
        assert_eq!(Lock::read(held), of(1234, (8, 1), 5678));
        let waiting = "7: -> POSIX  ADVISORY  READ -1 00:2d:42 0 EOF";
        assert_eq!(Lock::read(waiting), of(-1, (0, 45), 42));
        assert_eq!(Lock::read("7: LEASE"), None);
        assert_eq!(Lock::read(""), None);
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
