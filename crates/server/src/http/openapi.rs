//! The OpenAPI document, made from the table of routes: what is served is what is described.

mod headers;

use std::sync::LazyLock;

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};
use tollkeeper_wire as wire;
use wire::Described;

use super::idempotency::KEY_BYTES_MAX;
use super::reply::JSON;
use super::route::{Answers, Effect, OPERATOR, Route, Takes, routes};

/// Made once: it depends on nothing but this binary. All who ask share it.
static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| document().to_string().into());

pub fn text() -> Bytes {
    DOCUMENT.clone()
}

fn document() -> Value {
    let paths: serde_json::Map<String, Value> =
        routes().map(|route| (route.path.to_owned(), path_item(route))).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tollkeeper",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "securitySchemes": { "rootKey": { "type": "http", "scheme": "bearer" } },
            "schemas": { "Meta": meta(), "Failure": failure() },
        },
    })
}

fn path_item(route: &Route) -> Value {
    let mut operation = json!({
        "operationId": route.path.trim_start_matches("/v2/").trim_start_matches('/'),
        "summary": route.about,
        "responses": responses(route),
    });
    if let Takes::Body(shape) = route.takes {
        let content = json!({ "application/json": { "schema": shape.json_schema() } });
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    if route.effect != Effect::Asks {
        operation["parameters"] = json!([idempotency_key()]);
    }
    if let Some(permission) = route.permission {
        operation["security"] = json!([{ "rootKey": [] }]);
        operation["description"] = match permission {
            OPERATOR => json!("Needs the operator's own root key."),
            permission => json!(format!("Needs the permission `{permission}`.")),
        };
    }
    json!({ route.method().as_str().to_lowercase(): operation })
}

fn responses(route: &Route) -> Value {
    let success = match route.answers {
        Answers::Data(shape) => envelope(&shape.json_schema(), false),
        Answers::Page(shape) => {
            envelope(&json!({ "type": "array", "items": shape.json_schema() }), true)
        }
        Answers::Done => json!({
            "type": "object",
            "required": ["meta"],
            "properties": { "meta": { "$ref": "#/components/schemas/Meta" } },
        }),
        Answers::Proxy => return unread(proxy_responses(route)),
        Answers::Plain(kinds) => {
            let each = kinds.iter().map(|kind| ((*kind).to_owned(), json!({})));
            return refusable(route, &each.collect());
        }
    };
    refusable(route, &json!({ "application/json": { "schema": success } }))
}

/// What a route answers when all is well, and what it may refuse with.
fn refusable(route: &Route, content: &Value) -> Value {
    let mut success = json!({ "description": "OK", "content": content });
    tell(&mut success, headers::of_answers(route));
    let mut responses = json!({ "200": success });
    let of_calls = if route.permission.is_some() { FAILURES.as_slice() } else { &[] };
    for (status, description) in of_calls.iter().chain([&WRONG_METHOD]) {
        responses[status.as_str()] = refusal(*status, description, route.kind_of_refusal(*status));
    }
    unread(responses)
}

/// What anybody may be told before it is known what is asked.
fn unread(mut responses: Value) -> Value {
    for (status, description) in UNREAD {
        if responses.get(status.as_str()).is_none() {
            responses[status.as_str()] = refusal(status, description, JSON);
        }
    }
    responses
}

fn refusal(status: StatusCode, description: &str, kind: &str) -> Value {
    let content = json!({ kind: { "schema": { "$ref": "#/components/schemas/Failure" } } });
    let mut response = json!({ "description": description, "content": content });
    tell(&mut response, headers::of_refusals(status));
    response
}

fn tell(response: &mut Value, headers: serde_json::Map<String, Value>) {
    if !headers.is_empty() {
        response["headers"] = headers.into();
    }
}

/// A success is headers only; everything else is handed to the end user as it is.
fn proxy_responses(route: &Route) -> Value {
    let content =
        json!({ "application/problem+json": { "schema": wire::Denial::SHAPE.json_schema() } });
    let told = ["X-Tollkeeper-Key-Id", "X-Tollkeeper-Identity", "X-Tollkeeper-Tier"];
    let mut headers = headers::of_answers(route);
    headers.extend(told.map(|name| {
        (name.to_owned(), json!({ "required": true, "schema": { "type": "string" } }))
    }));
    let denied = |description| json!({ "description": description, "content": content });
    json!({
        "200": { "description": "It may pass.", "headers": headers },
        "401": denied("No key, or one that is not known, expired or revoked."),
        "403": denied("The key may not, or the proxy does not say what or for whom it asks."),
        "429": denied("A limit or the credits are used up; `Retry-After` says when to come back."),
        "503": denied("It could not be decided."),
    })
}

/// What any authenticated call may be refused with.
const FAILURES: [(StatusCode, &str); 13] = [
    (StatusCode::BAD_REQUEST, "The request is malformed; `errors` names everything that is wrong."),
    (StatusCode::UNAUTHORIZED, "The root key is unknown."),
    (StatusCode::FORBIDDEN, "The root key lacks a permission, or is disabled."),
    (StatusCode::NOT_FOUND, "What the request names does not exist."),
    (StatusCode::REQUEST_TIMEOUT, "The body did not arrive in time."),
    (
        StatusCode::CONFLICT,
        "There is one of that name, or the Idempotency-Key belongs to another request.",
    ),
    (StatusCode::GONE, "The namespace was deleted."),
    (
        StatusCode::PRECONDITION_FAILED,
        "What the request needs is not so: a limit that is not stored, a project that is protected.",
    ),
    (StatusCode::PAYLOAD_TOO_LARGE, "The body is too large."),
    (StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body is compressed, or coded in another way."),
    (
        StatusCode::TOO_MANY_REQUESTS,
        "Too many calls of this workspace, changes by this root key, unknown keys, or large bodies at once.",
    ),
    (
        StatusCode::INTERNAL_SERVER_ERROR,
        "Something went wrong on this side; the request id finds it in the log.",
    ),
    (StatusCode::SERVICE_UNAVAILABLE, "Storage did not answer; nothing was spent."),
];

const WRONG_METHOD: (StatusCode, &str) =
    (StatusCode::METHOD_NOT_ALLOWED, "The path takes another method; `Allow` names it.");

/// What a request is refused with whatever it asks for.
const UNREAD: [(StatusCode, &str); 2] = [
    (StatusCode::BAD_REQUEST, "The request is not as HTTP has it."),
    (
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        "The request line and the headers are too large, or there are too many. Over HTTP/2 it comes without a body.",
    ),
];

/// Of calls that spend or change.
fn idempotency_key() -> Value {
    json!({
        "name": "Idempotency-Key",
        "in": "header",
        "description": "A retry with the same key and body gets the first answer again, and nothing is done twice.",
        "schema": { "type": "string", "minLength": 1, "maxLength": KEY_BYTES_MAX, "pattern": "^[ -~]*$" },
    })
}

fn envelope(data: &Value, paged: bool) -> Value {
    let mut schema = json!({
        "type": "object",
        "required": ["meta", "data"],
        "properties": { "meta": { "$ref": "#/components/schemas/Meta" }, "data": data },
    });
    if paged {
        schema["properties"]["pagination"] = json!({
            "type": "object",
            "required": ["hasMore"],
            "properties": { "cursor": { "type": "string" }, "hasMore": { "type": "boolean" } },
        });
    }
    schema
}

fn meta() -> Value {
    json!({ "type": "object", "required": ["requestId"], "properties": { "requestId": { "type": "string" } } })
}

fn failure() -> Value {
    let field_error = json!({
        "type": "object",
        "required": ["location", "message"],
        "properties": {
            "location": { "type": "string" }, "message": { "type": "string" }, "fix": { "type": "string" },
        },
    });
    let problem = json!({
        "type": "object",
        "required": ["title", "detail", "status", "type"],
        "properties": {
            "title": { "type": "string" }, "detail": { "type": "string" },
            "status": { "type": "integer" }, "type": { "type": "string", "format": "uri" },
            "errors": { "type": "array", "items": field_error },
        },
    });
    json!({
        "type": "object",
        "required": ["meta", "error"],
        "properties": { "meta": { "$ref": "#/components/schemas/Meta" }, "error": problem },
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn the_document_describes_every_route_and_refuses_unknown_fields() {
        let document: Value = serde_json::from_slice(&text()).unwrap();
        assert_eq!(document["paths"].as_object().unwrap().len(), routes().count());
        let body = &document["paths"]["/v2/ratelimit.limit"]["post"]["requestBody"]["content"];
        let schema = &body["application/json"]["schema"];
        assert_eq!(schema["additionalProperties"], json!(false));
        assert_eq!(*schema, tollkeeper_wire::LimitRequest::SHAPE.json_schema());
    }

    #[test]
    fn the_document_tells_which_headers_come_with_an_answer() {
        let document: Value = serde_json::from_slice(&text()).unwrap();
        let told = |path: &str, method: &str, status: &str| {
            let headers = document["paths"][path][method]["responses"][status]["headers"].clone();
            let headers = headers.as_object().cloned().unwrap_or_default();
            headers.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        let mut standing = vec![
            "X-RateLimit-Limit",
            "X-RateLimit-Remaining",
            "X-RateLimit-Reset",
            "RateLimit-Policy",
            "RateLimit",
            "Retry-After",
        ];
        standing.sort_unstable();
        for path in ["ratelimit.limit", "ratelimit.multiLimit", "keys.verifyKey", "gate.check"] {
            let mut found = told(&format!("/v2/{path}"), "post", "200");
            found.sort_unstable();
            assert_eq!(found, standing, "{path}");
        }
        let by_proxy = told("/check/caddy", "get", "200");
        assert!(standing.iter().all(|name| by_proxy.iter().any(|found| found == name)));
        assert_eq!(told("/v2/keys.createKey", "post", "200"), [""; 0]);
        for (status, name) in
            [("401", "WWW-Authenticate"), ("405", "Allow"), ("429", "Retry-After")]
        {
            assert_eq!(told("/v2/keys.createKey", "post", status), [name]);
        }
        assert_eq!(told("/livez", "get", "405"), ["Allow"]);
    }

    #[test]
    fn the_document_tells_what_any_request_may_be_refused_with() {
        let document: Value = serde_json::from_slice(&text()).unwrap();
        for route in routes() {
            let method = route.method().as_str().to_lowercase();
            let responses = &document["paths"][route.path][method]["responses"];
            for status in ["400", "431"] {
                assert!(responses.get(status).is_some(), "{} {status}", route.path);
            }
            let takes_any = matches!(route.takes, Takes::AnyMethod);
            assert_eq!(responses.get("405").is_none(), takes_any, "{}", route.path);
        }
    }

    #[test]
    fn the_document_tells_what_is_served() {
        let document: Value = serde_json::from_slice(&text()).unwrap();
        let of = |path: &str| document["paths"][path]["post"].clone();
        for route in routes().filter(|route| route.permission.is_some()) {
            let operation = of(route.path);
            let takes_key = operation["parameters"][0]["name"] == "Idempotency-Key";
            assert_eq!(takes_key, route.effect != Effect::Asks, "{}", route.path);
            for (status, _) in FAILURES {
                let content = &operation["responses"][status.as_str()]["content"];
                assert!(content.get(route.kind_of_refusal(status)).is_some(), "{}", route.path);
            }
        }
        let told = |path: &str, status: &str| {
            let content = of(path)["responses"][status]["content"].clone();
            content.as_object().unwrap().keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(told("/v2/permissions.updateRole", "429"), ["application/json"]);
        assert_eq!(told("/v2/permissions.createRole", "429"), ["application/problem+json"]);
        assert_eq!(told("/v2/identities.deleteIdentity", "404"), ["application/problem+json"]);
        assert_eq!(told("/v2/usage.export", "200").len(), 2);
        assert_eq!(told("/v2/usage.export", "401"), ["application/json"]);
    }
}
