//! A real Caddy with the Caddyfile that is given to users, between a client and an API that shows what reached it.

use std::fmt::Write as _;
use std::process::Command;

use serde_json::json;
use tollkeeper_testkit::{Caddy, Connection, Response};

use super::problem;
use super::upstream::Upstream;
use crate::gate::{apply, key, project, rule};
use crate::world::{Client, World};

struct Site {
    world: World,
    upstream: Upstream,
    caddy: Caddy,
}

impl Site {
    fn open(door: &str) -> Self {
        let (world, upstream) = (World::new(), Upstream::start());
        let address = world.server.url().trim_start_matches("http://").to_owned();
        let caddy = Caddy::start(
            &caddyfile(),
            "API_LISTEN",
            &[
                ("API_UPSTREAM", &upstream.address),
                ("TOLLKEEPER_ADDRESS", &address),
                ("TOLLKEEPER_PROJECT", door),
            ],
        );
        Self { world, upstream, caddy: caddy.expect("Caddy starts") }
    }

    fn client(&self) -> Client {
        self.world.client()
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
        let mut connection = Connection::open(&self.caddy.url()).expect("Caddy listens");
        connection.exchange(method, path, headers, b"").expect("an answer")
    }

    fn get(&self, headers: &[(&str, &str)]) -> Response {
        self.ask("GET", "/v1/users?page=2", headers)
    }
}

/// The file as it is given to users, for this machine alone.
fn caddyfile() -> String {
    let text = include_str!("../../../../../deploy/caddy/Caddyfile");
    let bound = text.replacen("\troute {", "\tbind 127.0.0.1\n\troute {", 1);
    assert_ne!(text, bound, "there is a route to bind");
    bound
}

/// What reached the API under this name.
fn reached(response: &Response, name: &str) -> Vec<String> {
    let text = response.text();
    let lines = text.lines().filter_map(|line| line.split_once(": "));
    let named = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
    named.map(|(_, value)| value.to_owned()).collect()
}

#[test]
fn a_good_key_reaches_the_api_with_its_owner_and_nobody_can_pretend_to_be_another() {
    let site = Site::open("");
    let mut client = site.client();
    apply(&mut client, &json!([rule("few", &json!("key"), 50, json!({}))]));
    let api = project(&mut client);
    let (id, text) = key(&mut client, &api, json!({"externalId": "ann", "tier": "pro"}));
    let forged = [
        ("x-api-key", &*text),
        ("x-tollkeeper-key-id", "key_forged"),
        ("x-tollkeeper-identity", "root"),
        ("x-tollkeeper-tier", "gold"),
        ("x-tollkeeper-ratelimit", "\"mine\";r=9"),
    ];
    let response = site.ask("POST", "/v1/users?page=2", &forged);
    assert_eq!(response.status, 200, "{} {}", response.text(), site.caddy.said());
    assert!(response.text().starts_with("POST /v1/users?page=2 HTTP/1.1"), "{}", response.text());
    for (name, value) in [
        ("x-tollkeeper-key-id", &*id),
        ("x-tollkeeper-identity", "ann"),
        ("x-tollkeeper-tier", "pro"),
    ] {
        assert_eq!(reached(&response, name), [value], "{name}");
    }
    for name in
        ["x-tollkeeper-ratelimit", "x-tollkeeper-policy", "x-tollkeeper-project", "x-api-key"]
    {
        assert!(reached(&response, name).is_empty(), "{name}: {}", response.text());
    }
    let state = response.header("ratelimit").expect("where it stands");
    assert!(state.starts_with("\"few/30d\";r=49;t="), "{state}");
    assert_eq!(response.header("ratelimit-policy"), Some("\"few/30d\";q=50;w=2592000"));

    let (_, bare) = key(&mut client, &api, json!({}));
    let nobody = site.get(&[("x-api-key", &bare), ("x-tollkeeper-identity", "root")]);
    let identity = reached(&nobody, "x-tollkeeper-identity");
    assert!(identity.iter().all(String::is_empty), "a key of nobody is nobody: {identity:?}");
}

#[test]
fn refusals_reach_the_client_whole_and_nothing_reaches_the_api() {
    let site = Site::open("");
    let mut client = site.client();
    let api = project(&mut client);
    apply(
        &mut client,
        &json!([
            rule("few", &json!("key"), 1, json!({"endpoints": ["/v1/**"]})),
            {"name": "shut", "scope": "global", "action": "block", "endpoints": ["/admin/**"]},
        ]),
    );
    let (_, text) = key(&mut client, &api, json!({}));
    let missing = site.get(&[]);
    assert_eq!((missing.status, missing.header("www-authenticate")), (401, Some("Bearer")));
    problem(&missing);
    let unknown = site.get(&[("authorization", "Bearer nobody's")]);
    assert_eq!((unknown.status, &problem(&unknown)["code"]), (401, &json!("NOT_FOUND")));
    let shut = site.ask("GET", "/public/%2e%2e/admin/x", &[("x-api-key", &text)]);
    assert_eq!((shut.status, &problem(&shut)["rule"]), (403, &json!("shut")));
    assert_eq!(site.upstream.seen(), 0);

    assert_eq!(site.get(&[("x-api-key", &text)]).status, 200);
    let denied = site.get(&[("x-api-key", &text)]);
    assert_eq!(denied.status, 429, "a real 429: {}", denied.text());
    let seconds: u64 = denied.header("retry-after").expect("a time").parse().expect("seconds");
    assert!(seconds > 0);
    let state = denied.header("ratelimit").expect("where it stands");
    assert!(state.starts_with("\"few/30d\";r=0;t="), "{state}");
    let told = problem(&denied);
    assert_eq!((&told["limit"], &told["rule"]), (&json!("few/30d"), &json!("few")));
    assert_eq!(site.upstream.seen(), 1);
}

#[test]
fn what_a_client_claims_about_its_address_method_and_path_moves_nothing() {
    let site = Site::open("");
    let mut client = site.client();
    let api = project(&mut client);
    apply(
        &mut client,
        &json!([
            rule("ip", &json!("ip"), 2, json!({"methods": ["GET"], "endpoints": ["/v1/**"]})),
            {"name": "shut", "scope": "global", "action": "block", "methods": ["DELETE"]},
        ]),
    );
    let (_, text) = key(&mut client, &api, json!({}));
    let mut statuses = String::new();
    for claim in ["1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4, 5.5.5.5"] {
        let headers = [
            ("x-api-key", &*text),
            ("x-forwarded-for", claim),
            ("x-real-ip", claim),
            ("x-forwarded-method", "POST"),
            ("x-forwarded-uri", "/elsewhere"),
        ];
        let _ = write!(statuses, "{} ", site.get(&headers).status);
    }
    assert_eq!(statuses, "200 200 429 429 ", "{}", site.caddy.said());
    let delete =
        site.ask("DELETE", "/v1/users", &[("x-api-key", &text), ("x-forwarded-method", "GET")]);
    assert_eq!(delete.status, 403);
}

#[test]
fn a_proxy_for_one_project_lets_no_other_projects_keys_through() {
    let site = Site::open("default/shop");
    let mut client = site.client();
    client.data("projects.create", &json!({"name": "Shop", "slug": "shop", "defaultLimits": []}));
    let shop = client.data("projects.get", &json!({"project": "shop"}))["apiId"].clone();
    let other = project(&mut client);
    let (_, ours) = key(&mut client, shop.as_str().expect("an id"), json!({}));
    let (_, theirs) = key(&mut client, &other, json!({}));
    assert_eq!(site.get(&[("x-api-key", &ours)]).status, 200, "{}", site.caddy.said());
    assert_eq!(site.get(&[("x-api-key", &theirs)]).status, 401);
    let chosen = [("x-api-key", &*theirs), ("x-tollkeeper-project", &*other)];
    assert_eq!(site.get(&chosen).status, 401, "which project it is, is the proxy's to say");
}

#[test]
fn the_documented_example_signs_a_request_that_passes_once() {
    const DOCUMENT: &str = include_str!("../../../../../docs/FORWARD_AUTH.md");
    const SECRET: &str = "a signing secret of this test";
    let site = Site::open("");
    let mut client = site.client();
    let api = project(&mut client);
    let (_, text) = key(&mut client, &api, json!({"signing": SECRET}));
    let example = DOCUMENT.lines().skip_while(|line| !line.contains("import hashlib")).take(6);
    let example: Vec<_> = example.map(str::trim_start).collect();
    let example = example.join("\n").replace("https://api.example.com", &site.caddy.url());
    let run = |secret: &str, more: &str| {
        let program = format!("KEY, SECRET = {text:?}, {secret:?}\n{example}\n{more}");
        let mut python = Command::new("python3");
        let done = python.args(["-c", &program]).env("no_proxy", "*").output().expect("Python");
        let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
        (done.status.success(), said)
    };
    let (passed, said) = run(SECRET, "");
    assert!(passed && said.trim() == "200", "{said}");
    assert_eq!(site.upstream.seen(), 1);
    let again = "urllib.request.urlopen(urllib.request.Request(url + path, body, headers))";
    let (passed, said) = run(SECRET, again);
    assert!(!passed && said.starts_with("200") && said.contains("403"), "{said}");
    let (passed, said) = run("some other secret", "");
    assert!(!passed && said.contains("403"), "{said}");
    assert_eq!(site.upstream.seen(), 2);
    assert_eq!(site.get(&[("x-api-key", &text)]).status, 403);
}
