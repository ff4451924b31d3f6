//! `tollkeeper archive` from outside: killed at every step and run again, listed, restored, and done by a server itself.

mod kill;
mod server;

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tempfile::TempDir;
use tollkeeper_core::Month;
use tollkeeper_store::{PastDecision, Store};
use tollkeeper_testkit::{Database, Postgres};

use crate::program::{Program, Ran};
use crate::world::BINARY;

/// Over for longer than the 90 days that are kept, whenever this runs.
const MAY: &str = "202605";

const SECRET: &str = "a secret of no value for the tests of the archive";

/// A database with audit rows in it, without a server.
pub(crate) struct Kept {
    pub(crate) folder: TempDir,
    pub(crate) database: Option<Database>,
}

impl Kept {
    pub(crate) fn in_sqlite(count: u32) -> Self {
        Self::with(None, count)
    }

    pub(crate) fn in_postgres(count: u32) -> Self {
        Self::with(Some(Postgres::shared().unwrap().database().unwrap()), count)
    }

    fn with(database: Option<Database>, count: u32) -> Self {
        let kept = Self { folder: tempfile::tempdir().expect("a folder"), database };
        block_on(async {
            let store = kept.store().await;
            kept.make_partition();
            store.put_past(&rows(count)).await.unwrap();
            store.close().await;
        });
        kept
    }

    async fn store(&self) -> Store {
        match &self.database {
            Some(database) => Store::connect(&database.url, None).await.unwrap(),
            None => Store::open(&self.folder.path().join("tollkeeper.db")).await.unwrap(),
        }
    }

    fn make_partition(&self) {
        let (name, month) = (format!("decision_audit_{MAY}"), Month::parse(MAY).unwrap());
        let (start, end) = (month.start().0, month.end().0);
        if let Some(database) = &self.database {
            let make = format!(
                "CREATE TABLE {name} PARTITION OF decision_audit FOR VALUES FROM ({start}) TO ({end})"
            );
            Postgres::shared().unwrap().ask(&database.name, &make).unwrap();
        }
    }

    /// How many of May's rows the database still has.
    pub(crate) fn left(&self) -> u64 {
        block_on(async {
            let store = self.store().await;
            let left = store.count_month(Month::parse(MAY).unwrap()).await.unwrap();
            store.close().await;
            left
        })
    }

    pub(crate) fn env(&self) -> Vec<(&'static str, String)> {
        let mut env = vec![
            ("TOLLKEEPER_DATA_DIR", self.folder.path().display().to_string()),
            ("TOLLKEEPER_SECRET", SECRET.to_owned()),
        ];
        if let Some(database) = &self.database {
            env.push(("TOLLKEEPER_DATABASE_URL", database.url.clone()));
        }
        env
    }

    pub(crate) fn place(&self) -> String {
        format!("file://{}", self.folder.path().join("archive").display())
    }

    pub(crate) fn archive(&self, arguments: &[&str]) -> Ran {
        let program = Program::new(&[&["archive"], arguments].concat()).folder(self.folder.path());
        self.env().iter().fold(program, |program, (name, value)| program.env(name, value)).run()
    }
}

/// With something in a few columns; the archive's own tests look into all of them.
pub(crate) fn rows(count: u32) -> Vec<PastDecision> {
    let start = i64::try_from(Month::parse(MAY).unwrap().start().0).unwrap();
    let row = |n: u32| PastDecision {
        tenant_id: format!("ten_{}", n % 2),
        at: start + i64::from(n),
        request_id: format!("req_{n}"),
        decision: "throttled".to_owned(),
        code: "RATE_LIMITED".to_owned(),
        status: 429,
        key_id: n.is_multiple_of(2).then(|| format!("key_{n}")),
        external_id: None,
        ip: None,
        method: None,
        endpoint: None,
        path: None,
        rule: None,
        limit_name: None,
        count: Some(i64::from(n)),
        retry_after_ms: None,
        node: "a".to_owned(),
        region: None,
        latency_us: 5,
        degraded: false,
    };
    (0..count).map(row).collect()
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

#[test]
fn a_month_moves_is_listed_and_comes_back() {
    for kept in [Kept::in_sqlite(1_000), Kept::in_postgres(1_000)] {
        let place = kept.place();
        let young = kept.archive(&["--to", &place, "--older-than", "36500d"]);
        assert_eq!((young.code, young.stdout.as_str()), (Some(0), ""), "{}", young.stderr);
        let ran = kept.archive(&["--to", &place]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let object = format!("{place}/2026/05/decision_audit.parquet");
        assert_eq!(ran.stdout, format!("month=2026-05 rows=1000 total=1000 object={object}\n"));
        assert!(ran.stderr.contains("2026-05 writing 0 of 1000 rows\n"), "{}", ran.stderr);
        assert_eq!(kept.left(), 0);

        let again = kept.archive(&["--to", &place]);
        assert_eq!((again.code, again.stdout.as_str()), (Some(0), ""));
        assert!(again.stderr.contains("no month to archive"), "{}", again.stderr);

        let listed = kept.archive(&["list", "--from", &place, "--json"]);
        let line: serde_json::Value = serde_json::from_str(&listed.stdout).expect("JSON");
        assert_eq!((&line["month"], &line["rows"]), (&"2026-05".into(), &1_000.into()));

        let restored = kept.archive(&["restore", "2026-05", "--from", &place, "--to", "-"]);
        assert_eq!(restored.stdout.lines().count(), 1_000, "{}", restored.stderr);
        let file = kept.folder.path().join("may.db");
        let to = file.to_str().expect("UTF-8");
        let restored = kept.archive(&["restore", "2026-05", "--from", &place, "--to", to]);
        assert_eq!(restored.stdout, format!("month=2026-05 rows=1000 file={to}\n"));
        assert!(Path::new(to).exists());
        let restored = kept.archive(&["restore", "2026-05", "--from", &place, "--to", to]);
        assert_eq!(restored.code, Some(2), "{}", restored.stderr);
        let file = kept.folder.path().join("may.ndjson");
        let to = file.to_str().expect("UTF-8");
        let restored =
            kept.archive(&["restore", "2026-05", "--from", &place, "--to", to, "--json"]);
        let told: serde_json::Value = serde_json::from_str(&restored.stdout).expect("JSON");
        assert_eq!(told, serde_json::json!({"month": "2026-05", "rows": 1_000, "file": to}));
    }
}

#[test]
fn a_damaged_object_is_named_and_the_others_are_listed_all_the_same() {
    let kept = Kept::in_sqlite(10);
    let place = kept.place();
    assert_eq!(kept.archive(&["--to", &place]).code, Some(0));
    let april = kept.folder.path().join("archive/2026/04");
    std::fs::create_dir_all(&april).expect("made");
    std::fs::write(april.join("decision_audit.parquet"), b"not a parquet file").expect("written");
    for json in [&[][..], &["--json"]] {
        let listed = kept.archive(&[&["list", "--from", &place], json].concat());
        assert!(listed.code.is_some_and(|code| code != 0), "{}", listed.stdout);
        assert_eq!(listed.stdout.lines().count(), 1, "{}", listed.stdout);
        assert!(listed.stdout.contains("2026-05"), "{}", listed.stdout);
        assert!(
            listed.stderr.contains("2026/04/decision_audit.parquet"),
            "the damaged one is named: {}",
            listed.stderr
        );
    }
}

#[test]
fn what_cannot_be_done_says_what_to_do() {
    let kept = Kept::in_sqlite(1);
    for (arguments, code, words) in [
        (&[][..], 2, "TOLLKEEPER_ARCHIVE_URL"),
        (&["--to", "gs://bucket"], 2, "s3://BUCKET/PREFIX"),
        (&["--to", "here", "--older-than", "90"], 2, "such as 30s"),
        (&["list"], 2, "--from"),
        (&["restore", "2026-05", "--from", "here", "--to", "-"], 2, "no archive of 2026-05"),
        (&["restore", "May", "--from", "here", "--to", "-"], 2, "such as 2026-07"),
        (&["--to", "here", "--data-dir", "/nowhere"], 2, "there is no database"),
    ] {
        let ran = kept.archive(arguments);
        assert_eq!(ran.code, Some(code), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
    }
    assert_eq!(kept.left(), 1);
}

#[test]
fn a_person_at_a_terminal_sees_a_bar() {
    let kept = Kept::in_sqlite(1_000);
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&ours).expect("ours");
    unlockpt(&ours).expect("unlocked");
    let name = ptsname(&ours, Vec::new()).expect("a name").into_string().expect("UTF-8");
    let theirs = OpenOptions::new().read(true).write(true).open(name).expect("the other end");
    let mut command = Command::new(BINARY);
    command.args(["archive", "--to", &kept.place()]).env_clear().envs(kept.env());
    command.current_dir(kept.folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
    assert!(command.stderr(theirs).status().expect("it runs").success());
    drop(command);
    let mut screen = Vec::new();
    // The last reader of a terminal whose other end is closed gets an error, not an end of file.
    let _ = File::from(ours).read_to_end(&mut screen);
    let screen = String::from_utf8(screen).expect("UTF-8");
    let full = format!("2026-05 writing  {} 100 %  1000 of 1000 rows", "█".repeat(24));
    assert!(screen.contains(&full), "{screen}");
    assert!(!screen.contains('\n'), "one line, written over: {screen}");
}
