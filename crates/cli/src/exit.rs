//! The exit codes that scripts rely on. They are part of the interface and never change their meaning.

use std::process::ExitCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done = 0,
    Denied = 1,
    /// Also what clap ends with when the arguments are wrong.
    Settings = 2,
    Unreachable = 3,
    Refused = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

pub(crate) const HELP: &str = "\
Exit codes:
  0  done, or allowed
  1  denied
  2  wrong arguments or settings
  3  the server could not be reached
  4  the server refused";
