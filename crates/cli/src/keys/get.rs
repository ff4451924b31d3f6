//! `tollkeeper keys get`: everything that is known about one key.

use clap::Args;
use tollkeeper_client::wire::GetKeyRequest;

use crate::connection::Connection;
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::keys::shown;
use crate::output;

/// Show one key
#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Get {
    /// Id of the key, such as `key_2x7`
    key_id: String,

    /// Show the key itself, where it was made recoverable
    #[arg(long)]
    decrypt: bool,

    /// Print the answer's data as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    connection: Connection,
}

fn help() -> String {
    format!(
        "\
Examples:
  tollkeeper keys get key_2x7
  tollkeeper keys get key_2x7 --json

{}",
        exit::HELP
    )
}

impl Get {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        self.connection.talk(async |client| {
            let mut ask = GetKeyRequest::new(self.key_id.as_str().into());
            ask.decrypt = self.decrypt;
            let key = client.get_key(&ask).await?;
            if self.json {
                output::json(&key)?;
            } else {
                output::details(&shown::details(&key))?;
            }
            Ok(Exit::Done)
        })
    }
}
