//! `tollkeeper keys reroll`: a new key with everything that the old one had. How long the old one still works
//! must be said: both silence and a default have locked people out.

use clap::Args;
use tollkeeper_client::wire::RerollKeyRequest;

use crate::connection::Connection;
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::new_key::NewKeyFormat;
use crate::window::length_ms;

/// Replace a key by a new one; it is shown once
#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Reroll {
    /// Id of the key to be replaced, such as `key_2x7`
    key_id: String,

    #[command(flatten)]
    old: OldKey,

    #[command(flatten)]
    format: NewKeyFormat,

    #[command(flatten)]
    connection: Connection,
}

/// What becomes of the replaced key.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct OldKey {
    /// For how long the old key still works, such as 24h; 0s ends it now
    #[arg(long, value_name = "TIME", value_parser = grace)]
    grace: Option<u64>,

    /// Leave the old key's expiry as it is
    #[arg(long)]
    keep_old: bool,
}

impl OldKey {
    /// As the API takes it; nothing leaves the old key alone.
    pub(crate) fn expiration(&self) -> Option<u64> {
        self.grace
    }
}

fn grace(text: &str) -> Result<u64, String> {
    length_ms(text)?.ok_or_else(|| "expected a shorter time".to_owned())
}

fn help() -> String {
    format!(
        "\
Examples:
  tollkeeper keys reroll key_2x7 --grace 24h
  tollkeeper keys reroll key_2x7 --grace 0s --key-only > new.key

{}",
        exit::HELP
    )
}

impl Reroll {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        self.connection.talk(async |client| {
            let ask = RerollKeyRequest::new(self.key_id.as_str().into(), self.old.expiration());
            let made = client.reroll_key(&ask).await?;
            self.format.show(&made)?;
            Ok(Exit::Done)
        })
    }
}
