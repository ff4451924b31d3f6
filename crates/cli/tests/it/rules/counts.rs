//! `limits.stats` of rules: each decision once for its rule, also where the rule has several limits or none.

use serde_json::{Value, json};

use crate::gate::{apply, rule, with};
use crate::time::eventually;
use crate::world::World;

#[test]
fn a_rule_counts_each_decision_once_and_a_block_is_a_denial() {
    let world = World::new();
    let mut client = world.client();
    let limits = json!([{"limit": 4, "window": "30d"}, {"limit": 5, "window": "29d"}]);
    let two = json!({"name": "two", "scope": "global", "limits": limits, "priority": 3});
    let at = |path: &str, more: Value| {
        with(json!({"endpoints": [path]}), with(json!({"priority": 1}), more))
    };
    let ends = |name: &str, action: &str| {
        let about = at(&format!("/{name}"), json!({"action": action}));
        with(json!({"name": name, "scope": "global"}), about)
    };
    let watch = json!({"action": "log_only", "limits": [{"limit": 1, "window": "30d"}, {"limit": 2, "window": "29d"}], "priority": 2});
    apply(
        &mut client,
        &json!([
            two,
            ends("open", "allow"),
            ends("shut", "block"),
            rule("watch", &json!("global"), 1, watch)
        ]),
    );
    // Four pass, two are denied: by one limit first, and then still by that one alone.
    for path in ["/"; 6].into_iter().chain(["/open"; 3]).chain(["/shut"; 2]) {
        client.data("gate.check", &json!({ "path": path }));
    }
    let ask = |more: Value| with(json!({"from": 0, "to": 4_102_444_800_000_u64}), more);
    let row = |name: &str, hits: u64, denied: u64, shadow: u64| json!({"name": name, "kind": "rule", "hits": hits, "denied": denied, "shadow": shadow});
    let all = json!([
        row("open", 3, 0, 0),
        row("shut", 2, 2, 0),
        row("two", 6, 2, 0),
        row("watch", 6, 0, 5),
    ]);
    eventually("all counts are written", || client.data("limits.stats", &ask(json!({}))) == all);
    let mut of = |name: &str| client.data("limits.stats", &ask(json!({ "rule": name })));
    assert_eq!(of("two"), json!([row("29d", 6, 0, 0), row("30d", 6, 2, 0)]));
    assert_eq!(of("shut"), json!([row("shut", 2, 2, 0)]));
    assert_eq!(of("open"), json!([row("open", 3, 0, 0)]));
}
