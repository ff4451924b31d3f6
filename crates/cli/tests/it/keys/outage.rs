//! A database that stays away: what is known is used up to its hard limit and no longer, and what is not known is never
//! taken for unknown.

use std::time::Duration;

use serde_json::json;
use tollkeeper_testkit::Postgres;

use super::fleet::Fleet;
use super::{api, code, create};
use crate::time::{eventually, now, pause};

/// A tenth of the defaults, 10 and 60, so that the test is short; what is shown of these holds of those.
const SHORT: [(&str, &str); 2] =
    [("TOLLKEEPER_CACHE_FRESH_SECONDS", "1"), ("TOLLKEEPER_CACHE_STALE_SECONDS", "6")];
/// A record may be as old as it is fresh when the database stops; the rest of its life is left to it.
const SURELY_KNOWN: Duration = Duration::from_millis(4_500);
const SURELY_FORGOTTEN: Duration = Duration::from_millis(6_500);

#[test]
fn known_keys_verify_to_their_hard_limit_unknown_ones_are_unavailable_and_all_is_well_again_by_itself()
 {
    let mut fleet = Fleet::on(Postgres::start().expect("a database server"), 1, &SHORT);
    let mut client = fleet.client();
    let api = api(&mut client);
    let (known, unseen) =
        (create(&mut client, &api, json!({})), create(&mut client, &api, json!({})));
    let mut ask = |key: &str| client.post("keys.verifyKey", &json!({"key": key}));
    assert_eq!(ask(&known.text).json["data"]["code"], "VALID");
    let mut probe = fleet.client();
    let (yes, no) = (json!(true), json!(false));
    fleet.postgres.stop();
    let stopped = now();
    while stopped.elapsed() < SURELY_KNOWN {
        let answer = ask(&known.text);
        assert_eq!(answer.json["data"]["code"], "VALID", "{:?} {}", stopped.elapsed(), answer.json);
        let answer = ask(&unseen.text);
        assert_eq!(answer.status(), 503, "{:?} {}", stopped.elapsed(), answer.json);
        assert_eq!(probe.get("/readyz").status, 200, "{:?}", stopped.elapsed());
        let status = probe.data("system.status", &json!({}));
        assert_eq!((&status["degraded"], &status["database"]["answers"]), (&yes, &no), "{status}");
        pause(Duration::from_millis(100));
    }
    pause(SURELY_FORGOTTEN.saturating_sub(stopped.elapsed()));
    assert_eq!(ask(&known.text).status(), 503, "nothing is used beyond its hard limit");
    // Some fifty were refused by now: of each the log would have had two lines.
    let quiet = "more requests were refused since this was last said";
    eventually("one speaks for many", || {
        ask(&unseen.text);
        fleet.nodes[0].0.stderr().contains(quiet)
    });
    let said = fleet.nodes[0].0.stderr();
    let complaints = said.lines().filter(|line| line.contains("ERROR") || line.contains("WARN"));
    assert!(complaints.count() < 30, "{said}");
    assert!(!said.contains("it was busy"), "it is away: {said}");
    let status = probe.post("system.status", &json!({}));
    assert_eq!(status.status(), 503, "the operator's key is too old as well: {}", status.json);
    let ready = probe.get("/readyz");
    assert_eq!(ready.status, 503, "who can answer nobody is not ready");
    assert!(ready.text().contains("the database has not answered"), "{}", ready.text());
    assert_eq!(probe.get("/livez").status, 200, "and a restart would not heal it");
    fleet.postgres.again().expect("the database comes back");
    for key in [&unseen, &known] {
        let mut first = None;
        eventually("it answers again", || {
            first = Some(ask(&key.text)).filter(|answer| answer.status() == 200);
            first.is_some()
        });
        // Whoever was turned away was not remembered as unknown.
        assert_eq!(first.expect("an answer").json["data"]["code"], "VALID");
    }
    assert_eq!(code(&mut fleet.client(), &unseen.text), "VALID");
    eventually("it is ready again", || probe.get("/readyz").status == 200);
}
