//! Every refusal and its status, type and words: the one table from what went wrong to what the wire says.
//! Internal text stays in the log; what stands here may be read by anybody.

use std::borrow::Cow;

use http::StatusCode;
use tollkeeper_decide::{OriginError, WarmError};
use tollkeeper_store::StoreError;
use tollkeeper_wire::{FieldError, Problem};

/// What the type of every error starts with.
const TYPE_BASE: &str = "https://tollkeeper.dev/errors/";

/// Why a request gets no answer. A denial is not here: it is an answer.
#[derive(Debug)]
pub enum Refusal {
    Fields(Vec<FieldError>),
    BodyTooLarge {
        max: usize,
    },
    BodyUnreadable,
    BodyTooSlow,
    AuthMalformed,
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
    TooManyOverrides,
    UnknownRoute(String),
    WrongMethod {
        allowed: &'static str,
    },
    /// Storage did not answer; the text is for the log only.
    Unavailable(String),
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

    /// What only the log may know.
    pub fn internal(&self) -> Option<&str> {
        match self {
            Self::Unavailable(text) | Self::Unexpected(text) => Some(text),
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
            Self::BodyTooSlow => row(
                StatusCode::REQUEST_TIMEOUT,
                "user/bad_request/request_timeout",
                "Request Timeout",
                "The body did not arrive in time. Send it again, faster or smaller.".into(),
            ),
            Self::AuthMalformed => row(
                StatusCode::BAD_REQUEST,
                "unkey/authentication/malformed",
                "Bad Request",
                "The Authorization header must read `Bearer <root key>`.".into(),
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
            Self::TooManyOverrides => row(
                StatusCode::PRECONDITION_FAILED,
                "unkey/application/precondition_failed",
                "Precondition Failed",
                "A namespace holds at most 10,000 overrides and 1,000 patterns. Delete some, or use another namespace."
                    .into(),
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
            Self::Unexpected(_) => row(
                StatusCode::INTERNAL_SERVER_ERROR,
                "unkey/application/unexpected_error",
                "Internal Server Error",
                "Something went wrong on this side. The request id finds it in the log.".into(),
            ),
        }
    }
}

/// Caller text in an answer: short, and without anything that could act on a terminal or a log.
fn shown(text: &str) -> String {
    text.chars().take(64).flat_map(char::escape_debug).collect()
}

impl From<WarmError> for Refusal {
    fn from(error: WarmError) -> Self {
        match error {
            WarmError::NamespaceMissing(name) => Self::NamespaceMissing(name),
            WarmError::NamespaceGone(name) => Self::NamespaceGone(name),
            WarmError::Forbidden { resource, id, action } => {
                Self::Forbidden { needs: format!("{resource}.{id}.{action}") }
            }
            WarmError::Origin(error) => error.into(),
        }
    }
}

impl From<OriginError> for Refusal {
    fn from(error: OriginError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl Refusal {
    /// What a store's refusal means for whoever asked about this override of this namespace.
    pub fn of_store(error: &StoreError, namespace: &str, identifier: &str) -> Self {
        match error {
            StoreError::NamespaceNotFound => Self::NamespaceMissing(namespace.to_owned()),
            StoreError::NamespaceGone => Self::NamespaceGone(namespace.to_owned()),
            StoreError::OverrideNotFound => Self::OverrideMissing(identifier.to_owned()),
            other if other.is_transient() => Self::Unavailable(chain(other)),
            other => Self::Unexpected(chain(other)),
        }
    }
}

/// An error and everything below it, for the log.
pub fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
