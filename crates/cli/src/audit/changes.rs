//! `tollkeeper audit changes`: who changed what, newest first.

use clap::Args;
use tollkeeper_client::wire::{AdminChange, ListChangesRequest};

use crate::connection::Connection;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::moment;
use crate::output::{self, printable};
use crate::since::Since;

#[derive(Debug, Args)]
#[command(after_help = super::help())]
pub(crate) struct Changes {
    /// From then on: a time ago, such as 7d, or unix milliseconds
    #[arg(long, value_name = "TIME")]
    since: Option<Since>,

    /// Before then: a time ago, or unix milliseconds
    #[arg(long, value_name = "TIME")]
    until: Option<Since>,

    /// What was done, such as keys.create
    #[arg(long)]
    action: Option<String>,

    /// Id of what it was done to
    #[arg(long, value_name = "ID")]
    target: Option<String>,

    /// Who did it: id of a root key
    #[arg(long, value_name = "ID")]
    by: Option<String>,

    /// At most so many
    #[arg(long, value_name = "ROWS", default_value_t = 100)]
    limit: u64,

    /// Print one JSON object per change and line, with what was before and after
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    connection: Connection,
}

impl Changes {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        self.connection.talk(async |client| {
            let mut ask = self.ask();
            let (mut left, mut rows) = (self.limit, Vec::new());
            while left > 0 {
                ask.limit = Some(left.min(100));
                let page = client.list_changes(&ask).await?;
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

    fn ask(&self) -> ListChangesRequest<'_> {
        ListChangesRequest {
            from: self.since.map(Since::unix_ms),
            to: self.until.map(Since::unix_ms),
            action: self.action.as_deref().map(Into::into),
            target: self.target.as_deref().map(Into::into),
            root_key_id: self.by.as_deref().map(Into::into),
            ..ListChangesRequest::default()
        }
    }
}

fn row(change: &AdminChange<'_>) -> Vec<(&'static str, String)> {
    vec![
        ("place", change.position.map(|place| place.to_string()).unwrap_or_default()),
        ("at", moment::shown_exactly(change.at)),
        ("by", change.root_key_id.as_deref().map(printable).unwrap_or_default()),
        ("action", printable(&change.action)),
        ("target", printable(&change.target)),
    ]
}
