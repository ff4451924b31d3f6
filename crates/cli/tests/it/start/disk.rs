//! A disk that takes no more: the server goes on enforcing limits, says that counters would not survive, and heals
//! by itself. A disk that is full at the start is named instead.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde_json::json;
use tollkeeper_testkit::{Postgres, Tollkeeper};

use crate::time::eventually;
use crate::world::{BINARY, Client, ask, side_by_side, start_behind};

/// What `sh` does before it becomes the server. SIGXFSZ would end it where a full disk only fails a write.
const FEW_BYTES: &str = "trap '' XFSZ; ulimit -f 2048";
const NO_BYTES: &str = "trap '' XFSZ; ulimit -f 0";

fn degraded(server: &Tollkeeper) -> bool {
    let text = Client::new(server.url(), server.root_key()).get("/metrics").text();
    text.lines().any(|line| line == "tollkeeper_degraded 1")
}

/// Limits hold to the unit, whatever the disk does.
fn assert_enforced(server: &Tollkeeper, identifier: &str) {
    let mut client = Client::new(server.url(), server.root_key());
    let admitted =
        (0..10).filter(|_| client.limit(&ask("api", identifier, 4))["success"] == true).count();
    assert_eq!(admitted, 4);
    assert_eq!(client.get("/readyz").status, 200);
}

/// Fills the journal with cells, a hundred to a request, until the server says that it cannot write.
fn fill(server: &Tollkeeper) {
    let mut client = Client::new(server.url(), server.root_key());
    let mut next = 0..;
    eventually("the disk is full", || {
        let entries: Vec<_> =
            next.by_ref().take(100).map(|at: u64| ask("filler", &format!("id-{at}"), 5)).collect();
        assert_eq!(client.data("ratelimit.multiLimit", &json!(entries))["passed"], true);
        degraded(server)
    });
}

#[test]
fn a_journal_that_cannot_grow_degrades_visibly_while_limits_hold_and_heals() {
    let folder = tempfile::tempdir().unwrap();
    // The first start makes its tables without a bound.
    let mut server = start_behind("", folder.path(), &[]).expect("it starts");
    Client::new(server.url(), server.root_key()).limit(&ask("api", "made", 4));
    server.terminate().expect("it ends");

    let mut server = start_behind(FEW_BYTES, folder.path(), &[]).expect("it starts");
    assert!(!degraded(&server));
    fill(&server);
    assert_enforced(&server, "ann");
    let advice = "free space in the data directory";
    eventually("an error with advice", || server.stderr().contains(advice));
    // With fewer counters to keep there is room again.
    Client::new(server.url(), server.root_key())
        .data("limits.reset", &json!({"namespace": "filler"}));
    eventually("writing resumes", || !degraded(&server));
    assert_enforced(&server, "bob");
    assert!(server.terminate().expect("it ends").success(), "{}", server.stderr());

    let server = start_behind("", folder.path(), &[]).expect("it starts");
    for identifier in ["ann", "bob"] {
        let again = Client::new(server.url(), server.root_key()).limit(&ask("api", identifier, 4));
        assert_eq!(again["success"], false, "{identifier} is counted on");
    }
}

#[test]
fn a_start_without_any_room_ends_with_a_clear_message() {
    let folder = tempfile::tempdir().unwrap();
    let Err(failure) = start_behind(NO_BYTES, folder.path(), &[]) else {
        panic!("it started without a byte to write");
    };
    assert_eq!(failure.status.and_then(|status| status.code()), Some(2), "{failure}");
    assert!(failure.stderr.contains(folder.path().to_str().unwrap()), "{failure}");
    assert!(
        failure.stderr.contains("error:") && failure.stderr.contains("tollkeeper doctor"),
        "{failure}"
    );
}

/// Where this user may mount, a real file system of `kib` for the data, which goes away with the server.
fn small_disk(folder: &Path, kib: u32, then: &str) -> Option<String> {
    let script = format!("mount -t tmpfs -o size={kib}k none {0}/disk && {then}", folder.display());
    fs::create_dir(folder.join("disk")).expect("a place to mount");
    fs::write(folder.join("mount.sh"), format!("{script}\n")).expect("written");
    let may = std::process::Command::new("unshare")
        .args(["-rm", "/bin/sh"])
        .arg(folder.join("mount.sh"))
        .output();
    may.is_ok_and(|ran| ran.status.success()).then(|| {
        // In this shell and its own view of the file systems; the shell becomes the server.
        let inner = format!("{script}; exec {BINARY} serve");
        format!("PATH=/usr/sbin:/usr/bin:/sbin:/bin; export PATH\nexec unshare -rm /bin/sh -c '{inner}'\n")
    })
}

#[allow(clippy::print_stderr, reason = "whoever reads the run must see that this was not shown")]
fn say_skipped() {
    eprintln!("SKIPPED: this user may not mount a file system of its own");
}

#[test]
fn a_disk_that_runs_full_degrades_and_freeing_space_heals_it() {
    let folder = tempfile::tempdir().unwrap();
    // Where mounting is not allowed, the test of a journal that cannot grow says the same.
    let Some(script) = small_disk(folder.path(), 3000, ":") else { return say_skipped() };
    let data_dir = folder.path().join("disk/data");
    let env = [("TOLLKEEPER_DATA_DIR", data_dir.to_str().unwrap())];
    let mut server = start_behind(&script, folder.path(), &env).expect("it starts");
    let mut client = Client::new(server.url(), server.root_key());
    for namespace in ["api", "filler"] {
        client.limit(&ask(namespace, "made", 4));
    }
    // The server's own view of the disk, which this process does not share.
    let seen = format!("/proc/{}/root{}", server.pid(), folder.path().join("disk").display());
    let filler = Path::new(&seen).join("filler");
    let _ = fs::write(&filler, vec![0; 3_000_000]);
    fill(&server);
    assert_enforced(&server, "ann");
    fs::remove_file(&filler).expect("freed");
    eventually("writing resumes", || !degraded(&server));
    assert_enforced(&server, "bob");
    assert!(server.terminate().expect("it ends").success(), "{}", server.stderr());
}

/// To the last byte, so that the very next page finds no room.
fn fill_to_the_brim(file: &Path) {
    let mut file = fs::File::create(file).expect("made");
    for size in [65_536, 4_096, 512, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

/// SQLite rolls back by itself where the disk fails it, which must not cost the only connection that writes.
#[test]
fn a_write_that_found_the_disk_full_is_503_and_the_next_one_succeeds_once_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let Some(script) = small_disk(folder.path(), 8_000, ":") else { return say_skipped() };
    let data_dir = folder.path().join("disk/data");
    let env = [("TOLLKEEPER_DATA_DIR", data_dir.to_str().unwrap())];
    let server = start_behind(&script, folder.path(), &env).expect("it starts");
    let mut client = Client::new(server.url(), server.root_key());
    let seen = format!("/proc/{}/root{}", server.pid(), folder.path().join("disk").display());
    let filler = Path::new(&seen).join("filler");
    let mut denied = 0;
    for round in 0..3 {
        let name = format!("before-{round}");
        client.data("projects.create", &json!({"name": name}));
        fill_to_the_brim(&filler);
        let mut refused = 0;
        eventually("a write finds no room", || {
            // Rows for the audit, which have to wait.
            client.data("keys.verifyKey", &json!({"key": "nobody_has_this_key"}));
            denied += 1;
            let full = client.post("projects.create", &json!({"name": format!("full-{round}")}));
            // A namespace is made by the first request that names it.
            let unmade = ask(&format!("full-{round}-{denied}"), "ann", 4);
            for answer in [&full, &client.post("ratelimit.limit", &unmade)] {
                if answer.status() != 200 {
                    assert_eq!(answer.status(), 503, "{}", answer.json);
                    let detail = answer.json["error"]["detail"].as_str().unwrap_or_default();
                    assert!(detail.contains("disk") && detail.contains("Free space"), "{detail}");
                }
            }
            refused += usize::from(full.status() != 200);
            refused >= 3
        });
        assert!(degraded(&server));
        let status = client.data("system.status", &json!({}));
        assert_eq!(status["database"]["writes"], false, "{status}");
        assert_eq!(status["degraded"], true, "{status}");
        fs::remove_file(&filler).expect("freed");
        let name = format!("after-{round}");
        client.data("projects.create", &json!({"name": name}));
        eventually("it is well again", || !degraded(&server));
        let status = client.data("system.status", &json!({}));
        assert_eq!(status["database"]["writes"], true, "{status}");
    }
    let mut found = 0;
    eventually("every denial is in the audit", || {
        let rows = client.data("audit.search", &json!({"decision": "blocked", "limit": 100}));
        found = rows.as_array().expect("a list").len();
        found == denied.min(100)
    });
    let metrics = client.get("/metrics").text();
    assert!(metrics.lines().any(|line| line == "tollkeeper_audit_dropped_total 0"), "{found}");
}

#[test]
fn a_disk_that_is_full_at_the_start_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let fill = "head -c 200000 /dev/zero > \"$0/disk/filler\" 2>/dev/null; :";
    let fill = fill.replace("$0", &folder.path().display().to_string());
    let Some(script) = small_disk(folder.path(), 100, &fill) else { return say_skipped() };
    let data_dir = folder.path().join("disk/data");
    let env = [("TOLLKEEPER_DATA_DIR", data_dir.to_str().unwrap())];
    let Err(failure) = start_behind(&script, folder.path(), &env) else {
        panic!("it started on a full disk");
    };
    assert_eq!(failure.status.and_then(|status| status.code()), Some(2), "{failure}");
    assert!(failure.stderr.contains("full"), "{failure}");
}

/// Usage has a file of its own, which grows by 1,024 pairs of key and minute at a time; only the first of these fit.
#[test]
fn usage_that_finds_no_room_on_the_disk_is_counted_said_and_flushed() {
    const ONE_PART: &str = "trap '' XFSZ; ulimit -f 512";
    const KEYS: usize = 1_100;
    const CALLERS: usize = 4;
    let folder = tempfile::tempdir().unwrap();
    let database = Postgres::shared().expect("a server").database().expect("a database");
    let env = [
        ("TOLLKEEPER_DATABASE_URL", &*database.url),
        ("TOLLKEEPER_SECRET", "a secret of more than thirty-two characters"),
        ("TOLLKEEPER_FLUSH_SECONDS", "86400"),
        ("TOLLKEEPER_ADMIN_WRITES_PER_SECOND", "1000000"),
    ];
    let mut server = start_behind(ONE_PART, folder.path(), &env).expect("it starts");
    let client = || Client::new(server.url(), server.root_key());
    let api = client().data("apis.createApi", &json!({"name": "metered"}));
    side_by_side(CALLERS, |_| {
        let mut client = client();
        for _ in 0..KEYS / CALLERS {
            let key = client.data("keys.createKey", &json!({"apiId": api["apiId"]}));
            let verified = client.data("keys.verifyKey", &json!({"key": key["key"]}));
            assert_eq!(verified["code"], "VALID");
        }
    });
    let metrics = client().get("/metrics").text();
    let unkept = metrics.lines().find_map(|line| line.strip_prefix("tollkeeper_usage_unkept "));
    let unkept: usize = unkept.expect("the alarm").parse().expect("a number");
    assert!((1..=KEYS - 1_000).contains(&unkept), "{unkept}");
    assert!(degraded(&server));
    assert_enforced(&server, "ann");
    assert!(server.terminate().expect("it ends").success(), "{}", server.stderr());

    let server = start_behind("", folder.path(), &env).expect("it starts");
    let all = json!({"from": 0, "to": 4_102_444_800_000_u64, "by": "month", "limit": 10_000, "format": "csv"});
    let csv = Client::new(server.url(), server.root_key()).post("usage.export", &all);
    assert_eq!(csv.response.text().lines().count(), KEYS + 1, "each key, and a heading");
    assert!(!degraded(&server));
}
