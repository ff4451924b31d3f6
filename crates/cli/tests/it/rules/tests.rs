//! `tollkeeper rules test`: what rules do to requests, tried without a server, and the same as what a server does.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::Home;
use crate::program::{Program, Ran};

const RULES: &str = "\
rules:
  - name: free
    scope: user
    tiers: [free]
    limits: [{limit: 3, window: 1m}, {limit: 5, window: 1d}]
  - name: bucket
    scope: [key, endpoint]
    endpoints: [/search/**]
    methods: [GET]
    algorithm: token_bucket
    refillRate: 0.5
    burst: 2
    limits: [{limit: 20, window: 1m, name: tokens}]
  - name: slow
    scope: user
    endpoints: ['/export/{format}']
    action: throttle
    maxDelayMs: 1500
    limits: [{limit: 60, window: 1m}]
    burst: 1
  - name: watch
    scope: global
    projects: [web]
    action: log_only
    limits: [{limit: 1, window: 1h}]
  - {name: office, scope: ip, ipRanges: [203.0.113.0/24], action: allow, priority: 1}
  - name: closed
    scope: ip
    ipRanges: [198.51.100.0/24]
    action: block
    priority: 0
    response: {status: 451, message: Not from here., retryAfterSeconds: 7}
";

const TESTS: &str = "\
tests:
  - name: three a minute
    request: {externalId: ann}
    times: 4
    every: 10s
    expect:
      allowed: false
      code: RATE_LIMITED
      status: 429
      rule: free
      rules: [free]
      exceeded: [free/1m]
      limits: [free/1d, {name: free/1m, limit: 3, remaining: 0, exceeded: true}]
      retryAfterMs: 50001
      admitted: 3
  - name: users do not share, tiers differ, and time heals
    request: {externalId: ann}
    steps:
      - {times: 3, expect: {allowed: true, limits: [free/1m, {name: free/1d, remaining: 2}]}}
      - {expect: {allowed: false}}
      - {request: {externalId: ben}, expect: {allowed: true}}
      - {request: {tier: pro}, expect: {allowed: true, rules: [], limits: [], rule: null}}
      - {after: 2m, expect: {limits: [{name: free/1m, remaining: 2}, free/1d]}}
  - name: a bucket is refilled at its own rate
    request: {keyId: key_1, method: get, path: /search/a/b, tier: pro}
    steps:
      - {times: 2, expect: {limits: [{name: bucket/tokens, limit: 2, remaining: 0}]}}
      - {after: 1999ms, expect: {allowed: false, retryAfterMs: 1}}
      - {after: 1, request: {path: /search/other}, expect: {allowed: true}}
      - {request: {method: POST}, expect: {limits: []}}
  - name: too fast waits, and then is refused
    request: {externalId: ann, tier: pro, path: /export/csv}
    steps:
      - {expect: {delayMs: 0, rule: null}}
      - {expect: {allowed: true, delayMs: 1000, rule: slow, code: VALID, status: 200}}
      - {expect: {allowed: false, delayMs: 0}}
  - name: who watches never refuses
    request: {project: web, tier: pro}
    times: 2
    expect: {allowed: true, admitted: 2, exceeded: [watch/1h], limits: [{name: watch/1h, shadow: true}]}
  - name: the office is let in and the others are not
    request: {externalId: ann}
    steps:
      - {request: {ip: 203.0.113.9}, times: 9, expect: {allowed: true, rules: [office], limits: []}}
      - request: {ip: 198.51.100.9}
        expect: {code: BLOCKED, status: 451, rule: closed, message: Not from here., retryAfterMs: 7000}
  - name: a cost of more than there ever is
    request: {externalId: ann, cost: 4}
    expect: {allowed: false, retryAfterMs: null, exceeded: [free/1m]}
";

fn tested(folder: &Path, arguments: &[&str]) -> Ran {
    Program::new(&[&["rules", "test"], arguments].concat()).folder(folder).run()
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

fn lines(ran: &Ran) -> Vec<Value> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn every_kind_of_rule_is_tried_without_a_server() {
    let both = format!("{RULES}{TESTS}");
    let folder = folder(&[("rules.yaml", &both)]);
    let ran = tested(folder.path(), &["rules.yaml"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
    assert!(
        ran.stdout.starts_with("result=pass test=\"three a minute\" requests=4"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.ends_with("tests=7 passed=7 failed=0\n"), "{}", ran.stdout);
    let linted = Program::new(&["rules", "lint", "rules.yaml"]).folder(folder.path()).run();
    assert_eq!(linted.stdout, "rules=6 tests=7 faults=0\n", "{}", linted.stderr);
}

#[test]
fn a_failure_says_what_was_expected_what_came_and_what_every_rule_thought_of_it() {
    let tests = "
tests:
  - {name: right, request: {externalId: ann}, expect: {allowed: true}}
  - name: wrong
    request: {externalId: ann}
    steps:
      - {times: 3}
      - {expect: {allowed: true, rule: null, limits: [free/1m], status: 429}}
";
    let folder = folder(&[("rules.yaml", RULES), ("tests.yaml", tests)]);
    let ran = tested(folder.path(), &["rules.yaml", "--tests", "tests.yaml"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    for told in [
        "result=pass test=right requests=1",
        "result=FAIL test=wrong requests=4 step=2 field=allowed expected=true came=false",
        "result=FAIL test=wrong requests=4 step=2 field=rule expected=null came=free",
        "field=limits",
        "why=wrong step=2 rule=free matches=denies action=reject limit=1m units=3 left=0 reason=\"has no room for the request: 0 of 3 left\"",
        "rule=free matches=yes action=reject limit=1d units=5 left=2",
        "rule=bucket matches=no",
        "the rule has endpoints and the request gives no path",
        "tests=2 passed=1 failed=1",
    ] {
        assert!(ran.stdout.contains(told), "{told}\n{}", ran.stdout);
    }
    assert!(!ran.stdout.contains("field=status"), "what was met is not told: {}", ran.stdout);
    let ran = tested(folder.path(), &["rules.yaml", "--tests", "tests.yaml", "--json"]);
    let [right, wrong] = &lines(&ran)[..] else { panic!("{}", ran.stdout) };
    assert_eq!(
        (ran.code, right),
        (Some(1), &json!({"test": "right", "passed": true, "requests": 1}))
    );
    let failure = &wrong["failures"][0];
    assert_eq!((&failure["step"], &wrong["passed"]), (&json!(2), &json!(false)));
    assert_eq!(failure["fields"][0], json!({"field": "allowed", "expected": true, "came": false}));
    assert_eq!(failure["matched"][0]["wouldDeny"], true);
    assert_eq!(failure["unmatched"].as_array().map(Vec::len), Some(5));
}

#[test]
fn every_fault_of_tests_is_told_at_once_with_test_field_and_line() {
    let tests = "
tests:
  - name: typo
    requset: {externalId: ann}
    expect: {alowed: true, status: 9}
  - name: nothing
    request: {ip: nowhere, externalId: ann}
    times: 0
    expect: {}
  - name: both
    every: 1w
    steps: [{times: 2}]
    expect: {allowed: true}
";
    let both = format!("{RULES}{tests}").replace("name: bucket", "nam: bucket");
    let folder =
        folder(&[("rules.yaml", &both), ("rules-only.yaml", RULES), ("tests.yaml", tests)]);
    let ran = tested(folder.path(), &["rules.yaml"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    for told in [
        "rules.yaml:6: rules[1].nam: \"nam\" is not a known field. Did you mean `name`?",
        "tests[0].requset: Test \"typo\": \"requset\" is not a known field. Did you mean `request`?",
        "tests[0].expect.alowed: Test \"typo\": \"alowed\" is not a known field. Did you mean `allowed`?",
        "tests[0].expect.status: Test \"typo\": 9 is out of range.",
        "tests[1].request.ip: Test \"nothing\": Is not an IPv4 or IPv6 address.",
        "tests[1].times: Test \"nothing\": 0 is out of range.",
        "tests[1].expect.allowed: Test \"nothing\": Nothing is expected",
        "tests[2].every: Test \"both\"",
        "tests[2].expect: Test \"both\": Belongs into a step",
        "tests[2].steps: Test \"both\": None of them expects anything",
    ] {
        assert!(ran.stderr.contains(told), "{told}\n{}", ran.stderr);
    }
    let ran = tested(folder.path(), &["rules-only.yaml", "--tests", "tests.yaml"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("tests.yaml:4: tests[0].requset: Test \"typo\""), "{}", ran.stderr);
}

#[test]
fn a_name_that_no_rule_has_is_a_fault_and_not_a_test_that_fails() {
    let tests = "
tests:
  - {name: a, expect: {rule: fre, rules: [free, nobody], limits: [free/1h], exceeded: [{}]}}
  - {name: a, expect: {allowed: true, limits: [{name: free/2m}]}}
";
    let tests = tests.replace(", exceeded: [{}]", "");
    let folder = folder(&[("rules.yaml", &format!("{RULES}{tests}"))]);
    let ran = tested(folder.path(), &["rules.yaml"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    for told in [
        "wrong in 5 places",
        "tests[0].expect.rule: Test \"a\": There is no rule \"fre\" in the file.",
        "tests[0].expect.rules[1]: Test \"a\": There is no rule \"nobody\"",
        "tests[0].expect.limits[0]: Test \"a\": There is no limit \"free/1h\"",
        "tests[1].name: Test \"a\": Another test has this name",
        "tests[1].expect.limits[0]: Test \"a\": There is no limit \"free/2m\"",
    ] {
        assert!(ran.stderr.contains(told), "{told}\n{}", ran.stderr);
    }
}

#[test]
fn a_file_without_tests_is_not_a_file_whose_tests_pass() {
    let folder = folder(&[("rules.yaml", RULES)]);
    let ran = tested(folder.path(), &["rules.yaml"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    assert!(ran.stderr.contains("no tests") && ran.stderr.contains("--help"), "{}", ran.stderr);
}

#[test]
fn toml_and_json_say_the_same_and_help_teaches_by_an_example_that_works() {
    let toml = r#"
[[rules]]
name = "few"
scope = "user"
limits = [{ limit = 2, window = "1m" }]

[[tests]]
name = "two a minute"
request = { externalId = "ann" }
times = 3
expect = { allowed = false, rule = "few", admitted = 2 }
"#;
    let json = json!({
        "rules": [{"name": "few", "scope": "user", "limits": [{"limit": 2, "window": "1m"}]}],
        "tests": [{"name": "two a minute", "request": {"externalId": "ann"}, "times": 3,
            "expect": {"allowed": false, "rule": "few", "admitted": 2}}],
    });
    let help = Program::new(&["rules", "test", "--help"]).run();
    assert_eq!(help.code, Some(0));
    let example =
        help.stdout.split_once("  rules:\n").and_then(|(_, rest)| rest.split_once("\nA request"));
    let example = example.map(|(yaml, _)| format!("  rules:\n{yaml}")).expect("an example");
    let lines: Vec<_> =
        example.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
    let example = lines.join("\n") + "\n";
    let files = [("a.toml", toml), ("a.json", &json.to_string()), ("help.yaml", example.as_str())];
    let folder = folder(&files);
    for (name, _) in files {
        let ran = tested(folder.path(), &[name]);
        assert_eq!(ran.code, Some(0), "{name}: {}{}", ran.stdout, ran.stderr);
    }
}

/// The same requests, once in memory and once against a server that the same file was applied to.
#[test]
fn what_a_test_says_is_what_a_server_does() {
    let home = Home::on_sqlite();
    // Windows that no test runs out of, and nothing that flows back within it.
    let rules = "\
rules:
  - {name: days, scope: user, tiers: [free], limits: [{limit: 3, window: 30d}, {limit: 9, window: 60d}]}
  - {name: log, scope: [user, endpoint], endpoints: ['/a/{x}', '/b/**'], algorithm: sliding_log, limits: [{limit: 2, window: 30d}]}
  - {name: bucket, scope: ip, methods: [POST], algorithm: token_bucket, refillRate: 0.001, limits: [{limit: 4, window: 60d}]}
  - {name: watch, scope: global, action: log_only, limits: [{limit: 5, window: 30d}]}
  - {name: out, scope: global, endpoints: [/out], action: block, response: {status: 410, message: Gone., retryAfterSeconds: 5}}
  - {name: inside, scope: ip, ipRanges: [10.0.0.0/8], action: allow, priority: 1}
";
    let asks = [
        json!({"externalId": "ann", "path": "/a/1", "method": "get"}),
        json!({"externalId": "ann", "path": "/b/1/2", "method": "POST", "ip": "192.0.2.1"}),
        json!({"externalId": "ann", "path": "/b", "ip": "10.1.1.1"}),
        json!({"externalId": "ben", "tier": "pro", "method": "POST", "ip": "192.0.2.1", "cost": 3}),
        json!({"path": "/out", "externalId": "ben"}),
        json!({"externalId": "ann", "path": "/a/2", "cost": 0}),
    ];
    // Nothing is expected that could be met, so that everything is told.
    let nothing = json!({"allowed": true, "code": "VALID", "status": 599, "rule": "watch", "message": "?",
        "limits": ["days/30d", "days/30d"], "exceeded": ["days/30d", "days/30d"]});
    let steps: Vec<Value> = (0..24)
        .map(|turn| json!({"request": asks[turn * 7 % asks.len()], "expect": nothing}))
        .collect();
    let tests = json!({"tests": [{"name": "all", "steps": steps}]}).to_string();
    let folder = folder(&[("rules.yaml", rules), ("tests.json", &tests)]);
    let ran = tested(folder.path(), &["rules.yaml", "--tests", "tests.json", "--json"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let tried = lines(&ran).remove(0);
    let applied = Program::new(&["rules", "apply", "rules.yaml"])
        .folder(folder.path())
        .env("TOLLKEEPER_URL", home.server.url())
        .env("TOLLKEEPER_ROOT_KEY", home.server.root_key())
        .run();
    assert_eq!(applied.code, Some(0), "{}", applied.stderr);
    let mut client = home.client();
    for (turn, step) in steps.iter().enumerate() {
        let real = client.data("gate.check", &step["request"]);
        let told = tried["failures"][turn]["fields"].as_array().expect("fields");
        let came =
            |field: &str| told.iter().find(|one| one["field"] == field).map(|one| &one["came"]);
        let of = |limits: &Value, own: bool| -> Vec<Value> {
            let limits = limits.as_array().expect("limits").iter();
            limits
                .map(|one| {
                    json!([
                        one["name"],
                        one["limit"],
                        one["remaining"],
                        one["exceeded"],
                        if own { one["shadow"].clone() } else { json!(one["shadow"] == true) }
                    ])
                })
                .collect()
        };
        assert_eq!(
            of(came("limits").expect("limits"), true),
            of(&real["limits"], false),
            "{turn}: {real}"
        );
        assert_eq!(came("status"), Some(&real["status"]), "{turn}: {real}");
        let rule = came("rule").cloned().unwrap_or_else(|| json!("watch"));
        assert_eq!(rule, real.get("rule").cloned().unwrap_or_default(), "{turn}: {real}");
        let message = came("message").cloned().unwrap_or_default();
        assert_eq!(message, real.get("message").cloned().unwrap_or_default(), "{turn}: {real}");
        assert_eq!(came("code").cloned().unwrap_or_else(|| json!("VALID")), real["code"], "{turn}");
    }
}

#[test]
fn tests_beside_rules_are_checked_and_never_sent() {
    let home = Home::on_sqlite();
    let both = format!("{RULES}{TESTS}");
    let folder = folder(&[("rules.yaml", &both)]);
    for command in ["diff", "apply"] {
        let ran = Program::new(&["rules", command, "rules.yaml"])
            .folder(folder.path())
            .env("TOLLKEEPER_URL", home.server.url())
            .env("TOLLKEEPER_ROOT_KEY", home.server.root_key())
            .run();
        assert_eq!(ran.code, Some(0), "{command}: {}", ran.stderr);
    }
    assert_eq!(super::in_force(&home), 6);
}

#[test]
fn the_example_in_the_documentation_passes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/RULES.md");
    let text = fs::read_to_string(path).expect("the documentation");
    let mut blocks = text.split("```yaml\n").skip(1).filter_map(|block| block.split("```").next());
    let (rules, tests) = (blocks.next().expect("rules"), blocks.next().expect("tests"));
    let folder = folder(&[("rules.yaml", &format!("{rules}\n{tests}"))]);
    let ran = tested(folder.path(), &["rules.yaml"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.ends_with("tests=2 passed=2 failed=0\n"), "{}", ran.stdout);
}
