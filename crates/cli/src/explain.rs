//! `tollkeeper explain`: what every rule thinks of a request, matched or not, and why. Nothing is spent.

use clap::Args;
use tollkeeper_client::wire::{ExplainReply, MatchedRule, UnmatchedRule};

use crate::connection::Connection;
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::moment::Moment;
use crate::output::{self, printable};
use crate::request_flags::RequestFlags;
use crate::window::spoken;

/// Ask what every rule thinks of a request, and why; spends nothing
#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Explain {
    #[command(flatten)]
    request: RequestFlags,

    /// The moment to answer for: a time from now, such as 30s, or unix milliseconds
    #[arg(long, value_name = "TIME")]
    at: Option<Moment>,

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
  tollkeeper explain --external-id ann --method GET --path /v1/users
  TOLLKEEPER_KEY=$KEY tollkeeper explain --ip 203.0.113.9 --path /v1/users
  tollkeeper explain --key-stdin --json < key.txt

{}",
        exit::HELP
    )
}

impl Explain {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let key = self.request.key(&self.connection)?;
        self.connection.talk(async |client| {
            let ask = self.request.explain(key.as_deref(), self.at.map(Moment::unix_ms));
            let reply = client.explain(&ask).await?;
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

fn show(reply: &ExplainReply<'_>) -> Result<(), Failure> {
    let mut columns = vec![
        ("verdict", if reply.allowed { "allowed" } else { "denied" }.to_owned()),
        ("code", reply.code.to_string()),
        ("status", reply.status.to_string()),
        ("tier", printable(&reply.tier)),
    ];
    let mut add = |name, value: Option<String>| columns.extend(value.map(|value| (name, value)));
    add("rule", reply.rule.as_deref().map(printable));
    add("delay", reply.delay_ms.map(lasting));
    add("retry_after", reply.retry_after_ms.map(lasting));
    add("reason", Some(printable(&reply.reason)));
    output::record(&columns)?;
    output::records(&rows(&reply.matched, &reply.unmatched))
}

/// A rule to a line; a matching rule has one for each of its limits.
pub(crate) fn rows<'a>(
    matched: &[MatchedRule<'_>],
    unmatched: &[UnmatchedRule<'_>],
) -> Vec<Vec<(&'a str, String)>> {
    let row = |rule: &str, matches: &str, rest: [String; 5]| {
        let [action, limit, units, left, reason] = rest;
        vec![
            ("rule", printable(rule)),
            ("matches", matches.to_owned()),
            ("action", action),
            ("limit", limit),
            ("units", units),
            ("left", left),
            ("reason", reason),
        ]
    };
    let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    let matched = matched.iter().map(|one| {
        let matches = if one.would_deny { "denies" } else { "yes" };
        let limit = one.name.as_deref().map(printable).unwrap_or_default();
        let (units, left) = (number(one.limit), number(one.remaining));
        let (action, reason) = (printable(&one.action), printable(&one.reason));
        row(&one.rule, matches, [action, limit, units, left, reason])
    });
    let unmatched = unmatched.iter().map(|one| {
        let nothing = String::new;
        row(&one.rule, "no", [nothing(), nothing(), nothing(), nothing(), printable(&one.reason)])
    });
    matched.chain(unmatched).collect()
}

pub(crate) fn lasting(millis: u64) -> String {
    if output::is_terminal() { spoken(millis) } else { format!("{millis}ms") }
}
