//! `tollkeeper usage export`: part after part to stdout. Where it breaks off it says how to go on.

use clap::{Args, ValueEnum};
use tollkeeper_client::wire::{ExportUsageRequest, UsageFormat};

use super::{Connection, Exit, Failure, Which, help};
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Export {
    #[command(flatten)]
    which: Which,

    /// How rows are written
    #[arg(long, value_enum, default_value_t = Format::Csv)]
    format: Format,

    /// Go on where an export broke off; with the same --since, --until and --by
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,

    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Csv,
    Ndjson,
}

impl Export {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        self.connection.talk(async |client| {
            let which = &self.which;
            let mut ask = ExportUsageRequest::new(which.since.unix_ms(), which.until_ms());
            ask.by = Some(which.by.into());
            ask.format = Some(self.format.into());
            ask.api_id = which.project.as_deref().map(Into::into);
            ask.key_id = which.key.as_deref().map(Into::into);
            ask.external_id = which.external_id.as_deref().map(Into::into);
            ask.cursor = self.cursor.as_deref().map(Into::into);
            loop {
                let part = match client.export_usage(&ask).await {
                    Ok(part) => part,
                    Err(error) => {
                        if let Some(cursor) = &ask.cursor {
                            let (from, to) = (ask.from, ask.to);
                            let go_on =
                                format!("--since {from} --until {to} --cursor '{}'", &**cursor);
                            output::note(&format!(
                                "what was written so far is whole; go on with {go_on}"
                            ));
                        }
                        return Err(error.into());
                    }
                };
                output::bytes(&part.text)?;
                let Some(next) = part.next else { return Ok(Exit::Done) };
                ask.cursor = Some(next.into());
            }
        })
    }
}

impl From<Format> for UsageFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Csv => Self::Csv,
            Format::Ndjson => Self::Ndjson,
        }
    }
}
