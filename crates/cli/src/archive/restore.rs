//! `tollkeeper archive restore`: a month back from the archive, as lines of JSON or as a database file to query.

use std::path::PathBuf;

use clap::Args;
use tollkeeper_archive::{Label, Target, restore};

use super::bar::Bar;
use super::list::place;
use super::{WHICH, run};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::setting_flags::SettingFlags;

/// Bring a month back: to a new file of JSON lines, or a new SQLite file
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// Which month, such as 2026-07
    month: Label,

    /// A new file: a name that ends in .db or sqlite:PATH is a SQLite file with the table `decision_audit`, every other
    /// one holds a JSON object a line; `-` writes those to stdout
    #[arg(long, value_name = "FILE", value_parser = target)]
    to: Target,

    #[arg(long, value_name = "PLACE", help = WHICH)]
    from: Option<String>,

    /// Print what was done as JSON; not with `--to -`, whose rows are JSON themselves
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    settings: SettingFlags,
}

impl Restore {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let place = place(self.from.as_deref(), &self.settings)?;
        let mut bar = Bar::default();
        let mut tell = |told| bar.show(told);
        let restored = run(restore(&place, self.month, &self.to, &mut tell))?;
        bar.end();
        let rows = match restored {
            // Whoever reads has read enough.
            Err(error) if error.is_closed_pipe() => return Ok(Exit::Done),
            restored => restored?,
        };
        let named = match &self.to {
            Target::Stdout => return Ok(Exit::Done),
            Target::Ndjson(path) | Target::Sqlite(path) => path.display().to_string(),
        };
        if self.json {
            output::json(&serde_json::json!({
                "month": self.month.to_string(), "rows": rows, "file": named,
            }))?;
            return Ok(Exit::Done);
        }
        let columns =
            [("month", self.month.to_string()), ("rows", rows.to_string()), ("file", named)];
        output::record(&columns)?;
        Ok(Exit::Done)
    }
}

fn target(text: &str) -> Result<Target, String> {
    if text == "-" {
        return Ok(Target::Stdout);
    }
    if let Some(path) = text.strip_prefix("sqlite:") {
        return Ok(Target::Sqlite(PathBuf::from(path)));
    }
    let path = PathBuf::from(text);
    path.file_name().ok_or("expected the name of a file")?;
    let sqlite = path.extension().is_some_and(|ext| ext == "db" || ext == "sqlite");
    Ok(if sqlite { Target::Sqlite(path) } else { Target::Ndjson(path) })
}
