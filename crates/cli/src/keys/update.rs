//! `tollkeeper keys update`: changes what is named and keeps the rest; `--clear` takes a thing away.

use clap::{Args, ValueEnum};
use tollkeeper_client::wire::{CreditsPatch, Metadata, Patch, Refill, UpdateKeyRequest};

use crate::changed_key::ChangedKeyFormat;
use crate::connection::Connection;
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::flags::{self, LimitFlag, metadata, refill, texts};
use crate::keys::signing;
use crate::moment::Moment;

/// Change a key; what is not named stays as it is
#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Update {
    /// Id of the key, such as `key_2x7`
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

    /// Whose key it is, by your own name
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,

    /// Replaces all metadata
    #[arg(long, value_name = "JSON", value_parser = metadata)]
    meta: Option<Metadata<'static>>,

    /// When it stops working: a time from now, such as 30d, or unix milliseconds
    #[arg(long, value_name = "TIME")]
    expires: Option<Moment>,

    /// What it may spend from now on
    #[arg(long, value_name = "UNITS")]
    credits: Option<u64>,

    /// Fill the credits up: daily:AMOUNT or monthly:AMOUNT:DAY
    #[arg(long, value_parser = refill)]
    refill: Option<Refill>,

    /// Replaces all limits: NAME=UNITS/TIME, counted in every verification; may be given several times
    #[arg(long = "limit", value_name = "LIMIT")]
    limits: Vec<LimitFlag>,

    /// The same, counted only where a verification asks for it
    #[arg(long = "named-limit", value_name = "LIMIT")]
    named_limits: Vec<LimitFlag>,

    /// Replaces all direct permissions; may be given several times
    #[arg(long = "permission", value_name = "SLUG")]
    permissions: Vec<String>,

    /// Replaces all roles; may be given several times
    #[arg(long = "role", value_name = "NAME")]
    roles: Vec<String>,

    /// Which rules apply to it
    #[arg(long)]
    tier: Option<String>,

    /// Replaces all addresses and ranges that may use it; may be given several times
    #[arg(long = "allow-ip", value_name = "CIDR")]
    allow_ips: Vec<String>,

    /// Its requests have to be signed from now on; the secret is read from `TOLLKEEPER_SIGNING` or stdin
    #[arg(long)]
    signing: bool,

    /// Switch it on
    #[arg(long, conflicts_with = "disable")]
    enable: bool,

    /// Switch it off; `keys revoke` is for good
    #[arg(long)]
    disable: bool,

    /// Take this away; may be given several times
    #[arg(long, value_name = "FIELD")]
    clear: Vec<Clear>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Clear {
    Name,
    Owner,
    Meta,
    Expires,
    Credits,
    Refill,
    Limits,
    Permissions,
    Roles,
    Tier,
    AllowIp,
    Signing,
}

fn help() -> String {
    format!(
        "\
Examples:
  tollkeeper keys update key_2x7 --name \"Ann's desktop\" --expires 90d
  tollkeeper keys update key_2x7 --disable
  tollkeeper keys update key_2x7 --signing < signing.txt
  tollkeeper keys update key_2x7 --limit requests=200/1m --clear expires

{}",
        exit::HELP
    )
}

impl Update {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        self.changes.refuse_contradictions()?;
        let asked_for = self.changes.signing.then_some("tollkeeper keys update key_2x7");
        let signing = signing::secret(asked_for, &self.connection)?;
        let signing = self.changes.patch(Clear::Signing, signing);
        self.connection.talk(async |client| {
            let ask = UpdateKeyRequest { signing, ..self.ask() };
            client.update_key(&ask).await?;
            self.format.show(&self.key_id, "updated")
        })
    }

    fn ask(&self) -> UpdateKeyRequest<'_> {
        let it = &self.changes;
        let mut ask = UpdateKeyRequest::new(self.key_id.as_str().into());
        ask.name = it.patch(Clear::Name, it.name.as_deref().map(Into::into));
        ask.external_id = it.patch(Clear::Owner, it.owner.as_deref().map(Into::into));
        ask.meta = it.patch(Clear::Meta, it.meta.clone());
        ask.expires = it.patch(Clear::Expires, it.expires.map(Moment::unix_ms));
        ask.credits = it.credits();
        ask.ratelimits = it.patch(Clear::Limits, flags::limits(&it.limits, &it.named_limits));
        ask.permissions = it.list(Clear::Permissions, texts(&it.permissions));
        ask.roles = it.list(Clear::Roles, texts(&it.roles));
        ask.tier = it.patch(Clear::Tier, it.tier.as_deref().map(Into::into));
        ask.ip_allowlist = it.patch(Clear::AllowIp, texts(&it.allow_ips));
        ask.enabled = match (it.enable, it.disable) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            (false, false) => None,
        };
        ask
    }
}

impl Changes {
    fn patch<T>(&self, field: Clear, given: Option<T>) -> Patch<T> {
        match given {
            Some(value) => Patch::Set(value),
            None if self.clear.contains(&field) => Patch::Clear,
            None => Patch::Keep,
        }
    }

    /// Lists are not cleared by null but by being empty.
    fn list<T>(&self, field: Clear, given: Option<Vec<T>>) -> Option<Vec<T>> {
        given.or_else(|| self.clear.contains(&field).then(Vec::new))
    }

    fn credits(&self) -> Patch<CreditsPatch> {
        if self.clear.contains(&Clear::Credits) {
            return Patch::Clear;
        }
        let mut patch = CreditsPatch::default();
        patch.remaining = self.credits.map_or(Patch::Keep, Patch::Set);
        patch.refill = self.patch(Clear::Refill, self.refill.clone());
        if patch == CreditsPatch::default() { Patch::Keep } else { Patch::Set(patch) }
    }

    fn refuse_contradictions(&self) -> Result<(), Failure> {
        let given = [
            (Clear::Name, self.name.is_some()),
            (Clear::Owner, self.owner.is_some()),
            (Clear::Meta, self.meta.is_some()),
            (Clear::Expires, self.expires.is_some()),
            (Clear::Credits, self.credits.is_some() || self.refill.is_some()),
            (Clear::Refill, self.refill.is_some()),
            (Clear::Limits, !self.limits.is_empty() || !self.named_limits.is_empty()),
            (Clear::Permissions, !self.permissions.is_empty()),
            (Clear::Roles, !self.roles.is_empty()),
            (Clear::Tier, self.tier.is_some()),
            (Clear::AllowIp, !self.allow_ips.is_empty()),
            (Clear::Signing, self.signing),
        ];
        let both = given.iter().find(|(field, set)| *set && self.clear.contains(field));
        match both.and_then(|(field, _)| field.to_possible_value()) {
            None => Ok(()),
            Some(field) => Err(Failure::new(
                Exit::Settings,
                format!("--clear {} takes away what another flag sets", field.get_name()),
            )
            .with_next("leave one of the two out")),
        }
    }
}
