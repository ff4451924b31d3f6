//! What commands do beside a server or without one: open its store, back it up, bring it back.

mod backup;
mod config;
mod error;
mod file;
mod manifest;
mod reach;
mod restore;

use tollkeeper_store::{FileLock, Store, StoreError};

use crate::settings::{Database, Settings};

pub use backup::{BackedUp, back_up};
pub use config::{ConfigCopied, export_config};
pub use error::OfflineError;
pub use manifest::Manifest;
pub use reach::{look_at_database, look_at_redis};
pub use restore::{Checked, Restored, restore};

/// Keeps servers out of the file that a server with these settings would open, where it is one.
pub fn hold_database(settings: &Settings) -> Result<Option<FileLock>, StoreError> {
    match &settings.database {
        Database::Sqlite { path } => FileLock::take(path).map(Some),
        Database::Postgres { .. } => Ok(None),
    }
}

/// Opens the store that a server with these settings would open.
pub async fn open_store(settings: &Settings) -> Result<Store, StoreError> {
    match &settings.database {
        Database::Sqlite { path } => Store::open(path).await,
        Database::Postgres { url, .. } => Store::connect(url.expose(), None).await,
    }
}
