//! `tollkeeper mode`: shows where limits are counted, or changes it, for the fleet or for one tenant.

use clap::Args;
use clap::builder::PossibleValuesParser;
use tollkeeper_client::Client;
use tollkeeper_client::wire::{Mode, SetModeRequest};

use crate::connection::Connection;
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::output::{self, printable};

/// A tenant with this word has no mode of its own any more.
const INHERIT: &str = "inherit";

/// Show or change where limits are counted: by each node alone, beside Redis, or in Redis
#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct ModeCommand {
    /// What to change it to, in force on every node within two seconds; shown when left out
    #[arg(value_parser = PossibleValuesParser::new([Mode::WORDS, &[INHERIT]].concat()))]
    mode: Option<String>,

    /// Id of one tenant; the whole fleet when left out
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,

    /// Print the answer as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    connection: Connection,
}

fn help() -> String {
    format!(
        "\
Examples:
  tollkeeper mode
  tollkeeper mode shadow
  tollkeeper mode redis --tenant ws_4Kq2
  tollkeeper mode inherit --tenant ws_4Kq2

memory   every node counts for itself
shadow   as in memory; Redis is asked beside it, and `tollkeeper status` shows where it disagrees
redis    in Redis, as each limit says; the limits of the whole fleet
inherit  a tenant is like the fleet again

{}",
        exit::HELP
    )
}

impl ModeCommand {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        if self.mode.as_deref() == Some(INHERIT) && self.tenant.is_none() {
            let what = "only a tenant can be like the fleet again";
            return Err(Failure::new(Exit::Settings, what).with_next("name it with --tenant ID"));
        }
        self.connection.talk(async |client| match self.mode.as_deref() {
            Some(word) => self.set(&client, word).await,
            None => self.show(&client).await,
        })
    }

    async fn set(&self, client: &Client, word: &str) -> Result<Exit, Failure> {
        let mut ask = SetModeRequest::new(Mode::from_word(word));
        ask.tenant = self.tenant.as_deref().map(Into::into);
        client.set_mode(&ask).await?;
        self.tell(word)
    }

    async fn show(&self, client: &Client) -> Result<Exit, Failure> {
        let status = client.status().await?;
        let own = |id: &String| status.tenants.iter().find(|row| *row.tenant == **id);
        let mode = self.tenant.as_ref().and_then(own).map_or(status.mode, |row| row.mode);
        self.tell(mode.as_str())
    }

    fn tell(&self, word: &str) -> Result<Exit, Failure> {
        let scope = self.tenant.as_deref().unwrap_or("fleet");
        if self.json {
            output::json(&serde_json::json!({ "scope": scope, "mode": word }))?;
        } else {
            output::record(&[("scope", printable(scope)), ("mode", word.to_owned())])?;
        }
        Ok(Exit::Done)
    }
}
