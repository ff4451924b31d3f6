//! `tollkeeper rules` with files of all three kinds.

use std::fs;

use serde_json::Value;

use super::{Home, in_force};
use crate::program::{Program, Ran};
use crate::world::World;

on_both! {
    a_file_is_linted_compared_applied_listed_and_taken_back,
}

const YAML: &str = "\
# Everybody's limits
rules:
  - name: free
    scope: user
    tiers: [free]
    limits:
      - {limit: 60, window: 1m}
      - {limit: 1000, window: 1d}
  - name: logins
    scope: [ip, endpoint]
    endpoints: [/login]
    methods: [POST]
    action: throttle
    maxDelayMs: 500
    limits: [{limit: 5, window: 1m}]
";

const TOML: &str = r#"
[[rules]]
name = "free"
scope = "user"
tiers = ["free"]
limits = [{ limit = 60, window = "60s" }, { limit = 1000, window = "24h" }]

[[rules]]
name = "logins"
scope = ["ip", "endpoint"]
endpoints = ["/login"]
methods = ["POST"]
action = "throttle"
maxDelayMs = 500
limits = [{ limit = 5, window = 60000 }]
"#;

fn run(world: &World, arguments: &[&str]) -> Ran {
    Program::new(arguments)
        .env("TOLLKEEPER_URL", world.server.url())
        .env("TOLLKEEPER_ROOT_KEY", world.server.root_key())
        .run()
}

fn done(world: &World, arguments: &[&str]) -> String {
    let ran = run(world, arguments);
    assert_eq!(ran.code, Some(0), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
    ran.stdout
}

fn json(world: &World, arguments: &[&str]) -> Vec<Value> {
    let printed = done(world, &[arguments, &["--json"]].concat());
    printed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn a_file_is_linted_compared_applied_listed_and_taken_back(home: &Home) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    };
    let (yaml, toml) = (path("rules.yaml", YAML), path("rules.toml", TOML));
    assert_eq!(done(home, &["rules", "lint", &yaml]), "rules=2 faults=0\n");
    let diff = done(home, &["rules", "diff", &yaml]);
    assert_eq!(
        diff,
        "change=created rule=free field= before= after=\nchange=created rule=logins field= before= after=\n"
    );
    assert_eq!(in_force(home), 0, "a diff changes nothing");
    let applied = done(home, &["rules", "apply", &yaml]);
    assert_eq!(applied, "version=1 created=2 updated=0 deleted=0 unchanged=0\n");
    assert_eq!(in_force(home), 2);
    let same = json(home, &["rules", "apply", &toml, "--prune"]).remove(0);
    assert_eq!(
        (&same["version"], &same["unchanged"]),
        (&1.into(), &2.into()),
        "TOML says the same"
    );
    let all = json(home, &["rules", "list"]);
    let file = path("rules.json", &serde_json::json!({ "rules": all }).to_string());
    assert_eq!(done(home, &["rules", "diff", &file, "--prune"]), "", "and so does what is listed");
    let listed = done(home, &["rules", "list"]);
    assert!(
        listed.contains(
            "name=free priority=100 action=reject scope=user limits=60/1m,1000/1d tiers=free"
        ),
        "{listed}"
    );
    let wider = path("wider.yaml", &YAML.replace("limit: 60", "limit: 90"));
    let diff = done(home, &["rules", "apply", &wider, "--dry-run"]);
    assert!(diff.starts_with("change=updated rule=free field=limits before="), "{diff}");
    done(home, &["rules", "apply", &wider]);
    let shown = done(home, &["rules", "get", "logins"]);
    for part in ["rule_id=rule_", "key_pattern=ip+endpoint", "max_delay_ms=500", "version=1"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(done(home, &["rules", "delete", "logins"]), "rule=logins state=deleted version=3\n");
    let back = done(home, &["rules", "rollback", "1"]);
    assert_eq!(back, "version=4 created=1 updated=1 deleted=0 unchanged=0\n");
    let nobody = run(home, &["rules", "get", "nobody"]);
    assert_eq!(nobody.code, Some(4));
    assert!(nobody.stderr.contains("no rule `nobody`"), "{}", nobody.stderr);
}

/// Nothing is sent: there is no server at that address.
fn linted(name: &str, text: &str) -> Ran {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(name), text).expect("a file");
    Program::new(&["rules", "lint", name]).folder(folder.path()).run()
}

#[test]
fn every_fault_of_a_file_is_told_with_file_line_rule_and_field() {
    let text = YAML
        .replace("window: 1m}\n      -", "window: 1w}\n      -")
        .replace("[/login]", "[login]")
        .replace("    maxDelayMs: 500\n", "")
        .replace("methods:", "method:");
    let ran = linted("rules.yaml", &text);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    for told in [
        "wrong in 4 places",
        "rules.yaml:7: rules[0].limits[0].window: Rule \"free\": Is not an integer and ms, s, m, h or d",
        "rules.yaml:11: rules[1].endpoints[0]: Rule \"logins\": Is not a pattern",
        "rules.yaml:12: rules[1].method: Rule \"logins\": \"method\" is not a known field. Did you mean `methods`?",
        "rules.yaml:9: rules[1].maxDelayMs: Rule \"logins\": Is missing",
        "nothing was sent",
    ] {
        assert!(ran.stderr.contains(told), "{told}\n{}", ran.stderr);
    }
    let ran = linted(
        "rules.toml",
        &TOML.replace("window = 60000", "window = 1").replace("\"user\"", "\"moon\""),
    );
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("rules.toml:4: rules[0].scope: Rule \"free\""), "{}", ran.stderr);
    assert!(ran.stderr.contains("rules.toml:15: rules[1].limits[0].window"), "{}", ran.stderr);
    let ran = linted(
        "rules.json",
        "{\n  \"rules\": [\n    {\"name\": \"a\",\n     \"scope\": \"user\"}\n  ]\n}\n",
    );
    assert!(ran.stderr.contains("rules.json:3: rules[0].limits: Rule \"a\""), "{}", ran.stderr);
}

#[test]
fn a_file_that_cannot_be_read_is_told_with_its_line() {
    for (name, text, told) in [
        ("a.yaml", "rules:\n  - name: a\n   bad\n", "a.yaml:3: is not YAML"),
        ("a.toml", "[[rules]]\nname = \n", "a.toml:2: is not TOML"),
        ("a.json", "{\n\"rules\": [}\n", "a.json:2: is not JSON"),
        ("a.yaml", "rules: []\nrules: []\n", "a.yaml:2: the field \"rules\" stands here twice"),
        ("a.yaml", "- name: a\n", "a.yaml:1: file: Is a list."),
    ] {
        let ran = linted(name, text);
        assert_eq!(ran.code, Some(2), "{text}");
        assert!(ran.stderr.contains(told), "{told}\n{}", ran.stderr);
    }
    let missing = Program::new(&["rules", "lint", "/nowhere/rules.yaml"]).run();
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("cannot read /nowhere/rules.yaml"), "{}", missing.stderr);
    let large = linted("a.json", &" ".repeat((16 << 20) + 1));
    assert!(
        large.code == Some(2) && large.stderr.contains("larger than 16 MiB"),
        "{}",
        large.stderr
    );
}

#[test]
fn a_good_file_is_linted_without_a_server_and_its_notes_are_shown() {
    let text = "rules:\n  - {name: closed, scope: tenant, limits: [{limit: 0, window: 1m}]}\n";
    let ran = linted("rules.yml", text);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "rules=1 faults=0\n"));
    assert!(
        ran.stderr.contains("note:") && ran.stderr.contains("blocks every request"),
        "{}",
        ran.stderr
    );
    let piped = Program::new(&["rules", "lint", "-"]).stdin(text).run();
    assert_eq!(piped.code, Some(0), "{}", piped.stderr);
    let help = Program::new(&["rules", "--help"]).run();
    assert!(help.stdout.contains("tollkeeper rules apply rules.yaml --prune"), "{}", help.stdout);
}

#[test]
fn rules_are_listed_in_the_order_in_which_they_are_asked() {
    let world = World::new();
    let rule = |name: &str, priority: u64| {
        serde_json::json!({"name": name, "scope": "global", "priority": priority,
            "limits": [{"limit": 9, "window": "1h"}]})
    };
    // More than a page, the last of which is asked first.
    let many = (0..150).map(|number| rule(&format!("r{number:03}"), 1_000 - number));
    let rules: Vec<_> = many.chain([rule("b", 5), rule("a", 5)]).collect();
    world.client().data("rules.apply", &serde_json::json!({ "rules": rules }));
    let listed = json(&world, &["rules", "list"]);
    let names: Vec<_> = listed.iter().map(|rule| rule["name"].as_str().unwrap()).collect();
    assert_eq!((names.len(), &names[..3], names[151]), (152, &["a", "b", "r149"][..], "r000"));
    let printed = done(&world, &["rules", "list"]);
    let shown = printed.lines().map(|line| line.split(' ').next().unwrap());
    assert!(shown.eq(names.iter().map(|name| format!("name={name}"))), "{printed}");
}

#[test]
fn what_lint_finds_is_one_json_document_for_who_asks() {
    let folder = tempfile::tempdir().expect("a folder");
    let lint = |text: &str| {
        let file = folder.path().join("rules.yaml");
        fs::write(&file, text).expect("written");
        let ran = Program::new(&["rules", "lint", file.to_str().expect("UTF-8"), "--json"]).run();
        let told: Value = serde_json::from_str(&ran.stdout).expect("one document");
        (ran.code, told)
    };
    let (code, good) = lint(YAML);
    assert_eq!((code, &good["rules"], &good["tests"]), (Some(0), &2.into(), &0.into()));
    assert_eq!(good["faults"], serde_json::json!([]));
    let (code, bad) = lint(&YAML.replace("scope: user", "scope: usr").replace("1000", "-1"));
    let faults = bad["faults"].as_array().expect("a list");
    let lines: Vec<_> = faults.iter().map(|fault| (&fault["line"], &fault["place"])).collect();
    assert_eq!(code, Some(2), "{bad}");
    assert_eq!(lines[0], (&4.into(), &"rules[0].scope".into()), "{bad}");
    assert_eq!(lines[1], (&8.into(), &"rules[0].limits[1].limit".into()), "{bad}");
    assert!(faults.iter().all(|fault| fault["message"].is_string()), "{bad}");
    let (code, broken) = lint("rules: [");
    assert_eq!((code, broken["faults"].as_array().map(Vec::len)), (Some(2), Some(1)), "{broken}");
}
