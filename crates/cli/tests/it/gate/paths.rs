//! No spelling of a path walks around a rule, and none takes the server down.

use serde_json::json;

use super::{apply, check, verdict};
use crate::world::World;

#[test]
fn every_spelling_of_a_path_meets_the_rule_for_it() {
    let world = World::new();
    let mut client = world.client();
    apply(
        &mut client,
        &json!([{"name": "admin", "scope": "global", "action": "block", "endpoints": ["/admin/**"]}]),
    );
    for path in [
        "/admin/users",
        "/admin/users/",
        "/admin/users?x=/public",
        "/admin/users#x",
        "//admin///users",
        "/./admin/users",
        "/public/../admin/users",
        "/public/%2e%2e/admin/users",
        "/%2e%2e/%2E./admin/users",
        "/%61dmin/users",
        "/../../admin/users",
        "/admin%2Fusers",
        "/%2fadmin/users",
        "/public/..%2Fadmin/users",
        "/admin\\users",
        "\\admin\\users",
        "/admin%5cusers",
        "/public\\..\\admin/users",
        "/admin\u{0}",
        "/admin%00/users",
        "/admin%00.html",
        "/admin/\u{0}",
        "/admin/%00",
        "/admin/%ff%fe",
        "/admin/%zz",
        "https://elsewhere/admin/users",
        &format!("/admin/{}", "x".repeat(8_000)),
        &format!("/admin{}", "/".repeat(8_000)),
    ] {
        let data = check(&mut client, &json!({"path": path}));
        assert_eq!(verdict(&data), ("BLOCKED", 403), "{path:?}");
    }
}

#[test]
fn a_path_that_only_looks_like_it_does_not_meet_the_rule() {
    let world = World::new();
    let mut client = world.client();
    apply(
        &mut client,
        &json!([{"name": "admin", "scope": "global", "action": "block", "endpoints": ["/admin/**"]}]),
    );
    for path in [
        "/",
        "",
        "/Admin/users",
        "/administrator",
        "/admin/../public",
        "/admin/%2e%2e/public",
        "/public?/admin/users",
        "/public%2Fadmin",
        "/%252e%252e/admin",
        "*",
        &"/..".repeat(2_700),
        &"%2e".repeat(2_700),
        "\u{0}",
        "%",
    ] {
        let body = if path.is_empty() { json!({}) } else { json!({"path": path}) };
        assert_eq!(verdict(&check(&mut client, &body)), ("VALID", 200), "{path:?}");
    }
}
