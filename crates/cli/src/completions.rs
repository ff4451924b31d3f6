//! `tollkeeper completions`: a script that teaches a shell the commands and their flags.
//! It never installs anything; where the script goes is the caller's choice.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::Arguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollkeeper completions bash > ~/.local/share/bash-completion/completions/tollkeeper
  tollkeeper completions zsh > ~/.zfunc/_tollkeeper
  tollkeeper completions fish > ~/.config/fish/completions/tollkeeper.fish")]
pub(crate) struct Completions {
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "tollkeeper", &mut script);
        output::bytes(&script)?;
        Ok(Exit::Done)
    }
}
