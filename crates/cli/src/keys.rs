//! `tollkeeper keys`: the life of a key, one file per command. A key's text never stands in an argument.

mod create;
mod get;
mod import;
mod list;
pub(crate) mod reroll;
mod revoke;
mod shown;
mod signing;
mod update;
mod verify;

use clap::Subcommand;

use crate::exit::Exit;
use crate::failure::Failure;

/// Make, look at, change, verify and withdraw keys
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  tollkeeper keys create my-api --name \"Ann's laptop\" --limit requests=100/1m
  tollkeeper keys list my-api
  tollkeeper keys verify < key.txt
  tollkeeper keys revoke key_2x7 --reason leaked

`tollkeeper keys COMMAND --help` has more of them.")]
pub(crate) enum Keys {
    // Boxed: it has several times the flags of any other command.
    Create(Box<create::Create>),
    List(list::List),
    Get(get::Get),
    Update(Box<update::Update>),
    Reroll(reroll::Reroll),
    Revoke(revoke::Revoke),
    Verify(Box<verify::Verify>),
    Import(import::Import),
}

impl Keys {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        match self {
            Self::Create(create) => create.run(),
            Self::List(list) => list.run(),
            Self::Get(get) => get.run(),
            Self::Update(update) => update.run(),
            Self::Reroll(reroll) => reroll.run(),
            Self::Revoke(revoke) => revoke.run(),
            Self::Verify(verify) => verify.run(),
            Self::Import(import) => import.run(),
        }
    }
}
