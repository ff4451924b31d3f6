//! The rules of this repository that no compiler checks: headers, sizes, directions, and paths that documents name.
//! It reads the tree and complains with file and reason. It never changes a file.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "tidy/tree.rs"]
mod tree;

use toml::Table;

use tree::{
    code, complaints, crates, dependencies, has_word, is_source, manifest, ours, read, tree,
};

/// Who may import whom. Data flows from left to right in ARCHITECTURE.md, so imports point from right to left.
const ALLOWED: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("wire", &[]),
    ("testkit", &["core", "decide"]),
    ("decide", &["core"]),
    ("account", &["core", "decide"]),
    ("store", &["core", "decide"]),
    ("redis", &["core", "decide"]),
    ("archive", &["core", "store"]),
    ("client", &["wire"]),
    ("server", &["core", "decide", "account", "store", "redis", "archive", "wire"]),
    ("cli", &["core", "store", "archive", "server", "client", "wire"]),
];

/// Files that may hold unsafe code, each with its reason beside it.
const UNSAFE_ALLOWED: &[&str] = &[
    // Maps files into memory, so that usage survives the process; docs/adr/011-usage-in-mapped-pages.md.
    "crates/account/src/journal/mapped.rs",
    // One call of the kernel that nobody wraps; docs/adr/017-who-answers-takes-short-turns.md.
    "crates/server/src/net/turns.rs",
    // A hint to the processor's cache; docs/adr/018-a-cell-is-fetched-while-its-lock-is-taken.md.
    "crates/decide/src/whereabouts.rs",
    // The processor's instructions for AES; docs/adr/030-a-check-is-short-enough-to-see-the-next.md.
    "crates/decide/src/keyed/native.rs",
];

/// Beyond this a file holds more than one noun.
const LINES_MAX: usize = 500;

/// Folders whose paths documents must get right.
const NAMED_FOLDERS: &[&str] =
    &["crates/", "benches/", "docs/", "web/", "deploy/", "scripts/", ".ci/", ".config/"];

#[test]
fn every_source_file_opens_by_saying_what_it_is_for() {
    assert_tidy(&complaints(|_, text| header(text)));
}

#[test]
fn no_source_file_outgrows_its_noun() {
    assert_tidy(&complaints(size));
}

#[test]
fn nothing_is_left_unfinished() {
    assert_tidy(&complaints(|_, text| unfinished(text)));
}

#[test]
fn unsafe_code_is_only_where_it_is_allowed() {
    assert_tidy(&complaints(|path, text| memory_unsafe(path, text, UNSAFE_ALLOWED)));
}

#[test]
fn core_knows_no_time_no_tasks_and_no_wire() {
    assert_tidy(&complaints(|path, text| {
        if path.starts_with("crates/core/src/") { impure(text) } else { Vec::new() }
    }));
    let manifest = manifest("core");
    assert!(dependencies(&manifest, "dependencies").is_empty(), "core depends on nobody");
    let ours =
        dependencies(&manifest, "dev-dependencies").into_iter().filter_map(|name| ours(&name));
    assert_eq!(ours.count(), 0, "core is tested alone");
}

#[test]
fn only_the_ledger_opens_a_decision() {
    assert_tidy(&complaints(|path, text| {
        let ledger = path == "crates/account/src/ledger.rs" || path.contains("/tests/");
        let opened = !ledger && path.starts_with("crates/") && text.contains("decided.open()");
        opened.then(|| "opens a decision without recording it".to_owned()).into_iter().collect()
    }));
}

#[test]
fn no_crate_imports_against_the_stream() {
    let crates = crates();
    assert!(crates.len() > 1, "the walk finds the crates");
    let against = crates.iter().flat_map(|name| wrong_edges(name, &manifest(name)));
    assert_tidy(&against.collect::<Vec<_>>());
}

#[test]
fn every_path_that_the_architecture_names_exists() {
    let text = read("ARCHITECTURE.md");
    let tree = tree();
    assert!(named_paths(&text).next().is_some(), "ARCHITECTURE.md names no path at all");
    let missing = named_paths(&text).filter(|named| !exists(named, &tree));
    let complaint = |named| format!("ARCHITECTURE.md names {named}, which is not there");
    assert_tidy(&missing.map(complaint).collect::<Vec<_>>());
}

#[test]
fn each_rule_catches_what_it_is_about() {
    assert_eq!(header("use std::fmt;\n//! Late.").len(), 1);
    assert_eq!(header("//!\n").len(), 1);
    assert_eq!(size("crates/x/src/a.rs", &"\n".repeat(LINES_MAX + 1)).len(), 1);
    assert_eq!(unfinished(&format!("fn f() {{ {}) }}", UNFINISHED[0])).len(), 1);
    let code = format!("{UNSAFE_WORD} {{ }} // why");
    assert_eq!(memory_unsafe("a.rs", &code, &[]).len(), 1);
    assert!(memory_unsafe("a.rs", &code, &["a.rs"]).is_empty());
    assert_eq!(impure("use std::time::Duration;\nasync fn f() {}").len(), 2);
    assert!(impure("// no async here\nlet asynchrony = 1; // tokio").is_empty());
    let backwards: Table =
        "[target.'cfg(unix)'.dependencies]\ntollkeeper-server.workspace = true".parse().unwrap();
    assert_eq!(wrong_edges("decide", &backwards).len(), 1);
    assert_eq!(wrong_edges("newcomer", &Table::new()).len(), 1);
    let named: Vec<_> =
        named_paths("`crates/a/src/b.rs`, `x.rs`, `POST /v2/x`, `a::b`, `docs/`").collect();
    assert_eq!(named, ["crates/a/src/b.rs", "x.rs", "docs/"]);
    let tree = ["crates/a/src/b.rs".to_owned()];
    assert!(exists("crates/a/", &tree) && exists("src/b.rs", &tree) && exists("b.rs", &tree));
    assert!(
        !exists("crates/b", &tree) && !exists("rc/b.rs", &tree) && !exists("crates/a/s", &tree)
    );
}

fn assert_tidy(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n  {}\n", complaints.join("\n  "));
}

// === rules: text in, complaints out ===

/// Put together at compile time, so that this file does not trip over itself.
const UNFINISHED: &[&str] = &[
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("FIX", "ME"),
    concat!("dbg", "!("),
];
const UNSAFE_WORD: &str = concat!("un", "safe");

fn header(text: &str) -> Vec<String> {
    let first = text.lines().next().unwrap_or_default();
    let says = first.strip_prefix("//!").is_some_and(|words| !words.trim().is_empty());
    if says { Vec::new() } else { vec!["does not open with `//!` and what it is for".into()] }
}

fn size(path: &str, text: &str) -> Vec<String> {
    let lines = text.lines().count();
    let fits = lines <= LINES_MAX || !path.contains("/src/");
    if fits { Vec::new() } else { vec![format!("has {lines} lines, more than {LINES_MAX}")] }
}

fn unfinished(text: &str) -> Vec<String> {
    UNFINISHED
        .iter()
        .filter(|word| text.contains(**word))
        .map(|word| format!("contains {word}"))
        .collect()
}

fn memory_unsafe(path: &str, text: &str, allowed: &[&str]) -> Vec<String> {
    let found = !allowed.contains(&path) && code(text).any(|line| has_word(line, UNSAFE_WORD));
    if found { vec!["leaves safe Rust and is not in UNSAFE_ALLOWED".into()] } else { Vec::new() }
}

fn impure(text: &str) -> Vec<String> {
    let words = ["std::time", "async", "tokio", "serde"];
    let used = words.iter().filter(|word| code(text).any(|line| has_word(line, word)));
    used.map(|word| format!("mentions {word}")).collect()
}

fn wrong_edges(name: &str, manifest: &Table) -> Vec<String> {
    let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
        return vec![format!("crates/{name} has no row in ALLOWED")];
    };
    let edges =
        ["dependencies", "build-dependencies"].map(|kind| dependencies(manifest, kind)).concat();
    let edges = edges.iter().filter_map(|edge| ours(edge));
    let wrong = edges.filter(|edge| !allowed.contains(&edge.as_str()));
    wrong.map(|edge| format!("crates/{name} imports {edge} against the stream")).collect()
}

/// What stands in backticks and looks like a path of this repository.
fn named_paths(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|word| {
        let bare = !word.contains(|c: char| c.is_whitespace() || c == '*');
        bare && (is_source(word) || NAMED_FOLDERS.iter().any(|folder| word.starts_with(folder)))
    })
}

/// A path counts from the root or, as in `account/src/journal.rs`, from any folder; a folder by what is in it.
fn exists(named: &str, tree: &[String]) -> bool {
    let named = named.trim_end_matches('/');
    let below = |path: &str| path.strip_prefix(named).is_some_and(|rest| rest.starts_with('/'));
    let tail = |path: &str| {
        path.strip_suffix(named).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    tree.iter().any(|path| below(path) || tail(path))
}
