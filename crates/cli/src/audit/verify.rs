//! `tollkeeper audit verify`: whether the record of changes is whole. Ends with 1 where it is not.

use clap::Args;
use tollkeeper_client::wire::VerifyAuditReply;

use crate::connection::Connection;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Tone, printable, toned};

#[derive(Debug, Args)]
#[command(after_help = super::help())]
pub(crate) struct Verify {
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    connection: Connection,
}

impl Verify {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        self.connection.talk(async |client| {
            let found = client.verify_audit().await?;
            if self.json {
                output::json(&found)?;
            } else {
                output::details(&columns(&found))?;
            }
            Ok(if found.ok { Exit::Done } else { Exit::Denied })
        })
    }
}

fn columns(found: &VerifyAuditReply<'_>) -> Vec<(&'static str, String)> {
    let verdict = if found.ok { toned(Tone::Good, "whole") } else { toned(Tone::Bad, "broken") };
    let text = |text: &Option<std::borrow::Cow<'_, str>>| {
        text.as_deref().map(printable).unwrap_or_default()
    };
    let mut columns = vec![("chain", verdict), ("rows", found.rows.to_string())];
    if !found.ok {
        columns.push(("place", found.first_bad.map(|place| place.to_string()).unwrap_or_default()));
        columns.push(("reason", text(&found.reason)));
        columns.push(("tenant", text(&found.tenant_id)));
    }
    columns.push(("head", text(&found.head)));
    columns
}
