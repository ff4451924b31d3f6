//! `tollkeeper audit search`: what was decided, newest first.

use clap::Args;
use clap::builder::PossibleValuesParser;
use tollkeeper_client::wire::{AuditedDecision, Decision, SearchAuditRequest};

use crate::connection::Connection;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::moment;
use crate::output::{self, printable};
use crate::since::Since;

#[derive(Debug, Args)]
#[command(after_help = super::help())]
pub(crate) struct Search {
    /// From then on: a time ago, such as 2h, or unix milliseconds
    #[arg(long, value_name = "TIME")]
    since: Option<Since>,

    /// Before then: a time ago, or unix milliseconds
    #[arg(long, value_name = "TIME")]
    until: Option<Since>,

    /// Decisions on this key, by its id
    #[arg(long, value_name = "ID")]
    key: Option<String>,

    /// Decisions on keys of this identity, by your own name for it, and on limits of this identifier
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,

    /// How they ended
    #[arg(long, value_parser = PossibleValuesParser::new(Decision::WORDS))]
    decision: Option<String>,

    /// Exactly this path; with `*` at its end, all that begin so
    #[arg(long)]
    path: Option<String>,

    /// Anywhere in code, path, endpoint, rule, limit, address or request id
    #[arg(long)]
    text: Option<String>,

    /// At most so many
    #[arg(long, value_name = "ROWS", default_value_t = 100)]
    limit: u64,

    /// Print one JSON object per decision and line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    connection: Connection,
}

impl Search {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        self.connection.talk(async |client| {
            let mut ask = self.ask();
            let (mut left, mut rows) = (self.limit, Vec::new());
            while left > 0 {
                ask.limit = Some(left.min(100));
                let page = client.search_audit(&ask).await?;
                left = left.saturating_sub(page.rows.len() as u64);
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

    fn ask(&self) -> SearchAuditRequest<'_> {
        SearchAuditRequest {
            from: self.since.map(Since::unix_ms),
            to: self.until.map(Since::unix_ms),
            key_id: self.key.as_deref().map(Into::into),
            external_id: self.owner.as_deref().map(Into::into),
            decision: self.decision.as_deref().and_then(Decision::from_word),
            path: self.path.as_deref().map(Into::into),
            text: self.text.as_deref().map(Into::into),
            ..SearchAuditRequest::default()
        }
    }
}

fn row(decision: &AuditedDecision<'_>) -> Vec<(&'static str, String)> {
    let text = |text: &Option<std::borrow::Cow<'_, str>>| {
        text.as_deref().map(printable).unwrap_or_default()
    };
    vec![
        ("at", moment::shown_exactly(decision.at)),
        ("decision", decision.decision.to_string()),
        ("code", printable(&decision.code)),
        ("key", text(&decision.key_id)),
        ("owner", text(&decision.external_id)),
        ("ip", text(&decision.ip)),
        ("method", text(&decision.method)),
        ("path", text(&decision.path)),
        ("limit", text(&decision.limit)),
        ("request", printable(&decision.request_id)),
        ("node", printable(&decision.node)),
    ]
}
