//! What a run does where nothing goes wrong.

use serde_json::json;
use tollkeeper_archive::{Outcome, Step, archive, list};
use tollkeeper_core::Millis;

use crate::world::{JULY, World, month, requests, rows, sorted};

on_both! {
    whole_past_months_move_and_later_ones_stay,
    a_second_run_does_nothing,
    only_one_process_archives_at_a_time,
    every_column_of_the_table_is_archived,
    any_text_and_any_number_is_archived_as_it_was,
    nothing_to_archive_leaves_nothing_behind,
}

async fn whole_past_months_move_and_later_ones_stay(world: World) {
    let (may, june, july) = (month("202605"), month("202606"), month("202607"));
    for (month, count) in [(may, 9_000), (june, 20), (july, 30)] {
        world.put(&rows(month, count)).await;
    }
    let mut steps = Vec::new();
    let mut tell = |progress: tollkeeper_archive::Progress| {
        assert!(progress.rows <= progress.of, "{progress:?}");
        if steps.last() != Some(&(progress.month.0, progress.step)) {
            steps.push((progress.month.0, progress.step));
        }
    };
    let done = world.try_archive(&mut tell).await.unwrap();
    let counts: Vec<_> =
        done.iter().map(|one| (one.month.to_string(), one.rows, one.seal.rows)).collect();
    assert_eq!(counts, [("2026-05".to_owned(), 9_000, 9_000), ("2026-06".to_owned(), 20, 20)]);
    let all = [Step::Writing, Step::Checking, Step::Naming, Step::Dropping];
    let both = [may, june].into_iter().flat_map(|month| all.map(|step| (month, step)));
    assert_eq!(steps, both.collect::<Vec<_>>());
    for (month, count) in [(may, 9_000), (june, 20)] {
        assert_eq!(world.stored(month).await, []);
        assert_eq!(world.archived(month).await.len(), count);
        assert!(!world.unchecked(month).exists());
    }
    assert_eq!(world.stored(july).await.len(), 30);
    assert!(!world.object(july).exists());
    let listed = list(&world.place).await.unwrap().listed;
    assert_eq!(listed.iter().map(|one| one.seal).collect::<Vec<_>>(), [done[0].seal, done[1].seal]);
    assert_eq!(listed[0].bytes, std::fs::metadata(world.object(may)).unwrap().len());
}

async fn a_second_run_does_nothing(world: World) {
    let may = month("202605");
    world.put(&rows(may, 10)).await;
    assert_eq!(world.archive().await.len(), 1);
    let written = std::fs::metadata(world.object(may)).unwrap().modified().unwrap();
    assert_eq!(world.archive().await, []);
    assert_eq!(std::fs::metadata(world.object(may)).unwrap().modified().unwrap(), written);
}

async fn only_one_process_archives_at_a_time(world: World) {
    world.put(&rows(month("202605"), 10)).await;
    let held = world.store.lock_archive().await.unwrap().unwrap();
    let busy = archive(&world.store, &world.place, JULY, &mut |_| {}).await.unwrap();
    assert_eq!(busy, Outcome::Busy);
    assert_eq!(world.stored(month("202605")).await.len(), 10);
    drop(held);
    assert_eq!(world.archive().await.len(), 1);
}

/// A column that somebody adds to the table and not to the archive would be lost with its partition.
async fn every_column_of_the_table_is_archived(world: World) {
    let may = month("202605");
    let mut whole = rows(may, 2).pop().unwrap();
    whole.retry_after_ms = Some(1);
    world.put(std::slice::from_ref(&whole)).await;
    world.archive().await;
    let lines = world.archived(may).await;
    let line: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
    let archived = i64::try_from(line.as_object().unwrap().len()).unwrap();
    assert_eq!(archived, world.columns().await, "{line}");
}

async fn any_text_and_any_number_is_archived_as_it_was(world: World) {
    let may = month("202605");
    let mut odd: Vec<String> =
        ["", "null", "0", "[1,\"2\"]", "a\"b\\c/d", "\u{1}\u{1f}\u{7f}\r\n\t", "\\u0000"]
            .map(str::to_owned)
            .to_vec();
    odd.extend(["ä€😀\u{10ffff}\u{2028}\u{feff}".to_owned(), "long ".repeat(2_000)]);
    // PostgreSQL stores everything but this.
    if world.database.is_none() {
        odd.push("before\0after".to_owned());
    }
    let numbers = [0, -1, i64::MIN, i64::MAX, (1 << 53) + 1, -(1 << 53) - 1];
    let mut put = rows(may, u32::try_from(odd.len() * numbers.len()).unwrap());
    for (n, row) in put.iter_mut().enumerate() {
        let (text, number) = (&odd[n % odd.len()], numbers[n % numbers.len()]);
        row.request_id = format!("{text}{n}");
        (row.decision, row.node) = (text.clone(), text.clone());
        (row.path, row.rule) = (Some(text.clone()), Some(text.clone()).filter(|_| n % 2 == 0));
        (row.status, row.latency_us) = (number, number);
        (row.count, row.retry_after_ms) = (Some(number), Some(number).filter(|_| n % 2 == 1));
        row.degraded = n % 2 == 0;
    }
    world.put(&put).await;
    let put = sorted(put);
    assert_eq!(world.stored(may).await, put);
    // What an archive gives back is compared with what the database gave; so the one above is enough, but for the lines.
    assert_eq!(world.archive().await[0].rows, put.len() as u64);
    for (line, row) in world.archived(may).await.iter().zip(&put) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["requestId"], *row.request_id);
        assert_eq!((&line["path"], &line["latencyUs"]), (&json!(row.path), &json!(row.latency_us)));
    }
}

async fn nothing_to_archive_leaves_nothing_behind(world: World) {
    world.put(&rows(month("202605"), 10)).await;
    let long_before = Millis(month("202605").start().0);
    let done = archive(&world.store, &world.place, long_before, &mut |_| {}).await.unwrap();
    assert_eq!(done, Outcome::Done(Vec::new()));
    assert!(!world.object(month("202605")).exists());
    world.archive().await;
    assert_eq!(requests(&world.archived(month("202605")).await).len(), 10);
}
