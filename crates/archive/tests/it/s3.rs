//! The same in a bucket.

use tollkeeper_archive::{ArchiveError, Place, list};
use tollkeeper_testkit::{BUCKET, S3Server};

use crate::readers::{Reader, read_with};
use crate::world::{World, month, requests, rows};

on_both! {
    months_move_into_a_bucket_and_come_back,
}

async fn months_move_into_a_bucket_and_come_back(mut world: World) {
    let server = S3Server::start().unwrap();
    let text = format!("s3://{BUCKET}/tollkeeper/eu");
    world.place = Place::open(&text, &server.env()).unwrap();
    let may = month("202605");
    let all = rows(may, 9_000);
    let (early, late) = all.split_at(8_500);
    for part in [early, late] {
        world.put(part).await;
        let done = world.archive().await;
        assert_eq!(done[0].rows, part.len() as u64);
        assert_eq!(done[0].object, format!("{text}/2026/05/decision_audit.parquet"));
        assert_eq!(world.stored(may).await, []);
    }
    assert_eq!(world.archive().await, []);
    assert_eq!(requests(&world.archived(may).await).len(), 9_000);
    let listed = list(&world.place).await.unwrap().listed;
    assert_eq!((listed.len(), listed[0].seal.rows), (1, 9_000));
    let object = server.get("tollkeeper/eu/2026/05/decision_audit.parquet").unwrap();
    assert_eq!(object.body.len() as u64, listed[0].bytes);
    let left = server.get("tollkeeper/eu/2026/05/_decision_audit.parquet.unchecked").unwrap();
    assert_eq!(left.status, 404);
    let copy = world.folder.path().join("copy.parquet");
    std::fs::write(&copy, object.body).unwrap();
    read_with(Reader::Pyarrow, &copy, all);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_is_not_there_is_told_and_nothing_is_dropped() {
    let mut world = World::on_sqlite().await;
    let server = S3Server::start().unwrap();
    world.place = Place::open("s3://elsewhere/a", &server.env()).unwrap();
    let may = month("202605");
    world.put(&rows(may, 10)).await;
    let told = world.try_archive(&mut |_| {}).await.unwrap_err();
    let ours = matches!(told, ArchiveError::Unusable { .. } | ArchiveError::Unreadable { .. });
    assert!(ours, "{told:?}");
    assert_eq!(world.stored(may).await.len(), 10);
}
