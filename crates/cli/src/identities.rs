//! `tollkeeper identities`: whose keys these are, and the limits that all of an identity's keys share.

use clap::{Args, Subcommand};
use tollkeeper_client::wire::{
    CreateIdentityRequest, DeleteIdentityRequest, GetIdentityRequest, Identity,
    ListIdentitiesRequest, Metadata, UpdateIdentityRequest,
};

use crate::connection::Connection;
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::flags::{self, LimitFlag, metadata};
use crate::output::{self, printable};

/// Make, look at, change and delete identities
#[derive(Debug, Subcommand)]
#[command(after_help = help())]
pub(crate) enum Identities {
    /// Make an identity
    Create(Create),
    /// List identities
    List(List),
    /// Show one identity
    Get(Get),
    /// Change an identity; what is not named stays as it is
    Update(Update),
    /// Delete an identity; its keys stay, without an owner
    Delete(Delete),
}

fn help() -> String {
    format!(
        "\
Examples:
  tollkeeper identities create ann --limit requests=1000/1h --meta '{{\"plan\":\"pro\"}}'
  tollkeeper identities list --search acme
  tollkeeper identities update ann --limit requests=2000/1h
  tollkeeper identities delete ann

{}",
        exit::HELP
    )
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Create {
    /// Your own name for it
    external_id: String,

    #[command(flatten)]
    about: About,

    #[command(flatten)]
    with: Answering,
}

#[derive(Debug, Args)]
struct About {
    /// Anything you want back with every verification
    #[arg(long, value_name = "JSON", value_parser = metadata)]
    meta: Option<Metadata<'static>>,

    /// A limit that all its keys share: NAME=UNITS/TIME, counted in every verification; may be given several times
    #[arg(long = "limit", value_name = "LIMIT")]
    limits: Vec<LimitFlag>,

    /// The same, counted only where a verification asks for it
    #[arg(long = "named-limit", value_name = "LIMIT")]
    named_limits: Vec<LimitFlag>,
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct List {
    /// Only identities whose name or id holds this
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,

    #[command(flatten)]
    with: Answering,
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Get {
    /// Its id or your own name for it
    identity: String,

    #[command(flatten)]
    with: Answering,
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Update {
    /// Its id or your own name for it
    identity: String,

    #[command(flatten)]
    about: About,

    /// Take all its limits away
    #[arg(long, conflicts_with_all = ["limits", "named_limits"])]
    clear_limits: bool,

    #[command(flatten)]
    with: Answering,
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Delete {
    /// Its id or your own name for it
    identity: String,

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

impl Identities {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        match self {
            Self::Create(create) => create.run(),
            Self::List(list) => list.run(),
            Self::Get(get) => get.run(),
            Self::Update(update) => update.run(),
            Self::Delete(delete) => delete.run(),
        }
    }
}

impl Create {
    fn run(&self) -> Result<Exit, Failure> {
        self.with.connection.talk(async |client| {
            let mut ask = CreateIdentityRequest::new(self.external_id.as_str().into());
            ask.meta.clone_from(&self.about.meta);
            ask.ratelimits = flags::limits(&self.about.limits, &self.about.named_limits);
            let made = client.create_identity(&ask).await?;
            if self.with.json {
                output::json(&made)?;
            } else {
                output::record(&[
                    ("identity_id", printable(&made.identity_id)),
                    ("external_id", printable(&self.external_id)),
                ])?;
            }
            Ok(Exit::Done)
        })
    }
}

impl List {
    fn run(&self) -> Result<Exit, Failure> {
        self.with.connection.talk(async |client| {
            let (mut ask, mut rows) = (ListIdentitiesRequest::default(), Vec::new());
            ask.search = self.search.as_deref().map(Into::into);
            loop {
                let page = client.list_identities(&ask).await?;
                if self.with.json {
                    page.rows.iter().try_for_each(output::json)?;
                } else {
                    rows.extend(page.rows.iter().map(row));
                }
                let Some(next) = page.next else { break };
                ask.cursor = Some(next.into());
            }
            output::records(&rows)?;
            Ok(Exit::Done)
        })
    }
}

impl Get {
    fn run(&self) -> Result<Exit, Failure> {
        self.with.connection.talk(async |client| {
            let ask = GetIdentityRequest::new(self.identity.as_str().into());
            self.with.show(&client.get_identity(&ask).await?)
        })
    }
}

impl Update {
    fn run(&self) -> Result<Exit, Failure> {
        self.with.connection.talk(async |client| {
            let mut ask = UpdateIdentityRequest::new(self.identity.as_str().into());
            ask.meta.clone_from(&self.about.meta);
            ask.ratelimits = flags::limits(&self.about.limits, &self.about.named_limits)
                .or_else(|| self.clear_limits.then(Vec::new));
            self.with.show(&client.update_identity(&ask).await?)
        })
    }
}

impl Delete {
    fn run(&self) -> Result<Exit, Failure> {
        self.with.connection.talk(async |client| {
            client
                .delete_identity(&DeleteIdentityRequest::new(self.identity.as_str().into()))
                .await?;
            if self.with.json {
                output::json(&serde_json::json!({}))?;
            } else {
                let name = printable(&self.identity);
                output::record(&[("identity", name), ("state", "deleted".to_owned())])?;
            }
            Ok(Exit::Done)
        })
    }
}

impl Answering {
    fn show(&self, identity: &Identity<'_>) -> Result<Exit, Failure> {
        if self.json {
            output::json(identity)?;
        } else {
            output::details(&row(identity))?;
        }
        Ok(Exit::Done)
    }
}

fn row(identity: &Identity<'_>) -> Vec<(&'static str, String)> {
    let limits: Vec<_> = identity
        .ratelimits
        .iter()
        .map(|limit| format!("{}={}/{}ms", limit.name, limit.limit, limit.duration))
        .collect();
    vec![
        ("identity_id", printable(&identity.id)),
        ("external_id", printable(&identity.external_id)),
        ("limits", printable(&limits.join(","))),
        ("meta", identity.meta.as_ref().map_or_else(String::new, |meta| printable(meta.as_str()))),
    ]
}
