//! `tollkeeper keys revoke`: withdraws keys for good, everywhere within a second. They stay on record as revoked.

use clap::Args;
use tollkeeper_client::wire::RevokeKeyRequest;

use crate::connection::Connection;
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::moment;
use crate::output;

/// Withdraw keys for good
#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Revoke {
    /// Ids of the keys, such as `key_2x7`
    #[arg(required = true, value_name = "KEY_ID")]
    key_ids: Vec<String>,

    /// For people who ask later why
    #[arg(long)]
    reason: Option<String>,

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
  tollkeeper keys revoke key_2x7 --reason \"found in a public repository\"
  tollkeeper keys list my-api --owner ann --json | jq -r .keyId | xargs tollkeeper keys revoke

{}",
        exit::HELP
    )
}

impl Revoke {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        self.connection.talk(async |client| {
            for key_id in &self.key_ids {
                let mut ask = RevokeKeyRequest::new(key_id.as_str().into());
                ask.reason = self.reason.as_deref().map(Into::into);
                let reply = client.revoke_key(&ask).await?;
                if self.json {
                    output::json(
                        &serde_json::json!({"keyId": key_id, "revokedAt": reply.revoked_at}),
                    )?;
                } else {
                    output::record(&[
                        ("key_id", output::printable(key_id)),
                        ("revoked", moment::shown(Some(reply.revoked_at))),
                    ])?;
                }
            }
            Ok(Exit::Done)
        })
    }
}
