//! What can go wrong between asking and an answer. A denial is not among it: that is an answer.
//! No text here holds the root key.

use thiserror::Error;
use tollkeeper_wire::FieldError;

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// What the client was built from cannot work.
    #[error("{what} is not usable: expected {expected}")]
    Unfit { what: &'static str, expected: &'static str },

    /// No whole answer came. The server may have charged the ask nevertheless.
    #[error("no answer from {url}")]
    Unreachable { url: String, source: reqwest::Error },

    /// The server answered that it will not do this.
    #[error("the server refused with {status} {title}: {detail}")]
    Refused {
        status: u16,
        title: String,
        detail: String,
        kind: String,
        errors: Vec<FieldError>,
        request_id: String,
    },

    /// Something answered, but not as Tollkeeper does.
    #[error("{url} answered with status {status}, but not like Tollkeeper: {what}")]
    Garbled { url: String, status: u16, what: String },
}

impl ClientError {
    /// Whether the same ask may get an answer later. Says nothing about whether it was charged.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { status, .. } | Self::Garbled { status, .. } => {
                *status == 429 || *status >= 500
            }
            Self::Unfit { .. } => false,
        }
    }
}
