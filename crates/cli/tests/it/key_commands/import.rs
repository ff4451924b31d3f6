//! `tollkeeper keys import`: nothing is sent unless all of it is good, and it can be run again.

use std::fmt::Write as _;

use super::{done, json, key, program, verify};
use crate::program::Program;
use crate::world::World;

/// Half of a hash.
const TOO_SHORT: &str = "f1a3d6b8c2f5a0c6ce9b0b9e8f5d7a1c";

fn file(world: &World, name: &str, content: &str) -> String {
    let path = world.data_dir().join(name);
    std::fs::write(&path, content).expect("writable");
    path.to_str().expect("UTF-8").to_owned()
}

/// Hashes that no key has.
fn hashes(count: usize) -> String {
    (0..count).fold(String::new(), |mut lines, at| {
        writeln!(lines, "{{\"hash\":\"{at:064x}\",\"name\":\"old {at}\"}}").expect("a String");
        lines
    })
}

#[test]
fn more_than_a_page_of_keys_is_imported_listed_and_known_the_second_time() {
    let world = World::new();
    key(&world, &[]);
    let path = file(&world, "keys.ndjson", &hashes(250));
    let ran = program(&world, &["keys", "import", "shop", &path]).run();
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "keys=250 imported=250 known_already=0 refused=0\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(done(&world, &["keys", "list", "shop"]).lines().count(), 251);
    assert_eq!(
        done(&world, &["keys", "import", "shop", &path]),
        "keys=250 imported=0 known_already=250 refused=0\n"
    );
    let stranger = format!("{{\"hash\":\"{:064x}\",\"roles\":[\"nobody\"]}}\n", 1_000);
    let path = file(&world, "roles.ndjson", &(hashes(2) + &stranger));
    let ran = program(&world, &["keys", "import", "shop", &path]).run();
    let said = (ran.code, ran.stdout.as_str());
    assert_eq!(said, (Some(4), "keys=3 imported=0 known_already=2 refused=1\n"));
    assert!(ran.stderr.contains("There is no role `nobody`."), "{}", ran.stderr);
}

#[test]
fn a_key_from_elsewhere_verifies_by_its_text() {
    let world = World::new();
    key(&world, &[]);
    let csv = "hash,name,externalId,permissions,credits\n2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae,\"Old, but good\",ann,a b,5\n";
    let rows = {
        let ran = program(&world, &["keys", "import", "shop", "-", "--format", "csv", "--json"])
            .stdin(csv)
            .run();
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout
    };
    assert!(rows.contains("keyId") && rows.lines().count() == 1, "{rows}");
    let ran = verify(&world, "foo", &["--permissions", "a AND b"]);
    assert!(ran.stdout.contains(r#"name="Old, but good" owner=ann credits=4"#), "{}", ran.stdout);
    assert_eq!(json(&world, &["keys", "list", "shop", "--owner", "ann"]).len(), 1);
}

#[test]
fn a_bad_line_stops_the_import_before_anything_is_sent() {
    let world = World::new();
    key(&world, &[]);
    let text = hashes(150) + &format!("{{\"hash\":\"{TOO_SHORT}\"}}\n{{\"nane\":1}}\n");
    let path = file(&world, "bad.ndjson", &text);
    let ran = program(&world, &["keys", "import", "shop", &path]).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    for said in ["line 151: body.hash", "line 152", "nane", "nothing was sent"] {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
    assert_eq!(done(&world, &["keys", "list", "shop"]).lines().count(), 1);
}

#[test]
fn a_dry_run_needs_no_server() {
    let ran = Program::new(&["keys", "import", "shop", "-", "--dry-run"]).stdin(&hashes(3)).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "keys=3 imported=0\n"), "{}", ran.stderr);
    let absent = Program::new(&["keys", "import", "shop", "/nowhere/keys.csv", "--dry-run"]).run();
    assert_eq!(absent.code, Some(2));
    assert!(absent.stderr.contains("/nowhere/keys.csv"), "{}", absent.stderr);
}
