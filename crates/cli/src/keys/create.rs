//! `tollkeeper keys create`: makes a key and shows it once.

use clap::Args;
use tollkeeper_client::wire::{CreateKeyRequest, Credits, Metadata, Refill};

use crate::connection::Connection;
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::flags::{self, LimitFlag, metadata, refill, texts};
use crate::keys::signing;
use crate::moment::Moment;
use crate::new_key::NewKeyFormat;

/// Make a key; it is shown once
#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Create {
    /// The project that the key opens: its id or its slug
    project: String,

    /// What people call it
    #[arg(long)]
    name: Option<String>,

    /// Stands before the key, joined by `_`
    #[arg(long)]
    prefix: Option<String>,

    /// Whose key it is, by your own name; the identity is made if it is new
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,

    /// Anything you want back with every verification
    #[arg(long, value_name = "JSON", value_parser = metadata)]
    meta: Option<Metadata<'static>>,

    /// What it may do; may be given several times
    #[arg(long = "permission", value_name = "SLUG")]
    permissions: Vec<String>,

    /// An existing role; may be given several times
    #[arg(long = "role", value_name = "NAME")]
    roles: Vec<String>,

    /// When it stops working: a time from now, such as 30d, or unix milliseconds
    #[arg(long, value_name = "TIME")]
    expires: Option<Moment>,

    /// What it may spend in total; without end when left out
    #[arg(long, value_name = "UNITS")]
    credits: Option<u64>,

    /// Fill the credits up: daily:AMOUNT or monthly:AMOUNT:DAY
    #[arg(long, requires = "credits", value_parser = refill)]
    refill: Option<Refill>,

    /// A limit that counts in every verification: NAME=UNITS/TIME; may be given several times
    #[arg(long = "limit", value_name = "LIMIT")]
    limits: Vec<LimitFlag>,

    /// A limit that counts only where a verification asks for it
    #[arg(long = "named-limit", value_name = "LIMIT")]
    named_limits: Vec<LimitFlag>,

    /// Which rules apply to it
    #[arg(long)]
    tier: Option<String>,

    /// An address or range that may use it; may be given several times
    #[arg(long = "allow-ip", value_name = "CIDR")]
    allow_ips: Vec<String>,

    /// Its requests have to be signed; the secret for it is read from `TOLLKEEPER_SIGNING` or stdin
    #[arg(long)]
    signing: bool,

    /// Random bytes of the key, 16 to 255
    #[arg(long, value_name = "COUNT")]
    byte_length: Option<u64>,

    /// Keep the key encrypted, so that `keys get --decrypt` can show it again
    #[arg(long)]
    recoverable: bool,

    /// Make it switched off
    #[arg(long)]
    disabled: bool,

    #[command(flatten)]
    format: NewKeyFormat,

    #[command(flatten)]
    connection: Connection,
}

fn help() -> String {
    format!(
        "\
Examples:
  tollkeeper keys create my-api --name \"Ann's laptop\" --owner ann --expires 90d
  tollkeeper keys create my-api --prefix prod --limit requests=100/1m --limit daily=10000/1d
  tollkeeper keys create my-api --credits 1000 --refill monthly:1000:1
  tollkeeper keys create my-api --key-only | vault kv put secret/my-api key=-
  openssl rand -hex 32 | tee signing.txt | tollkeeper keys create my-api --signing

{}",
        exit::HELP
    )
}

impl Create {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let asked_for = self.signing.then_some("tollkeeper keys create my-api");
        let signing = signing::secret(asked_for, &self.connection)?;
        self.connection.talk(async |client| {
            let api_id = flags::project_id(&client, &self.project).await?;
            let ask = CreateKeyRequest { signing, ..self.ask(&api_id) };
            let made = client.create_key(&ask).await?;
            self.format.show(&made)?;
            Ok(Exit::Done)
        })
    }

    fn ask<'a>(&'a self, api_id: &'a str) -> CreateKeyRequest<'a> {
        let mut ask = CreateKeyRequest::new(api_id.into());
        ask.name = self.name.as_deref().map(Into::into);
        ask.prefix = self.prefix.as_deref().map(Into::into);
        ask.external_id = self.owner.as_deref().map(Into::into);
        ask.meta.clone_from(&self.meta);
        ask.permissions = texts(&self.permissions);
        ask.roles = texts(&self.roles);
        ask.expires = self.expires.map(Moment::unix_ms);
        ask.credits = self.credits.map(|units| {
            let mut credits = Credits::new(Some(units));
            credits.refill.clone_from(&self.refill);
            credits
        });
        ask.ratelimits = flags::limits(&self.limits, &self.named_limits);
        ask.tier = self.tier.as_deref().map(Into::into);
        ask.ip_allowlist = texts(&self.allow_ips);
        ask.byte_length = self.byte_length;
        ask.recoverable = self.recoverable;
        ask.enabled = self.disabled.then_some(false);
        ask
    }
}
