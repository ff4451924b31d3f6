//! `tollkeeper limit` and `tollkeeper doctor` against the real server: what they print, and the codes they end with.

use serde_json::Value;

use super::terminal::on_a_terminal;
use crate::program::{Program, Ran};
use crate::world::{World, keys};

const LIMIT: [&str; 7] = ["limit", "api", "ann", "--limit", "2", "--window", "30d"];

fn run(world: &World, key: &str, more: &[&str]) -> Ran {
    Program::new(&[&LIMIT, more].concat())
        .env("TOLLKEEPER_URL", world.server.url())
        .env("TOLLKEEPER_ROOT_KEY", key)
        .run()
}

#[test]
fn limit_spends_at_the_server_and_its_exit_code_is_the_answer() {
    let mut world = World::new();
    let key = world.server.root_key().to_owned();
    for left in [1, 0] {
        let ran = run(&world, &key, &[]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        let start = format!("verdict=allowed limit=2 remaining={left} reset=");
        assert!(
            ran.stdout.starts_with(&start) && ran.stdout.lines().count() == 1,
            "{}",
            ran.stdout
        );
    }
    let denied = run(&world, &key, &[]);
    assert_eq!(denied.code, Some(1));
    assert!(denied.stdout.starts_with("verdict=denied limit=2 remaining=0 "), "{}", denied.stdout);
    assert!(denied.stdout.trim_end().ends_with("ms"), "{}", denied.stdout);
    let never = run(&world, &key, &["--cost", "3"]);
    assert_eq!(never.code, Some(1));
    assert!(never.stdout.contains("retry_after=never"), "{}", never.stdout);

    let json = run(&world, &key, &["--json"]);
    let data: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(json.code, Some(1));
    assert_eq!(keys(&data), ["limit", "remaining", "reset", "retryAfterMs", "success"]);
    let peek = run(&world, &key, &["--peek", "--json"]);
    let data: Value = serde_json::from_str(&peek.stdout).expect("JSON");
    assert_eq!((peek.code, keys(&data)), (Some(0), vec!["limit", "remaining", "reset", "used"]));
    assert_eq!(data["used"], 2);

    let refused = run(&world, "no-such-root-key-here", &[]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(4), ""));
    assert!(refused.stderr.contains("TOLLKEEPER_ROOT_KEY"), "{}", refused.stderr);
    let missing = Program::new(&["limit", "nowhere", "ann", "--peek"])
        .env("TOLLKEEPER_URL", world.server.url())
        .env("TOLLKEEPER_ROOT_KEY", &key)
        .run();
    assert_eq!(missing.code, Some(4));
    assert!(missing.stderr.contains("nowhere"), "{}", missing.stderr);

    world.server.terminate().expect("it ends");
    let gone = run(&world, &key, &[]);
    assert_eq!((gone.code, gone.stdout.as_str()), (Some(3), ""));
    assert!(gone.stderr.contains("tollkeeper serve"), "{}", gone.stderr);
}

#[test]
fn a_person_at_a_terminal_gets_a_table() {
    let world = World::new();
    let env =
        [("TOLLKEEPER_URL", world.server.url()), ("TOLLKEEPER_ROOT_KEY", world.server.root_key())];
    let (code, screen) = on_a_terminal(&LIMIT, &env);
    assert_eq!(code, Some(0), "{screen}");
    let lines: Vec<_> = screen.lines().collect();
    assert_eq!(lines.len(), 2, "{screen}");
    let heads: Vec<_> =
        lines[0].trim_matches(['\u{1b}', '[', '0', '1', 'm']).split_whitespace().collect();
    assert_eq!(heads, ["VERDICT", "LIMIT", "REMAINING", "RESET"]);
    let values: Vec<_> = lines[1].split_whitespace().collect();
    assert_eq!(values[..4], ["allowed", "2", "1", "in"], "{screen}");
    assert!(screen.contains('\u{1b}'), "headings stand out");
    let plain = on_a_terminal(&LIMIT, &[&env[..], &[("NO_COLOR", "1")]].concat());
    assert!(!plain.1.contains('\u{1b}'), "{}", plain.1);
}

#[test]
fn doctor_finds_a_running_server_healthy_and_a_stopped_one_too() {
    let mut world = World::new();
    let address = world.server.url().trim_start_matches("http://").to_owned();
    let doctor = |world: &World| {
        Program::new(&["doctor"])
            .env("TOLLKEEPER_HTTP_LISTEN", &address)
            .env("TOLLKEEPER_DATA_DIR", world.data_dir().to_str().expect("UTF-8"))
            .folder(world.data_dir())
            .run()
    };
    let pid = world.server.pid();
    let running = doctor(&world);
    assert_eq!(running.code, Some(0), "{}", running.stdout);
    assert!(running.stdout.contains(&format!("{address} is taken by a Tollkeeper that answers")));
    assert!(
        running.stdout.contains(&format!("process {pid} works in the data folder")),
        "{}",
        running.stdout
    );
    world.client().spend("ann", "sliding_window", 1);
    world.server.terminate().expect("it ends");
    let stopped = doctor(&world);
    assert_eq!(stopped.code, Some(0), "{}", stopped.stdout);
    assert!(stopped.stdout.contains("is free") && stopped.stdout.contains("no other process"));
}
