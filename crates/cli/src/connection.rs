//! How a client command finds its server and its root key. The key comes from the environment or from stdin,
//! never from the arguments, which every user of the machine can read.

use std::io::Read;

use clap::Args;
use tollkeeper_client::{Client, Secret};
use tollkeeper_server::settings;

use crate::exit::Exit;
use crate::failure::Failure;

const ROOT_KEY_ENV: &str = "TOLLKEEPER_ROOT_KEY";
/// Well above the longest root key; keeps a mistaken pipe from being read whole.
const STDIN_BYTES_MAX: u64 = 4096;

#[derive(Debug, Args)]
pub(crate) struct Connection {
    /// Where the server is
    #[arg(
        long,
        env = "TOLLKEEPER_URL",
        hide_env_values = true,
        default_value = "http://127.0.0.1:7700"
    )]
    url: String,

    /// Read the root key from stdin instead of `TOLLKEEPER_ROOT_KEY`
    #[arg(long)]
    root_key_stdin: bool,
}

impl Connection {
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let root_key = if self.root_key_stdin { from_stdin()? } else { from_environment()? };
        Ok(Client::new(&self.url, root_key)?)
    }
}

fn from_environment() -> Result<Secret, Failure> {
    let given = settings::environment().into_iter().find(|(name, _)| name == ROOT_KEY_ENV);
    match given {
        Some((_, key)) if !key.is_empty() => Ok(Secret::new(key)),
        _ => Err(Failure::new(Exit::Settings, format!("{ROOT_KEY_ENV} is not set")).with_next(
            "set it to the root key that the server printed at its first start, or pipe it in with --root-key-stdin",
        )),
    }
}

fn from_stdin() -> Result<Secret, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(STDIN_BYTES_MAX).read_to_string(&mut text);
    if let Err(error) = read {
        return Err(Failure::new(
            Exit::Settings,
            format!("cannot read the root key from stdin: {error}"),
        ));
    }
    match text.trim() {
        "" => Err(Failure::new(Exit::Settings, "stdin holds no root key")
            .with_next("pipe it in, such as `tollkeeper limit … --root-key-stdin < root.key`")),
        key => Ok(Secret::new(key)),
    }
}
