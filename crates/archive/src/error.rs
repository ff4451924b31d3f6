//! What a caller of the archive can meet. Texts say what to do next; what a library said is the source.

use tollkeeper_store::StoreError;

use crate::Label;

#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error(
        "'{text}' is no place for an archive: write file:///FOLDER, a folder, or s3://BUCKET/PREFIX"
    )]
    NoPlace { text: String },
    #[error("the folder {text} cannot be used: make it, or give this user write access")]
    NoFolder {
        text: String,
        #[source]
        source: std::io::Error,
    },
    #[error(
        "the archive {place} cannot be used: check that it is there, and for s3:// AWS_ACCESS_KEY_ID, \
         AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL"
    )]
    Unusable {
        place: String,
        #[source]
        source: object_store::Error,
    },
    #[error("{object} cannot be written or read")]
    Unreadable {
        object: String,
        #[source]
        source: parquet::errors::ParquetError,
    },
    #[error(
        "{object} is damaged: it does not hold what its seal says ({found}). Nothing was dropped from the database. \
         Move the object away, and run again; rows that are only in it have to come from a copy of it"
    )]
    Damaged { object: String, found: String },
    #[error(
        "{object} holds request {request_id} otherwise than the database does: one of them was changed. Nothing was \
         dropped; move the object away to archive what the database has"
    )]
    Conflict { object: String, request_id: String },
    #[error(
        "{0} is still being written to: its rows changed while they were archived. Nothing was dropped; run again"
    )]
    StillChanging(Label),
    #[error(
        "another process took over the archive while the database was away; nothing was dropped. Run again"
    )]
    LockLost,
    #[error("there is no archive of {0}: `tollkeeper archive list` shows what there is")]
    NoSuchMonth(Label),
    #[error("{path} is there already: name a file that is not, so that nothing is overwritten")]
    Exists { path: String },
    #[error("{path} cannot be written")]
    Output {
        path: String,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

// === impl ArchiveError ===

impl ArchiveError {
    /// Whoever read our output went away.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output { source, .. } if source.kind() == std::io::ErrorKind::BrokenPipe)
    }

    /// The same run may succeed when it is made again.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Store(error) => error.is_transient(),
            Self::StillChanging(_) | Self::LockLost | Self::Unusable { .. } => true,
            _ => false,
        }
    }
}
