//! The repository as the tidy rules see it: its files, its manifests, and the code in them without comments.
//! It finds and reads. It never judges.

use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Folders of what is built, downloaded, served from or git's own.
const NOT_OURS: &[&str] = &["target", ".git", "node_modules", "tollkeeper-data"];

/// Every file of ours, by its path from the root.
pub(super) fn tree() -> Vec<String> {
    let root = root();
    let mut found = Vec::new();
    let mut waiting = vec![root.clone()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let name = entry.file_name();
            let skipped = NOT_OURS.iter().any(|skip| name == *skip);
            match entry.file_type().unwrap() {
                kind if kind.is_dir() && !skipped => waiting.push(entry.path()),
                kind if kind.is_file() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    let from_root =
        |path: PathBuf| path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
    found.into_iter().map(from_root).collect()
}

pub(super) fn complaints(rule: impl Fn(&str, &str) -> Vec<String>) -> Vec<String> {
    let sources: Vec<_> = tree().into_iter().filter(|path| is_source(path)).collect();
    assert!(sources.len() > 9, "the walk finds the sources");
    let about = |path: &String| {
        rule(path, &read(path)).into_iter().map(|c| format!("{path} {c}")).collect::<Vec<_>>()
    };
    sources.iter().flat_map(about).collect()
}

pub(super) fn is_source(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "rs")
}

/// The lines without comments; rules about code must not forbid talking about it.
pub(super) fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code))
}

pub(super) fn has_word(line: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].ends_with(inside) && !line[at + word.len()..].starts_with(inside)
    })
}

/// The names of the folders under `crates/` that are crates.
pub(super) fn crates() -> Vec<String> {
    let entries = fs::read_dir(root().join("crates")).unwrap().map(Result::unwrap);
    let crates = entries.filter(|entry| entry.path().join("Cargo.toml").is_file());
    crates.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

pub(super) fn manifest(name: &str) -> Table {
    read(&format!("crates/{name}/Cargo.toml")).parse().unwrap()
}

/// The text of a file that must be there, by its path from the root.
pub(super) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Names under this heading, also where they hold for some targets only.
pub(super) fn dependencies(manifest: &Table, kind: &str) -> Vec<String> {
    let names = |of: Option<&Value>| {
        of.and_then(Value::as_table).map(|table| table.keys().cloned().collect())
    };
    let targets = manifest.get("target").and_then(Value::as_table);
    let per_target =
        targets.into_iter().flat_map(Table::values).map(|target| names(target.get(kind)));
    let all = per_target.chain([names(manifest.get(kind))]).flatten();
    all.collect::<Vec<Vec<String>>>().concat()
}

pub(super) fn ours(dependency: &str) -> Option<String> {
    dependency.strip_prefix("tollkeeper-").map(str::to_owned)
}
