//! `gate.check` with five limits of ten rules, beside `ratelimit.limit` with one, on the same server, round by round.

use std::path::Path;

use serde_json::{Value, json};

use super::admin::Admin;
use super::throughput;
use crate::failure::Failure;
use crate::http::load::{Figures, Load};
use crate::http::requests::{ROOT_KEY, Requests};
use crate::http::server::Server;
use crate::http::{APART, TOGETHER, cores, scratch};
use crate::limits::AMPLE;
use crate::report::{self, Table, Target, ratio, whole};
use crate::rounds::{Spread, interleaved};

const ROUNDS: usize = 7;
const COLUMNS: [&str; 5] = ["call", "requests/s", "p50 µs", "p99 µs", "requests/s, × the first"];

pub(super) fn run(tollkeeper: &Path) -> Result<(), Failure> {
    // One script each.
    let (here, there) = (scratch()?, scratch()?);
    let places = if cores() > 1 { APART } else { TOGETHER };
    let server = Server::tollkeeper(tollkeeper, &here, places.server)?;
    let mut admin = Admin::open(server.address(), ROOT_KEY)?;
    admin.data("rules.apply", &json!({"rules": rules()}))?;
    let one = Requests::limits(&here)?;
    let five = Requests::checks(&there, &keys(&mut admin)?)?;
    let sides = [("`ratelimit.limit`, one limit", &one), ("`gate.check`, five limits", &five)];
    let figures = interleaved(ROUNDS, &sides, |(_, requests)| {
        Load { requests, core: places.load }.on(&server)
    })?;
    let table = Table::new("`gate.check`: five limits of ten rules", "verify check", &COLUMNS);
    let each = |side: &[Figures], of: fn(&Figures) -> f64| side.iter().map(of).collect::<Vec<_>>();
    let first = figures.first().map(|side| each(side, Figures::per_second)).unwrap_or_default();
    let mut last = None;
    for ((name, _), side) in sides.iter().zip(&figures) {
        let times = Spread::of_ratios(&each(side, Figures::per_second), &first);
        table.row(&[
            (*name).into(),
            whole(Spread::of(each(side, Figures::per_second))),
            whole(Spread::of(each(side, |one| one.p50_us))),
            whole(Spread::of(each(side, |one| one.p99_us))),
            ratio(times),
        ]);
        last = Some(times.median);
    }
    if let Some(times) = last {
        report::note(&format!("{times:.2} ({}).", Target::AtLeast(0.7).verdict(times)));
    }
    Ok(())
}

/// Keys of a thousand owners, without limits of their own.
fn keys(admin: &mut Admin) -> Result<Vec<String>, Failure> {
    let api = admin.api()?;
    let key = |n: usize| {
        let made = admin
            .data("keys.createKey", &json!({"apiId": api, "externalId": format!("user-{n}")}))?;
        made["key"]
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| Failure::unreadable("a key", made.to_string()))
    };
    (0..throughput::KEYS).map(key).collect()
}

/// Five that every request meets, by five scopes, and five that none does.
fn rules() -> Vec<Value> {
    let scopes = [
        json!("global"),
        json!("user"),
        json!("ip"),
        json!("endpoint"),
        json!(["user", "endpoint"]),
    ];
    let met = scopes.into_iter().enumerate().map(|(n, scope)| {
        json!({"name": format!("met-{n}"), "scope": scope, "endpoints": ["/v1/things/{id}"],
            "limits": [{"limit": AMPLE, "window": "1m"}]})
    });
    let unmet = (0..5).map(|n| {
        json!({"name": format!("unmet-{n}"), "scope": "user", "endpoints": [format!("/v1/other/{n}/**")],
            "limits": [{"limit": AMPLE, "window": "1m"}]})
    });
    met.chain(unmet).collect()
}
