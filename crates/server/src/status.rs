//! Every refusal and its status, type and words: the one table from what went wrong to what the wire says.
//! Internal text stays in the log; what stands here may be read by anybody.

mod causes;
mod ruling;

use std::borrow::Cow;

use http::StatusCode;
use tollkeeper_core::QueryFault;
use tollkeeper_store::Thing;
use tollkeeper_wire::{FieldError, Problem};

pub use causes::chain;
pub use ruling::Ruling;

/// What the type of every error starts with.
pub const TYPE_BASE: &str = "https://tollkeeper.dev/errors/";

/// Why a request gets no answer. A denial is not here: it is an answer.
#[derive(Debug)]
pub enum Refusal {
    Fields(Vec<FieldError>),
    BodyTooLarge {
        max: usize,
    },
    BodyUnreadable,
    /// Compressed, or coded in another way.
    BodyEncoded,
    BodyTooSlow,
    /// As many connections are open as there may be.
    ConnectionsFull,
    /// What came in is no request of HTTP.
    HeadUnreadable,
    /// None, or more than one: others on the way may have meant another server.
    HostUnclear,
    /// Of the length of its body too much is said, or nothing that all understand alike.
    FramingUnclear,
    HeadTooLarge,
    /// Large ones of others took all the room that there is for them.
    BodiesCrowded,
    AuthMalformed,
    /// Two that differ: whose request it is cannot be told.
    AuthAmbiguous,
    KeyUnknown,
    KeyDisabled,
    TenantDisabled,
    Forbidden {
        needs: String,
    },
    NamespaceMissing(String),
    NamespaceGone(String),
    OverrideMissing(String),
    IdempotencyKeyReused,
    /// The first request with this key is still being answered.
    IdempotencyKeyBusy,
    /// No permission stands for it.
    OperatorOnly,
    /// A root key that would live longer than the one that asks.
    Outlives,
    TenantLimited {
        retry_after_s: u64,
    },
    ChangesLimited {
        retry_after_s: u64,
    },
    PermissionQuery(QueryFault),
    /// A limit that is asked for by a name nobody knows.
    LimitUnknown(String),
    /// Not there, or not this caller's to see.
    NotFound {
        what: Thing,
        named: String,
    },
    /// No key has this text; the text itself is not repeated.
    KeyTextUnknown,
    Taken {
        what: Thing,
    },
    Protected,
    Precondition(&'static str),
    TooManyOverrides,
    TooManyLimits {
        most: usize,
    },
    /// A proxy asked about a request without a key.
    GateKeyMissing,
    GateKeysDiffer,
    /// A proxy did not say what it asks about.
    ProxySilent {
        header: &'static str,
    },
    /// A proxy that did not say whose it is, where there are several to choose from.
    DoorUnnamed,
    DoorAmbiguous(String),
    DoorUnknown(String),
    UnknownRoute(String),
    WrongMethod {
        allowed: &'static str,
    },
    /// Storage did not answer; the text is for the log only.
    Unavailable(String),
    /// Redis did not answer while counters were set back.
    NotReset,
    /// The disk under the database takes no writes; the text is for the log only.
    DiskFull(String),
    /// Too many unknown keys were asked for; no line in the log for each, or a flood would fill the disk.
    KeysFlooded,
    Unexpected(String),
}

struct Row {
    status: StatusCode,
    kind: &'static str,
    title: &'static str,
    detail: Cow<'static, str>,
}

// === impl Refusal ===

impl Refusal {
    pub fn status(&self) -> StatusCode {
        self.row().status
    }

    pub fn not_found(what: Thing, named: &str) -> Self {
        Self::NotFound { what, named: named.to_owned() }
    }

    /// When to come back, where that is known.
    pub fn retry_after_s(&self) -> Option<u64> {
        match self {
            Self::TenantLimited { retry_after_s } | Self::ChangesLimited { retry_after_s } => {
                Some(*retry_after_s)
            }
            Self::KeysFlooded | Self::BodiesCrowded | Self::ConnectionsFull => Some(1),
            _ => None,
        }
    }

    /// What only the log may know.
    pub fn internal(&self) -> Option<&str> {
        match self {
            Self::Unavailable(text) | Self::DiskFull(text) | Self::Unexpected(text) => Some(text),
            Self::NotReset => Some("redis did not answer to a reset"),
            _ => None,
        }
    }

    pub fn into_problem(self) -> Problem<'static> {
        let row = self.row();
        let kind = format!("{TYPE_BASE}{}", row.kind);
        let problem = Problem::new(row.status.as_u16(), kind, row.title, row.detail);
        match self {
            Self::Fields(errors) => problem.with_errors(errors),
            _ => problem,
        }
    }

    fn row(&self) -> Row {
        let row =
            |status, kind, title, detail: Cow<'static, str>| Row { status, kind, title, detail };
        match self {
            Self::Fields(_) => row(
                StatusCode::BAD_REQUEST,
                "unkey/application/invalid_input",
                "Bad Request",
                "The request is not what this endpoint takes; `errors` names everything that is wrong.".into(),
            ),
            Self::BodyTooLarge { max } => row(
                StatusCode::PAYLOAD_TOO_LARGE,
                "user/bad_request/request_body_too_large",
                "Payload Too Large",
                format!("The body is larger than {max} bytes. Send less in one request.").into(),
            ),
            Self::BodyUnreadable => row(
                StatusCode::BAD_REQUEST,
                "user/bad_request/request_body_unreadable",
                "Bad Request",
                "The body could not be read to its end. Send it again.".into(),
            ),
            Self::BodyEncoded => row(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "user/bad_request/request_body_encoded",
                "Unsupported Media Type",
                "Bodies must come uncompressed. Send it as it is, without `Content-Encoding`.".into(),
            ),
            Self::BodyTooSlow => row(
                StatusCode::REQUEST_TIMEOUT,
                "user/bad_request/request_timeout",
                "Request Timeout",
                "The body did not arrive in time. Send it again, faster or smaller.".into(),
            ),
            Self::ConnectionsFull => row(
                StatusCode::SERVICE_UNAVAILABLE,
                "unkey/application/service_unavailable",
                "Service Unavailable",
                "This server has as many connections open as it may have. Nothing was done; try again in a moment.".into(),
            ),
            Self::HeadUnreadable => row(
                StatusCode::BAD_REQUEST,
                "user/bad_request/request_head_unreadable",
                "Bad Request",
                "The request line or a header is not as HTTP has it. This server speaks HTTP/1.1 and HTTP/2 without TLS.".into(),
            ),
            Self::HostUnclear => row(
                StatusCode::BAD_REQUEST,
                "user/bad_request/host_unclear",
                "Bad Request",
                "A request over HTTP/1.1 names its host in one `Host` header, and this one has none or several.".into(),
            ),
            Self::FramingUnclear => row(
                StatusCode::BAD_REQUEST,
                "user/bad_request/framing_unclear",
                "Bad Request",
                "Where the body ends is not told once and clearly. Send one `Content-Length` of digits alone, or, over HTTP/1.1, one `Transfer-Encoding: chunked` instead.".into(),
            ),
            Self::HeadTooLarge => row(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "user/bad_request/request_head_too_large",
                "Request Header Fields Too Large",
                "The request line and the headers take more than 64 KiB, or there are more than 64 headers. Send less of them.".into(),
            ),
            // Not 5xx: who sends them needs no key.
            Self::BodiesCrowded => row(
                StatusCode::TOO_MANY_REQUESTS,
                "user/too_many_requests/large_bodies",
                "Too Many Requests",
                "Too many large bodies come in at the moment, and there was no room for this one in time. Nothing was done: wait as long as Retry-After says, or send less than 16 KiB in one request.".into(),
            ),
            Self::AuthMalformed => row(
                StatusCode::BAD_REQUEST,
                "unkey/authentication/malformed",
                "Bad Request",
                "The Authorization header must read `Bearer <root key>`.".into(),
            ),
            Self::AuthAmbiguous => row(
                StatusCode::BAD_REQUEST,
                "unkey/authentication/malformed",
                "Bad Request",
                "There are two different Authorization headers. Send one, `Bearer <root key>`.".into(),
            ),
            Self::KeyUnknown => row(
                StatusCode::UNAUTHORIZED,
                "unkey/authentication/key_not_found",
                "Unauthorized",
                "This root key is not known here. Check that it is complete and of this server.".into(),
            ),
            Self::KeyDisabled => row(
                StatusCode::FORBIDDEN,
                "unkey/authorization/key_disabled",
                "Forbidden",
                "This root key is disabled.".into(),
            ),
            Self::TenantDisabled => row(
                StatusCode::FORBIDDEN,
                "unkey/authorization/workspace_disabled",
                "Forbidden",
                "The workspace of this root key is disabled.".into(),
            ),
            Self::Forbidden { needs } => row(
                StatusCode::FORBIDDEN,
                "unkey/authorization/insufficient_permissions",
                "Insufficient Permissions",
                format!("This root key lacks the permission `{needs}`.").into(),
            ),
            Self::NamespaceMissing(name) => row(
                StatusCode::NOT_FOUND,
                "unkey/data/ratelimit_namespace_not_found",
                "Not Found",
                format!("There is no namespace `{}`.", shown(name)).into(),
            ),
            Self::NamespaceGone(name) => row(
                StatusCode::GONE,
                "unkey/data/ratelimit_namespace_gone",
                "Gone",
                format!("The namespace `{}` was deleted. Use another name.", shown(name)).into(),
            ),
            Self::OverrideMissing(identifier) => row(
                StatusCode::NOT_FOUND,
                "unkey/data/ratelimit_override_not_found",
                "Not Found",
                format!("There is no override for `{}` in this namespace.", shown(identifier)).into(),
            ),
            Self::IdempotencyKeyReused => row(
                StatusCode::CONFLICT,
                "user/bad_request/idempotency_key_reused",
                "Conflicting Resource",
                "This Idempotency-Key was used with another body. Send every new request with a new key.".into(),
            ),
            Self::IdempotencyKeyBusy => row(
                StatusCode::CONFLICT,
                "user/bad_request/idempotency_key_busy",
                "Conflicting Resource",
                "The first request with this Idempotency-Key is still being answered. Send the same again in a moment.".into(),
            ),
            Self::OperatorOnly => row(
                StatusCode::FORBIDDEN,
                "unkey/authorization/insufficient_permissions",
                "Insufficient Permissions",
                "Only the operator's own root key, the one of the settings, may do this.".into(),
            ),
            Self::Outlives => row(
                StatusCode::FORBIDDEN,
                "unkey/authorization/insufficient_permissions",
                "Insufficient Permissions",
                "This root key expires, and so must every one it makes, no later: send an earlier `expires`.".into(),
            ),
            Self::TenantLimited { .. } => row(
                StatusCode::TOO_MANY_REQUESTS,
                "user/too_many_requests/workspace_rate_limited",
                "Too Many Requests",
                "This workspace has used up its calls of this minute. Wait as long as Retry-After says.".into(),
            ),
            Self::ChangesLimited { .. } => row(
                StatusCode::TOO_MANY_REQUESTS,
                "user/too_many_requests/root_key_rate_limited",
                "Too Many Requests",
                "This root key changes too much at once. Wait as long as Retry-After says.".into(),
            ),
            Self::PermissionQuery(fault) => row(
                StatusCode::BAD_REQUEST,
                "user/bad_request/permissions_query_syntax_error",
                "Bad Request",
                format!(
                    "The permission query is wrong at character {}: expected {}, found {}.",
                    fault.at + 1,
                    fault.expected,
                    fault.found
                )
                .into(),
            ),
            Self::LimitUnknown(name) => row(
                StatusCode::PRECONDITION_FAILED,
                "unkey/application/precondition_failed",
                "Precondition Failed",
                format!(
                    "The key has no limit `{}`: store one, or send `limit` and `duration` with it.",
                    shown(name)
                )
                .into(),
            ),
            Self::NotFound { what, named } => row(
                StatusCode::NOT_FOUND,
                not_found_kind(*what),
                "Not Found",
                format!("There is no {what} `{}`.", shown(named)).into(),
            ),
            Self::KeyTextUnknown => row(
                StatusCode::NOT_FOUND,
                not_found_kind(Thing::Key),
                "Not Found",
                "There is no such key.".into(),
            ),
            Self::Taken { what } => row(
                StatusCode::CONFLICT,
                taken_kind(*what),
                "Conflicting Resource",
                format!("There is already {} {what} with this {}.", what.article(), what.told_apart_by()).into(),
            ),
            Self::Protected => row(
                StatusCode::PRECONDITION_FAILED,
                "unkey/application/protected_resource",
                "Precondition Failed",
                "It is protected against deletion: take `deleteProtection` off first.".into(),
            ),
            Self::Precondition(text) => row(
                StatusCode::PRECONDITION_FAILED,
                "unkey/application/precondition_failed",
                "Precondition Failed",
                (*text).into(),
            ),
            Self::TooManyLimits { most } => row(
                StatusCode::PRECONDITION_FAILED,
                "unkey/application/precondition_failed",
                "Precondition Failed",
                format!("More than {most} limits of rules apply to this request, and they are decided together. Nothing was spent; make the rules narrower: `gate.explain` names them.").into(),
            ),
            Self::TooManyOverrides => row(
                StatusCode::PRECONDITION_FAILED,
                "unkey/application/precondition_failed",
                "Precondition Failed",
                "A namespace holds at most 10,000 overrides and 1,000 patterns. Delete some, or use another namespace."
                    .into(),
            ),
            Self::GateKeyMissing => row(
                StatusCode::UNAUTHORIZED,
                "gate/denied/key_missing",
                "Unauthorized",
                "This API wants a key. Send it as `Authorization: Bearer <key>` or as `X-API-Key: <key>`.".into(),
            ),
            Self::GateKeysDiffer => row(
                StatusCode::UNAUTHORIZED,
                "gate/denied/keys_differ",
                "Unauthorized",
                "The request carries two different keys, in `Authorization` and `X-API-Key`. Send one of them.".into(),
            ),
            Self::ProxySilent { header } => row(
                StatusCode::FORBIDDEN,
                "gate/proxy/incomplete",
                "Forbidden",
                format!("The proxy in front of this API does not say `{header}`, once. Whoever runs it finds the way in docs/FORWARD_AUTH.md.").into(),
            ),
            Self::DoorUnnamed => row(
                StatusCode::FORBIDDEN,
                "gate/proxy/project_unnamed",
                "Forbidden",
                "The proxy in front of this API does not say for which project it asks, and there are several. Whoever runs it has to set `X-Tollkeeper-Project`, once.".into(),
            ),
            Self::DoorAmbiguous(name) => row(
                StatusCode::FORBIDDEN,
                "gate/proxy/project_ambiguous",
                "Forbidden",
                format!("The proxy in front of this API asks for the project `{}`, of which there are several. Whoever runs it has to name it by its id, or as `workspace/project`.", shown(name)).into(),
            ),
            Self::DoorUnknown(name) => row(
                StatusCode::FORBIDDEN,
                "gate/proxy/project_unknown",
                "Forbidden",
                format!("The proxy in front of this API asks for the project `{}`, which is not there. Whoever runs it has to correct `X-Tollkeeper-Project`.", shown(name)).into(),
            ),
            Self::UnknownRoute(path) => row(
                StatusCode::NOT_FOUND,
                "user/bad_request/unknown_route",
                "Not Found",
                format!("There is nothing at `{}`. /openapi.json lists what there is.", shown(path)).into(),
            ),
            Self::WrongMethod { allowed } => row(
                StatusCode::METHOD_NOT_ALLOWED,
                "user/bad_request/wrong_method",
                "Method Not Allowed",
                format!("This path takes {allowed} only.").into(),
            ),
            Self::Unavailable(_) => row(
                StatusCode::SERVICE_UNAVAILABLE,
                "unkey/application/service_unavailable",
                "Service Unavailable",
                "Storage did not answer. Nothing was spent; try again in a moment.".into(),
            ),
            Self::NotReset => row(
                StatusCode::SERVICE_UNAVAILABLE,
                "unkey/application/service_unavailable",
                "Service Unavailable",
                "Redis did not answer, so that shared counters were not set back, or not all of them. Set them back again in a moment.".into(),
            ),
            Self::DiskFull(_) => row(
                StatusCode::SERVICE_UNAVAILABLE,
                "unkey/application/service_unavailable",
                "Service Unavailable",
                "The disk of the database is full or fails. Nothing was changed. Free space on it, then try again.".into(),
            ),
            // Not 5xx: strangers would ring the alarms of the operator, and have a node leave Redis.
            Self::KeysFlooded => row(
                StatusCode::TOO_MANY_REQUESTS,
                "user/too_many_requests/unknown_keys",
                "Too Many Requests",
                "Too many unknown keys are asked for at the moment, and this one was not looked up. Nothing was spent; wait as long as Retry-After says.".into(),
            ),
            Self::Unexpected(_) => row(
                StatusCode::INTERNAL_SERVER_ERROR,
                "unkey/application/unexpected_error",
                "Internal Server Error",
                "Something went wrong on this side. The request id finds it in the log.".into(),
            ),
        }
    }
}

fn not_found_kind(what: Thing) -> &'static str {
    match what {
        Thing::Tenant => "unkey/data/workspace_not_found",
        Thing::Project => "unkey/data/api_not_found",
        Thing::Key | Thing::RootKey => "unkey/data/key_not_found",
        Thing::Identity => "unkey/data/identity_not_found",
        Thing::Permission => "unkey/data/permission_not_found",
        Thing::Role => "unkey/data/role_not_found",
        Thing::Limit => "unkey/data/ratelimit_not_found",
        Thing::Rule => "unkey/data/rule_not_found",
        Thing::RuleVersion => "unkey/data/rule_version_not_found",
    }
}

fn taken_kind(what: Thing) -> &'static str {
    match what {
        Thing::Identity => "unkey/data/identity_already_exists",
        Thing::Permission => "unkey/data/permission_already_exists",
        Thing::Role => "unkey/data/role_already_exists",
        _ => "unkey/data/already_exists",
    }
}

/// Caller text in an answer: short, and without anything that could act on a terminal or a log.
pub fn shown(text: &str) -> String {
    text.chars().take(64).flat_map(char::escape_debug).collect()
}
