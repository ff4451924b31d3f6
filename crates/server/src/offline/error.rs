//! What can go wrong with a backup or a restore, each with what to do next.

use std::io;
use std::path::{Path, PathBuf};

use tollkeeper_store::{ConfigError, StoreError};

use crate::data_dir::DataDirError;

#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    #[error("there is no database {}: set TOLLKEEPER_DATA_DIR or TOLLKEEPER_DATABASE_URL as for the server", .0.display())]
    NoDatabase(PathBuf),
    #[error(
        "PostgreSQL is backed up and restored with its own tools: docs/RECOVERY.md and deploy/postgres have the \
         settings and scripts. `backup --config-only` works with it"
    )]
    NotForPostgres,
    #[error("{} is there already: name a file that is not, so that nothing is overwritten", .0.display())]
    Exists(PathBuf),
    #[error("{} cannot be read or written", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is damaged ({found}): nothing was changed. Use another backup", path.display())]
    Damaged { path: PathBuf, found: String },
    #[error(
        "{} has no manifest beside it: copy {} there too, or say --unchecked to go without",
        path.display(),
        manifest.display()
    )]
    NoManifest { path: PathBuf, manifest: PathBuf },
    #[error("{} is neither a backup nor a configuration of ours", .0.display())]
    Foreign(PathBuf),
    #[error(
        "the configuration was made under another secret, with which its keys are hashed: give that one in \
         TOLLKEEPER_SECRET (or the file `secret` of the data directory it came from)"
    )]
    OtherSecret,
    #[error(
        "the database did not pass its check ({found}): it is damaged. Restore an earlier backup"
    )]
    DatabaseDamaged { found: String },
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl OfflineError {
    pub(super) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }

    pub(super) fn damaged(path: &Path, found: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), found: found.into() }
    }
}
