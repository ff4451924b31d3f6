//! Who may call what: every route of the server's own table against every kind of caller, as the table below says.
//! A route that is not in the table below fails the test, and so does a row that no route answers.

use serde_json::{Value, json};
use tollkeeper_server::routes;

use crate::world::{Client, World, ask};

/// What a route answers to whom. `{id}` in a permission stands for what the request is about.
struct Row {
    path: &'static str,
    /// All that a root key needs, and nothing else.
    needs: &'static [&'static str],
    /// A key with exactly that.
    narrow: u16,
    /// A key without it, or with the same for another id.
    without: u16,
    /// A key of another tenant that may do everything there.
    stranger: u16,
}

const fn row(
    path: &'static str,
    needs: &'static [&'static str],
    without: u16,
    stranger: u16,
) -> Row {
    Row { path, needs, narrow: 200, without, stranger }
}

/// No permission opens these: the key must be the operator's own.
const fn operators(path: &'static str) -> Row {
    Row { path, needs: &["*"], narrow: 403, without: 403, stranger: 403 }
}

const EXPECTED: &[Row] = &[
    row("ratelimit.limit", &["ratelimit.*.limit"], 403, 200),
    row("ratelimit.multiLimit", &["ratelimit.*.limit"], 403, 200),
    row("ratelimit.setOverride", &["ratelimit.*.set_override"], 403, 404),
    row("ratelimit.getOverride", &["ratelimit.*.read_override"], 404, 404),
    row("ratelimit.listOverrides", &["ratelimit.*.read_override"], 403, 404),
    row("ratelimit.deleteOverride", &["ratelimit.*.delete_override"], 403, 404),
    row("ratelimit.deleteNamespace", &["ratelimit.*.delete_namespace"], 403, 404),
    row("limits.peek", &["limits.*.peek"], 403, 404),
    row("limits.reset", &["limits.*.reset"], 403, 404),
    row("limits.stats", &["limits.*.stats"], 403, 200),
    // Whoever may not verify a key learns no more than that it is not his: `valid` is looked at below.
    row("keys.verifyKey", &["api.{id}.verify_key"], 200, 200),
    // The same for a key of another tenant: `allowed` is looked at below.
    row("gate.check", &["gate.*.check"], 403, 200),
    row("gate.explain", &["gate.*.explain"], 403, 200),
    row("keys.createKey", &["api.{id}.create_key"], 404, 404),
    row("keys.getKey", &["api.{id}.read_key"], 403, 404),
    row("keys.whoami", &["api.{id}.read_key"], 404, 404),
    row("keys.updateKey", &["api.{id}.update_key"], 403, 404),
    row("keys.updateCredits", &["api.{id}.update_key"], 403, 404),
    row("keys.deleteKey", &["api.{id}.delete_key"], 403, 404),
    row("keys.revoke", &["keys.*.revoke"], 403, 404),
    row("keys.rerollKey", &["api.{id}.create_key"], 403, 404),
    row("keys.addPermissions", &["api.{id}.update_key", "rbac.*.add_permission_to_key"], 403, 404),
    row(
        "keys.removePermissions",
        &["api.{id}.update_key", "rbac.*.remove_permission_from_key"],
        403,
        404,
    ),
    row(
        "keys.setPermissions",
        &[
            "api.{id}.update_key",
            "rbac.*.add_permission_to_key",
            "rbac.*.remove_permission_from_key",
        ],
        403,
        404,
    ),
    row("keys.addRoles", &["api.{id}.update_key", "rbac.*.add_role_to_key"], 403, 404),
    row("keys.removeRoles", &["api.{id}.update_key", "rbac.*.remove_role_from_key"], 403, 404),
    row(
        "keys.setRoles",
        &["api.{id}.update_key", "rbac.*.add_role_to_key", "rbac.*.remove_role_from_key"],
        403,
        404,
    ),
    row("keys.migrateKeys", &["api.{id}.create_key"], 403, 404),
    row("apis.createApi", &["api.*.create_api"], 403, 200),
    row("apis.getApi", &["api.{id}.read_api"], 403, 404),
    row("apis.deleteApi", &["api.{id}.delete_api"], 403, 404),
    row("apis.listKeys", &["api.{id}.read_key", "api.{id}.read_api"], 404, 404),
    row("projects.create", &["projects.*.create"], 403, 200),
    row("projects.get", &["projects.{id}.get"], 403, 404),
    row("projects.list", &["projects.*.list"], 403, 200),
    row("projects.update", &["projects.{id}.update"], 403, 404),
    row("projects.delete", &["projects.{id}.delete"], 403, 404),
    row("identities.createIdentity", &["identity.*.create_identity"], 403, 200),
    row("identities.getIdentity", &["identity.*.read_identity"], 403, 404),
    row("identities.listIdentities", &["identity.*.read_identity"], 403, 200),
    row("identities.updateIdentity", &["identity.*.update_identity"], 403, 404),
    row("identities.deleteIdentity", &["identity.*.delete_identity"], 403, 404),
    row("permissions.createPermission", &["rbac.*.create_permission"], 403, 200),
    row("permissions.getPermission", &["rbac.*.read_permission"], 403, 404),
    row("permissions.listPermissions", &["rbac.*.read_permission"], 403, 200),
    row("permissions.updatePermission", &["rbac.*.update_permission"], 403, 404),
    row("permissions.deletePermission", &["rbac.*.delete_permission"], 403, 404),
    row(
        "permissions.createRole",
        &["rbac.*.create_role", "rbac.*.add_permission_to_role"],
        403,
        200,
    ),
    row("permissions.getRole", &["rbac.*.read_role"], 403, 404),
    row("permissions.listRoles", &["rbac.*.read_role"], 403, 200),
    row("permissions.updateRole", &["rbac.*.update_role"], 403, 404),
    row("permissions.deleteRole", &["rbac.*.delete_role"], 403, 404),
    row(
        "permissions.setRolePermissions",
        &["rbac.*.add_permission_to_role", "rbac.*.remove_permission_from_role"],
        403,
        404,
    ),
    // Another tenant applies to itself, and is not told of versions and names that are not its own.
    row("rules.apply", &["rules.*.apply"], 403, 200),
    row("rules.list", &["rules.*.list"], 403, 200),
    row("rules.get", &["rules.*.get"], 403, 404),
    row("rules.delete", &["rules.*.delete"], 403, 404),
    row("rules.rollback", &["rules.*.rollback"], 403, 404),
    row("quotas.get", &["quotas.*.get"], 403, 404),
    row("quotas.set", &["quotas.*.set"], 403, 200),
    row("quotas.block", &["quotas.*.block"], 403, 200),
    row("quotas.unblock", &["quotas.*.unblock"], 403, 404),
    row("rootKeys.createKey", &["rootKeys.*.createKey"], 403, 200),
    row("rootKeys.listKeys", &["rootKeys.*.listKeys"], 403, 200),
    row("rootKeys.updateKey", &["rootKeys.{id}.updateKey"], 403, 404),
    row("rootKeys.deleteKey", &["rootKeys.{id}.deleteKey"], 403, 404),
    row("rootKeys.rerollKey", &["rootKeys.{id}.rerollKey"], 403, 404),
    // For its own tenant; what only the operator may do for the fleet is in `system`.
    row("system.setMode", &["system.*.setMode"], 403, 404),
    row("system.status", &["system.*.status"], 403, 200),
    row("audit.search", &["audit.*.search"], 403, 200),
    row("audit.changes", &["audit.*.changes"], 403, 200),
    row("audit.verify", &["audit.*.verify"], 403, 200),
    row("usage.query", &["usage.*.query"], 403, 200),
    row("usage.export", &["usage.*.export"], 403, 200),
    row("usage.flush", &["usage.*.flush"], 403, 200),
    row("stats.query", &["stats.*.query"], 403, 200),
    operators("tenants.create"),
    operators("tenants.list"),
    operators("tenants.update"),
];

/// For everybody, with a key or without.
const OPEN: &[&str] = &["/v2/liveness", "/livez", "/readyz", "/metrics", "/openapi.json"];

/// For proxies, with the key of an end user and never a root key.
const KEYED: &[&str] = &["/check/caddy"];

/// One request that would be answered with 200, and the id of what it is about.
struct Errand {
    body: Value,
    id: String,
}

/// Makes what the request is about, anew every time: the one before may have been deleted.
fn errand(path: &str, maker: &mut Client, turn: usize) -> Errand {
    let name = format!("{}-{turn}", path.replace('.', "-"));
    let (group, method) = path.split_once('.').expect("a group and a method");
    match group {
        "ratelimit" | "limits" => of_limits(path, maker, &name),
        "keys" => of_keys(method, maker, &name),
        "gate" => of_keys("verifyKey", maker, &name),
        "apis" | "projects" => of_projects(path, maker, &name),
        "identities" => of_identities(method, maker, &name),
        "permissions" => of_rbac(method, maker, &name),
        "rootKeys" => of_root_keys(method, maker),
        "rules" => of_rules(method, maker, &name),
        "quotas" => of_quotas(method, maker, &name),
        "system" => of_system(method, maker),
        "audit" => Errand { body: json!({}), id: String::new() },
        "usage" if method == "flush" => Errand { body: json!({}), id: String::new() },
        "usage" | "stats" => Errand { body: json!({"from": 0, "to": 1}), id: String::new() },
        _ => of_tenants(method, maker, &name),
    }
}

fn of_rules(method: &str, maker: &mut Client, name: &str) -> Errand {
    // About an address that nobody has: it must not stand in the way of the other routes.
    let rule = |name: &str| json!({"rules": [{"name": name, "scope": "ip", "action": "block", "ipRanges": ["192.0.2.1"]}]});
    let version = maker.data("rules.apply", &rule(name))["version"].clone();
    let body = match method {
        "apply" => rule(&format!("{name}-new")),
        "list" => json!({}),
        "rollback" => json!({"version": version}),
        _ => json!({"name": name}),
    };
    Errand { body, id: String::new() }
}

fn of_quotas(method: &str, maker: &mut Client, name: &str) -> Errand {
    maker.data("quotas.block", &json!({"externalId": name}));
    let mut body = json!({"externalId": name});
    if method == "set" {
        body["tier"] = json!("pro");
    }
    Errand { body, id: String::new() }
}

fn of_limits(path: &str, maker: &mut Client, name: &str) -> Errand {
    let one = ask(name, "ann", 5);
    maker.limit(&one);
    let mut over = one.clone();
    over["limit"] = json!(7);
    maker.data("ratelimit.setOverride", &over);
    let body = match path {
        "ratelimit.multiLimit" => json!([one]),
        "limits.stats" => json!({"from": 0, "to": 1}),
        "ratelimit.setOverride" => over,
        "ratelimit.getOverride" | "ratelimit.deleteOverride" => {
            json!({"namespace": name, "identifier": "ann"})
        }
        "ratelimit.listOverrides" | "ratelimit.deleteNamespace" | "limits.reset" => {
            json!({"namespace": name})
        }
        _ => one,
    };
    Errand { body, id: String::new() }
}

fn of_keys(method: &str, maker: &mut Client, name: &str) -> Errand {
    let id = made(maker, "apis.createApi", &json!({"name": name}), "apiId");
    maker.data("permissions.createRole", &json!({"name": name}));
    let new = json!({"apiId": id, "permissions": [name], "credits": {"remaining": 5}});
    let key = maker.data("keys.createKey", &new);
    let mut body = json!({"keyId": key["keyId"]});
    match method {
        "verifyKey" | "whoami" => body = json!({"key": key["key"]}),
        "createKey" => body = json!({"apiId": id}),
        "updateKey" => body["name"] = json!("other"),
        "updateCredits" => {
            body["operation"] = json!("set");
            body["value"] = json!(9);
        }
        "rerollKey" => body["expiration"] = json!(0),
        "addPermissions" | "removePermissions" | "setPermissions" => {
            body["permissions"] = json!([name]);
        }
        "addRoles" | "removeRoles" | "setRoles" => body["roles"] = json!([name]),
        "migrateKeys" => {
            let hash: String = name.bytes().map(|byte| char::from(b'0' + byte % 10)).collect();
            let keys = json!([{"hash": format!("{hash:0<64}")[..64]}]);
            body = json!({"migrationId": name, "apiId": id, "keys": keys});
        }
        _ => {}
    }
    Errand { body, id }
}

fn of_projects(path: &str, maker: &mut Client, name: &str) -> Errand {
    let id = made(maker, "apis.createApi", &json!({"name": name}), "apiId");
    let body = match path {
        "apis.createApi" | "projects.create" => json!({"name": name}),
        "projects.get" => json!({"project": id}),
        "projects.list" => json!({}),
        _ => json!({"apiId": id}),
    };
    Errand { body, id }
}

fn of_identities(method: &str, maker: &mut Client, name: &str) -> Errand {
    let id = made(maker, "identities.createIdentity", &json!({"externalId": name}), "identityId");
    let body = match method {
        "createIdentity" => json!({"externalId": format!("{name}-new")}),
        "listIdentities" => json!({}),
        _ => json!({"identity": id}),
    };
    Errand { body, id }
}

fn of_rbac(method: &str, maker: &mut Client, name: &str) -> Errand {
    let new = json!({"name": name, "slug": name});
    let permission = made(maker, "permissions.createPermission", &new, "permissionId");
    let role = made(maker, "permissions.createRole", &json!({"name": name}), "roleId");
    let body = match method {
        "createPermission" => json!({"name": name, "slug": format!("{name}-new")}),
        "createRole" => json!({"name": format!("{name}-new"), "permissions": [name]}),
        "listPermissions" | "listRoles" => json!({}),
        "setRolePermissions" => json!({"role": role, "permissions": [name]}),
        _ if method.ends_with("Role") => json!({"role": role}),
        _ => json!({"permission": permission}),
    };
    Errand { body, id: role }
}

fn of_root_keys(method: &str, maker: &mut Client) -> Errand {
    let id = made(maker, "rootKeys.createKey", &json!({"permissions": []}), "keyId");
    let body = match method {
        "createKey" => json!({"permissions": []}),
        "listKeys" => json!({}),
        "rerollKey" => json!({"keyId": id, "expiration": 0}),
        _ => json!({"keyId": id}),
    };
    Errand { body, id }
}

fn of_system(method: &str, operator: &mut Client) -> Errand {
    let tenants = operator.data("tenants.list", &json!({}));
    let first = tenants.as_array().expect("a list").iter().find(|one| one["slug"] == "default");
    let id = first.expect("the operator's tenant")["tenantId"].clone();
    let body = match method {
        "setMode" => json!({"mode": "memory", "tenant": id}),
        _ => json!({}),
    };
    Errand { body, id: String::new() }
}

fn of_tenants(method: &str, operator: &mut Client, name: &str) -> Errand {
    let id = match method {
        "update" => made(operator, "tenants.create", &json!({"name": name}), "tenantId"),
        _ => String::new(),
    };
    let body = match method {
        "create" => json!({"name": name}),
        "update" => json!({"tenantId": id}),
        _ => json!({}),
    };
    Errand { body, id }
}

fn made(client: &mut Client, method: &str, body: &Value, field: &str) -> String {
    client.data(method, body)[field].as_str().expect("an id").to_owned()
}

/// Everybody who comes to every route.
struct Cast<'w> {
    world: &'w World,
    stranger: String,
    disabled: String,
    deleted: String,
}

impl<'w> Cast<'w> {
    fn of(world: &'w World) -> Self {
        let mut operator = world.client();
        let stranger = made(&mut operator, "tenants.create", &json!({"name": "Other"}), "rootKey");
        let mut dead = || operator.data("rootKeys.createKey", &json!({"permissions": ["*"]}));
        let (off, gone) = (dead(), dead());
        operator.data("rootKeys.updateKey", &json!({"keyId": off["keyId"], "enabled": false}));
        operator.data("rootKeys.deleteKey", &json!({"keyId": gone["keyId"]}));
        let text = |key: &Value| key["key"].as_str().expect("a key").to_owned();
        Self { world, stranger, disabled: text(&off), deleted: text(&gone) }
    }

    fn client(&self, key: &str) -> Client {
        Client::new(self.world.server.url(), key)
    }

    /// A root key with exactly these permissions.
    fn with(&self, maker: &mut Client, permissions: &[String]) -> Client {
        let key = made(maker, "rootKeys.createKey", &json!({"permissions": permissions}), "key");
        self.client(&key)
    }

    fn without_a_key(&self, path: &str, body: &Value) -> u16 {
        let mut connection = self.client("").connection;
        let path = format!("/v2/{path}");
        let body = body.to_string();
        let answer = connection.exchange("POST", &path, &[], body.as_bytes());
        answer.expect("an answer").status
    }
}

/// Whether the caller got what it came for.
fn outcome(client: &mut Client, path: &str, body: &Value) -> (u16, bool) {
    let answer = client.post(path, body);
    let data = &answer.json["data"];
    let served = answer.status() == 200 && data["valid"] != false && data["allowed"] != false;
    (answer.status(), served)
}

fn check(row: &Row, cast: &Cast<'_>) {
    let (path, mut operator) = (row.path, cast.world.client());
    // Of its own for every route: nobody may change too much at once.
    let mut maker = if path.starts_with("tenants.") || path.starts_with("system.") {
        cast.world.client()
    } else {
        cast.with(&mut operator, &["*".to_owned()])
    };
    let Errand { body, id } = errand(path, &mut maker, 1);
    let needs: Vec<String> = row.needs.iter().map(|need| need.replace("{id}", &id)).collect();
    assert_eq!(cast.without_a_key(path, &body), 400, "{path}: no key");
    for (who, key, status) in [
        ("unknown key", "tk_root_nobody_has_this_key", 401),
        ("deleted key", &*cast.deleted, 401),
        ("disabled key", &*cast.disabled, 403),
        ("other tenant", &*cast.stranger, row.stranger),
    ] {
        let (seen, served) = outcome(&mut cast.client(key), path, &body);
        assert_eq!(seen, status, "{path}: {who}");
        // What another tenant gets is its own; of ours it gets nothing.
        let about_a_key = path == "keys.verifyKey" || path.starts_with("gate.");
        assert!(!served || !about_a_key, "{path}: {who}");
    }
    let elsewhere: Vec<String> =
        row.needs.iter().map(|need| need.replace("{id}", "another_id")).collect();
    let mut lacking = vec![vec!["api.*.read_analytics".to_owned()]];
    if elsewhere != needs {
        lacking.push(elsewhere);
    }
    for permissions in lacking {
        let mut client = cast.with(&mut maker, &permissions);
        let (seen, served) = outcome(&mut client, path, &body);
        assert_eq!((seen, served), (row.without, false), "{path}: only {permissions:?}");
    }
    for at in 0..needs.len() {
        let mut fewer = needs.clone();
        fewer.remove(at);
        let (seen, served) = outcome(&mut cast.with(&mut maker, &fewer), path, &body);
        assert!(!served && [200, 403, 404].contains(&seen), "{path}: {seen} with only {fewer:?}");
    }
    // None of those has changed anything: what the request is about is still there.
    let narrow = outcome(&mut cast.with(&mut maker, &needs), path, &body);
    assert_eq!(narrow, (row.narrow, row.narrow == 200), "{path}: exactly {needs:?}");
    let again = errand(path, &mut maker, 2);
    assert_eq!(outcome(&mut operator, path, &again.body), (200, true), "{path}: operator");
}

#[test]
fn every_route_answers_every_kind_of_caller_as_the_table_says() {
    let world = World::new();
    let cast = Cast::of(&world);
    for route in routes() {
        if KEYED.contains(&route.path) {
            let root_key = [("x-api-key", world.server.root_key())];
            for key in [&[][..], &root_key] {
                let answer = world.client().connection.exchange("GET", route.path, key, b"");
                assert!([401, 403].contains(&answer.expect("an answer").status), "{}", route.path);
            }
            continue;
        }
        if route.permission.is_none() {
            assert!(OPEN.contains(&route.path), "{} is not in the table of access", route.path);
            assert_eq!(world.client().get(route.path).status, 200, "{}", route.path);
            continue;
        }
        let row = EXPECTED.iter().find(|row| route.path.strip_prefix("/v2/") == Some(row.path));
        let row = row.unwrap_or_else(|| panic!("{} is not in the table of access", route.path));
        check(row, &cast);
    }
}

#[test]
fn every_row_of_the_table_of_access_is_a_route() {
    let paths: Vec<_> = routes().map(|route| route.path).collect();
    for row in EXPECTED {
        let path = format!("/v2/{}", row.path);
        assert!(paths.contains(&&*path), "{path} is not served");
    }
    assert!(OPEN.iter().chain(KEYED).all(|path| paths.contains(path)));
}
