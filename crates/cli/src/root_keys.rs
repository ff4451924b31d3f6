//! `tollkeeper root-keys`: the keys with which the API itself is called. New ones are shown once.

use clap::{Args, Subcommand};
use tollkeeper_client::wire::{
    CreateRootKeyRequest, DeleteRootKeyRequest, ListRootKeysRequest, Patch, RerollRootKeyRequest,
    RootKey, UpdateRootKeyRequest,
};

use crate::changed_key::ChangedKeyFormat;
use crate::connection::Connection;
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::flags::texts;
use crate::keys::reroll::OldKey;
use crate::moment::{self, Moment};
use crate::new_key::NewKeyFormat;
use crate::output::{self, printable};

/// Make, look at, change and delete root keys
#[derive(Debug, Subcommand)]
#[command(after_help = help())]
pub(crate) enum RootKeys {
    /// Make a root key; it is shown once
    Create(Create),
    /// List root keys
    List(List),
    /// Change a root key; what is not named stays as it is
    Update(Update),
    /// Replace a root key by a new one; it is shown once
    Reroll(Reroll),
    /// Delete a root key
    Delete(Delete),
}

fn help() -> String {
    format!(
        "\
A permission is `group.id.action`, with `*` for any id. No root key can make one that may do more than itself.

Examples:
  tollkeeper root-keys create --name gateway --permission 'api.*.verify_key'
  tollkeeper root-keys create --name deploy --permission 'api.*.create_key' --expires 90d --key-only > deploy.key
  tollkeeper root-keys list
  tollkeeper root-keys reroll rk_2x7 --grace 1h
  tollkeeper root-keys update rk_2x7 --disable

{}",
        exit::HELP
    )
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Create {
    /// What it may do; may be given several times
    #[arg(long = "permission", value_name = "PERMISSION", required = true)]
    permissions: Vec<String>,

    /// What people call it
    #[arg(long)]
    name: Option<String>,

    /// When it stops working: a time from now, such as 30d, or unix milliseconds
    #[arg(long, value_name = "TIME")]
    expires: Option<Moment>,

    #[command(flatten)]
    format: NewKeyFormat,

    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct List {
    /// Print one JSON object per root key and line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Update {
    /// Id of the root key
    key_id: String,

    #[command(flatten)]
    changes: Changes,

    #[command(flatten)]
    format: ChangedKeyFormat,

    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct Changes {
    /// What people call it
    #[arg(long)]
    name: Option<String>,

    /// Replaces all permissions; may be given several times
    #[arg(long = "permission", value_name = "PERMISSION")]
    permissions: Vec<String>,

    /// Switch it on
    #[arg(long, conflicts_with = "disable")]
    enable: bool,

    /// Switch it off
    #[arg(long)]
    disable: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Reroll {
    /// Id of the root key to be replaced
    key_id: String,

    #[command(flatten)]
    old: OldKey,

    #[command(flatten)]
    format: NewKeyFormat,

    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Delete {
    /// Id of the root key
    key_id: String,

    #[command(flatten)]
    format: ChangedKeyFormat,

    #[command(flatten)]
    connection: Connection,
}

impl RootKeys {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        match self {
            Self::Create(create) => create.run(),
            Self::List(list) => list.run(),
            Self::Update(update) => update.run(),
            Self::Reroll(reroll) => reroll.run(),
            Self::Delete(delete) => delete.run(),
        }
    }
}

impl Create {
    fn run(&self) -> Result<Exit, Failure> {
        self.connection.talk(async |client| {
            let permissions = texts(&self.permissions).unwrap_or_default();
            let mut ask = CreateRootKeyRequest::new(permissions);
            ask.name = self.name.as_deref().map(Into::into);
            ask.expires = self.expires.map_or(Patch::Keep, |at| Patch::Set(at.unix_ms()));
            let made = client.create_root_key(&ask).await?;
            self.format.show(&made)?;
            Ok(Exit::Done)
        })
    }
}

impl List {
    fn run(&self) -> Result<Exit, Failure> {
        self.connection.talk(async |client| {
            let (mut ask, mut rows) = (ListRootKeysRequest::default(), Vec::new());
            loop {
                let page = client.list_root_keys(&ask).await?;
                if self.json {
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

impl Update {
    fn run(&self) -> Result<Exit, Failure> {
        self.connection.talk(async |client| {
            let it = &self.changes;
            let mut ask = UpdateRootKeyRequest::new(self.key_id.as_str().into());
            ask.name = it.name.as_deref().map_or(Patch::Keep, |name| Patch::Set(name.into()));
            ask.permissions = texts(&it.permissions);
            ask.enabled = (it.enable || it.disable).then_some(it.enable);
            client.update_root_key(&ask).await?;
            self.format.show(&self.key_id, "updated")
        })
    }
}

impl Reroll {
    fn run(&self) -> Result<Exit, Failure> {
        self.connection.talk(async |client| {
            let ask = RerollRootKeyRequest::new(self.key_id.as_str().into(), self.old.expiration());
            let made = client.reroll_root_key(&ask).await?;
            self.format.show(&made)?;
            Ok(Exit::Done)
        })
    }
}

impl Delete {
    fn run(&self) -> Result<Exit, Failure> {
        self.connection.talk(async |client| {
            client.delete_root_key(&DeleteRootKeyRequest::new(self.key_id.as_str().into())).await?;
            self.format.show(&self.key_id, "deleted")
        })
    }
}

fn row(key: &RootKey<'_>) -> Vec<(&'static str, String)> {
    let used = Some(key.last_used_at).filter(|at| *at > 0);
    vec![
        ("key_id", printable(&key.key_id)),
        ("name", key.name.as_deref().map_or_else(String::new, printable)),
        ("key", edges(key)),
        ("state", if key.enabled { "enabled" } else { "disabled" }.to_owned()),
        ("expires", moment::shown(key.expires)),
        ("last_used", moment::shown(used)),
        ("permissions", printable(&key.permissions.join(","))),
    ]
}

/// Nothing where the server keeps neither end, as with a root key that it was given.
fn edges(key: &RootKey<'_>) -> String {
    if key.start.is_empty() && key.end.is_empty() {
        return String::new();
    }
    printable(&format!("{}…{}", key.start, key.end))
}
