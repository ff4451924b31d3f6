//! How it is told that a key was changed or is gone: one record, as a line or as JSON.

use clap::Args;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, printable};

#[derive(Debug, Args)]
pub(crate) struct ChangedKeyFormat {
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

impl ChangedKeyFormat {
    pub(crate) fn show(&self, key_id: &str, state: &str) -> Result<Exit, Failure> {
        if self.json {
            output::json(&serde_json::json!({ "keyId": key_id, "state": state }))?;
        } else {
            output::record(&[("key_id", printable(key_id)), ("state", state.to_owned())])?;
        }
        Ok(Exit::Done)
    }
}
