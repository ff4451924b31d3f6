//! `tollkeeper usage`: what keys were used for, as a list or as a file, and a flush on demand.

mod export;
mod flush;
mod query;

use clap::{Args, Subcommand, ValueEnum};
use tollkeeper_client::wire;

use crate::connection::Connection;
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::moment;
use crate::since::Since;

/// Look at what keys were used for
#[derive(Debug, Subcommand)]
#[command(after_help = help())]
pub(crate) enum Usage {
    /// List usage by minute, hour, day or month
    Query(query::Query),
    /// Write usage as CSV or lines of JSON; can be resumed
    Export(export::Export),
    /// Bring everything that was recorded to the database now
    Flush(flush::Flush),
}

fn help() -> String {
    format!(
        "\
Examples:
  tollkeeper usage query --since 7d
  tollkeeper usage query --since 1h --by minute --key key_…
  tollkeeper usage export --since 30d --format csv > usage.csv
  tollkeeper usage flush

{}",
        exit::HELP
    )
}

/// Which usage.
#[derive(Debug, Args)]
struct Which {
    /// From then on: a time ago, such as 7d, or unix milliseconds; the whole bucket that holds it
    #[arg(long, value_name = "TIME", default_value = "7d")]
    since: Since,

    /// Before then: a time ago, or unix milliseconds [default: now]
    #[arg(long, value_name = "TIME")]
    until: Option<Since>,

    /// The size of a bucket, in UTC
    #[arg(long, value_enum, default_value_t = By::Day)]
    by: By,

    /// Only keys of this project
    #[arg(long, value_name = "ID")]
    project: Option<String>,

    /// Only this key
    #[arg(long, value_name = "ID")]
    key: Option<String>,

    /// Only keys that belong to this identity now
    #[arg(long, value_name = "NAME")]
    external_id: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum By {
    Minute,
    Hour,
    Day,
    Month,
}

impl Usage {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        match self {
            Self::Query(query) => query.run(),
            Self::Export(export) => export.run(),
            Self::Flush(flush) => flush.run(),
        }
    }
}

impl Which {
    fn until_ms(&self) -> u64 {
        self.until.map_or_else(moment::now_ms, Since::unix_ms)
    }
}

impl From<By> for wire::UsageBy {
    fn from(by: By) -> Self {
        match by {
            By::Minute => Self::Minute,
            By::Hour => Self::Hour,
            By::Day => Self::Day,
            By::Month => Self::Month,
        }
    }
}
