//! PostgreSQL on a disk that is full, or that does not keep what it is given: it goes down, and what it had not committed is
//! told again when it is back.

use std::time::Duration;

use tollkeeper_testkit::{FaultyDisk, Postgres};

use super::fleet::Fleet;
use super::{Books, Keys};
use crate::time::{eventually, now, pause};

/// It starts anew by itself as long as it can, and else as a supervisor starts it.
fn bring_back(fleet: &mut Fleet) {
    const BY_ITSELF: Duration = Duration::from_secs(3);
    let begun = now();
    while fleet.sql("SELECT 1").is_err() {
        let ended = fleet.postgres.said().contains("database system is shut down");
        if ended || begun.elapsed() > BY_ITSELF {
            // In order: a part of it that outlives the rest would keep the next one out.
            fleet.postgres.stop();
            fleet.postgres.again().expect("the database comes back");
        }
        pause(Duration::from_millis(50));
    }
}

#[test]
fn a_database_that_goes_down_for_a_full_or_failing_disk_loses_no_usage_and_doubles_none() {
    let disk = FaultyDisk::new();
    let mut fleet = Fleet::on(Postgres::start_on(&disk).expect("a database server"), "0");
    fleet.join();
    let keys = Keys::make(&mut fleet.client(0), 20);
    let books = Books::default();
    fleet.callers().call_while(&books, &keys, || {
        pause(Duration::from_millis(500));
        disk.fill();
        // The next piece of its log finds no room.
        eventually("it goes down", || {
            let _ = fleet.sql("SELECT pg_switch_wal() FROM pg_logical_emit_message(TRUE, '', '')");
            let said = fleet.postgres.said();
            said.contains("PANIC") && said.contains("No space left on device")
        });
        pause(Duration::from_millis(300));
        disk.free();
        bring_back(&mut fleet);
    });
    fleet.callers().call_while(&books, &keys, || {
        pause(Duration::from_millis(500));
        disk.stop_keeping();
        eventually("it goes down", || {
            let _ = fleet.sql("CHECKPOINT");
            let said = fleet.postgres.said();
            said.contains("PANIC") && said.contains("Input/output error")
        });
        pause(Duration::from_millis(300));
        disk.keep_again();
        bring_back(&mut fleet);
    });
    fleet.flush();
    books.reconcile("a full disk, and one that fails", &mut fleet.client(0));
    fleet.assert_whole();
}
