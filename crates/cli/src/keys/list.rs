//! `tollkeeper keys list`: the keys of a project, page by page until the last one.

use clap::Args;
use tollkeeper_client::wire::ListKeysRequest;

use crate::connection::Connection;
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::flags;
use crate::keys::shown;
use crate::output;

/// List the keys of a project
#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct List {
    /// The project: its id or its slug
    project: String,

    /// Only keys of this identity, by your own name for it
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,

    /// Print one JSON object per key and line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    connection: Connection,
}

fn help() -> String {
    format!(
        "\
Examples:
  tollkeeper keys list my-api
  tollkeeper keys list my-api --owner ann
  tollkeeper keys list my-api --json | jq -r 'select(.lastUsedAt == null) | .keyId'

{}",
        exit::HELP
    )
}

impl List {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        self.connection.talk(async |client| {
            let api_id = flags::project_id(&client, &self.project).await?;
            let mut ask = ListKeysRequest::new(api_id.into());
            ask.external_id = self.owner.as_deref().map(Into::into);
            let mut rows = Vec::new();
            loop {
                let page = client.list_keys(&ask).await?;
                if self.json {
                    page.rows.iter().try_for_each(output::json)?;
                } else {
                    rows.extend(page.rows.iter().map(shown::row));
                }
                let Some(next) = page.next else { break };
                ask.cursor = Some(next.into());
            }
            output::records(&rows)?;
            Ok(Exit::Done)
        })
    }
}
