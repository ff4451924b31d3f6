//! `tollkeeper backup`: a node with SQLite in one file, or the configuration of any store. A server may run meanwhile.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tollkeeper_server::offline::{OfflineError, back_up, export_config};

use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::moment::now_ms;
use crate::output;
use crate::setting_flags::SettingFlags;

/// Back up the store: a node with SQLite as one file, or the configuration alone
#[derive(Debug, Args)]
#[command(after_long_help = HELP)]
pub(crate) struct Backup {
    /// A new file; FILE.manifest.json is made beside it
    file: PathBuf,

    /// Only what was set up (tenants, projects, keys as hashes, identities, limits, roles, …), as lines of JSON that
    /// either kind of store takes back
    #[arg(long)]
    config_only: bool,

    /// Print what was made as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    settings: SettingFlags,
}

const HELP: &str = "\
Examples:
  tollkeeper backup /var/backups/tollkeeper-$(date +%F).backup
  tollkeeper backup --config-only config.ndjson

A backup holds the database, the journal and the generated secret: keep it as you keep the secret. PostgreSQL has its own
tools; docs/RECOVERY.md has the settings and scripts.";

impl Backup {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let settings = self.settings.load()?;
        if self.config_only {
            let copied = block_on(export_config(&settings, &self.file, now_ms()))?;
            let file = self.file.display().to_string();
            if self.json {
                output::json(&json!({ "file": file, "rows": copied.rows }))?;
                return Ok(Exit::Done);
            }
            output::record(&[("file", file), ("rows", copied.rows.to_string())])?;
            return Ok(Exit::Done);
        }
        let made = block_on(back_up(&settings, &self.file, now_ms()))?;
        let rows: u64 = made.manifest.tables.values().sum();
        if self.json {
            output::json(&json!({
                "file": made.path.display().to_string(), "bytes": made.manifest.bytes,
                "rows": rows, "sha256": made.manifest.sha256,
            }))?;
            return Ok(Exit::Done);
        }
        output::record(&[
            ("file", made.path.display().to_string()),
            ("bytes", made.manifest.bytes.to_string()),
            ("rows", rows.to_string()),
            ("sha256", made.manifest.sha256.clone()),
        ])?;
        Ok(Exit::Done)
    }
}

pub(crate) fn block_on<T>(
    work: impl Future<Output = Result<T, OfflineError>>,
) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Settings, format!("cannot start: {error}")))?;
    Ok(runtime.block_on(work)?)
}

impl From<OfflineError> for Failure {
    fn from(error: OfflineError) -> Self {
        let exit = match &error {
            OfflineError::Store(inner) if inner.is_transient() => Exit::Unreachable,
            OfflineError::Damaged { .. }
            | OfflineError::DatabaseDamaged { .. }
            | OfflineError::Config(_) => Exit::Refused,
            _ => Exit::Settings,
        };
        Self::new(exit, chain(&error))
    }
}
