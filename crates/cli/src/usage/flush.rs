//! `tollkeeper usage flush`.

use clap::Args;

use super::{Connection, Exit, Failure, help};
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Flush {
    /// Print the answer's data as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    connection: Connection,
}

impl Flush {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        self.connection.talk(async |client| {
            let flushed = client.flush_usage().await?;
            if self.json {
                output::json(&flushed)?;
            } else {
                output::record(&[
                    ("buckets", flushed.buckets.to_string()),
                    ("records", flushed.records.to_string()),
                ])?;
            }
            Ok(Exit::Done)
        })
    }
}
