//! `tollkeeper keys verify`: asks whether a key may pass, and spends what passing costs. The verdict is the exit code.
//! The key comes from stdin or `TOLLKEEPER_KEY`, never from the arguments, which every user of the machine can read.

use clap::Args;
use tollkeeper_client::wire::{
    KeyText, SpendCredits, VerifyKeyReply, VerifyKeyRequest, VerifyRatelimit,
};

use crate::connection::{self, Connection};
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::flags::{LimitFlag, texts};
use crate::moment;
use crate::output::{self, printable};

const KEY_ENV: &str = "TOLLKEEPER_KEY";

/// Ask whether a key may pass; the key is read from stdin or `TOLLKEEPER_KEY`
#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Verify {
    /// What the key must be permitted: names joined by AND, OR and parentheses
    #[arg(long, value_name = "QUERY")]
    permissions: Option<String>,

    /// Credits to spend; 0 spends none
    #[arg(long, value_name = "UNITS")]
    cost: Option<u64>,

    /// A limit to count as well: the NAME of a stored one, or NAME=UNITS/TIME; may be given several times
    #[arg(long = "limit", value_name = "LIMIT", value_parser = asked)]
    limits: Vec<AskedLimit>,

    /// Only keys of this project are welcome, by its id; may be given several times
    #[arg(long = "project", value_name = "ID")]
    projects: Vec<String>,

    /// Address of the end user
    #[arg(long)]
    ip: Option<String>,

    /// The page that the end user came from
    #[arg(long)]
    referer: Option<String>,

    /// The site or program that asks
    #[arg(long)]
    source: Option<String>,

    /// Kept with the decision, to be searched by; may be given several times
    #[arg(long = "tag")]
    tags: Vec<String>,

    /// Print the answer's data as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Clone)]
enum AskedLimit {
    Stored(String),
    OnTheSpot(LimitFlag),
}

fn asked(text: &str) -> Result<AskedLimit, String> {
    if text.contains('=') {
        text.parse().map(AskedLimit::OnTheSpot)
    } else {
        Ok(AskedLimit::Stored(text.to_owned()))
    }
}

fn help() -> String {
    format!(
        "\
Examples:
  tollkeeper keys verify < key.txt
  TOLLKEEPER_KEY=$KEY tollkeeper keys verify --permissions \"documents.read AND documents.write\"
  tollkeeper keys verify --cost 0 --json < key.txt

{}",
        exit::HELP
    )
}

impl Verify {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let key = self.key()?;
        self.connection.talk(async |client| {
            let reply = client.verify_key(&self.ask(&key)).await?;
            if self.json {
                output::json(&reply)?;
            } else {
                show(&reply)?;
            }
            Ok(if reply.valid { Exit::Done } else { Exit::Denied })
        })
    }

    fn key(&self) -> Result<String, Failure> {
        let key = match connection::variable(KEY_ENV) {
            Some(key) => key,
            None if self.connection.reads_stdin() => String::new(),
            None => connection::piped("the key")?,
        };
        if key.is_empty() {
            return Err(Failure::new(Exit::Settings, "no key was given").with_next(format!(
                "pipe it in, such as `tollkeeper keys verify < key.txt`, or set {KEY_ENV}"
            )));
        }
        Ok(key)
    }

    fn ask<'a>(&'a self, key: &'a str) -> VerifyKeyRequest<'a> {
        let mut ask = VerifyKeyRequest::new(KeyText::new(key));
        ask.permissions = self.permissions.as_deref().map(Into::into);
        ask.credits = self.cost.map(SpendCredits::new);
        ask.keyspaces = texts(&self.projects);
        ask.ip = self.ip.as_deref().map(Into::into);
        ask.referer = self.referer.as_deref().map(Into::into);
        ask.source = self.source.as_deref().map(Into::into);
        ask.tags = texts(&self.tags);
        let limits: Vec<_> = self.limits.iter().map(AskedLimit::ask).collect();
        ask.ratelimits = (!limits.is_empty()).then_some(limits);
        ask
    }
}

impl AskedLimit {
    fn ask(&self) -> VerifyRatelimit<'_> {
        match self {
            Self::Stored(name) => VerifyRatelimit::new(name.as_str().into()),
            Self::OnTheSpot(limit) => {
                let mut asked = VerifyRatelimit::new(limit.name.as_str().into());
                asked.limit = Some(limit.limit);
                asked.duration = Some(limit.duration_ms);
                asked
            }
        }
    }
}

fn show(reply: &VerifyKeyReply<'_>) -> Result<(), Failure> {
    let mut columns = vec![
        ("verdict", if reply.valid { "allowed" } else { "denied" }.to_owned()),
        ("code", reply.code.to_string()),
    ];
    let mut add = |name, value: Option<String>| columns.extend(value.map(|value| (name, value)));
    add("key_id", reply.key_id.as_deref().map(printable));
    add("name", reply.name.as_deref().map(printable));
    add("owner", reply.identity.as_ref().map(|identity| printable(&identity.external_id)));
    add("credits", reply.credits.map(|left| left.to_string()));
    add("expires", reply.expires.map(|at| moment::shown(Some(at))));
    add("revoked", reply.revoked_at.map(|at| moment::shown(Some(at))));
    output::record(&columns)?;
    let limits: Vec<_> = reply
        .ratelimits
        .iter()
        .map(|limit| {
            vec![
                ("limit", printable(&limit.name)),
                ("units", limit.limit.to_string()),
                ("remaining", limit.remaining.to_string()),
                ("reset", moment::ahead(limit.reset)),
                ("exceeded", limit.exceeded.to_string()),
            ]
        })
        .collect();
    output::records(&limits)
}
