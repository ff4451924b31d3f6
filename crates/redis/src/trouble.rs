//! Why there is no vetted connection to a server, in words for whoever runs it.

use redis::{ErrorKind, RedisError};

use crate::error::{CallError, Refusal};

/// The last reason why a link could not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    #[error("it accepted the connection but did not answer within {0} ms")]
    Silent(u128),
    #[error("it runs Redis {0}; Tollkeeper needs 7.0 or newer")]
    TooOld(String),
    #[error(
        "it drops counters when its memory is full (maxmemory-policy {0}): set maxmemory-policy to noeviction"
    )]
    Evicts(String),
    #[error("it is a replica, not the primary")]
    NotPrimary,
    #[error(
        "another process answers on the same connection: a proxy that switches servers cannot be used"
    )]
    Switched,
    #[error("its role or replication id changed")]
    Demoted,
    #[error("{0}")]
    Refused(Refusal),
    #[error("TLS: {0}")]
    Tls(String),
    #[error("its history could not be checked: {0}")]
    Unchecked(CallError),
    #[error("no sentinel knows the primary: {0}")]
    NoPrimary(String),
    #[error("it answered strangely: {0}")]
    Strange(String),
}

impl From<CallError> for Trouble {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused(Refusal::ReadOnly) => Self::NotPrimary,
            CallError::Refused(refusal) => Self::Refused(refusal),
            CallError::Broken(text) => Self::Unreachable(text),
            other => Self::Strange(other.to_string()),
        }
    }
}

/// What the library says when it has greeted a server.
impl From<RedisError> for Trouble {
    fn from(error: RedisError) -> Self {
        let text = error.to_string();
        match error.kind() {
            ErrorKind::Io => Self::Unreachable(text),
            ErrorKind::AuthenticationFailed => Self::Refused(Refusal::NoAuth(text)),
            _ if ["NOAUTH", "WRONGPASS"].iter().any(|code| text.contains(code)) => {
                Self::Refused(Refusal::NoAuth(text))
            }
            _ => Self::Strange(text),
        }
    }
}
