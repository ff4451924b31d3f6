//! A journal that was damaged: the server starts, says so, keeps what is readable and puts the rest aside.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::time::{eventually, pause};
use crate::world::World;

/// Longer than the 100 ms within which everything is in the journal.
const WRITTEN: Duration = Duration::from_millis(200);

fn files(world: &World, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(world.data_dir().join("journal")).expect("a journal");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    files.retain(|path| path.extension().is_some_and(|found| found == ending));
    files.sort();
    files
}

/// Spends, kills, lets `damage` have the newest journal file, and starts again.
fn damaged(damage: impl FnOnce(&Path)) -> World {
    let mut world = World::new();
    let mut client = world.client();
    client.spend("old", "sliding_window", 5);
    pause(WRITTEN);
    client.spend("new", "sliding_window", 3);
    pause(WRITTEN);
    world.server.kill9().expect("it can be killed");
    damage(files(&world, "tkj").last().expect("a file"));
    world.start_again();
    world
}

/// What the server says and what it answers come through different pipes, so its words may be read later.
fn assert_warned(world: &World) {
    eventually("a warning", || world.server.stderr().contains("WARN"));
}

fn assert_set_aside(world: &mut World) {
    let aside = files(world, "corrupt");
    assert_eq!(aside.len(), 1, "{aside:?}");
    let named = aside[0].display().to_string();
    eventually("the file is named", || world.server.stderr().contains(&named));
    // Once is enough: the damage is out of the way.
    world.restart();
    assert!(!world.server.stderr().contains("WARN"), "{}", world.server.stderr());
    assert_eq!(files(world, "corrupt"), aside, "it is kept for a person to look at");
}

#[test]
fn garbage_behind_the_last_record_costs_no_counter() {
    let garbage = b"\xff\x00garbage that is no record".repeat(20);
    let append = |path: &Path| {
        let mut file = OpenOptions::new().append(true).open(path).expect("writable");
        file.write_all(&garbage).expect("written");
    };
    let mut world = damaged(append);
    let mut client = world.client();
    assert_eq!(client.used("old", "sliding_window"), 5);
    assert_eq!(client.used("new", "sliding_window"), 3);
    assert_set_aside(&mut world);
    assert_eq!(fs::read(&files(&world, "corrupt")[0]).expect("readable"), garbage);
    let mut client = world.client();
    assert_eq!(client.used("old", "sliding_window"), 5);
    assert_eq!(client.used("new", "sliding_window"), 3);
}

#[test]
fn a_torn_last_record_costs_no_more_than_itself() {
    let mut world = damaged(|path| {
        let file = OpenOptions::new().write(true).open(path).expect("writable");
        let length = file.metadata().expect("readable").len();
        file.set_len(length - 3).expect("cut");
    });
    let mut client = world.client();
    assert_eq!(client.used("old", "sliding_window"), 5);
    assert_eq!(client.used("new", "sliding_window"), 0);
    client.spend("new", "sliding_window", 2);
    assert_set_aside(&mut world);
    let mut client = world.client();
    assert_eq!(client.used("old", "sliding_window"), 5);
    assert_eq!(client.used("new", "sliding_window"), 2);
}

#[test]
fn a_file_that_is_no_journal_is_put_aside_whole() {
    let mut world = damaged(|path| fs::write(path, b"not a journal at all").expect("written"));
    assert_set_aside(&mut world);
    let mut client = world.client();
    client.spend("old", "sliding_window", 1);
    world.restart();
    assert_eq!(world.client().used("old", "sliding_window"), 1);
}

#[test]
fn a_flipped_bit_anywhere_never_keeps_the_server_from_starting() {
    for share in [0, 10, 30, 50, 70, 90, 99] {
        let world = damaged(|path| {
            let mut bytes = fs::read(path).expect("readable");
            let at = bytes.len() * share / 100;
            bytes[at] ^= 0x10;
            fs::write(path, bytes).expect("written");
        });
        let mut client = world.client();
        // A damaged record is left out; it never counts for more than was spent.
        assert!(
            client.used("old", "sliding_window") <= 5 && client.used("new", "sliding_window") <= 3
        );
        assert_warned(&world);
    }
}
