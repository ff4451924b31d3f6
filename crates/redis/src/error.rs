//! Why a call failed and, above all, whether it may have been applied. A caller that must not count twice asks only that.

use redis::{RedisError, ServerError};

/// A call that brought no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// There is no vetted connection to the server that serves this tag. Not applied.
    #[error("Redis is not connected")]
    Away,
    /// As many calls as allowed are waiting for this server. Not applied.
    #[error("too many calls are waiting for this Redis server")]
    Busy,
    /// No answer by the deadline. Maybe applied, and maybe later.
    #[error("Redis did not answer in time")]
    Late,
    /// The connection was lost while waiting. Maybe applied.
    #[error("the connection to Redis was lost before the answer: {0}")]
    Broken(String),
    /// The process that answered is not the one that was vetted (NOSCRIPT). Not applied; the link vets anew.
    #[error("this Redis process was not vetted yet")]
    Unvetted,
    /// The server said no before it did anything. Not applied.
    #[error("Redis refused: {0}")]
    Refused(Refusal),
    /// A script stopped with an error after it had begun. What it wrote before stays written: maybe applied.
    #[error("the script stopped: {0}")]
    Aborted(String),
    /// An answer that cannot be one to this call. Maybe applied; the connection is not used again.
    #[error("Redis sent a strange answer: {0}")]
    Strange(String),
}

/// What a server says instead of doing a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("it is not the primary")]
    ReadOnly,
    #[error("it is out of memory (maxmemory)")]
    OutOfMemory,
    #[error("it is still loading its data")]
    Loading,
    #[error("the cluster is down: {0}")]
    ClusterDown(String),
    /// Some keys of the slot are here and others not yet; soon they are all in one place.
    #[error("the slot is on its way to another server")]
    Moving,
    #[error("the user may not do this: {0}")]
    NoPermission(String),
    #[error("user or password is wrong: {0}")]
    NoAuth(String),
    #[error("{0}")]
    Other(String),
}

// === impl CallError ===

impl CallError {
    /// Whether Redis may have done, or may still do, what was asked.
    pub fn maybe_applied(&self) -> bool {
        match self {
            Self::Away | Self::Busy | Self::Unvetted | Self::Refused(_) => false,
            Self::Late | Self::Broken(_) | Self::Aborted(_) | Self::Strange(_) => true,
        }
    }

    pub(crate) fn refused(text: impl Into<String>) -> Self {
        Self::Refused(Refusal::Other(text.into()))
    }

    /// Whether the connection that brought this is of no use any more.
    pub(crate) fn ends_the_connection(&self) -> bool {
        matches!(
            self,
            Self::Unvetted
                | Self::Broken(_)
                | Self::Strange(_)
                | Self::Refused(Refusal::ReadOnly | Refusal::NoAuth(_))
        )
    }
}

impl From<&ServerError> for CallError {
    fn from(error: &ServerError) -> Self {
        let details = error.details().unwrap_or_default();
        let text = format!("{} {details}", error.code());
        let refusal = match error.code() {
            "NOSCRIPT" => return Self::Unvetted,
            // A replica refuses every write, a script's first one too; MASTERDOWN comes only from replicas.
            "READONLY" | "MASTERDOWN" => Refusal::ReadOnly,
            // Within a script only the first write is refused for lack of memory, so nothing was written.
            "OOM" => Refusal::OutOfMemory,
            "LOADING" => Refusal::Loading,
            "TRYAGAIN" => Refusal::Moving,
            "CLUSTERDOWN" => Refusal::ClusterDown(text),
            "NOPERM" if !from_within(details) => Refusal::NoPermission(text),
            "NOAUTH" | "WRONGPASS" => Refusal::NoAuth(text),
            _ if from_within(details) => return Self::Aborted(text),
            _ => Refusal::Other(text),
        };
        Self::Refused(refusal)
    }
}

/// The server names script and line in errors that a running script raised.
fn from_within(details: &str) -> bool {
    details.contains("@user_script:") || details.contains("Error running script")
}

/// Errors that the client library made; those of the server come as values.
impl From<RedisError> for CallError {
    fn from(error: RedisError) -> Self {
        if error.is_io_error() {
            Self::Broken(error.to_string())
        } else {
            Self::Strange(error.to_string())
        }
    }
}
