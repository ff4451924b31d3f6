//! `tollkeeper limit` against a stub: what is sent, what is shown, and the exit code for every way it can end.

use crate::program::{Program, Ran, Stub};

const ROOT_KEY: &str = "root-key-of-sixteen-or-more";
const ALLOWED: &str = r#"{"meta":{"requestId":"r"},"data":{"success":true,"limit":10,"remaining":9,"reset":1700000000000}}"#;
const DENIED: &str = r#"{"meta":{"requestId":"r"},"data":{"success":false,"limit":10,"remaining":0,"reset":1700000000000,"retryAfterMs":1500}}"#;
const PEEKED: &str = r#"{"meta":{"requestId":"r"},"data":{"limit":10,"used":4,"remaining":6,"reset":1700000000000}}"#;

fn limit(stub: &Stub, more: &[&str]) -> Ran {
    let arguments = [&["limit", "api", "ann", "--limit", "10", "--window", "1m"], more].concat();
    Program::new(&arguments)
        .env("TOLLKEEPER_URL", &stub.url)
        .env("TOLLKEEPER_ROOT_KEY", ROOT_KEY)
        .run()
}

#[test]
fn an_allowed_ask_exits_0_and_prints_one_line_of_pairs_where_no_terminal_is() {
    let stub = Stub::answering("200 OK", ALLOWED);
    let ran = limit(&stub, &["--cost", "3", "--algorithm", "token_bucket", "--burst", "20"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(ran.stdout, "verdict=allowed limit=10 remaining=9 reset=1700000000000\n");
    let request = stub.request();
    assert!(request.starts_with("POST /v2/ratelimit.limit "), "{request}");
    assert!(request.contains(&format!("authorization: Bearer {ROOT_KEY}")));
    let body = r#"{"namespace":"api","identifier":"ann","limit":10,"duration":60000,"cost":3,"algorithm":"token_bucket","burst":20}"#;
    assert!(request.ends_with(body), "{request}");
}

#[test]
fn the_settings_file_says_where_the_server_is_unless_flag_or_environment_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = |config: &str| {
        std::fs::write(folder.path().join("tollkeeper.toml"), config).expect("written");
        Program::new(&["limit", "api", "ann", "--peek"])
            .folder(folder.path())
            .env("TOLLKEEPER_ROOT_KEY", ROOT_KEY)
            .run()
    };
    let stub = Stub::answering("200 OK", PEEKED);
    assert_eq!(asked(&format!("url = \"{}\"\n", stub.url)).code, Some(0));
    assert!(stub.request().starts_with("POST /v2/limits.peek "));
    let broken = asked("url = \n");
    assert_eq!(broken.code, Some(2));
    assert!(broken.stderr.contains("tollkeeper.toml"), "{}", broken.stderr);
}

#[test]
fn a_denied_ask_exits_1_and_says_when_to_come_back() {
    let ran = limit(&Stub::answering("200 OK", DENIED), &[]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(
        ran.stdout,
        "verdict=denied limit=10 remaining=0 reset=1700000000000 retry_after=1500ms\n"
    );
}

#[test]
fn json_is_the_data_of_the_answer() {
    let ran = limit(&Stub::answering("200 OK", DENIED), &["--json"]);
    assert_eq!(
        ran.stdout,
        "{\"success\":false,\"limit\":10,\"remaining\":0,\"reset\":1700000000000,\"retryAfterMs\":1500}\n"
    );
    assert_eq!(ran.code, Some(1));
}

#[test]
fn a_peek_spends_nothing_and_needs_no_limit() {
    let stub = Stub::answering("200 OK", PEEKED);
    let ran = Program::new(&["limit", "api", "ann", "--peek", "--url", &stub.url])
        .env("TOLLKEEPER_ROOT_KEY", ROOT_KEY)
        .run();
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "limit=10 used=4 remaining=6 reset=1700000000000\n")
    );
    let request = stub.request();
    assert!(request.starts_with("POST /v2/limits.peek "), "{request}");
    assert!(request.ends_with(r#"{"namespace":"api","identifier":"ann"}"#), "{request}");
}

#[test]
fn the_root_key_can_come_from_stdin_and_wins_over_the_environment() {
    let stub = Stub::answering("200 OK", ALLOWED);
    let arguments = [
        "limit",
        "api",
        "ann",
        "--limit",
        "1",
        "--window",
        "1s",
        "--root-key-stdin",
        "--url",
        &stub.url,
    ];
    let ran = Program::new(&arguments)
        .env("TOLLKEEPER_ROOT_KEY", "another")
        .stdin(&format!("{ROOT_KEY}\n"))
        .run();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(stub.request().contains(&format!("authorization: Bearer {ROOT_KEY}\r\n")));
}

#[test]
fn no_server_exits_3_and_says_how_to_start_one() {
    let ran = Program::new(&[
        "limit",
        "api",
        "ann",
        "--limit",
        "1",
        "--window",
        "1s",
        "--url",
        "http://127.0.0.1:1",
    ])
    .env("TOLLKEEPER_ROOT_KEY", ROOT_KEY)
    .run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""));
    assert!(
        ran.stderr.contains("no answer from http://127.0.0.1:1/")
            && ran.stderr.contains("`tollkeeper serve`")
    );
    assert!(ran.stderr.contains("refused"), "the cause is named: {}", ran.stderr);
    assert!(!ran.stderr.contains(ROOT_KEY));
}

#[test]
fn a_refusal_exits_4_and_shows_every_field_error_or_where_the_root_key_is() {
    let faults = r#"{"meta":{"requestId":"req_7"},"error":{"title":"Bad Request","detail":"One fault.","status":400,"type":"t","errors":[{"location":"body.limit","message":"Too \u001b[31mlarge.","fix":"Send less."}]}}"#;
    let ran = limit(&Stub::answering("400 Bad Request", faults), &[]);
    assert_eq!(ran.code, Some(4));
    assert!(
        ran.stderr.contains("body.limit: Too")
            && ran.stderr.contains("Send less.")
            && ran.stderr.contains("req_7")
    );
    assert!(!ran.stderr.contains('\u{1b}'));

    let unknown = r#"{"meta":{"requestId":"r"},"error":{"title":"Unauthorized","detail":"No such key.","status":401,"type":"t","errors":[]}}"#;
    let ran = limit(&Stub::answering("401 Unauthorized", unknown), &[]);
    assert_eq!(ran.code, Some(4));
    assert!(
        ran.stderr.contains("TOLLKEEPER_ROOT_KEY") && ran.stderr.contains("first start"),
        "{}",
        ran.stderr
    );
}

#[test]
fn something_else_at_that_address_exits_4_and_points_to_the_url() {
    let ran = limit(&Stub::answering("404 Not Found", "<html>"), &[]);
    assert_eq!(ran.code, Some(4));
    assert!(ran.stderr.contains("TOLLKEEPER_URL"), "{}", ran.stderr);
}

#[test]
fn wrong_arguments_and_missing_settings_exit_2_and_say_what_is_expected() {
    let base = ["limit", "api", "ann"];
    let cases: [(&[&str], &str); 8] = [
        (&[], "--limit"),
        (&["--limit", "10"], "--window"),
        (&["--limit", "0", "--window", "1m"], "expected an integer from 1 to"),
        (&["--limit", "10", "--window", "1.5m"], "such as 30s, 1m or 24h"),
        (&["--limit", "10", "--window", "31d"], "from 1s to 30d"),
        (&["--limit", "10", "--window", "1m", "--cost", "-1"], "expected an integer from 0 to"),
        (&["--limit", "10", "--window", "1m", "--algorithm", "magic"], "sliding_window"),
        (&["--limit", "10", "--window", "1m"], "TOLLKEEPER_ROOT_KEY is not set"),
    ];
    for (more, expected) in cases {
        let ran = Program::new(&[&base, more].concat()).run();
        assert_eq!(ran.code, Some(2), "{more:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{more:?}: {}", ran.stderr);
    }
    let ran = Program::new(&["limit", "a", "b", "--peek", "--url", "nonsense"])
        .env("TOLLKEEPER_ROOT_KEY", ROOT_KEY)
        .run();
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("http://HOST:PORT"), "{}", ran.stderr);
}
