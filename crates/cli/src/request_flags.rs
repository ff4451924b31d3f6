//! A request of an end user, described in flags: what `check` and `explain` ask about.
//! The key comes from stdin or `TOLLKEEPER_KEY`, never from the arguments, which every user of the machine can read.

use clap::Args;
use tollkeeper_client::wire::{CheckRequest, ExplainRequest, KeyText, SpendCredits};

use crate::connection::{self, Connection};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

const KEY_ENV: &str = "TOLLKEEPER_KEY";

#[derive(Debug, Args)]
pub(crate) struct RequestFlags {
    /// Read the request's key from stdin instead of `TOLLKEEPER_KEY`; with neither, it has none
    #[arg(long)]
    key_stdin: bool,

    /// Who asks, where no key says it
    #[arg(long, value_name = "ID")]
    external_id: Option<String>,

    /// Counts where neither key nor owner has a tier
    #[arg(long)]
    tier: Option<String>,

    /// Address of the end user
    #[arg(long)]
    ip: Option<String>,

    /// Method of the request, such as GET
    #[arg(long)]
    method: Option<String>,

    /// Path of the request, such as /v1/users
    #[arg(long)]
    path: Option<String>,

    /// The page that the end user came from
    #[arg(long)]
    referer: Option<String>,

    /// The site or program that asks
    #[arg(long)]
    source: Option<String>,

    /// What the key must be permitted: names joined by AND, OR and parentheses
    #[arg(long, value_name = "QUERY")]
    permissions: Option<String>,

    /// Units that the request spends of every limit; 0 only looks
    #[arg(long, value_name = "UNITS")]
    cost: Option<u64>,

    /// Credits that the request spends; 0 spends none
    #[arg(long, value_name = "UNITS")]
    credits: Option<u64>,
}

impl RequestFlags {
    pub(crate) fn key(&self, connection: &Connection) -> Result<Option<String>, Failure> {
        if !self.key_stdin {
            return Ok(connection::variable(KEY_ENV));
        }
        if connection.reads_stdin() {
            return Err(Failure::new(Exit::Settings, "stdin holds either the key or the root key")
                .with_next(format!("set {KEY_ENV} or TOLLKEEPER_ROOT_KEY for one of them")));
        }
        match connection::piped("the key")? {
            key if key.is_empty() => Err(Failure::new(Exit::Settings, "no key was given")
                .with_next("pipe it in, such as `tollkeeper explain --key-stdin < key.txt`")),
            key => Ok(Some(key)),
        }
    }

    /// Says that a request went without a key, where it looks as if one had been piped in. Asked for behind the answer, when
    /// whoever pipes has had the time to.
    pub(crate) fn note_unread_key(&self, key: Option<&str>) {
        if key.is_none() && !self.key_stdin && connection::stdin_is_unread() {
            output::note(
                "the request has no key: what stands on stdin is read as one only with --key-stdin",
            );
        }
    }

    pub(crate) fn check<'a>(&'a self, key: Option<&'a str>) -> CheckRequest<'a> {
        CheckRequest {
            key: key.map(KeyText::new),
            external_id: self.external_id.as_deref().map(Into::into),
            tier: self.tier.as_deref().map(Into::into),
            ip: self.ip.as_deref().map(Into::into),
            method: self.method.as_deref().map(Into::into),
            path: self.path.as_deref().map(Into::into),
            referer: self.referer.as_deref().map(Into::into),
            source: self.source.as_deref().map(Into::into),
            permissions: self.permissions.as_deref().map(Into::into),
            cost: self.cost,
            credits: self.credits.map(SpendCredits::new),
            ..CheckRequest::default()
        }
    }

    pub(crate) fn explain<'a>(
        &'a self,
        key: Option<&'a str>,
        at: Option<u64>,
    ) -> ExplainRequest<'a> {
        let check = self.check(key);
        ExplainRequest {
            key: check.key,
            external_id: check.external_id,
            tier: check.tier,
            ip: check.ip,
            method: check.method,
            path: check.path,
            referer: check.referer,
            source: check.source,
            permissions: check.permissions,
            cost: check.cost,
            credits: check.credits,
            at,
            ..ExplainRequest::default()
        }
    }
}
