//! `tollkeeper audit`: what was decided, who changed what, and whether the record of changes is whole.

mod changes;
mod search;
mod verify;

use clap::Subcommand;

use crate::exit::{self, Exit};
use crate::failure::Failure;

/// Search decisions and changes, and verify that no change was covered up
#[derive(Debug, Subcommand)]
#[command(after_help = help())]
pub(crate) enum Audit {
    /// Search what was decided: every denial, and a share of what was allowed
    Search(search::Search),
    /// List who changed what, newest first
    Changes(changes::Changes),
    /// Verify the chain of changes: every row as it was written, none missing
    Verify(verify::Verify),
}

impl Audit {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        match self {
            Self::Search(search) => search.run(),
            Self::Changes(changes) => changes.run(),
            Self::Verify(verify) => verify.run(),
        }
    }
}

fn help() -> String {
    format!(
        "\
Examples:
  tollkeeper audit search --since 1h --decision throttled
  tollkeeper audit search --key key_2x7 --path '/v1/files/*'
  tollkeeper audit search --text 203.0.113.9 --json | jq -r .code | sort | uniq -c
  tollkeeper audit changes --since 7d --action keys.revoke
  tollkeeper audit verify

{}",
        exit::HELP
    )
}
