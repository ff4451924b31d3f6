//! Credits that a process had leased when it was killed, and of which nobody knows how many it had spent, because its journal is
//! gone or damaged: they count as spent, and every balance says so.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::{Made, api, code, create, get};
use crate::world::{Client, World};

const SPENT: u64 = 7;

fn shown(client: &mut Client, key: &Made) -> u64 {
    get(client, &key.id)["credits"]["remaining"].as_u64().expect("a balance")
}

fn spend_all(client: &mut Client, key: &Made) -> u64 {
    (0..2_000).take_while(|_| code(client, &key.text) == "VALID").count() as u64
}

/// Spends some, kills, lets `damage` have the journal, and starts again.
fn assert_true_balances(damage: impl FnOnce(&Path)) {
    let mut world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let key = create(&mut client, &api, json!({"credits": {"remaining": 1_000}}));
    for _ in 0..SPENT {
        assert_eq!(code(&mut client, &key.text), "VALID");
    }
    world.server.kill9().expect("it can be killed");
    damage(&world.data_dir().join("journal"));
    world.start_again();
    let mut client = world.client();
    let said = shown(&mut client, &key);
    assert!((1_000 - 1_000 / 10 - SPENT..=1_000 - SPENT).contains(&said), "{said}");
    assert_eq!(spend_all(&mut client, &key), said, "all that is shown, and no more");
    assert_eq!(shown(&mut client, &key), 0);
    for amount in [50, 200] {
        let set = json!({"keyId": key.id, "operation": "set", "value": amount});
        assert_eq!(client.data("keys.updateCredits", &set), json!({"remaining": amount}));
        assert_eq!(shown(&mut client, &key), amount);
        assert_eq!(spend_all(&mut client, &key), amount);
    }
}

#[test]
fn a_lost_journal_leaves_no_credit_that_is_shown_and_cannot_be_spent() {
    assert_true_balances(|journal| fs::remove_dir_all(journal).expect("gone"));
}

#[test]
fn a_damaged_journal_leaves_no_credit_that_is_shown_and_cannot_be_spent() {
    assert_true_balances(|journal| {
        let files =
            fs::read_dir(journal).expect("a journal").map(|entry| entry.expect("read").path());
        let mut files = files.filter(|path| path.extension().is_some_and(|found| found == "tkj"));
        let file = files.next().expect("a file");
        let mut bytes = fs::read(&file).expect("read");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&file, bytes).expect("written");
    });
}
