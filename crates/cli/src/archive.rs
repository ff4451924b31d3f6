//! `tollkeeper archive`: moves past months of the decision audit out of the database into Parquet files, lists them and
//! brings them back. It reads serve's settings and opens the store itself; a server may run meanwhile.

mod bar;
mod list;
mod restore;

use clap::{Args, Subcommand};
use tollkeeper_archive::{ArchiveError, Archived, Outcome, Place, archive};
use tollkeeper_core::Millis;
use tollkeeper_server::settings::{Database, Settings, cloud_environment};

use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::moment::now_ms;
use crate::output;
use crate::setting_flags::SettingFlags;
use crate::window::length_ms;
use bar::Bar;

/// Move past months of the decision audit into Parquet files; list them and bring them back
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_long_help = HELP)]
pub(crate) struct Archive {
    #[command(subcommand)]
    command: Option<ArchiveCommand>,

    /// Only months that ended so long ago
    #[arg(long, value_name = "TIME", default_value = "90d", value_parser = age_ms)]
    older_than: u64,

    #[arg(long, value_name = "PLACE", help = WHICH)]
    to: Option<String>,

    /// Print each archived month as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    settings: SettingFlags,
}

#[derive(Debug, Subcommand)]
enum ArchiveCommand {
    List(list::List),
    Restore(restore::Restore),
}

/// Not as a comment: addresses in those look like links.
const WHICH: &str = "\
file:///FOLDER, a folder, or s3://BUCKET/PREFIX [default: TOLLKEEPER_ARCHIVE_URL]";

const HELP: &str = "\
Examples:
  tollkeeper archive --to /var/backups/audit
  tollkeeper archive --older-than 30d --to s3://bucket/tollkeeper
  tollkeeper archive list
  tollkeeper archive restore 2026-07 --to july.ndjson

A month leaves the database only after its file was read back and held every row. A run that was interrupted is made
good by the next. S3 is reached with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL.";

impl Archive {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        match &self.command {
            Some(ArchiveCommand::List(list)) => list.run(),
            Some(ArchiveCommand::Restore(restore)) => restore.run(),
            None => self.archive(),
        }
    }

    fn archive(&self) -> Result<Exit, Failure> {
        let settings = self.settings.load()?;
        let place = open_place(self.to.as_deref().or(settings.archive_url.as_deref()), "--to")?;
        has_database(&settings)?;
        let before = Millis(now_ms().saturating_sub(self.older_than));
        let outcome = block_on(async {
            let store = tollkeeper_server::offline::open_store(&settings).await?;
            let mut bar = Bar::default();
            let outcome = archive(&store, &place, before, &mut |told| bar.show(told)).await;
            bar.end();
            store.close().await;
            outcome
        })?;
        match outcome {
            Outcome::Busy => Err(Failure::new(Exit::Refused, "another process archives already")
                .with_next("wait for it, or stop it; nothing was done")),
            Outcome::Done(months) => self.tell(&months, &place),
        }
    }

    fn tell(&self, months: &[Archived], place: &Place) -> Result<Exit, Failure> {
        if months.is_empty() {
            output::note(&format!("there is no month to archive to {place}"));
        }
        if self.json {
            for month in months {
                output::json(&serde_json::json!({
                    "month": month.month.to_string(), "rows": month.rows, "total": month.seal.rows,
                    "sha256": month.seal.hex(), "object": month.object,
                }))?;
            }
            return Ok(Exit::Done);
        }
        let rows = months.iter().map(|month| {
            vec![
                ("month", month.month.to_string()),
                ("rows", month.rows.to_string()),
                ("total", month.seal.rows.to_string()),
                ("object", month.object.clone()),
            ]
        });
        output::records(&rows.collect::<Vec<_>>())?;
        Ok(Exit::Done)
    }
}

fn age_ms(text: &str) -> Result<u64, String> {
    length_ms(text)?.ok_or_else(|| "expected a shorter time".to_owned())
}

fn open_place(text: Option<&str>, flag: &str) -> Result<Place, Failure> {
    let text = text.ok_or_else(|| {
        let next = format!("name one with {flag}, or in TOLLKEEPER_ARCHIVE_URL");
        Failure::new(Exit::Settings, "no place for the archive is given").with_next(next)
    })?;
    Ok(Place::open(text, &cloud_environment())?)
}

/// Opening would make one, in a folder that was perhaps misspelt.
fn has_database(settings: &Settings) -> Result<(), Failure> {
    match &settings.database {
        Database::Sqlite { path } if !path.exists() => {
            let what = format!("there is no database {}", path.display());
            Err(Failure::new(Exit::Settings, what)
                .with_next("set TOLLKEEPER_DATA_DIR or TOLLKEEPER_DATABASE_URL as for the server"))
        }
        _ => Ok(()),
    }
}

fn block_on<T>(work: impl Future<Output = Result<T, ArchiveError>>) -> Result<T, Failure> {
    Ok(run(work)??)
}

fn run<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Settings, format!("cannot start: {error}")))?;
    Ok(runtime.block_on(work))
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        let exit = match &error {
            ArchiveError::Unusable { .. } | ArchiveError::Unreadable { .. } => Exit::Unreachable,
            ArchiveError::Damaged { .. } | ArchiveError::Conflict { .. } => Exit::Refused,
            other if other.is_transient() => Exit::Unreachable,
            _ => Exit::Settings,
        };
        Self::new(exit, chain(&error))
    }
}
