//! `system.*` and the commands on it, on real nodes with a real Redis: where limits are counted, and how a server is doing.

use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tollkeeper_testkit::{Postgres, RedisServer, Tollkeeper};

use crate::fleet::{PATIENT, clients, nodes_at};
use crate::program::{Program, Ran};
use crate::time::{eventually, now, pause};
use crate::world::{ALGORITHMS, Client, World, ask, start};

const SECRET: &str = "the-same-thirty-two-characters-everywhere";

/// Two nodes with one database and one Redis.
struct Pair {
    redis: RedisServer,
    nodes: Vec<(Tollkeeper, TempDir)>,
}

impl Pair {
    fn with(env: &[(&str, &str)]) -> Self {
        let redis = RedisServer::start().expect("a Redis");
        let server = Postgres::shared().expect("a database server");
        let database = server.database().expect("a database");
        let own =
            [("TOLLKEEPER_DATABASE_URL", database.url.as_str()), ("TOLLKEEPER_SECRET", SECRET)];
        let nodes = nodes_at(&redis.url(), 2, &[&own, env, &[PATIENT]].concat());
        Self { redis, nodes }
    }

    fn clients(&self) -> Vec<Client> {
        clients(&self.nodes)
    }
}

fn status(client: &mut Client) -> Value {
    client.data("system.status", &json!({}))
}

fn mode(client: &mut Client) -> String {
    status(client)["mode"].as_str().expect("a mode").to_owned()
}

fn metric(client: &mut Client, series: &str) -> u64 {
    let text = client.get("/metrics").text();
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in\n{text}")).parse().expect("a whole number")
}

/// How many of `times` asks each of the nodes lets through.
fn let_through(clients: &mut [Client], identifier: &str, limit: u64, times: u64) -> u64 {
    let body = ask("api", identifier, limit);
    let passed =
        |client: &mut Client| (0..times).filter(|_| client.limit(&body)["success"] == true).count();
    clients.iter_mut().map(passed).sum::<usize>() as u64
}

/// From the change on the first node until all nodes show it.
fn set_everywhere(clients: &mut [Client], wanted: &str) -> Duration {
    let begun = now();
    clients[0].data("system.setMode", &json!({"mode": wanted}));
    assert_eq!(mode(&mut clients[0]), wanted, "whoever changes it sees it at once");
    eventually("every node counts so", || clients.iter_mut().all(|client| mode(client) == wanted));
    begun.elapsed()
}

#[test]
fn a_server_without_redis_counts_in_memory_and_says_so() {
    let world = World::new();
    let mut client = world.client();
    let seen = status(&mut client);
    assert_eq!((&seen["mode"], &seen["degraded"]), (&json!("memory"), &json!(false)), "{seen}");
    assert_eq!(
        (&seen["peers"], &seen["lag"], &seen["rollback"]),
        (&json!(0), &json!(0), &json!(false))
    );
    assert_eq!(seen["database"], json!({"kind": "sqlite", "answers": true, "writes": true}));
    assert_eq!(seen["version"], env!("CARGO_PKG_VERSION"));
    assert!(
        seen.get("redis").is_none()
            && seen.get("shadow").is_none()
            && seen.get("tenants").is_none()
    );
    for wanted in ["shadow", "redis"] {
        let refused = client.post("system.setMode", &json!({"mode": wanted}));
        assert_eq!((refused.status(), refused.code()), (412, "precondition_failed"), "{wanted}");
        let detail = refused.json["error"]["detail"].as_str().expect("a text");
        assert!(detail.contains("TOLLKEEPER_REDIS_URL"), "{detail}");
    }
    client.data("system.setMode", &json!({"mode": "memory"}));
    let nobody = client.post("system.setMode", &json!({"mode": null}));
    assert_eq!((nobody.status(), nobody.places()), (400, vec!["body.mode"]));
    let banner = world.server.stdout();
    assert!(banner.contains("counting in memory"), "{banner}");
    assert!(
        banner.contains("return to memory by itself when redis is the trouble: off"),
        "{banner}"
    );
}

#[test]
fn a_mode_set_on_one_node_is_in_force_on_every_node_within_two_seconds() {
    let pair = Pair::with(&[]);
    let mut clients = pair.clients();
    assert_eq!(mode(&mut clients[1]), "redis", "where there is a Redis, and nobody said otherwise");
    assert_eq!(let_through(&mut clients, "first", 5, 8), 5, "one limit for both");
    let took = set_everywhere(&mut clients, "memory");
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(let_through(&mut clients, "second", 5, 8), 10, "one limit for each");
    let took = set_everywhere(&mut clients, "redis");
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(let_through(&mut clients, "third", 5, 8), 5, "one limit for both again");
    assert_eq!(metric(&mut clients[1], "tollkeeper_mode{mode=\"redis\"}"), 1);
    assert_eq!(metric(&mut clients[1], "tollkeeper_mode{mode=\"memory\"}"), 0);
}

#[test]
fn going_back_to_memory_or_shadow_is_not_worth_a_second_quota() {
    const LIMIT: u64 = 100;
    for wanted in ["memory", "shadow"] {
        let pair = Pair::with(&[]);
        let mut clients = pair.clients();
        let mut used = 0;
        eventually("nearly all of it is used, by both", || {
            used += let_through(&mut clients, "ann", LIMIT, 5);
            used >= LIMIT * 9 / 10
        });
        set_everywhere(&mut clients, wanted);
        let more = let_through(&mut clients, "ann", LIMIT, LIMIT);
        // Each has its part of what was left when it last heard, which may be a lease ago.
        assert!(used + more <= LIMIT * 3 / 2, "{wanted}: {used} and {more} more");
        let others = let_through(&mut clients, "bob", LIMIT, LIMIT + 5);
        assert_eq!(others, 2 * LIMIT, "{wanted}: others begin afresh");
    }
}

#[test]
fn going_over_to_redis_is_not_worth_a_second_quota_either() {
    const LIMIT: u64 = 100;
    for algorithm in ALGORITHMS {
        let pair = Pair::with(&[("TOLLKEEPER_MODE", "memory")]);
        let mut clients = pair.clients();
        let mut body = ask("api", "ann", LIMIT);
        body["algorithm"] = json!(algorithm);
        let mut spend = |node: usize, times: u64| -> u64 {
            (0..times).filter(|_| clients[node].limit(&body)["success"] == true).count() as u64
        };
        assert_eq!((spend(0, 60), spend(1, 25)), (60, 25));
        set_everywhere(&mut pair.clients(), "redis");
        // Each node tells of its own when it is first asked. What the first has leased by then, of 40 that Redis
        // thinks free, cannot be charged for what the second tells: a quarter of it at most.
        let more = spend(0, 1) + spend(1, 1) + spend(0, LIMIT) + spend(1, LIMIT);
        assert!(more <= 15 + 10 + 1, "{algorithm}: {more}");
        assert!(more > 5, "{algorithm}: {more}, and not all that is left is lost");
    }
}

#[test]
fn the_way_to_redis_by_shadow_is_not_worth_a_second_quota_either() {
    const LIMIT: u64 = 100;
    let pair = Pair::with(&[("TOLLKEEPER_MODE", "memory")]);
    let mut clients = pair.clients();
    let asked = |algorithm: &str, identifier: &str| {
        let mut body = ask("api", identifier, LIMIT);
        body["algorithm"] = json!(algorithm);
        body
    };
    let mut spend = |node: usize, body: &Value, times: u64| -> u64 {
        (0..times).filter(|_| clients[node].limit(body)["success"] == true).count() as u64
    };
    let each = ALGORITHMS.map(|one| (asked(one, "ann"), asked(one, "bob")));
    for (compared, unasked) in &each {
        assert_eq!((spend(0, compared, 50), spend(1, compared, 20)), (50, 20));
        assert_eq!((spend(0, unasked, 60), spend(1, unasked, 25)), (60, 25));
    }
    set_everywhere(&mut pair.clients(), "shadow");
    for (compared, _) in &each {
        assert_eq!((spend(0, compared, 5), spend(1, compared, 5)), (5, 5));
    }
    // On a busy machine Redis is late now and then; what it was not told, it is told later.
    eventually("all of it is compared", || {
        let mut clients = pair.clients();
        let counted = |client: &mut Client| {
            metric(client, "tollkeeper_shadow_skipped_total")
                + ["same", "stricter", "looser"]
                    .map(|how| format!("tollkeeper_shadow_total{{agreement=\"{how}\"}}"))
                    .map(|series| metric(client, &series))
                    .iter()
                    .sum::<u64>()
        };
        clients.iter_mut().map(counted).sum::<u64>() == 10 * ALGORITHMS.len() as u64
    });
    set_everywhere(&mut pair.clients(), "redis");
    for ((compared, unasked), algorithm) in each.iter().zip(ALGORITHMS) {
        let more = spend(0, compared, 1) + spend(1, compared, 1);
        let more = more + spend(0, compared, LIMIT) + spend(1, compared, LIMIT);
        assert!(more <= 20, "{algorithm}: {more}");
        assert!(more > 10, "{algorithm}: {more}, and not all that is left is lost");
        // Of what nobody asked for in shadow each node tells when it is first asked, as on the way without it.
        let more = spend(0, unasked, 1) + spend(1, unasked, 1);
        let more = more + spend(0, unasked, LIMIT) + spend(1, unasked, LIMIT);
        assert!(more <= 15 + 10 + 1, "{algorithm}, not compared: {more}");
        assert!(more > 5, "{algorithm}, not compared: {more}, and not all that is left is lost");
    }
}

#[test]
fn a_tenant_that_goes_to_redis_by_shadow_alone_has_no_second_quota() {
    const LIMIT: u64 = 100;
    let pair = Pair::with(&[("TOLLKEEPER_MODE", "memory")]);
    let mut clients = pair.clients();
    let id = clients[0].data("tenants.list", &json!({}))[0]["tenantId"].clone();
    let set = |wanted: &str| {
        let mut clients = pair.clients();
        clients[1].data("system.setMode", &json!({"mode": wanted, "tenant": id}));
        let row = json!([{"tenant": id, "mode": wanted}]);
        eventually("both nodes know", || {
            clients.iter_mut().all(|client| status(client)["tenants"] == row)
        });
    };
    assert_eq!(let_through(&mut clients, "ann", LIMIT, 30), 60);
    assert_eq!(let_through(&mut clients, "bob", LIMIT, 30), 60);
    set("shadow");
    assert_eq!(let_through(&mut clients, "ann", LIMIT, 5), 10);
    set("redis");
    for (name, used) in [("ann", 70), ("bob", 60)] {
        let more = let_through(&mut clients, name, LIMIT, 1);
        let more = more + let_through(&mut clients, name, LIMIT, LIMIT);
        // What one node has leased when the other tells is not taken from it.
        let lent = if name == "bob" { 18 } else { 0 };
        assert!(used + more <= LIMIT + lent, "{name}: {more}");
        assert!(used + more > LIMIT - 10, "{name}: {more}, and not all that is left is lost");
    }
}

#[test]
fn the_way_to_memory_and_back_empties_no_limit() {
    const LIMIT: u64 = 100;
    let pair = Pair::with(&[]);
    let mut clients = pair.clients();
    let mut body = ask("api", "ann", LIMIT);
    body["algorithm"] = json!("fixed_window");
    let mut spend = |node: usize, times: u64| -> u64 {
        (0..times).filter(|_| clients[node].limit(&body)["success"] == true).count() as u64
    };
    assert_eq!((spend(0, 20), spend(1, 20)), (20, 20));
    set_everywhere(&mut pair.clients(), "memory");
    // Each has half of what is left; what was spent before is nobody's to tell again.
    assert_eq!((spend(0, 5), spend(1, 5)), (5, 5));
    set_everywhere(&mut pair.clients(), "redis");
    let more = spend(0, 1) + spend(1, 1) + spend(0, LIMIT) + spend(1, LIMIT);
    assert!(more <= 50, "{more}");
    assert!(more >= 40, "{more}, and not all that is left is lost");
}

#[test]
fn a_mode_can_be_changed_while_redis_is_away() {
    let mut pair = Pair::with(&[]);
    let mut clients = pair.clients();
    // Without Redis nothing is heard on its bus; the database has the change all the same.
    pair.redis.kill();
    let took = set_everywhere(&mut clients, "memory");
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(
        let_through(&mut clients, "ann", 5, 8),
        10,
        "and nothing is missing that memory needs"
    );
    assert_eq!(metric(&mut clients[0], "tollkeeper_degraded"), 0);
}

#[test]
fn a_tenant_may_have_a_mode_of_its_own_and_sees_no_other() {
    let pair = Pair::with(&[("TOLLKEEPER_MODE", "memory")]);
    let mut operators = pair.clients();
    let made =
        ["One", "Two"].map(|name| operators[0].data("tenants.create", &json!({"name": name})));
    let key = |of: &Value| of["rootKey"].as_str().expect("a key").to_owned();
    let of = |at: usize| -> Vec<Client> {
        pair.nodes.iter().map(|(node, _)| Client::new(node.url(), &key(&made[at]))).collect()
    };
    let (mut one, mut two) = (of(0), of(1));
    let id = made[0]["tenantId"].clone();
    let own = json!({"mode": "redis", "tenant": id});
    assert_eq!(two[0].post("system.setMode", &own).status(), 404, "not its own");
    let fleet = one[0].post("system.setMode", &json!({"mode": "redis"}));
    assert_eq!(fleet.status(), 403, "the fleet is the operator's");
    one[0].data("system.setMode", &own);
    let row = json!([{"tenant": id, "mode": "redis"}]);
    eventually("both nodes know", || one.iter_mut().all(|client| status(client)["tenants"] == row));
    assert_eq!(status(&mut operators[1])["tenants"], row);
    assert!(status(&mut two[0]).get("tenants").is_none(), "of others a tenant hears nothing");
    assert!(status(&mut two[0])["redis"][0].get("address").is_none());
    assert_eq!(let_through(&mut one, "ann", 5, 8), 5, "shared");
    assert_eq!(let_through(&mut two, "ann", 5, 8), 10, "each node for itself");
    operators[1].data("system.setMode", &json!({"mode": null, "tenant": id}));
    eventually("like the fleet again", || {
        one.iter_mut().all(|client| status(client).get("tenants").is_none())
    });
    assert_eq!(let_through(&mut one, "bob", 5, 8), 10);
    let unknown =
        operators[0].post("system.setMode", &json!({"mode": "redis", "tenant": "ten_nobody"}));
    assert_eq!(unknown.status(), 404);
}

#[test]
fn a_restart_keeps_the_mode_that_was_set_whatever_the_settings_say() {
    let redis = RedisServer::start().expect("a Redis");
    let (folder, url) = (tempfile::tempdir().expect("a folder"), redis.url());
    let run = |setting: &str| {
        let env = [("TOLLKEEPER_REDIS_URL", &*url), ("TOLLKEEPER_MODE", setting)];
        let node = start(folder.path(), &env).expect("it starts");
        let client = Client::new(node.url(), node.root_key());
        (node, client)
    };
    let (mut node, mut client) = run("shadow");
    assert_eq!(mode(&mut client), "shadow", "the first start takes the setting");
    assert!(node.stdout().contains("counting in memory, with redis as its shadow"));
    client.data("system.setMode", &json!({"mode": "memory"}));
    node.terminate().expect("it ends");
    let (node, mut client) = run("redis");
    assert_eq!(mode(&mut client), "memory", "later ones do not");
    assert!(node.stdout().contains("counting in memory\n"), "{}", node.stdout());
}

#[test]
fn shadow_answers_as_memory_does_and_tells_where_redis_would_have_refused() {
    const LIMIT: u64 = 20;
    let pair = Pair::with(&[("TOLLKEEPER_MODE", "shadow")]);
    let mut clients = pair.clients();
    assert_eq!(let_through(&mut clients, "ann", LIMIT, LIMIT + 5), 2 * LIMIT, "as in memory");
    let sum = |clients: &mut [Client], field: &str| -> u64 {
        let of = |client: &mut Client| {
            let seen = status(client);
            let lines = seen["shadow"].as_array().cloned().unwrap_or_default();
            let own = lines.into_iter().find(|line| line["limit"] == "default/api");
            own.map_or(0, |line| line[field].as_u64().expect("a count"))
        };
        clients.iter_mut().map(of).sum()
    };
    // On a busy machine Redis is late now and then; what it would have said is then not known.
    let unknown = |clients: &mut [Client]| -> u64 {
        clients.iter_mut().map(|client| metric(client, "tollkeeper_shadow_skipped_total")).sum()
    };
    eventually("all are compared", || {
        sum(&mut clients, "compared") + unknown(&mut clients) == 2 * (LIMIT + 5)
    });
    let (stricter, unknown) = (sum(&mut clients, "stricter"), unknown(&mut clients));
    // Redis has one limit for both: of what both let through it would have refused half, but for a lease in the wrong place.
    assert!(
        stricter > 0 && stricter.abs_diff(LIMIT) <= unknown + 2,
        "{stricter}, {unknown} not known"
    );
    let counted: u64 = clients
        .iter_mut()
        .map(|client| metric(client, "tollkeeper_shadow_total{agreement=\"stricter\"}"))
        .sum();
    assert_eq!(counted, stricter);
    for (client, agreement) in clients.iter_mut().zip(["same", "looser"]) {
        metric(client, &format!("tollkeeper_shadow_total{{agreement=\"{agreement}\"}}"));
    }
}

#[test]
fn status_and_metrics_tell_of_redis_being_there_and_being_away() {
    let mut pair = Pair::with(&[]);
    let mut clients = pair.clients();
    let there = json!({
        "address": pair.redis.address(), "connected": true, "link": "up", "clock": "agrees",
    });
    eventually("both nodes know of each other", || {
        clients.iter_mut().all(|client| status(client)["peers"] == 1)
    });
    let mut seen = status(&mut clients[0]);
    let skew = seen["redis"][0].as_object_mut().and_then(|one| one.remove("clockSkewMs"));
    assert!(skew.and_then(|skew| skew.as_u64()).expect("a number") < 1_000, "{seen}");
    assert_eq!((&seen["redis"], &seen["degraded"]), (&json!([there]), &json!(false)), "{seen}");
    assert_eq!(seen["database"], json!({"kind": "postgres", "answers": true, "writes": true}));
    assert_eq!(let_through(&mut clients[..1], "ann", 100, 10), 10);
    let client = &mut clients[0];
    assert!(metric(client, "tollkeeper_redis_calls_total{result=\"ok\"}") > 0);
    assert!(metric(client, "tollkeeper_redis_connects_total{result=\"ok\"}") > 0);
    assert!(metric(client, "tollkeeper_redis_operation_seconds_count") > 0);
    assert!(metric(client, "tollkeeper_lease_waits_total") > 0);
    assert_eq!(metric(client, "tollkeeper_leases"), 1);
    assert_eq!(metric(client, "tollkeeper_nodes"), 2);
    assert_eq!(metric(client, "tollkeeper_degraded"), 0);
    assert_eq!(metric(client, "tollkeeper_rollbacks_total{reason=\"redis_errors\"}"), 0);
    pair.redis.kill();
    eventually("it is away", || status(&mut clients[0])["redis"][0]["link"] == "away");
    let client = &mut clients[0];
    assert_eq!(
        (&status(client)["degraded"], metric(client, "tollkeeper_degraded")),
        (&json!(true), 1)
    );
    assert!(let_through(&mut clients[..1], "bob", 100, 10) > 0, "a share of it");
    let alone =
        metric(&mut clients[0], "tollkeeper_fallback_total{reason=\"admitted_without_redis\"}");
    assert!(alone >= 10, "{alone}");
    metric(&mut clients[0], "tollkeeper_fallback_total{reason=\"refused_without_redis\"}");
}

fn run(node: &Tollkeeper, arguments: &[&str]) -> Ran {
    Program::new(arguments)
        .env("TOLLKEEPER_URL", node.url())
        .env("TOLLKEEPER_ROOT_KEY", node.root_key())
        .run()
}

#[test]
fn the_mode_command_changes_the_mode_and_the_status_command_shows_it() {
    let pair = Pair::with(&[("TOLLKEEPER_ROLLBACK", "on"), ("TOLLKEEPER_NODE", "a")]);
    let node = &pair.nodes[0].0;
    let mut client = pair.clients().remove(0);
    let id =
        client.data("tenants.list", &json!({}))[0]["tenantId"].as_str().expect("an id").to_owned();
    let shown = |arguments: &[&str]| {
        let ran = run(node, arguments);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{arguments:?}");
        ran.stdout
    };
    assert_eq!(shown(&["mode"]), "scope=fleet mode=redis\n");
    assert_eq!(shown(&["mode", "shadow"]), "scope=fleet mode=shadow\n");
    assert_eq!(shown(&["mode", "memory", "--tenant", &id]), format!("scope={id} mode=memory\n"));
    assert_eq!(
        shown(&["mode", "--json", "--tenant", &id]),
        format!("{{\"mode\":\"memory\",\"scope\":\"{id}\"}}\n")
    );
    let status = shown(&["status"]);
    let lines: Vec<_> = status.lines().collect();
    let first = format!(
        "node=a version={} mode=shadow rollback=on degraded=false",
        env!("CARGO_PKG_VERSION")
    );
    assert!(lines[0].starts_with(&first), "{status}");
    let redis = format!(
        "redis={} connected=true link=up clock=agrees clock_skew_ms=",
        pair.redis.address()
    );
    assert!(lines[1].starts_with(&redis), "{status}");
    assert_eq!(lines[2], format!("tenant={id} mode=memory"));
    let whole: Value = serde_json::from_str(&shown(&["status", "--json"])).expect("JSON");
    assert_eq!((&whole["mode"], &whole["rollback"]), (&json!("shadow"), &json!(true)));
    assert_eq!(shown(&["mode", "inherit", "--tenant", &id]), format!("scope={id} mode=inherit\n"));
    assert_eq!(shown(&["mode", "--tenant", &id]), format!("scope={id} mode=shadow\n"));
    assert_eq!(run(node, &["mode", "inherit"]).code, Some(2));
    assert_eq!(run(node, &["mode", "elsewhere"]).code, Some(2));
    assert!(node.stdout().contains("return to memory by itself when redis is the trouble: on"));
}

#[test]
#[ignore = "a minute of trouble takes more than a minute; run by `make soak`"]
fn a_node_that_may_goes_back_to_memory_after_a_minute_without_redis() {
    let mut pair = Pair::with(&[("TOLLKEEPER_ROLLBACK", "on")]);
    let mut clients = pair.clients();
    pair.redis.kill();
    let begun = now();
    while mode(&mut clients[1]) == "redis" {
        assert!(begun.elapsed() < Duration::from_secs(90), "it stays in redis");
        let_through(&mut clients, "ann", 1_000_000, 5);
        pause(Duration::from_millis(100));
    }
    assert!(begun.elapsed() > Duration::from_secs(55), "{:?}", begun.elapsed());
    let series = "tollkeeper_rollbacks_total{reason=\"redis_errors\"}";
    let counted: u64 = clients.iter_mut().map(|client| metric(client, series)).sum();
    assert_eq!(counted, 1, "by one of the nodes");
    assert_eq!(let_through(&mut clients, "bob", 5, 8), 10);
}
