//! The drill of docs/RECOVERY.md, with the scripts of deploy/postgres: everything is lost, and comes back as of a moment.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use tollkeeper_testkit::{Database, Postgres, Tollkeeper};

use super::{code, made};
use crate::time::{eventually, pause};
use crate::world::{Client, start};

const SECRET: &str = "the secret that outlives the database it is used with";
const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/postgres");
const SCRIPTS: [&str; 4] = ["archive-wal", "restore-wal", "base-backup", "restore-to"];

/// A server of PostgreSQL that archives its log, and the folder in which that lies: the only thing that survives.
struct Archiving {
    postgres: Postgres,
    database: Database,
    safe: TempDir,
}

impl Archiving {
    fn start() -> Self {
        let safe = tempfile::tempdir().expect("a folder");
        // The server's user may not look into the folder of the sources.
        fs::set_permissions(safe.path(), fs::Permissions::from_mode(0o777)).expect("ours");
        for name in SCRIPTS {
            fs::copy(Path::new(DEPLOY).join(name), safe.path().join(name)).expect("copied");
        }
        let here = safe.path().display();
        let postgres = Postgres::start_with(&[
            "archive_mode=on",
            "full_page_writes=on",
            &format!(r#"archive_command=WAL_ARCHIVE={here}/wal {here}/archive-wal "%p" "%f""#),
        ]);
        let postgres = postgres.expect("a database server");
        let database = postgres.database().expect("a database");
        Self { postgres, database, safe }
    }

    fn script(&self, name: &str, arguments: &[&str]) -> String {
        let wal = self.safe.path().join("wal");
        let env = [("WAL_ARCHIVE", wal.to_str().expect("UTF-8"))];
        let ran = self.postgres.beside(&self.safe.path().join(name), arguments, &env);
        ran.expect("the script succeeds").trim_end().to_owned()
    }

    fn ask(&self, statement: &str) -> String {
        let answer = self.postgres.ask(&self.database.name, statement);
        answer.expect("an answer").trim_end().to_owned()
    }

    /// Waits until everything that was written so far is in the archive.
    fn archive_the_log(&self) {
        let last = self.ask("SELECT pg_walfile_name(pg_switch_wal())");
        eventually("the log is archived", || {
            self.ask("SELECT last_archived_wal FROM pg_stat_archiver") >= last
        });
    }

    /// Power, disk and all.
    fn destroy(&mut self) {
        self.postgres.kill9();
        fs::remove_dir_all(self.postgres.folder().join("data")).expect("all is lost");
    }

    fn restore_to(&mut self, base: &str, moment: &str) {
        let data = self.postgres.folder().join("data");
        self.script("restore-to", &[base, data.to_str().expect("UTF-8"), moment]);
        self.postgres.again().expect("it recovers");
    }

    /// On a machine that has nothing but the secret.
    fn node(&self) -> (Tollkeeper, TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let env = [("TOLLKEEPER_DATABASE_URL", &*self.database.url), ("TOLLKEEPER_SECRET", SECRET)];
        (start(folder.path(), &env).expect("the node starts"), folder)
    }
}

#[test]
fn everything_that_is_lost_comes_back_as_it_was_at_a_moment() {
    let mut site = Archiving::start();
    let (node, _folder) = site.node();
    let mut client = Client::new(node.url(), node.root_key());

    let first = made(&mut client, &[]);
    used(&mut client, &first, 5);
    let base = site.script("base-backup", &[site.safe.path().to_str().expect("UTF-8")]);

    let second = made(&mut client, &[("credits", json!({"remaining": 100}))]);
    used(&mut client, &second, 7);
    let then = usage(&mut client);
    assert!(then.as_array().is_some_and(|rows| rows.len() == 2), "{then}");
    let moment = site.ask("SELECT clock_timestamp()");

    pause(std::time::Duration::from_millis(50));
    let third = made(&mut client, &[]);
    used(&mut client, &third, 3);
    used(&mut client, &first, 2);
    site.archive_the_log();

    drop(node);
    site.destroy();
    site.restore_to(&base, &moment);

    let (node, _folder) = site.node();
    let mut client = Client::new(node.url(), node.root_key());
    assert_eq!(usage(&mut client), then, "usage is what it was, to the request");
    assert_eq!(code(&mut client, &first), "VALID");
    assert_eq!(code(&mut client, &second), "VALID");
    assert_eq!(code(&mut client, &third), "NOT_FOUND");
    assert_eq!(site.ask("SELECT pg_is_in_recovery()"), "f", "it takes writes");
    let fourth = made(&mut client, &[]);
    assert_eq!(code(&mut client, &fourth), "VALID");
}

/// Verifies so many times, and has it in the database.
fn used(client: &mut Client, key: &str, times: u64) {
    for _ in 0..times {
        assert_eq!(code(client, key), "VALID");
    }
    client.data("usage.flush", &json!({}));
}

/// All usage there is, by key and day.
fn usage(client: &mut Client) -> Value {
    client.data("usage.query", &json!({"from": 0, "to": 4_000_000_000_000_u64, "by": "day"}))
}
