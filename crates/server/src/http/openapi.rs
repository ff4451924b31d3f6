//! The OpenAPI document, made from the table of routes: what is served is what is described.

use std::sync::LazyLock;

use bytes::Bytes;
use serde_json::{Value, json};
use tollkeeper_wire as wire;
use wire::Described;

use super::route::{Answers, OPERATOR, Route, Takes, routes};

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
        Answers::Proxy => return proxy_responses(),
        Answers::Plain(kind) => {
            return json!({ "200": { "description": "OK", "content": { kind: {} } } });
        }
    };
    let mut responses = json!({
        "200": { "description": "OK", "content": { "application/json": { "schema": success } } },
    });
    if route.permission.is_some() {
        for (status, description) in FAILURES {
            let schema = json!({ "$ref": "#/components/schemas/Failure" });
            let problem = status == "429" || matches!(route.answers, Answers::Done);
            let kind = if problem { "application/problem+json" } else { "application/json" };
            let content = json!({ kind: { "schema": schema } });
            responses[status] = json!({ "description": description, "content": content });
        }
    }
    responses
}

/// A success is headers only; everything else is handed to the end user as it is.
fn proxy_responses() -> Value {
    let content =
        json!({ "application/problem+json": { "schema": wire::Denial::SHAPE.json_schema() } });
    let told = ["X-Tollkeeper-Key-Id", "X-Tollkeeper-Identity", "X-Tollkeeper-Tier"];
    let headers: serde_json::Map<String, Value> = told
        .into_iter()
        .map(|name| (name.to_owned(), json!({ "required": true, "schema": { "type": "string" } })))
        .collect();
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
const FAILURES: [(&str, &str); 11] = [
    ("400", "The request is malformed; `errors` names everything that is wrong."),
    ("401", "The root key is unknown."),
    ("403", "The root key lacks a permission, or is disabled."),
    ("404", "What the request names does not exist."),
    ("408", "The body did not arrive in time."),
    ("409", "There is one of that name, or the Idempotency-Key belongs to another request."),
    ("410", "The namespace was deleted."),
    (
        "412",
        "What the request needs is not so: a limit that is not stored, a project that is protected.",
    ),
    ("413", "The body is too large."),
    ("429", "Too many calls of this workspace, or too many changes by this root key."),
    ("503", "Storage did not answer; nothing was spent."),
];

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
}
