//! A disk that takes no more: the server goes on enforcing limits, says that counters would not survive, and heals
//! by itself. A disk that is full at the start is named instead.

use std::fs;
use std::path::Path;

use serde_json::json;
use tollkeeper_testkit::{StartFailure, Tollkeeper};

use crate::time::eventually;
use crate::world::{BINARY, Client, ask};

/// What `sh` does before it becomes the server. SIGXFSZ would end it where a full disk only fails a write.
const FEW_BYTES: &str = "trap '' XFSZ; ulimit -f 2048";
const NO_BYTES: &str = "trap '' XFSZ; ulimit -f 0";

/// Starts the server behind a script: the harness runs `sh serve` in the folder.
fn behind(script: &str, folder: &Path, env: &[(&str, &str)]) -> Result<Tollkeeper, StartFailure> {
    fs::write(folder.join("serve"), format!("{script}\nexec {BINARY} serve\n")).expect("written");
    Tollkeeper::start("/bin/sh", folder, env)
}

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
    let mut server = behind("", folder.path(), &[]).expect("it starts");
    Client::new(server.url(), server.root_key()).limit(&ask("api", "made", 4));
    server.terminate().expect("it ends");

    let mut server = behind(FEW_BYTES, folder.path(), &[]).expect("it starts");
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

    let server = behind("", folder.path(), &[]).expect("it starts");
    for identifier in ["ann", "bob"] {
        let again = Client::new(server.url(), server.root_key()).limit(&ask("api", identifier, 4));
        assert_eq!(again["success"], false, "{identifier} is counted on");
    }
}

#[test]
fn a_start_without_any_room_ends_with_a_clear_message() {
    let folder = tempfile::tempdir().unwrap();
    let Err(failure) = behind(NO_BYTES, folder.path(), &[]) else {
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

#[test]
fn a_disk_that_runs_full_degrades_and_freeing_space_heals_it() {
    let folder = tempfile::tempdir().unwrap();
    // Where mounting is not allowed, the test of a journal that cannot grow has said the same.
    let Some(script) = small_disk(folder.path(), 3000, ":") else { return };
    let data_dir = folder.path().join("disk/data");
    let env = [("TOLLKEEPER_DATA_DIR", data_dir.to_str().unwrap())];
    let mut server = behind(&script, folder.path(), &env).expect("it starts");
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

#[test]
fn a_disk_that_is_full_at_the_start_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let fill = "head -c 200000 /dev/zero > \"$0/disk/filler\" 2>/dev/null; :";
    let fill = fill.replace("$0", &folder.path().display().to_string());
    let Some(script) = small_disk(folder.path(), 100, &fill) else { return };
    let data_dir = folder.path().join("disk/data");
    let env = [("TOLLKEEPER_DATA_DIR", data_dir.to_str().unwrap())];
    let Err(failure) = behind(&script, folder.path(), &env) else {
        panic!("it started on a full disk");
    };
    assert_eq!(failure.status.and_then(|status| status.code()), Some(2), "{failure}");
    assert!(failure.stderr.contains("full"), "{failure}");
}
