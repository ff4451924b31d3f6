//! `tollkeeper usage query`.

use clap::Args;
use tollkeeper_client::wire::{QueryUsageRequest, UsageRow};

use super::{Connection, Exit, Failure, Which, help};
use crate::moment;
use crate::output::{self, printable};

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Query {
    #[command(flatten)]
    which: Which,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    connection: Connection,
}

impl Query {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        self.connection.talk(async |client| {
            let which = &self.which;
            let mut ask = QueryUsageRequest::new(which.since.unix_ms(), which.until_ms());
            ask.by = Some(which.by.into());
            ask.api_id = which.project.as_deref().map(Into::into);
            ask.key_id = which.key.as_deref().map(Into::into);
            ask.external_id = which.external_id.as_deref().map(Into::into);
            let mut rows = Vec::new();
            loop {
                let page = client.query_usage(&ask).await?;
                if self.json {
                    page.rows.iter().try_for_each(output::json)?;
                } else {
                    rows.extend(page.rows.iter().map(row));
                }
                let Some(next) = page.next else { break };
                ask.cursor = Some(next.into());
            }
            if rows.is_empty() && !self.json && output::is_terminal() {
                output::line("No usage in this time.")?;
                output::line(
                    "The last minute may not be there yet: `tollkeeper usage flush` brings it.",
                )?;
            }
            output::records(&rows)?;
            Ok(Exit::Done)
        })
    }
}

fn row(row: &UsageRow<'_>) -> Vec<(&'static str, String)> {
    vec![
        ("time", moment::shown(Some(row.time))),
        ("project_id", printable(&row.api_id)),
        ("key_id", printable(&row.key_id)),
        ("requests", row.requests.to_string()),
        ("denied", row.denied.to_string()),
        ("bytes", row.bytes.to_string()),
        ("credits", row.credits.to_string()),
    ]
}
