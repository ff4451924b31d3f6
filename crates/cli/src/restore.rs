//! `tollkeeper restore`: a backup back into a data directory, or a configuration into an empty store.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tollkeeper_server::offline::{Checked, Restored, restore};

use crate::backup::block_on;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::moment::now_ms;
use crate::output;
use crate::setting_flags::SettingFlags;

/// Bring back what `tollkeeper backup` made; what was there before is kept aside
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// A backup, or a configuration (which needs an empty store)
    file: PathBuf,

    /// Do without FILE.manifest.json: the backup is checked only as far as SQLite can
    #[arg(long)]
    unchecked: bool,

    /// Print what was done as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    settings: SettingFlags,
}

impl Restore {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let settings = self.settings.load()?;
        let checked = if self.unchecked { Checked::ByContent } else { Checked::ByManifest };
        match block_on(restore(&settings, &self.file, checked, now_ms()))? {
            Restored::Config(copied) if self.json => {
                output::json(&json!({ "restored": "config", "rows": copied.rows }))?;
            }
            Restored::Backup { aside, manifest } if self.json => {
                output::json(&json!({
                    "restored": "backup", "madeAt": manifest.map(|manifest| manifest.created_at),
                    "aside": aside.map(|aside| aside.display().to_string()),
                }))?;
            }
            Restored::Config(copied) => {
                output::record(&[
                    ("restored", "config".into()),
                    ("rows", copied.rows.to_string()),
                ])?;
            }
            Restored::Backup { aside, manifest } => {
                let said = |of: Option<String>| of.unwrap_or_default();
                output::record(&[
                    ("restored", "backup".into()),
                    ("made_at", said(manifest.map(|manifest| manifest.created_at.to_string()))),
                    ("aside", said(aside.map(|aside| aside.display().to_string()))),
                ])?;
            }
        }
        Ok(Exit::Done)
    }
}
