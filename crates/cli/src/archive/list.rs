//! `tollkeeper archive list`: what an archive has, month by month.

use clap::Args;
use tollkeeper_archive::{Listed, Listing, Place, list};

use super::{WHICH, block_on, open_place};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::setting_flags::SettingFlags;

/// List the months that are archived
#[derive(Debug, Args)]
pub(crate) struct List {
    #[arg(long, value_name = "PLACE", help = WHICH)]
    from: Option<String>,

    /// Print each month as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    settings: SettingFlags,
}

impl List {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let place = place(self.from.as_deref(), &self.settings)?;
        let Listing { listed, unreadable } = block_on(list(&place))?;
        self.show(&listed)?;
        let exits = unreadable.into_iter().map(|error| Failure::from(error).report());
        Ok(exits.last().unwrap_or(Exit::Done))
    }

    fn show(&self, listed: &[Listed]) -> Result<(), Failure> {
        if self.json {
            for one in listed {
                output::json(&serde_json::json!({
                    "month": one.month.to_string(), "rows": one.seal.rows, "bytes": one.bytes,
                    "sha256": one.seal.hex(), "object": one.object,
                }))?;
            }
            return Ok(());
        }
        let rows = listed.iter().map(|one| {
            vec![
                ("month", one.month.to_string()),
                ("rows", one.seal.rows.to_string()),
                ("bytes", one.bytes.to_string()),
                ("object", one.object.clone()),
            ]
        });
        output::records(&rows.collect::<Vec<_>>())
    }
}

/// Who names the archive needs none of the server's settings.
pub(super) fn place(from: Option<&str>, settings: &SettingFlags) -> Result<Place, Failure> {
    match from {
        Some(_) => open_place(from, "--from"),
        None => open_place(settings.load()?.archive_url.as_deref(), "--from"),
    }
}
