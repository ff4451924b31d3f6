//! What a caller of the store can meet. Texts say what to do next and hold no SQL;
//! what the database itself said is the source, for logs only.

use std::path::PathBuf;

use tollkeeper_decide::OriginError;

use crate::Fault;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the database {} cannot be opened", path.display())]
    Unopenable {
        path: PathBuf,
        #[source]
        fault: Fault,
    },
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error("this tenant has no such namespace")]
    NamespaceNotFound,
    #[error("this namespace was deleted; its name cannot be used again")]
    NamespaceGone,
    #[error("this namespace has no override for exactly this identifier")]
    OverrideNotFound,
    #[error("this root key already belongs to somebody; give TOLLKEEPER_ROOT_KEY another value")]
    RootKeyTaken,
}

// === impl StoreError ===

impl StoreError {
    /// The same call may succeed when it is made again.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unopenable { fault, .. } | Self::Fault(fault) => fault.is_transient(),
            _ => false,
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        Self::Fault(error.into())
    }
}

impl From<StoreError> for OriginError {
    fn from(error: StoreError) -> Self {
        Self::new(error)
    }
}
