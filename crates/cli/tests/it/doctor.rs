//! `tollkeeper doctor`: sound settings pass, every unsound one is named at once, and nothing is left behind.

use std::net::TcpListener;
use std::time::Duration;

use serde_json::Value;
use tollkeeper_testkit::{Postgres, RedisServer};

use crate::program::Program;

fn doctor(arguments: &[&str], folder: &tempfile::TempDir) -> Program {
    Program::new(&[&["doctor"], arguments].concat()).folder(folder.path())
}

#[test]
fn sound_settings_exit_0_with_a_line_per_check_and_leave_no_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let ran = doctor(&["--http-listen", "127.0.0.1:0"], &folder).run();
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    for check in
        ["settings", "config", "port", "data_dir", "writing", "room", "open_files", "clock"]
    {
        assert!(
            ran.stdout.lines().any(|line| line.split_whitespace().nth(1) == Some(check)),
            "{check}: {}",
            ran.stdout
        );
    }
    assert!(!ran.stdout.contains('\u{1b}'));
    assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 0);
}

#[test]
fn a_database_file_whose_folder_is_missing_exits_2_and_names_the_setting() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = |path: &str| {
        let listen = ["--http-listen", "127.0.0.1:0"];
        doctor(&listen, &folder).env("TOLLKEEPER_DATABASE_URL", &format!("sqlite:{path}")).run()
    };
    let ran = asked("missing/t.db");
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    assert!(ran.stdout.contains("TOLLKEEPER_DATABASE_URL"), "{}", ran.stdout);
    std::fs::create_dir(folder.path().join("missing")).expect("a folder");
    assert_eq!(asked("missing/t.db").code, Some(0));
}

#[test]
fn a_database_and_a_redis_that_answer_are_named_and_nothing_is_changed_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = Postgres::shared().expect("a server").database().expect("a database");
    let redis = RedisServer::start().expect("a redis");
    let ran = doctor(&["--http-listen", "127.0.0.1:0"], &folder)
        .env("TOLLKEEPER_DATABASE_URL", &database.url)
        .env("TOLLKEEPER_SECRET", "a secret of more than thirty-two characters")
        .env("TOLLKEEPER_REDIS_URL", &redis.url())
        .run();
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    for found in ["database   PostgreSQL ", "redis      redis://"] {
        assert!(ran.stdout.contains(found), "{found}: {}", ran.stdout);
    }
}

#[test]
fn a_database_and_a_redis_that_do_not_answer_exit_2_soon_and_say_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    // Bound and closed again: nobody listens there.
    let nobody = || {
        let port = TcpListener::bind("127.0.0.1:0").expect("a free port");
        port.local_addr().expect("bound").to_string()
    };
    let begun = crate::time::now();
    let ran = doctor(&["--http-listen", "127.0.0.1:0"], &folder)
        .env("TOLLKEEPER_DATABASE_URL", &format!("postgres://user:hidden-word@{}/name", nobody()))
        .env("TOLLKEEPER_SECRET", "a secret of more than thirty-two characters")
        .env("TOLLKEEPER_REDIS_URL", &format!("redis://{}", nobody()))
        .run();
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    for check in ["database", "redis"] {
        let failed = |line: &str| line.starts_with("fail") && line.contains(check);
        let line = ran.stdout.lines().find(|line| failed(line));
        let line = line.unwrap_or_else(|| panic!("{check}: {}", ran.stdout));
        assert!(line.contains("see that it runs and can be reached from here"), "{line}");
    }
    assert!(!ran.stdout.contains("hidden-word"), "{}", ran.stdout);
}

#[test]
fn json_says_the_same_for_scripts() {
    let folder = tempfile::tempdir().expect("a folder");
    let ran = doctor(&["--json", "--http-listen", "127.0.0.1:0"], &folder).run();
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(report["ok"], true);
    let port =
        report["findings"].as_array().and_then(|all| all.iter().find(|one| one["check"] == "port"));
    assert_eq!(port.map(|port| &port["grade"]), Some(&Value::from("ok")));
}

#[test]
fn every_wrong_setting_is_named_at_once_and_exits_2() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("tollkeeper.toml"), "max_cels = 5\n").expect("written");
    let ran = doctor(&["--http-listen", "nowhere"], &folder)
        .env("TOLLKEEPER_MAX_CONNECTIONS", "-1")
        .env("TOLLKEEPER_HTTP_LITSEN", "x")
        .run();
    assert_eq!(ran.code, Some(2));
    for wrong in ["http_listen", "max_connections", "TOLLKEEPER_HTTP_LITSEN", "max_cels"] {
        assert!(
            ran.stdout.lines().any(|line| line.starts_with("fail") && line.contains(wrong)),
            "{wrong}: {}",
            ran.stdout
        );
    }
}

#[test]
fn a_port_taken_by_another_program_exits_2_and_names_the_flag() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = other.local_addr().expect("bound").to_string();
    let ran = doctor(&["--http-listen", &address], &folder).run();
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stdout.contains(&format!("{address} is taken")) && ran.stdout.contains("--http-listen"),
        "{}",
        ran.stdout
    );
}

#[test]
fn wrong_settings_keep_serve_from_starting_with_the_same_list() {
    let folder = tempfile::tempdir().expect("a folder");
    let ran = Program::new(&["serve", "--http-listen", "nowhere", "--max-cells", "0"])
        .folder(folder.path())
        .run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(
        ran.stderr.contains("http_listen") && ran.stderr.contains("max_cells"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("serve --help"));
    assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 0);
}
