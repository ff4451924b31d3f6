//! The chain of admin changes: whole while nobody meddles, and broken for every way of meddling, on both databases.

use std::collections::BTreeSet;

use tollkeeper_core::Millis;
use tollkeeper_store::{
    By, ChainReport, ChainTrouble, ChangeFilter, Fault, NewPermission, NewProject, SealKey, Store,
    StoreError,
};

use crate::{Fresh, Home, NOW, new_root_key};

on_both!(
    every_change_is_a_link_and_the_whole_chain_holds,
    every_meddling_with_a_row_is_found,
    every_row_that_goes_or_comes_is_found,
    an_end_set_back_with_its_tail_is_found_by_its_seal,
    a_chain_sealed_by_another_secret_is_not_trusted,
    a_lost_end_does_not_stop_changes_and_stays_visible,
    a_chain_that_is_taken_away_whole_is_found_also_after_the_next_change,
    rows_from_before_the_chain_are_covered_by_its_first_link,
    a_hundred_changes_at_once_make_one_unbroken_chain,
    a_row_is_neither_changed_nor_deleted_nor_added_unchained,
    a_change_that_fails_leaves_no_link,
    one_tenants_chain_says_nothing_of_anothers,
    changes_are_listed_newest_first_and_page_by_page,
);

const SECRET: [u8; 32] = [7; 32];

/// Keeps the promises of the table off, as somebody with the database in hand can.
async fn meddle(fresh: &Fresh, statements: &[&str]) {
    match &fresh.home {
        Home::Folder(_) => {
            let mut beside = fresh.beside().await;
            for name in ["changed", "deleted"] {
                let off = format!("DROP TRIGGER IF EXISTS admin_audit_is_not_{name}");
                sqlx::query(sqlx::AssertSqlSafe(off)).execute(&mut beside).await.unwrap();
            }
            let off = "DROP TRIGGER IF EXISTS admin_audit_is_chained";
            sqlx::query(off).execute(&mut beside).await.unwrap();
            for statement in statements {
                let statement = sqlx::AssertSqlSafe((*statement).to_owned());
                sqlx::query(statement).execute(&mut beside).await.unwrap();
            }
        }
        Home::Server(database) => {
            use sqlx::Connection;
            let mut beside = sqlx::PgConnection::connect(&database.url).await.unwrap();
            let off = "SET session_replication_role = replica";
            sqlx::query(off).execute(&mut beside).await.unwrap();
            for statement in statements {
                let statement = sqlx::AssertSqlSafe((*statement).to_owned());
                sqlx::query(statement).execute(&mut beside).await.unwrap();
            }
        }
    }
}

/// Eight more links, and a store that seals what it writes.
async fn chained(fresh: &mut Fresh) -> Store {
    fresh.store = fresh.another().await.sealing(SealKey::new(&SECRET).unwrap());
    for number in 0..8 {
        fresh.project(&format!("p{number}")).await;
    }
    fresh.store.clone()
}

async fn report(fresh: &Fresh) -> ChainReport {
    fresh.store.verify_changes(&fresh.tenant_id).await.unwrap()
}

async fn first_bad(fresh: &Fresh) -> Option<(u64, ChainTrouble)> {
    report(fresh).await.first_bad.map(|bad| (bad.position, bad.trouble))
}

async fn every_change_is_a_link_and_the_whole_chain_holds(mut fresh: Fresh) {
    chained(&mut fresh).await;
    let whole = report(&fresh).await;
    // The bootstrap is the first.
    assert_eq!((whole.rows, whole.first_bad), (9, None));
    assert_eq!(whole.head.unwrap().0, 9);
    fresh.project("one more").await;
    assert_eq!(report(&fresh).await.rows, 10);
    // Who has no secret can still verify the rows.
    let another = fresh.another().await;
    assert_eq!(another.verify_changes(&fresh.tenant_id).await.unwrap().first_bad, None);
}

async fn every_meddling_with_a_row_is_found(mut fresh: Fresh) {
    use ChainTrouble::{Changed, Missing, OutOfPlace};
    chained(&mut fresh).await;
    let flips = [
        ("at = at + 1", (4, Changed)),
        ("root_key_id = NULL", (4, Changed)),
        ("root_key_id = 'rk_somebody'", (4, Changed)),
        ("action = 'projects.delete'", (4, Changed)),
        ("target = 'api_other'", (4, Changed)),
        ("before = '{}'", (4, Changed)),
        ("after = NULL", (4, Changed)),
        ("after = after || ' '", (4, Changed)),
        ("hash = (SELECT hash FROM admin_audit WHERE position = 3)", (4, Changed)),
        ("tenant_id = 'ws_other'", (4, Missing)),
        ("position = 12", (4, Missing)),
        ("position = 3", (4, OutOfPlace)),
        ("position = -4", (1, OutOfPlace)),
        ("position = NULL", (1, Changed)),
        ("position = NULL, hash = NULL", (1, Changed)),
        // Two rows that change places: what they say, and where they stand.
        ("target = 'swapped'", (4, Changed)),
    ];
    let copy = "CREATE TABLE untouched AS SELECT * FROM admin_audit";
    meddle(&fresh, &[copy]).await;
    for (flip, expected) in flips {
        let statement = format!("UPDATE admin_audit SET {flip} WHERE position = 4");
        meddle(&fresh, &[&statement]).await;
        assert_eq!(first_bad(&fresh).await, Some(expected), "{flip}");
        restore(&fresh).await;
        assert_eq!(first_bad(&fresh).await, None, "{flip}, mended");
    }
    let reorder = [
        "UPDATE admin_audit SET position = 100 WHERE position = 4",
        "UPDATE admin_audit SET position = 4 WHERE position = 5",
        "UPDATE admin_audit SET position = 5 WHERE position = 100",
    ];
    meddle(&fresh, &reorder).await;
    assert_eq!(first_bad(&fresh).await, Some((4, Changed)));
}

async fn every_row_that_goes_or_comes_is_found(mut fresh: Fresh) {
    use ChainTrouble::{Changed, End, Missing, OutOfPlace, Seal};
    chained(&mut fresh).await;
    let columns = "at, tenant_id, root_key_id, action, target, before, after, position, hash";
    let again = |position: &str, from: u64| {
        format!(
            "INSERT INTO admin_audit ({columns}) SELECT at, tenant_id, root_key_id, action, target,
                before, after, {position}, hash FROM admin_audit WHERE position = {from}"
        )
    };
    let heads = "DELETE FROM admin_audit_heads".to_owned();
    let all = "DELETE FROM admin_audit WHERE position".to_owned();
    let cases = [
        (vec![format!("{all} = 1")], (1, Missing)),
        (vec![format!("{all} = 5")], (5, Missing)),
        (vec![format!("{all} = 9")], (9, Missing)),
        (vec![format!("{all} > 6")], (7, Missing)),
        (vec![format!("{all} > 0")], (1, Missing)),
        (vec![again("10", 9)], (10, OutOfPlace)),
        (vec![again("4", 4)], (5, OutOfPlace)),
        (vec![again("NULL", 4)], (1, Changed)),
        (vec![heads], (9, End)),
        (vec!["UPDATE admin_audit_heads SET position = 8".to_owned()], (9, OutOfPlace)),
        (vec!["UPDATE admin_audit_heads SET position = 10".to_owned()], (10, Missing)),
        (vec!["UPDATE admin_audit_heads SET hash = seal".to_owned()], (9, End)),
        (vec!["UPDATE admin_audit_heads SET seal = NULL".to_owned()], (9, Seal)),
    ];
    let copies = [
        "CREATE TABLE untouched AS SELECT * FROM admin_audit",
        "CREATE TABLE untouched_heads AS SELECT * FROM admin_audit_heads",
    ];
    meddle(&fresh, &copies).await;
    for (statements, expected) in cases {
        meddle(&fresh, &statements.iter().map(String::as_str).collect::<Vec<_>>()).await;
        assert_eq!(first_bad(&fresh).await, Some(expected), "{statements:?}");
        restore(&fresh).await;
        let heads = [
            "DELETE FROM admin_audit_heads",
            "INSERT INTO admin_audit_heads SELECT * FROM untouched_heads",
        ];
        meddle(&fresh, &heads).await;
        assert_eq!(first_bad(&fresh).await, None, "{statements:?}, mended");
    }
}

async fn restore(fresh: &Fresh) {
    let overriding =
        if matches!(fresh.home, Home::Server(_)) { "OVERRIDING SYSTEM VALUE" } else { "" };
    let columns = "seq, at, tenant_id, root_key_id, action, target, before, after, position, hash";
    let back =
        format!("INSERT INTO admin_audit ({columns}) {overriding} SELECT {columns} FROM untouched");
    meddle(fresh, &["DELETE FROM admin_audit", &back]).await;
}

/// What no chain shows by itself: its last rows taken away, and its end said to be before them.
async fn an_end_set_back_with_its_tail_is_found_by_its_seal(mut fresh: Fresh) {
    chained(&mut fresh).await;
    let cut = [
        "DELETE FROM admin_audit WHERE position > 7",
        "UPDATE admin_audit_heads SET position = 7,
            hash = (SELECT hash FROM admin_audit WHERE position = 7)",
    ];
    meddle(&fresh, &cut).await;
    assert_eq!(first_bad(&fresh).await, Some((7, ChainTrouble::Seal)));
}

async fn a_chain_sealed_by_another_secret_is_not_trusted(mut fresh: Fresh) {
    chained(&mut fresh).await;
    let other = fresh.another().await.sealing(SealKey::new(&[8; 32]).unwrap());
    let seen = other.verify_changes(&fresh.tenant_id).await.unwrap();
    assert_eq!(seen.first_bad.map(|bad| bad.trouble), Some(ChainTrouble::Seal));
}

async fn a_lost_end_does_not_stop_changes_and_stays_visible(mut fresh: Fresh) {
    chained(&mut fresh).await;
    meddle(&fresh, &["DELETE FROM admin_audit_heads"]).await;
    assert_eq!(first_bad(&fresh).await, Some((9, ChainTrouble::End)));
    fresh.project("after").await;
    fresh.project("after that").await;
    assert_eq!(first_bad(&fresh).await, Some((10, ChainTrouble::Missing)));
    assert_eq!(report(&fresh).await.head.unwrap().0, 12);
}

async fn a_chain_that_is_taken_away_whole_is_found_also_after_the_next_change(mut fresh: Fresh) {
    chained(&mut fresh).await;
    // Somebody else's head stays, so that this is no database from before there were chains.
    fresh.second_tenant().await;
    let tenant_id = &fresh.tenant_id;
    let whole = [
        format!("DELETE FROM admin_audit WHERE tenant_id = '{tenant_id}'"),
        format!("DELETE FROM admin_audit_heads WHERE tenant_id = '{tenant_id}'"),
    ];
    meddle(&fresh, &[&whole[0], &whole[1]]).await;
    assert_eq!(first_bad(&fresh).await, Some((0, ChainTrouble::End)));
    fresh.store.begin_chains().await.unwrap();
    assert_eq!(first_bad(&fresh).await, Some((0, ChainTrouble::End)), "a start begins none again");
    fresh.project("after").await;
    assert_eq!(first_bad(&fresh).await, Some((1, ChainTrouble::Missing)));
}

async fn rows_from_before_the_chain_are_covered_by_its_first_link(fresh: Fresh) {
    let tenant_id = fresh.second_tenant().await;
    let old = |target: &str| {
        format!(
            "INSERT INTO admin_audit (at, tenant_id, action, target)
                VALUES (1, '{tenant_id}', 'keys.create', '{target}')"
        )
    };
    // As a database from before looks like when its first server starts.
    let before = "DELETE FROM admin_audit_heads";
    meddle(&fresh, &[before, &old("key_1"), &old("key_2"), &old("key_3")]).await;
    fresh.store.begin_chains().await.unwrap();
    let verify = async || fresh.store.verify_changes(&tenant_id).await.unwrap();
    assert_eq!((verify().await.rows, verify().await.first_bad), (3, None), "no link yet");
    meddle(&fresh, &["UPDATE admin_audit SET at = 9 WHERE target = 'key_2'"]).await;
    assert_eq!(verify().await.first_bad.unwrap().trouble, ChainTrouble::Changed);
    meddle(&fresh, &["UPDATE admin_audit SET at = 1 WHERE target = 'key_2'"]).await;
    let by = By { tenant_id: &tenant_id, root_key_id: "rk_b", now: NOW };
    for name in ["a", "b"] {
        let new = NewProject { name: name.to_owned(), ..NewProject::default() };
        fresh.store.create_project(by, new).await.unwrap();
    }
    assert_eq!((verify().await.rows, verify().await.first_bad), (5, None));
    let set =
        |set: &str| format!("UPDATE admin_audit SET {set} WHERE tenant_id = '{tenant_id}' AND");
    for (there, back) in [
        (
            format!("{} target = 'key_2'", set("action = 'x'")),
            format!("{} target = 'key_2'", set("action = 'keys.create'")),
        ),
        (
            format!("{} target = 'key_2'", set("at = 2")),
            format!("{} target = 'key_2'", set("at = 1")),
        ),
    ] {
        meddle(&fresh, &[&there]).await;
        let bad = verify().await.first_bad.unwrap();
        assert_eq!((bad.position, bad.trouble), (1, ChainTrouble::Changed), "{there}");
        meddle(&fresh, &[&back]).await;
        assert_eq!(verify().await.first_bad, None);
    }
    meddle(&fresh, &[&old("key_4")]).await;
    assert_eq!(verify().await.first_bad.unwrap().position, 1, "an older row that came late");
    let deleted =
        format!("DELETE FROM admin_audit WHERE target = 'key_4' AND tenant_id = '{tenant_id}'");
    meddle(&fresh, &[&deleted]).await;
    assert_eq!(verify().await.first_bad, None);
    meddle(&fresh, &["DELETE FROM admin_audit WHERE target = 'key_1'"]).await;
    assert_eq!(verify().await.first_bad.unwrap().position, 1, "an older row that went");
}

async fn a_hundred_changes_at_once_make_one_unbroken_chain(mut fresh: Fresh) {
    let one = chained(&mut fresh).await;
    let two = fresh.another().await.sealing(SealKey::new(&SECRET).unwrap());
    let (tenant_id, root_key_id) = (fresh.tenant_id.clone(), fresh.root_key_id.clone());
    let mut changes = tokio::task::JoinSet::new();
    for number in 0..100 {
        let store = if number % 2 == 0 { one.clone() } else { two.clone() };
        let (tenant_id, root_key_id) = (tenant_id.clone(), root_key_id.clone());
        changes.spawn(async move {
            let by = By { tenant_id: &tenant_id, root_key_id: &root_key_id, now: NOW };
            let (name, slug) = (format!("p{number}"), format!("s{number}"));
            loop {
                let new =
                    NewPermission { name: name.clone(), slug: slug.clone(), description: None };
                match store.create_permission(by, new).await {
                    Ok(_) => return,
                    // Told as worth another try, which a busy machine may make true.
                    Err(error) => assert!(error.is_transient(), "{error:?}"),
                }
            }
        });
    }
    changes.join_all().await;
    let whole = report(&fresh).await;
    assert_eq!((whole.rows, whole.first_bad), (109, None));
    let filter = ChangeFilter::default();
    let page = fresh.store.list_changes(&fresh.tenant_id, &filter, None, 1_000).await.unwrap();
    let places: BTreeSet<_> = page.rows.iter().filter_map(|row| row.position).collect();
    assert_eq!(places, (1..=109).collect());
}

async fn a_row_is_neither_changed_nor_deleted_nor_added_unchained(fresh: Fresh) {
    let attempts = [
        "UPDATE admin_audit SET action = 'x'",
        "DELETE FROM admin_audit",
        "INSERT INTO admin_audit (at, tenant_id, action, target) VALUES (1, 'a', 'b', 'c')",
    ];
    for attempt in attempts {
        let refused = match &fresh.home {
            Home::Folder(_) => {
                sqlx::query(attempt).execute(&mut fresh.beside().await).await.map(drop)
            }
            Home::Server(database) => {
                use sqlx::Connection;
                let mut beside = sqlx::PgConnection::connect(&database.url).await.unwrap();
                sqlx::query(attempt).execute(&mut beside).await.map(drop)
            }
        };
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("admin_audit takes"), "{attempt}: {error}");
    }
}

async fn a_change_that_fails_leaves_no_link(fresh: Fresh) {
    let new = || NewPermission { name: "p".into(), slug: "s".into(), description: None };
    fresh.store.create_permission(fresh.by(), new()).await.unwrap();
    let before = report(&fresh).await;
    let error = fresh.store.create_permission(fresh.by(), new()).await.unwrap_err();
    assert!(matches!(error, StoreError::Taken { .. }), "{error:?}");
    assert_eq!(report(&fresh).await, before);
}

async fn one_tenants_chain_says_nothing_of_anothers(fresh: Fresh) {
    let other = fresh.second_tenant().await;
    let by = By { tenant_id: &other, root_key_id: "rk_b", now: NOW };
    let root_key = new_root_key(fresh.fresh_hash());
    fresh.store.create_root_key(by, root_key).await.unwrap();
    let own = report(&fresh).await;
    let theirs = fresh.store.verify_changes(&other).await.unwrap();
    assert_eq!((own.rows, theirs.rows), (2, 1));
    let listed =
        fresh.store.list_changes(&other, &ChangeFilter::default(), None, 10).await.unwrap();
    assert!(listed.rows.iter().all(|row| row.action == "rootKeys.create"), "{listed:?}");
    let mut all = vec![fresh.tenant_id.clone(), other];
    all.sort_unstable();
    assert_eq!(fresh.store.chained_tenants().await.unwrap(), all);
}

async fn changes_are_listed_newest_first_and_page_by_page(fresh: Fresh) {
    for number in 0..5_u64 {
        let new = NewProject { name: format!("p{number}"), ..NewProject::default() };
        let by = fresh.by_at(Millis(NOW.0 + number + 1));
        fresh.store.create_project(by, new).await.unwrap();
    }
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let filter = ChangeFilter::default();
        let page = fresh.store.list_changes(&fresh.tenant_id, &filter, cursor, 2).await.unwrap();
        assert!(page.rows.len() <= 2);
        seen.extend(page.rows.iter().filter_map(|row| row.position));
        let Some(next) = page.next_cursor else { break };
        cursor = Some(next.parse().unwrap());
    }
    assert_eq!(seen, [6, 5, 4, 3, 2, 1]);
    let find = async |filter: ChangeFilter| {
        let page = fresh.store.list_changes(&fresh.tenant_id, &filter, None, 10).await.unwrap();
        page.rows
    };
    let within = ChangeFilter {
        from: Some(Millis(NOW.0 + 2)),
        to: Some(Millis(NOW.0 + 4)),
        ..ChangeFilter::default()
    };
    assert_eq!(find(within).await.len(), 2);
    let action = ChangeFilter { action: Some("bootstrap".into()), ..ChangeFilter::default() };
    assert_eq!(find(action).await.len(), 1);
    let by =
        ChangeFilter { root_key_id: Some(fresh.root_key_id.clone()), ..ChangeFilter::default() };
    let rows = find(by).await;
    assert_eq!(rows.len(), 5, "the bootstrap was nobody's");
    let target = ChangeFilter { target: Some(rows[0].target.clone()), ..ChangeFilter::default() };
    let found = find(target).await;
    assert_eq!(found.len(), 1);
    assert!(found[0].after.as_ref().unwrap().contains("\"p4\"") && found[0].before.is_none());
}

/// Where the database user is no superuser, the grant refuses before any trigger is asked: the owner too.
#[tokio::test]
async fn the_owner_of_the_table_may_not_change_a_row_either() {
    use sqlx::Connection;
    let database = tollkeeper_testkit::Postgres::shared().unwrap().database().unwrap();
    let (server, name) = database.url.rsplit_once('/').unwrap();
    let role = format!("{name}_owner");
    let mut admin = sqlx::PgConnection::connect(&database.url).await.unwrap();
    for step in [
        format!("CREATE ROLE {role} LOGIN"),
        format!("ALTER DATABASE {name} OWNER TO {role}"),
        format!("ALTER SCHEMA public OWNER TO {role}"),
    ] {
        sqlx::query(sqlx::AssertSqlSafe(step)).execute(&mut admin).await.unwrap();
    }
    let url = format!("{}/{name}", server.replace("postgres@", &format!("{role}@")));
    let store = Store::connect(&url, None).await.unwrap();
    let made = store
        .bootstrap(crate::FIRST_KEY, 1, tollkeeper_store::KeyOrigin::Generated, NOW)
        .await
        .unwrap();
    assert_eq!(store.verify_changes(&made.tenant_id).await.unwrap().rows, 1);
    let mut owner = sqlx::PgConnection::connect(&url).await.unwrap();
    for attempt in
        ["UPDATE admin_audit SET action = 'x'", "DELETE FROM admin_audit", "TRUNCATE admin_audit"]
    {
        let error = sqlx::query(attempt).execute(&mut owner).await.unwrap_err();
        let fault = Fault::from(error);
        let Fault::Database(sqlx::Error::Database(error)) = fault else { panic!("{fault:?}") };
        assert_eq!(error.code().as_deref(), Some("42501"), "{attempt}: {error}");
    }
    store.close().await;
    drop(owner);
    let back = [
        format!("ALTER DATABASE {name} OWNER TO postgres"),
        format!("REASSIGN OWNED BY {role} TO postgres"),
        format!("DROP OWNED BY {role}"),
        format!("DROP ROLE {role}"),
    ];
    for step in back {
        sqlx::query(sqlx::AssertSqlSafe(step)).execute(&mut admin).await.unwrap();
    }
}

/// The steps of a schema from before there were chains, in a folder of their own.
async fn old_schema(kind: &str) -> sqlx::migrate::Migrator {
    let folder = tempfile::tempdir().unwrap();
    let steps = format!("{}/migrations/{kind}", env!("CARGO_MANIFEST_DIR"));
    for step in ["0001_foundation.sql", "0002_keys.sql", "0003_modes.sql"] {
        std::fs::copy(format!("{steps}/{step}"), folder.path().join(step)).unwrap();
    }
    sqlx::migrate::Migrator::new(folder.path()).await.unwrap()
}

const OLD_ROWS: [&str; 3] = [
    "INSERT INTO tenants (id, slug, name, created_at) VALUES ('ws_old', 'old', 'Old', 1)",
    "INSERT INTO admin_audit (at, tenant_id, action, target) VALUES (1, 'ws_old', 'a', 'b')",
    "INSERT INTO admin_audit (at, tenant_id, action, target) VALUES (2, 'ws_old', 'c', 'd')",
];

async fn upgraded(store: &Store) {
    store.begin_chains().await.unwrap();
    let by = By { tenant_id: "ws_old", root_key_id: "rk_old", now: NOW };
    let verify = async || store.verify_changes("ws_old").await.unwrap();
    assert_eq!((verify().await.rows, verify().await.first_bad), (2, None));
    let new = NewProject { name: "first".to_owned(), ..NewProject::default() };
    store.create_project(by, new).await.unwrap();
    assert_eq!((verify().await.rows, verify().await.first_bad), (3, None));
    let all = ChangeFilter::default();
    let listed = store.list_changes("ws_old", &all, None, 10).await.unwrap().rows;
    let places: Vec<_> = listed.iter().map(|row| (row.action.as_str(), row.position)).collect();
    assert_eq!(places, [("projects.create", Some(1)), ("c", None), ("a", None)]);
}

#[tokio::test]
async fn a_file_from_before_there_were_chains_is_chained_from_its_first_start_on() {
    use sqlx::ConnectOptions;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tollkeeper.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let mut beside = options.connect().await.unwrap();
    old_schema("sqlite").await.run(&mut beside).await.unwrap();
    for row in OLD_ROWS {
        sqlx::query(row).execute(&mut beside).await.unwrap();
    }
    drop(beside);
    upgraded(&Store::open(&path).await.unwrap()).await;
}

#[tokio::test]
async fn a_server_from_before_there_were_chains_is_chained_from_its_first_start_on() {
    use sqlx::Connection;
    let database = tollkeeper_testkit::Postgres::shared().unwrap().database().unwrap();
    let mut beside = sqlx::PgConnection::connect(&database.url).await.unwrap();
    old_schema("postgres").await.run(&mut beside).await.unwrap();
    for row in OLD_ROWS {
        sqlx::query(row).execute(&mut beside).await.unwrap();
    }
    upgraded(&Store::connect(&database.url, None).await.unwrap()).await;
}
