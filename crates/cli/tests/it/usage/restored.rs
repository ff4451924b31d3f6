//! PostgreSQL that comes back as it was before, from a base backup that was made under load, while nodes go on: what it had
//! been told since is told again, once.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use tollkeeper_testkit::Postgres;

use super::fleet::Fleet;
use super::{Books, Keys};
use crate::time::{eventually, pause};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/postgres/base-backup");

/// A server that can be put back, and the folder that its backups are in.
struct Site {
    fleet: Fleet,
    safe: TempDir,
}

impl Site {
    fn new() -> Self {
        let safe = tempfile::tempdir().expect("a folder");
        // The server's user may not look into the folder of the sources.
        fs::set_permissions(safe.path(), fs::Permissions::from_mode(0o777)).expect("ours");
        fs::copy(SCRIPT, safe.path().join("base-backup")).expect("copied");
        let postgres = Postgres::start_with(&["full_page_writes=on"]).expect("a database server");
        let mut fleet = Fleet::on(postgres, "0");
        fleet.join();
        fleet.join();
        Self { fleet, safe }
    }

    fn back_up(&self) -> String {
        let folder = self.safe.path().to_str().expect("UTF-8");
        let script = self.safe.path().join("base-backup");
        let made = self.fleet.postgres.beside(&script, &[folder], &[]).expect("a backup");
        made.trim_end().to_owned()
    }

    /// In the middle of traffic, all of which is in the ledger in the end.
    fn back_up_under_load(&self, books: &Books, keys: &Keys) -> String {
        let mut backup = String::new();
        self.fleet.under_load(books, keys, || {
            pause(Duration::from_millis(500));
            backup = self.back_up();
            pause(Duration::from_secs(1));
        });
        self.fleet.flush();
        backup
    }

    fn put_back(&mut self, backup: &str) {
        self.fleet.postgres.kill9();
        let data = self.fleet.postgres.folder().join("data");
        fs::remove_dir_all(&data).expect("all is lost");
        fs::rename(Path::new(backup), &data)
            .or_else(|_| copied(backup, &data))
            .expect("it is back");
        self.fleet.postgres.again().expect("it starts on its backup");
    }

    fn requests(&self) -> u64 {
        let sum = self.fleet.sql("SELECT COALESCE(SUM(requests), 0) FROM usage_record");
        sum.expect("a sum").parse().expect("a number")
    }
}

/// Where the two are not on one disk.
fn copied(backup: &str, data: &Path) -> std::io::Result<()> {
    let copied = std::process::Command::new("cp").arg("-a").arg(backup).arg(data).status()?;
    if copied.success() { Ok(()) } else { Err(std::io::Error::other("no copy")) }
}

#[test]
fn a_database_put_back_from_a_base_backup_under_load_has_all_usage_once() {
    let mut site = Site::new();
    let keys = Keys::make(&mut site.fleet.client(0), 20);
    let books = Books::default();
    let backup = site.back_up_under_load(&books, &keys);
    let before = site.requests();
    site.put_back(&backup);
    assert!(site.requests() < before, "the backup is older than what was told");
    site.fleet.under_load(&books, &keys, || pause(Duration::from_secs(1)));
    site.fleet.flush();
    books.reconcile("a backup put back", &mut site.fleet.client(0));
    site.fleet.assert_whole();
}

/// Nodes have given up what they had told: they find out by themselves that it is gone.
#[test]
#[ignore = "takes three minutes; make soak"]
fn usage_that_was_settled_is_told_again_to_a_database_that_has_lost_it() {
    let mut site = Site::new();
    let keys = Keys::make(&mut site.fleet.client(0), 20);
    let books = Books::default();
    let backup = site.back_up_under_load(&books, &keys);
    let before = site.requests();
    // A minute is settled half a minute after its end.
    pause(Duration::from_secs(95));
    for node in 0..2 {
        let metrics = site.fleet.client(node).get("/metrics").text();
        assert!(metrics.contains("\ntollkeeper_usage_waiting 0\n"), "{metrics}");
    }
    site.put_back(&backup);
    assert!(site.requests() < before, "the backup is older than what was told");
    pause(Duration::from_mins(1));
    eventually("all of it is there again", || site.requests() == before);
    books.reconcile("a backup put back after all was settled", &mut site.fleet.client(0));
    site.fleet.assert_whole();
}
