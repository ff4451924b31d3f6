//! `tollkeeper limit`: asks a server whether one more fits, and spends it; or only looks.
//! The answer is the exit code, so that a script can branch on it without reading anything.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use tollkeeper_client::Client;
use tollkeeper_client::wire::ratelimit::{BURST, COST, LIMIT};
use tollkeeper_client::wire::schema::{Shape, Whole};
use tollkeeper_client::wire::{Algorithm, LimitReply, LimitRequest, PeekReply, PeekRequest};

use crate::connection::Connection;
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::moment;
use crate::output;
use crate::window::{Window, spoken};

/// Spend from a limit, or look at it
#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Limit {
    /// Group of limits that belong together, such as `login`; made on first use
    namespace: String,

    /// Whom or what is limited: a user, an address, a key
    identifier: String,

    /// Units that fit into one window; with --peek the override's when left out
    #[arg(long, required_unless_present = "peek", allow_negative_numbers = true, value_parser = units(LIMIT))]
    #[expect(clippy::struct_field_names, reason = "the flag is called --limit")]
    limit: Option<u64>,

    /// Length of the window: an integer and ms, s, m, h or d
    #[arg(long, required_unless_present = "peek", value_name = "TIME")]
    window: Option<Window>,

    /// Units to spend; 0 only looks
    #[arg(long, default_value_t = 1, conflicts_with = "peek", allow_negative_numbers = true, value_parser = units(COST))]
    cost: u64,

    /// Look at what is used and left, spend nothing
    #[arg(long)]
    peek: bool,

    /// How to count; `sliding_window` when left out
    #[arg(long, value_parser = algorithms())]
    algorithm: Option<Algorithm>,

    /// Capacity of a token bucket; the limit when left out
    #[arg(long, allow_negative_numbers = true, value_parser = units(BURST))]
    burst: Option<u64>,

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
  tollkeeper limit login 203.0.113.9 --limit 5 --window 1m
  tollkeeper limit mail ann --limit 100 --window 1d --cost 3 --json
  tollkeeper limit login 203.0.113.9 --limit 5 --window 1m --peek

The root key is read from TOLLKEEPER_ROOT_KEY; the server printed it at its first start.

{}",
        exit::HELP
    )
}

/// The API's own bounds, so that a slip is found before anything is sent.
fn units(bounds: Whole) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| {
        let units = text.parse().ok().filter(|units| bounds.holds(*units));
        units.ok_or_else(|| format!("expected {}", Shape::Integer(bounds).expectation()))
    }
}

fn algorithms() -> impl TypedValueParser<Value = Algorithm> {
    PossibleValuesParser::new(Algorithm::WORDS)
        .map(|word| Algorithm::from_word(&word).unwrap_or_default())
}

impl Limit {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        self.connection.talk(async |client| match (self.peek, self.limit, self.window) {
            (false, Some(limit), Some(window)) => self.spend(&client, limit, window).await,
            // clap lets limit and window be absent only beside --peek.
            _ => self.look(&client).await,
        })
    }

    async fn spend(&self, client: &Client, limit: u64, window: Window) -> Result<Exit, Failure> {
        let mut ask =
            LimitRequest::new(&*self.namespace, &*self.identifier, limit, window.millis());
        ask.cost = self.cost;
        ask.algorithm = self.algorithm.unwrap_or_default();
        ask.burst = self.burst;
        let reply = client.limit(&ask).await?;
        if self.json {
            output::json(&reply)?;
        } else {
            show_reply(&reply)?;
        }
        Ok(if reply.success { Exit::Done } else { Exit::Denied })
    }

    async fn look(&self, client: &Client) -> Result<Exit, Failure> {
        let mut ask = PeekRequest::new(&*self.namespace, &*self.identifier);
        ask.limit = self.limit;
        ask.duration = self.window.map(Window::millis);
        ask.algorithm = self.algorithm;
        ask.burst = self.burst;
        let reply = client.peek(&ask).await?;
        if self.json {
            output::json(&reply)?;
        } else {
            show_peek(reply)?;
        }
        Ok(Exit::Done)
    }
}

fn show_reply(reply: &LimitReply<'_>) -> Result<(), Failure> {
    let mut columns = vec![
        ("verdict", if reply.success { "allowed" } else { "denied" }.to_owned()),
        ("limit", reply.limit.to_string()),
        ("remaining", reply.remaining.to_string()),
        ("reset", moment::ahead(reply.reset)),
    ];
    if !reply.success {
        columns.push((
            "retry_after",
            reply.retry_after_ms.map_or_else(|| "never".to_owned(), lasting),
        ));
    }
    if let Some(id) = &reply.override_id {
        columns.push(("override", output::printable(id)));
    }
    if reply.degraded {
        columns.push(("degraded", "true".to_owned()));
    }
    output::record(&columns)
}

fn show_peek(reply: PeekReply) -> Result<(), Failure> {
    let mut columns = vec![
        ("limit", reply.limit.to_string()),
        ("used", reply.used.to_string()),
        ("remaining", reply.remaining.to_string()),
        ("reset", moment::ahead(reply.reset)),
    ];
    if reply.degraded {
        columns.push(("degraded", "true".to_owned()));
    }
    output::record(&columns)
}

fn lasting(millis: u64) -> String {
    if output::is_terminal() { spoken(millis) } else { format!("{millis}ms") }
}
