//! Users that a request names and nobody stored: found by their name in rows and sums, like any other.

use serde_json::{Value, json};

use super::{key, search};
use crate::gate::{apply, rule};
use crate::world::World;

#[test]
fn a_user_whom_nobody_stored_is_in_rows_and_sums_by_the_name_that_was_told() {
    let world = World::with(&[("TOLLKEEPER_AUDIT_SAMPLE", "1")]);
    let mut client = world.client();
    apply(&mut client, &json!([rule("few", &json!("user"), 1, json!({}))]));
    let key = key(&mut client, &json!({}));
    let owned = self::key(&mut client, &json!({"externalId": "owner"}));
    for (body, codes) in [
        (json!({"externalId": "stranger"}), ["VALID", "RATE_LIMITED"]),
        (json!({"externalId": "guest", "key": key.text}), ["VALID", "RATE_LIMITED"]),
        (json!({"externalId": "claimed", "key": owned.text}), ["VALID", "RATE_LIMITED"]),
    ] {
        for code in codes {
            assert_eq!(client.data("gate.check", &body)["code"], code, "{body}");
        }
    }
    let mut sum = |external_id: &str| {
        let range =
            json!({"from": 0, "to": 4_102_444_800_000_u64, "by": "day", "externalId": external_id});
        let lines = client.data("stats.query", &range);
        lines.as_array().expect("a list").iter().filter_map(|line| line["total"].as_u64()).sum()
    };
    let sums: [u64; 4] = ["stranger", "guest", "owner", "claimed"].map(&mut sum);
    assert_eq!(sums, [2, 2, 2, 0], "a key's own identity goes before what is told");
    for external_id in ["stranger", "guest", "owner"] {
        let rows = search(&mut client, &json!({"externalId": external_id}));
        let mut codes: Vec<&Value> = rows.iter().map(|row| &row["code"]).collect();
        codes.sort_by_key(ToString::to_string);
        assert_eq!(codes, ["RATE_LIMITED", "VALID"], "{external_id}");
    }
}
