//! Where values come from, and what is said about names nobody knows.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;

use super::{Origin, Raw};
use crate::settings::file::DEFAULT_PATH;
use crate::settings::table::{Preset, SETTINGS, setting};

fn flags(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
}

fn env(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    flags(pairs).into_iter().collect()
}

fn file(folder: &tempfile::TempDir, text: &str) -> String {
    let path = folder.path().join("settings.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn refused(given: &[(&str, &str)], variables: &[(&str, &str)]) -> String {
    Raw::gather(&flags(given), &env(variables)).expect_err("must be refused").to_string()
}

#[test]
fn a_flag_beats_the_environment_beats_the_file_beats_the_default() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "max_cells = 1\nnode = 'file'\nregion = 'file'\n");
    let raw = Raw::gather(
        &flags(&[("config", &path), ("node", "flag")]),
        &env(&[("TOLLKEEPER_NODE", "env"), ("TOLLKEEPER_REGION", "env")]),
    )
    .unwrap();
    assert_eq!(raw.text("node"), Some("flag"));
    assert_eq!(raw.text("region"), Some("env"));
    assert_eq!(raw.text("max_cells"), Some("1"));
    assert_eq!(raw.text("max_connections"), Some("10000"));
    assert_eq!(raw.origin("node").to_string(), "flag --node");
    assert_eq!(raw.origin("region").to_string(), "environment TOLLKEEPER_REGION");
    assert_eq!(raw.origin("max_cells").to_string(), format!("file {path}: max_cells"));
    assert_eq!(*raw.origin("max_connections"), Origin::Default);
}

#[test]
fn with_nothing_given_every_value_is_the_one_in_the_table() {
    let raw = Raw::gather(&flags(&[]), &[]).unwrap();
    for row in SETTINGS {
        let expected = match row.default {
            Preset::Value(text) => Some(text),
            Preset::Unset(_) => None,
        };
        assert_eq!(raw.text(row.key), expected, "{}", row.key);
        assert!(!raw.is_given(row.key), "{}", row.key);
    }
    assert_eq!(raw.text("config"), Some(DEFAULT_PATH));
}

#[test]
fn the_file_takes_text_whole_numbers_fractions_and_switches() {
    let folder = tempfile::tempdir().unwrap();
    let path =
        file(&folder, "log = 'warn'\nmax_cells = 5_000\naudit_sample = 0.5\nrollback = true\n");
    let raw = Raw::gather(&flags(&[]), &env(&[("TOLLKEEPER_CONFIG", &path)])).unwrap();
    let texts = ["log", "max_cells", "audit_sample", "rollback"].map(|key| raw.text(key).unwrap());
    assert_eq!(texts, ["warn", "5000", "0.5", "true"]);
}

#[test]
fn a_misspelt_variable_is_refused_with_the_nearest_name() {
    let printed = refused(&[], &[("TOLLKEEPER_HTTP_LISTN", "x"), ("TOLLKEEPER_ZZZZZZ", "x")]);
    assert!(printed.contains("did you mean TOLLKEEPER_HTTP_LISTEN?"), "{printed}");
    assert!(printed.contains("TOLLKEEPER_ZZZZZZ (environment): found an unknown"), "{printed}");
    assert!(printed.contains("serve --help"), "{printed}");
}

#[test]
fn a_misspelt_key_in_the_file_is_refused_with_the_nearest_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "max_cell = 5\n[http]\nlisten = 1\n");
    let printed = refused(&[("config", &path)], &[]);
    assert!(printed.contains("did you mean max_cells?"), "{printed}");
    assert!(printed.contains(": http)"), "{printed}");
}

#[test]
fn a_list_where_one_value_belongs_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "webhook_allow = ['10.0.0.0/8']\n");
    let printed = refused(&[("config", &path)], &[]);
    assert!(
        printed.contains("found a TOML array; expected CIDRs separated by commas"),
        "{printed}"
    );
}

#[test]
fn a_named_file_must_exist_and_must_not_name_another() {
    let printed = refused(&[("config", "/nowhere/at/all.toml")], &[]);
    assert!(
        printed.contains("(flag --config): found no file at /nowhere/at/all.toml"),
        "{printed}"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "config = 'other.toml'\n");
    let printed = refused(&[("config", &path)], &[]);
    assert!(printed.contains("expected --config or TOLLKEEPER_CONFIG"), "{printed}");
    let printed = refused(&[("config", folder.path().to_str().unwrap())], &[]);
    assert!(printed.contains("cannot be read"), "{printed}");
}

#[test]
fn a_file_with_a_broken_line_is_named_by_line_and_never_quoted() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "node = 'a'\nsecret = \"correct horse battery staple\n");
    let printed = refused(&[("config", &path)], &[]);
    assert!(printed.contains(": line 2): found broken TOML"), "{printed}");
    assert!(!printed.contains("horse"), "{printed}");
}

#[test]
fn a_secret_on_the_command_line_is_refused_and_not_repeated() {
    let printed = refused(&[("root_key", "correct-horse-battery")], &[]);
    assert!(printed.contains("expected TOLLKEEPER_ROOT_KEY in the environment"), "{printed}");
    assert!(!printed.contains("horse"), "{printed}");
}

#[test]
fn nothing_printable_of_the_raw_settings_holds_a_secret() {
    let variables = [
        ("TOLLKEEPER_ROOT_KEY", "correct-horse-battery"),
        ("TOLLKEEPER_REDIS_URL", "redis://me:horse@db"),
    ];
    let raw = Raw::gather(&flags(&[]), &env(&variables)).unwrap();
    let rows = ["root_key", "redis_url"].map(|key| raw.shown(setting(key).unwrap()));
    let printed = format!("{raw:?} {rows:?}");
    assert!(!printed.contains("horse"), "{printed}");
}

#[test]
fn variables_that_kubernetes_adds_for_a_service_of_our_name_are_let_pass() {
    let injected = [
        ("TOLLKEEPER_SERVICE_HOST", "10.0.0.1"),
        ("TOLLKEEPER_SERVICE_PORT", "7700"),
        ("TOLLKEEPER_SERVICE_PORT_HTTP", "7700"),
        ("TOLLKEEPER_PORT", "tcp://10.0.0.1:7700"),
        ("TOLLKEEPER_PORT_7700_TCP_ADDR", "10.0.0.1"),
        ("TOLLKEEPER_REDIS_PORT_6379_TCP", "tcp://10.0.0.2:6379"),
    ];
    assert!(Raw::gather(&flags(&[]), &env(&injected)).is_ok());
    assert!(refused(&[], &[("TOLLKEEPER_PORT", "7700")]).contains("TOLLKEEPER_PORT"));
}

#[test]
fn the_path_of_the_file_is_known_in_one_spelling() {
    let row = setting("config").unwrap();
    assert_eq!(row.default.to_string(), DEFAULT_PATH);
    assert!(!Path::new(DEFAULT_PATH).is_absolute());
}
