//! `tollkeeper status`: how a server and what it depends on are doing.

use clap::Args;
use tollkeeper_client::wire::{RedisServer, ShadowLine, StatusReply, TenantMode};

use crate::connection::Connection;
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::output::{self, printable};

/// Show how a server is doing: its mode, Redis, the database, and what shadow mode found
#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Status {
    /// Print the answer's data as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    connection: Connection,
}

fn help() -> String {
    format!(
        "\
Examples:
  tollkeeper status
  tollkeeper status --json

{}",
        exit::HELP
    )
}

impl Status {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        self.connection.talk(async |client| {
            let status = client.status().await?;
            if self.json {
                output::json(&status)?;
            } else {
                show(&status)?;
            }
            Ok(Exit::Done)
        })
    }
}

fn show(status: &StatusReply<'_>) -> Result<(), Failure> {
    output::details(&details(status))?;
    output::records(&status.redis.iter().map(server).collect::<Vec<_>>())?;
    output::records(&status.tenants.iter().map(tenant).collect::<Vec<_>>())?;
    output::records(&status.shadow.iter().map(shadow).collect::<Vec<_>>())
}

fn details(status: &StatusReply<'_>) -> Vec<(&'static str, String)> {
    let database = &status.database;
    let answers = match (database.answers, database.writes) {
        (true, true) => "answers",
        (true, false) => "takes no writes: see that its disk has room",
        (false, _) => "away",
    };
    let mut details = vec![
        ("node", printable(&status.node)),
        ("version", printable(&status.version)),
        ("mode", status.mode.to_string()),
        ("rollback", if status.rollback { "on" } else { "off" }.to_owned()),
        ("degraded", status.degraded.to_string()),
        ("database", database.kind.to_string()),
        ("database_state", answers.to_owned()),
        ("peers", status.peers.to_string()),
        ("cells", status.cells.to_string()),
        ("keys_cached", status.keys_cached.to_string()),
    ];
    details.extend(status.lag.map(|lag| ("lag", lag.to_string())));
    details
}

fn server(server: &RedisServer<'_>) -> Vec<(&'static str, String)> {
    let mut record = vec![
        ("redis", printable(server.address.as_deref().unwrap_or_default())),
        ("connected", server.connected.to_string()),
        ("link", server.link.to_string()),
    ];
    record.extend(server.clock.map(|clock| ("clock", clock.to_string())));
    record.extend(server.clock_skew_ms.map(|ms| ("clock_skew_ms", ms.to_string())));
    record
}

fn tenant(tenant: &TenantMode<'_>) -> Vec<(&'static str, String)> {
    vec![("tenant", printable(&tenant.tenant)), ("mode", tenant.mode.to_string())]
}

fn shadow(line: &ShadowLine<'_>) -> Vec<(&'static str, String)> {
    vec![
        ("limit", printable(&line.limit)),
        ("compared", line.compared.to_string()),
        ("stricter", line.stricter.to_string()),
        ("looser", line.looser.to_string()),
    ]
}
