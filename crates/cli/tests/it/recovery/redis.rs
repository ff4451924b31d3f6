//! The settings and the script of deploy/redis, with a real Redis.

use std::path::Path;
use std::process::Command;

use tollkeeper_testkit::RedisServer;

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/redis");

#[test]
fn what_redis_was_told_survives_its_death_and_a_snapshot_can_be_taken_away() {
    let settings = Path::new(DEPLOY).join("tollkeeper.conf");
    // Its arguments come after ours, so the last word is the settings'.
    let text = std::fs::read_to_string(settings).expect("readable");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let arguments: Vec<String> = lines
        .flat_map(|line| {
            let mut words = line.split_whitespace();
            let name = words.next().map(|name| format!("--{name}"));
            name.into_iter().chain([words.collect::<Vec<_>>().join(" ")])
        })
        .collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let mut redis = RedisServer::start_with(&arguments).expect("a Redis");
    assert!(redis.ask(&["CONFIG", "GET", "maxmemory-policy"]).contains("noeviction"));
    redis.ask(&["SET", "counter", "41"]);
    redis.ask(&["WAITAOF", "1", "0", "5000"]);
    redis.kill();
    redis.again().expect("it starts again");
    redis.ask_until(&["GET", "counter"], "41").expect("it was in the log");

    let folder = tempfile::tempdir().expect("a folder");
    let mut script = Command::new(Path::new(DEPLOY).join("snapshot"));
    script.arg(folder.path()).args(["-p", &redis.port().to_string()]);
    let ran = script.output().expect("it runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let path = String::from_utf8(ran.stdout).expect("UTF-8");
    let snapshot = std::fs::read(path.trim_end()).expect("a file");
    assert!(snapshot.starts_with(b"REDIS"));
}
