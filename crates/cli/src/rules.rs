//! `tollkeeper rules`: the rules as files. A file is checked here, with the line of everything that is wrong in it, before
//! anything is sent.

mod cases;
mod file;
mod json;
mod located;
mod shown;
mod test;
mod toml;
mod trial;
mod yaml;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tollkeeper_client::wire::{
    ApplyRulesRequest, DeleteRuleRequest, GetRuleRequest, ListRulesRequest, RollbackRulesRequest,
};

use crate::connection::Connection;
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::output::{self, printable};
use file::{Format, RulesRead};

/// Check, compare, apply and look at rules
#[derive(Debug, Subcommand)]
#[command(after_help = help())]
pub(crate) enum Rules {
    /// Check a file of rules; asks no server
    Lint(Lint),
    /// Try what the rules of a file do to requests; asks no server
    Test(test::Test),
    /// Show what applying a file would change
    Diff(Turn),
    /// Make the rules what a file says, all or nothing
    Apply(Apply),
    /// List the rules
    List(List),
    /// Show one rule
    Get(Get),
    /// Delete one rule
    Delete(Delete),
    /// Make the rules what they were at a version
    Rollback(Rollback),
}

fn help() -> String {
    format!(
        "\
A file is YAML, TOML or JSON, by its name, and holds a list of rules:
  rules:
    - name: free-per-minute
      scope: user
      tiers: [free]
      limits: [{{limit: 60, window: 1m}}]

Examples:
  tollkeeper rules lint rules.yaml
  tollkeeper rules test rules.yaml
  tollkeeper rules diff rules.yaml --prune
  tollkeeper rules apply rules.yaml --prune
  tollkeeper rules rollback 7

{}",
        exit::HELP
    )
}

#[derive(Debug, Args)]
struct Source {
    /// File of rules; `-` is stdin
    file: PathBuf,

    /// How the file is written; by its name when left out, else YAML
    #[arg(long)]
    format: Option<Format>,
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Lint {
    #[command(flatten)]
    source: Source,

    /// Print one JSON object: how many rules and tests there are, and every fault
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Turn {
    #[command(flatten)]
    source: Source,

    /// Delete rules that are not in the file
    #[arg(long)]
    prune: bool,

    #[command(flatten)]
    with: Answering,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    Real,
    Dry,
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Apply {
    #[command(flatten)]
    turn: Turn,

    /// Only show what would change, as `diff` does
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct List {
    #[command(flatten)]
    with: Answering,
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Get {
    /// Its name
    name: String,

    #[command(flatten)]
    with: Answering,
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Delete {
    /// Its name
    name: String,

    #[command(flatten)]
    with: Answering,
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Rollback {
    /// The version to go back to; it becomes a new one
    version: u64,

    #[command(flatten)]
    with: Answering,
}

/// Where the server is, and how its answer is printed.
#[derive(Debug, Args)]
struct Answering {
    /// Print the answer's data as JSON, a list as one object per line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    connection: Connection,
}

impl Rules {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        match self {
            Self::Lint(lint) => lint.run(),
            Self::Test(test) => test.run(),
            Self::Diff(turn) => turn.run(Run::Dry),
            Self::Apply(apply) if apply.dry_run => apply.turn.run(Run::Dry),
            Self::Apply(apply) => apply.turn.run(Run::Real),
            Self::List(list) => list.run(),
            Self::Get(get) => get.run(),
            Self::Delete(delete) => delete.run(),
            Self::Rollback(rollback) => rollback.run(),
        }
    }
}

impl Lint {
    fn run(&self) -> Result<Exit, Failure> {
        if self.json {
            return self.as_json();
        }
        let read = self.source.read()?;
        let mut columns = vec![("rules", read.checked.len().to_string())];
        if !read.tests.is_empty() {
            columns.push(("tests", read.tests.len().to_string()));
        }
        columns.push(("faults", "0".to_owned()));
        output::record(&columns)?;
        Ok(Exit::Done)
    }
}

impl Lint {
    /// The faults on stdout, where a pipeline reads them, and the same exit code.
    fn as_json(&self) -> Result<Exit, Failure> {
        match file::read(&self.source.file, self.source.format)? {
            Ok(RulesRead { checked, tests, notes }) => {
                let (rules, tests) = (checked.len(), tests.len());
                output::json(
                    &json!({ "rules": rules, "tests": tests, "faults": [], "notes": notes }),
                )?;
                Ok(Exit::Done)
            }
            Err(faulty) => {
                output::json(&json!({ "faults": faulty.faults }))?;
                Err(faulty.into())
            }
        }
    }
}

impl Source {
    /// The rules, once all of them are good; notes are shown on the way.
    fn read(&self) -> Result<RulesRead, Failure> {
        let read = file::read(&self.file, self.format)??;
        read.notes.iter().for_each(|note| output::note(&printable(note)));
        Ok(read)
    }
}

impl Turn {
    fn run(&self, run: Run) -> Result<Exit, Failure> {
        if self.source.file.as_os_str() == "-" && self.with.connection.reads_stdin() {
            let what = "stdin cannot hold both the file and the root key";
            return Err(Failure::new(Exit::Settings, what)
                .with_next("put the root key into TOLLKEEPER_ROOT_KEY"));
        }
        let rules = self.source.read()?.into_texts();
        self.with.connection.talk(async |client| {
            let dry_run = run == Run::Dry;
            let ask = ApplyRulesRequest { rules, prune: self.prune, dry_run };
            let done = client.apply_rules(&ask).await?;
            if self.with.json {
                output::json(&done)?;
            } else if dry_run {
                shown::diff(&done)?;
            } else {
                shown::applied(&done)?;
            }
            Ok(Exit::Done)
        })
    }
}

impl List {
    fn run(&self) -> Result<Exit, Failure> {
        self.with.connection.talk(async |client| {
            let (mut ask, mut rules) = (ListRulesRequest::default(), Vec::new());
            loop {
                let page = client.list_rules(&ask).await?;
                rules.extend(page.rows);
                let Some(next) = page.next else { break };
                ask.cursor = Some(next.into());
            }
            // As they are asked: a page comes in the order of names, which stays within one priority.
            rules.sort_by_key(|rule| rule.0.get("priority").and_then(Value::as_u64).unwrap_or(100));
            if self.with.json {
                rules.iter().try_for_each(output::json)?;
                return Ok(Exit::Done);
            }
            let rows: Vec<_> = rules.iter().map(|rule| shown::row(&rule.0)).collect();
            output::records(&rows)?;
            Ok(Exit::Done)
        })
    }
}

impl Get {
    fn run(&self) -> Result<Exit, Failure> {
        self.with.connection.talk(async |client| {
            let found = client.get_rule(&GetRuleRequest::new(self.name.as_str().into())).await?;
            if self.with.json {
                output::json(&found)?;
            } else {
                shown::rule(&found)?;
            }
            Ok(Exit::Done)
        })
    }
}

impl Delete {
    fn run(&self) -> Result<Exit, Failure> {
        self.with.connection.talk(async |client| {
            let ask = DeleteRuleRequest::new(self.name.as_str().into());
            let done = client.delete_rule(&ask).await?;
            if self.with.json {
                output::json(&done)?;
            } else {
                let name = printable(&self.name);
                output::record(&[
                    ("rule", name),
                    ("state", "deleted".to_owned()),
                    ("version", done.version.to_string()),
                ])?;
            }
            Ok(Exit::Done)
        })
    }
}

impl Rollback {
    fn run(&self) -> Result<Exit, Failure> {
        self.with.connection.talk(async |client| {
            let done = client.roll_rules_back(&RollbackRulesRequest::new(self.version)).await?;
            if self.with.json {
                output::json(&done)?;
            } else {
                shown::applied(&done)?;
            }
            Ok(Exit::Done)
        })
    }
}
