//! `tollkeeper check`: asks whether a request may pass, and spends what passing costs. The verdict is the exit code.

use clap::Args;
use tollkeeper_client::wire::CheckReply;

use crate::connection::Connection;
use crate::exit::{self, Exit};
use crate::explain::lasting;
use crate::failure::Failure;
use crate::moment;
use crate::output::{self, printable};
use crate::request_flags::RequestFlags;

/// Ask whether a request may pass, and spend what that costs
#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Check {
    #[command(flatten)]
    request: RequestFlags,

    /// Answer without spending anything
    #[arg(long)]
    dry_run: bool,

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
  tollkeeper check --external-id ann --method GET --path /v1/users
  TOLLKEEPER_KEY=$KEY tollkeeper check --ip 203.0.113.9 --dry-run

{}",
        exit::HELP
    )
}

impl Check {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let key = self.request.key(&self.connection)?;
        self.connection.talk(async |client| {
            let mut ask = self.request.check(key.as_deref());
            ask.dry_run = self.dry_run;
            let reply = client.check(&ask).await?;
            if self.json {
                output::json(&reply)?;
            } else {
                show(&reply)?;
            }
            self.request.note_unread_key(key.as_deref());
            Ok(if reply.allowed { Exit::Done } else { Exit::Denied })
        })
    }
}

fn show(reply: &CheckReply<'_>) -> Result<(), Failure> {
    let mut columns = vec![
        ("verdict", if reply.allowed { "allowed" } else { "denied" }.to_owned()),
        ("code", reply.code.to_string()),
        ("status", reply.status.to_string()),
    ];
    let mut add = |name, value: Option<String>| columns.extend(value.map(|value| (name, value)));
    add("rule", reply.rule.as_deref().map(printable));
    add("delay", reply.delay_ms.map(lasting));
    add("retry_after", reply.retry_after_ms.map(lasting));
    add("key_id", reply.key_id.as_deref().map(printable));
    add("owner", reply.identity.as_ref().map(|identity| printable(&identity.external_id)));
    add("credits", reply.credits.map(|left| left.to_string()));
    add("message", reply.message.as_deref().map(printable));
    add("degraded", reply.degraded.then(|| "true".to_owned()));
    output::record(&columns)?;
    let limits: Vec<_> = reply
        .limits
        .iter()
        .map(|limit| {
            vec![
                ("limit", printable(&limit.name)),
                ("scope", printable(&limit.scope)),
                ("identifier", printable(&limit.identifier)),
                ("units", limit.limit.to_string()),
                ("remaining", limit.remaining.to_string()),
                ("reset", moment::ahead(limit.reset)),
                ("exceeded", limit.exceeded.to_string()),
                ("shadow", limit.shadow.to_string()),
            ]
        })
        .collect();
    output::records(&limits)
}
