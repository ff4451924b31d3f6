//! PostgreSQL dies under load and stays away: usage waits where it was counted, and all of it is in the ledger once the
//! database is back. Without a restart, without an order, within bounded room.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::fleet::Fleet;
use super::{Books, Keys, now_ms};
use crate::time::{eventually, now, pause};

/// What a node may take on its disk while it waits: usage of a key and minute takes the same room however much it is.
const MORE_BYTES_MAX: u64 = 64 << 20;

fn away_for(how_long: Duration) {
    let mut fleet = Fleet::of(2, "0");
    let keys = Keys::make(&mut fleet.client(0), 20);
    let books = Books::default();
    let stop = AtomicBool::new(false);
    let (before, after) = thread::scope(|scope| {
        for caller in 0..4_usize {
            let (client, stop) = (fleet.client(caller % 2), &stop);
            let (books, keys) = (&books, &keys);
            scope.spawn(move || {
                books.drive(client, keys, caller * 1_000, &|| stop.load(Ordering::Relaxed));
            });
        }
        pause(Duration::from_secs(2));
        let before = bytes_of(&fleet);
        fleet.postgres.kill9();
        pause(how_long);
        stop.store(true, Ordering::Relaxed);
        (before, bytes_of(&fleet))
    });
    fleet.postgres.again().expect("the database comes back");
    let back = now();
    // Redis keeps a minute until it is over, whether or not there is a database.
    pause(Duration::from_millis(60_000 - now_ms() % 60_000));
    eventually("all of it is in the ledger", || books.are_in_the_ledger(&mut fleet.client(0)));
    #[allow(clippy::print_stdout, reason = "what it took is what the test is for")]
    {
        println!(
            "away for {how_long:?}: {before} bytes on the disks before, {after} after; all in the ledger {:.1?} after it was back",
            back.elapsed()
        );
    }
    assert!(after < before + MORE_BYTES_MAX, "{before} bytes became {after}");
    books.reconcile(&format!("fleet, database away for {how_long:?}"), &mut fleet.client(0));
    fleet.flush();
    books.reconcile("fleet, flushed again", &mut fleet.client(1));
}

#[test]
fn a_database_that_dies_under_load_and_stays_away_is_told_everything_when_it_is_back() {
    away_for(Duration::from_secs(4));
}

#[test]
#[ignore = "takes eleven minutes; make soak"]
fn a_database_that_is_away_for_ten_minutes_is_told_everything_when_it_is_back() {
    away_for(Duration::from_mins(10));
}

fn bytes_of(fleet: &Fleet) -> u64 {
    fleet.nodes.iter().map(|(_, folder)| bytes_below(folder.path())).sum()
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_below(&entry.path()),
        Ok(found) => found.len(),
        // Gone between the two looks.
        Err(_) => 0,
    });
    bytes.sum()
}
