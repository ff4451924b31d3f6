//! What a checked setting promises, and how every wrong one is reported.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;

use super::{Database, Mode, Settings};
use crate::settings::Problems;
use crate::settings::table::SETTINGS;

fn with(pairs: &[(&str, &str)]) -> Result<Settings, Problems> {
    let variable = |(key, text): &(&str, &str)| {
        (format!("TOLLKEEPER_{}", key.to_uppercase()), (*text).to_owned())
    };
    let env: Vec<_> = pairs.iter().map(variable).collect();
    Settings::load(&BTreeMap::new(), &env)
}

fn refused(pairs: &[(&str, &str)]) -> String {
    with(pairs).expect_err("must be refused").to_string()
}

#[test]
fn with_nothing_given_the_server_is_embedded_and_local() {
    let settings = with(&[]).unwrap();
    assert_eq!(settings.http_listen.to_string(), "127.0.0.1:7700");
    assert_eq!(settings.data_dir, Path::new("./tollkeeper-data"));
    let path = settings.data_dir.join("tollkeeper.db");
    assert!(matches!(settings.database, Database::Sqlite { path: at } if at == path));
    assert!(settings.root_key.is_none() && settings.secret.is_none() && settings.region.is_none());
    assert!(!settings.node.is_empty());
    assert_eq!(settings.mode, Mode::Memory);
    assert_eq!((settings.cache_fresh_ms, settings.cache_stale_ms), (10_000, 60_000));
    assert_eq!((settings.max_cells, settings.max_connections), (1_000_000, 10_000));
    assert_eq!(settings.admin_writes_per_second, 200);
    assert_eq!(settings.url, "http://127.0.0.1:7700");
    assert_eq!(settings.log, "info");
    assert!(settings.unbuilt_given.is_empty());
}

#[test]
fn every_setting_refuses_nonsense_and_says_what_it_expects() {
    // NUL can be in no value of any kind: not in a path, an address, a label or a number.
    for row in SETTINGS.iter().filter(|row| row.key != "config") {
        let problems = with(&[(row.key, "\0")]).expect_err(row.key);
        let found: Vec<_> = problems.iter().filter(|problem| problem.name == row.key).collect();
        assert_eq!(found.len(), 1, "{problems}");
        assert_eq!(found[0].expected, row.expects);
        assert_eq!(found[0].origin, format!("environment {}", row.env()));
    }
}

#[test]
fn an_empty_value_is_a_mistake_and_not_a_wish_for_the_default() {
    for row in SETTINGS.iter().filter(|row| row.key != "config") {
        assert!(with(&[(row.key, "")]).is_err(), "{}", row.key);
    }
}

#[test]
fn all_problems_are_reported_at_once_names_and_values_alike() {
    let problems = with(&[
        ("http_listen", "localhost"),
        ("max_cells", "15"),
        ("secret", "short"),
        ("audit_sample", "NaN"),
        ("max_cell", "5"),
        ("cache_stale_seconds", "5"),
    ])
    .expect_err("six are wrong");
    assert_eq!(problems.iter().count(), 6, "{problems}");
    let printed = problems.to_string();
    assert!(printed.starts_with("6 settings are wrong:\n"), "{printed}");
    assert!(printed.contains("found \"localhost\"; expected an IP address and port"), "{printed}");
    assert!(printed.contains("found 5, below cache_fresh_seconds (10); expected at least 10"));
}

#[test]
fn a_wrong_secret_is_described_and_never_shown() {
    let printed = refused(&[
        ("root_key", "horse"),
        ("secret", "battery"),
        ("redis_url", "reddis://me:staple@h"),
        ("database_url", "postgres://me:staple@h/db"),
    ]);
    for hidden in ["horse", "battery", "staple"] {
        assert!(!printed.contains(hidden), "{printed}");
    }
    assert!(printed.contains("found 5 characters (not shown); expected 16 to 512"), "{printed}");
}

#[test]
fn checked_settings_print_without_their_secrets() {
    let given =
        [("root_key", "correct horse battery"), ("secret", "staple-staple-staple-staple-staple")];
    let settings = with(&given).unwrap();
    let printed = format!("{settings:?}");
    assert!(!printed.contains("horse") && !printed.contains("staple"), "{printed}");
    assert_eq!(settings.root_key.unwrap().expose(), "correct horse battery");
}

#[test]
fn a_root_key_is_16_to_512_printable_characters() {
    let (shortest, longest) = ("a".repeat(16), "~".repeat(512));
    for good in [&shortest, &longest] {
        assert!(with(&[("root_key", good)]).is_ok());
    }
    let too_long = "a".repeat(513);
    let bad = [
        "fifteen letters",
        &too_long,
        "sixteen letters\t!",
        "sixteen letters é",
        " sixteen letters ",
    ];
    for bad in bad {
        assert!(with(&[("root_key", bad)]).is_err(), "{bad:?}");
    }
}

#[test]
fn numbers_are_accepted_up_to_their_bounds_and_not_beyond() {
    for (key, least, most) in [
        ("max_cells", 16, 100_000_000),
        ("max_connections", 16, 1_000_000),
        ("admin_writes_per_second", 1, 1_000_000),
        ("cache_stale_seconds", 10, 3_600),
        ("flush_seconds", 1, 86_400),
        ("audit_days", 1, 36_500),
    ] {
        for good in [least, most] {
            assert!(with(&[(key, &good.to_string())]).is_ok(), "{key} {good}");
        }
        for bad in [least - 1, most + 1] {
            assert!(with(&[(key, &bad.to_string())]).is_err(), "{key} {bad}");
        }
    }
    for bad in ["1e3", "+16", "-1", "16.0", " 16", "99999999999999999999999"] {
        assert!(with(&[("max_cells", bad)]).is_err(), "{bad}");
    }
}

#[test]
fn of_two_that_contradict_each_other_the_given_one_is_named() {
    let printed = refused(&[("cache_fresh_seconds", "61")]);
    assert!(printed.contains("TOLLKEEPER_CACHE_FRESH_SECONDS"), "{printed}");
    assert!(printed.contains("found 61, above cache_stale_seconds (60)"), "{printed}");
}

#[test]
fn postgres_needs_a_secret_that_all_its_nodes_share() {
    for address in ["postgres://h/db", "postgresql://h/db"] {
        let printed = refused(&[("database_url", address)]);
        assert!(
            printed.contains("secret (default): found nothing; expected at least 32"),
            "{printed}"
        );
        let secret = ("secret", "a secret of at least 32 characters");
        let settings = with(&[("database_url", address), secret]).unwrap();
        assert!(matches!(settings.database, Database::Postgres { replica: None, .. }));
    }
}

#[test]
fn sqlite_addresses_name_a_file_that_outlives_the_process() {
    for address in ["sqlite:/var/t.db", "sqlite:///var/t.db"] {
        let settings = with(&[("database_url", address)]).unwrap();
        let file = Path::new("/var/t.db");
        assert!(matches!(settings.database, Database::Sqlite { path } if path == file));
    }
    for address in ["sqlite::memory:", "sqlite:", "sqlite://", "sqlite:a?mode=memory", "/var/t.db"]
    {
        assert!(with(&[("database_url", address)]).is_err(), "{address}");
    }
}

#[test]
fn what_is_given_but_not_built_is_accepted_and_named() {
    let settings = with(&[
        ("redis_url", "redis-cluster://a,b"),
        ("mode", "shadow"),
        ("resp_listen", "off"),
        ("rollback", "off"),
        ("webhook_allow", "10.0.0.0/8, fd00::/8"),
        ("region", "eu-1"),
    ])
    .unwrap();
    assert_eq!(settings.unbuilt_given, ["webhook_allow"]);
    assert_eq!(settings.mode, Mode::Shadow);
    assert_eq!(settings.region.as_deref(), Some("eu-1"));
}

#[test]
fn the_way_back_to_memory_is_off_unless_somebody_asks_for_it() {
    assert!(!with(&[]).unwrap().rollback);
    assert!(with(&[("rollback", "on")]).unwrap().rollback);
    assert!(with(&[("rollback", "maybe")]).is_err());
}

#[test]
fn log_takes_levels_alone_or_for_a_target() {
    for good in ["off", "debug", "warn,tollkeeper_server=debug", "info,hyper::proto=off"] {
        assert_eq!(with(&[("log", good)]).unwrap().log, good);
    }
    for bad in ["loud", "info,", "=debug", "tollkeeper=loud"] {
        assert!(with(&[("log", bad)]).is_err(), "{bad}");
    }
}

#[test]
fn the_commands_address_needs_a_scheme_and_a_host() {
    assert_eq!(with(&[("url", "https://toll.example/")]).unwrap().url, "https://toll.example");
    for bad in ["127.0.0.1:7700", "http://", "http:///v2", "ftp://h", "http://h h"] {
        assert!(with(&[("url", bad)]).is_err(), "{bad}");
    }
}
