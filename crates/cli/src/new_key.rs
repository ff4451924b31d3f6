//! Shows a key that was just made. This is the only time that anybody sees it, so it says so, on stderr;
//! stdout holds the key alone, ready for a pipe into a secret store.

use tollkeeper_client::wire::KeyReply;

use crate::failure::Failure;
use crate::output;

const ONCE: &str = "this key is not shown again; store it now, where only its user can read it";

/// How a new key is printed.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct NewKeyFormat {
    /// Print the answer's data as JSON
    #[arg(long)]
    json: bool,

    /// Print the key alone, for a pipe into a secret store
    #[arg(long, conflicts_with = "json")]
    key_only: bool,
}

impl NewKeyFormat {
    pub(crate) fn show(self, made: &KeyReply<'_>) -> Result<(), Failure> {
        if self.json {
            output::json(made)?;
        } else if self.key_only {
            output::line(output::printable(made.key.reveal()))?;
        } else {
            output::record(&[
                ("key_id", output::printable(&made.key_id)),
                ("key", output::printable(made.key.reveal())),
            ])?;
        }
        output::note(ONCE);
        Ok(())
    }
}
