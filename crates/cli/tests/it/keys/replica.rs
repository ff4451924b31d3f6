//! A replica that stands still: whoever makes, changes or revokes a key sees it at once all the same.

use serde_json::json;
use tollkeeper_testkit::Postgres;

use super::fleet::{Fleet, SECRET};
use super::{api, code, create, get};
use crate::world::{Client, start};

#[test]
fn with_a_replica_that_lags_for_ever_a_key_verifies_as_soon_as_it_is_made_and_not_once_it_is_revoked()
 {
    let mut fleet = Fleet::on(Postgres::start().expect("a database server"), 1, &[]);
    let mut client = fleet.client();
    let api = api(&mut client);
    let old = create(&mut client, &api, json!({}));
    let (mut first, _folder) = fleet.nodes.remove(0);
    // Only a database that nobody uses can be copied.
    assert!(first.terminate().expect("it ends").success());
    let late = fleet.postgres.copy(&fleet.database).expect("a copy");
    let folder = tempfile::tempdir().expect("a folder");
    let env = [
        ("TOLLKEEPER_DATABASE_URL", fleet.database.url.as_str()),
        ("TOLLKEEPER_DATABASE_REPLICA_URL", late.url.as_str()),
        ("TOLLKEEPER_SECRET", SECRET),
    ];
    let node = start(folder.path(), &env).expect("the node starts");
    let mut client = Client::new(node.url(), node.root_key());
    assert_eq!(code(&mut client, &old.text), "VALID");
    for _ in 0..20 {
        let new = create(&mut client, &api, json!({"name": "fresh"}));
        assert_eq!(code(&mut client, &new.text), "VALID");
        assert_eq!(get(&mut client, &new.id)["name"], "fresh");
        client.data("keys.revoke", &json!({"keyId": new.id}));
        assert_eq!(code(&mut client, &new.text), "REVOKED");
    }
    let listed = client.data("apis.listKeys", &json!({"apiId": api}));
    assert_eq!(listed.as_array().expect("a list").len(), 21);
    client.data("keys.revoke", &json!({"keyId": old.id}));
    assert_eq!(code(&mut client, &old.text), "REVOKED", "the replica has it as valid");
}
