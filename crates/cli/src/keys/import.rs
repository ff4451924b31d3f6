//! `tollkeeper keys import`: brings in keys that were made elsewhere, by their hashes, so that nobody changes theirs.
//! The whole file is checked before anything is sent; a hash that is known already is counted, not an error, so an
//! import that broke off can simply be run again.

mod csv;
mod lines;

use std::io::Read;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tollkeeper_client::Client;
use tollkeeper_client::wire::keys::{KNOWN_ALREADY, MIGRATE_MAX};
use tollkeeper_client::wire::{MigrateKeysReply, MigrateKeysRequest};

use crate::connection::Connection;
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::flags;
use crate::output;
use lines::Line;

/// Below the server's limit for a body, with room for what stands around the keys.
const BATCH_BYTES_MAX: usize = 900_000;

/// Bring in keys that were made elsewhere, by their hashes
#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Import {
    /// The project that the keys open: its id or its slug
    project: String,

    /// File of hashes, one key per line; `-` is stdin
    file: PathBuf,

    /// How the file is written; by its name when left out, else lines of JSON
    #[arg(long)]
    format: Option<Format>,

    /// Your name for this migration
    #[arg(long, value_name = "NAME", default_value = "import")]
    migration: String,

    /// Check the file and send nothing
    #[arg(long)]
    dry_run: bool,

    /// Print one JSON object per imported key and line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Ndjson,
    Csv,
}

fn help() -> String {
    format!(
        "\
A hash is the SHA-256 of a whole key, in hexadecimal or base64. Lines of JSON hold one object each:
  {{\"hash\":\"9f86d0…\",\"name\":\"Ann's laptop\",\"externalId\":\"ann\",\"permissions\":[\"documents.read\"]}}
A CSV file names its columns in the first line, hash and any of: name, externalId, permissions, roles,
ipAllowlist (lists separated by spaces), expires (unix ms), enabled, credits, tier, signing, meta (JSON).

Examples:
  tollkeeper keys import my-api keys.ndjson --dry-run
  tollkeeper keys import my-api keys.csv --migration from-old-gateway
  psql -Atc 'select hash, name from keys' --csv | sed '1i hash,name' | tollkeeper keys import my-api - --format csv

A hash that is known already is counted and left as it is, so an import can be run again. One that is refused is named with
the reason, and the command ends with 4.

{}",
        exit::HELP
    )
}

#[derive(Debug, Default)]
struct Tally {
    imported: usize,
    known: usize,
    refused: usize,
}

/// Of those that are refused so many are named: a file with a wrong role in every line says the same of each.
const NAMED_MAX: usize = 20;

impl Import {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let text = self.text()?;
        let lines = match self.format() {
            Format::Ndjson => Ok(lines::of_json(&text)),
            Format::Csv => csv::lines(&text),
        };
        let lines = lines.and_then(lines::checked).map_err(|faults| self.refused(&faults))?;
        if self.dry_run {
            output::record(&[("keys", lines.len().to_string()), ("imported", "0".to_owned())])?;
            return Ok(Exit::Done);
        }
        self.connection.talk(async |client| {
            let api_id = flags::project_id(&client, &self.project).await?;
            let tally = self.send(&client, &api_id, &lines).await?;
            if !self.json {
                output::record(&[
                    ("keys", lines.len().to_string()),
                    ("imported", tally.imported.to_string()),
                    ("known_already", tally.known.to_string()),
                    ("refused", tally.refused.to_string()),
                ])?;
            }
            Ok(if tally.refused > 0 { Exit::Refused } else { Exit::Done })
        })
    }

    async fn send(&self, client: &Client, api_id: &str, lines: &[Line]) -> Result<Tally, Failure> {
        let (mut tally, mut rest) = (Tally::default(), lines);
        while !rest.is_empty() {
            let (batch, later) = rest.split_at(batch_length(rest));
            let keys = batch.iter().filter_map(|line| line.key().ok()).collect();
            let ask = MigrateKeysRequest::new(self.migration.as_str().into(), api_id.into(), keys);
            let sent = client.migrate_keys(&ask).await;
            if sent.is_err() && tally.imported + tally.known > 0 {
                output::progress("");
                output::note(&format!(
                    "{} keys are in; run the same command again to go on",
                    tally.imported + tally.known
                ));
            }
            self.report(&sent?, &mut tally)?;
            rest = later;
            output::progress(&format!("{} of {} keys", lines.len() - rest.len(), lines.len()));
        }
        output::progress("");
        Ok(tally)
    }

    fn report(&self, reply: &MigrateKeysReply<'_>, tally: &mut Tally) -> Result<(), Failure> {
        tally.imported += reply.migrated.len();
        let refused = reply.reasons.iter().flatten().filter(|one| one.reason != KNOWN_ALREADY);
        let refused: Vec<_> = refused.collect();
        tally.known += reply.failed.len().saturating_sub(refused.len());
        for one in refused.iter().take(NAMED_MAX.saturating_sub(tally.refused)) {
            output::note(&format!("{} is not imported: {}", one.hash, one.reason));
        }
        tally.refused += refused.len();
        if self.json {
            reply.migrated.iter().try_for_each(output::json)?;
        }
        Ok(())
    }

    fn text(&self) -> Result<String, Failure> {
        if self.reads_stdin() && self.connection.reads_stdin() {
            return Err(Failure::new(
                Exit::Settings,
                "stdin cannot hold both the file and the root key",
            )
            .with_next("put the root key into TOLLKEEPER_ROOT_KEY"));
        }
        let mut text = String::new();
        let read = if self.reads_stdin() {
            std::io::stdin().lock().read_to_string(&mut text)
        } else {
            std::fs::File::open(&self.file).and_then(|mut file| file.read_to_string(&mut text))
        };
        match read {
            Ok(_) => Ok(text),
            Err(error) => Err(Failure::new(
                Exit::Settings,
                format!("cannot read {}: {error}", self.file.display()),
            )),
        }
    }

    fn reads_stdin(&self) -> bool {
        self.file.as_os_str() == "-"
    }

    fn format(&self) -> Format {
        let named_csv = self.file.extension().is_some_and(|name| name.eq_ignore_ascii_case("csv"));
        self.format.unwrap_or(if named_csv { Format::Csv } else { Format::Ndjson })
    }

    fn refused(&self, faults: &[String]) -> Failure {
        let what = format!("{} was not imported:\n  {}", self.file.display(), faults.join("\n  "));
        Failure::new(Exit::Settings, output::printable(&what))
            .with_next("correct these lines; nothing was sent")
    }
}

/// As many lines as fit into one body, and at least one.
fn batch_length(lines: &[Line]) -> usize {
    let mut bytes = 0;
    let fits = lines.iter().take(MIGRATE_MAX).take_while(|line| {
        bytes += line.len();
        bytes <= BATCH_BYTES_MAX
    });
    fits.count().max(1)
}
