//! `tollkeeper quotas`: what one identity may do beyond its tier, and whether it may do anything.

use clap::{Args, Subcommand, ValueEnum};
use tollkeeper_client::wire::{
    BlockRequest, GetQuotaRequest, Patch, QuotaReply, SetQuotaRequest, UnblockRequest,
};

use crate::connection::Connection;
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::moment::{self, Moment};
use crate::output::{self, printable};

/// Look at, set and block what identities may do
#[derive(Debug, Subcommand)]
#[command(after_help = help())]
pub(crate) enum Quotas {
    /// Show what an identity may do
    Get(Get),
    /// Set an identity's tier and limits; what is not named stays as it is
    Set(Set),
    /// Refuse everything to an identity
    Block(Block),
    /// Lift a block
    Unblock(Unblock),
}

fn help() -> String {
    format!(
        "\
Examples:
  tollkeeper quotas set ann --tier pro --per-day 100000
  tollkeeper quotas set ann --clear per-day
  tollkeeper quotas block ann --reason unpaid --until 30d
  tollkeeper quotas unblock ann

{}",
        exit::HELP
    )
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Get {
    /// Your own name for the identity
    external_id: String,

    #[command(flatten)]
    with: Answering,
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Set {
    /// Your own name for the identity; it is made where there is none
    external_id: String,

    /// Its tier
    #[arg(long)]
    tier: Option<String>,

    /// Units per second
    #[arg(long, value_name = "UNITS")]
    per_second: Option<u64>,

    /// Units per minute
    #[arg(long, value_name = "UNITS")]
    per_minute: Option<u64>,

    /// Units per hour
    #[arg(long, value_name = "UNITS")]
    per_hour: Option<u64>,

    /// Units per day
    #[arg(long, value_name = "UNITS")]
    per_day: Option<u64>,

    /// Capacity of its token buckets
    #[arg(long, value_name = "UNITS")]
    burst: Option<u64>,

    /// Take this away again, so that the tier's counts; may be given several times
    #[arg(long, value_name = "FIELD")]
    clear: Vec<Field>,

    #[command(flatten)]
    with: Answering,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Field {
    Tier,
    PerSecond,
    PerMinute,
    PerHour,
    PerDay,
    Burst,
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Block {
    /// Your own name for the identity; it is made where there is none
    external_id: String,

    /// Why, for whoever asks
    #[arg(long)]
    reason: Option<String>,

    /// When it ends: a time from now, such as 12h or 30d, or unix milliseconds; for good when left out
    #[arg(long, value_name = "TIME")]
    until: Option<Moment>,

    #[command(flatten)]
    with: Answering,
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Unblock {
    /// Your own name for the identity
    external_id: String,

    #[command(flatten)]
    with: Answering,
}

/// Where the server is, and how its answer is printed.
#[derive(Debug, Args)]
struct Answering {
    /// Print the answer's data as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    connection: Connection,
}

impl Quotas {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        match self {
            Self::Get(get) => get.run(),
            Self::Set(set) => set.run(),
            Self::Block(block) => block.run(),
            Self::Unblock(unblock) => unblock.run(),
        }
    }
}

impl Get {
    fn run(&self) -> Result<Exit, Failure> {
        self.with.connection.talk(async |client| {
            let ask = GetQuotaRequest::new(self.external_id.as_str().into());
            self.with.show(&client.get_quota(&ask).await?)
        })
    }
}

impl Set {
    fn run(&self) -> Result<Exit, Failure> {
        let ask = self.ask()?;
        self.with.connection.talk(async |client| self.with.show(&client.set_quota(&ask).await?))
    }

    fn ask(&self) -> Result<SetQuotaRequest<'_>, Failure> {
        let mut ask = SetQuotaRequest::new(self.external_id.as_str().into());
        ask.tier = self.patch(Field::Tier, self.tier.as_deref().map(Into::into))?;
        ask.per_second = self.patch(Field::PerSecond, self.per_second)?;
        ask.per_minute = self.patch(Field::PerMinute, self.per_minute)?;
        ask.per_hour = self.patch(Field::PerHour, self.per_hour)?;
        ask.per_day = self.patch(Field::PerDay, self.per_day)?;
        ask.burst = self.patch(Field::Burst, self.burst)?;
        Ok(ask)
    }

    fn patch<T>(&self, field: Field, given: Option<T>) -> Result<Patch<T>, Failure> {
        match (given, self.clear.contains(&field)) {
            (Some(_), true) => {
                Err(Failure::new(Exit::Settings, "a limit cannot be both set and cleared")
                    .with_next("leave out either the limit or its --clear"))
            }
            (Some(value), false) => Ok(Patch::Set(value)),
            (None, true) => Ok(Patch::Clear),
            (None, false) => Ok(Patch::Keep),
        }
    }
}

impl Block {
    fn run(&self) -> Result<Exit, Failure> {
        self.with.connection.talk(async |client| {
            let mut ask = BlockRequest::new(self.external_id.as_str().into());
            ask.reason = self.reason.as_deref().map(Into::into);
            ask.until = self.until.map(Moment::unix_ms);
            self.with.show(&client.block(&ask).await?)
        })
    }
}

impl Unblock {
    fn run(&self) -> Result<Exit, Failure> {
        self.with.connection.talk(async |client| {
            let ask = UnblockRequest::new(self.external_id.as_str().into());
            self.with.show(&client.unblock(&ask).await?)
        })
    }
}

impl Answering {
    fn show(&self, quota: &QuotaReply<'_>) -> Result<Exit, Failure> {
        if self.json {
            output::json(quota)?;
            return Ok(Exit::Done);
        }
        let number = |number: Option<u64>| number.map(|n| n.to_string()).unwrap_or_default();
        let limits = &quota.limits;
        let totals = quota.totals.as_ref();
        output::details(&[
            ("external_id", printable(&quota.external_id)),
            ("tier", printable(&quota.tier)),
            ("per_second", number(limits.per_second)),
            ("per_minute", number(limits.per_minute)),
            ("per_hour", number(limits.per_hour)),
            ("per_day", number(limits.per_day)),
            ("burst", number(limits.burst)),
            ("today", number(totals.map(|totals| totals.today))),
            ("month", number(totals.map(|totals| totals.month))),
            ("reset_at", moment::shown(quota.reset_at)),
            ("last_request_at", moment::shown(quota.last_request_at)),
            ("exceeded_count", quota.exceeded_count.to_string()),
            ("blocked", quota.blocked.to_string()),
            ("block_reason", quota.block_reason.as_deref().map(printable).unwrap_or_default()),
            ("blocked_until", moment::shown(quota.blocked_until)),
        ])?;
        Ok(Exit::Done)
    }
}
