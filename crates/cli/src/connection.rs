//! How a client command finds its server and its root key. The key comes from the environment or from stdin,
//! never from the arguments, which every user of the machine can read.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Read};

use clap::Args;
use tollkeeper_client::{Client, Secret};
use tollkeeper_server::settings;

use crate::exit::Exit;
use crate::failure::Failure;

const URL_ENV: &str = "TOLLKEEPER_URL";
const CONFIG_ENV: &str = "TOLLKEEPER_CONFIG";
const URL_DEFAULT: &str = "http://127.0.0.1:7700";
const URL_HELP: &str = "Where the server is [env: TOLLKEEPER_URL] [default: http://127.0.0.1:7700]";
const ROOT_KEY_ENV: &str = "TOLLKEEPER_ROOT_KEY";
/// Well above the longest root key; keeps a mistaken pipe from being read whole.
const STDIN_BYTES_MAX: u64 = 4096;

#[derive(Debug, Args)]
pub(crate) struct Connection {
    // Read here and not by clap, which would show a flag that came from the environment as one that must be given.
    #[arg(long, help = URL_HELP)]
    url: Option<String>,

    /// Read the root key from stdin instead of `TOLLKEEPER_ROOT_KEY`
    #[arg(long)]
    root_key_stdin: bool,
}

impl Connection {
    /// Runs a command's calls to the server, one after the other on this thread.
    pub(crate) fn talk(
        &self,
        calls: impl AsyncFnOnce(Client) -> Result<Exit, Failure>,
    ) -> Result<Exit, Failure> {
        let client = self.client()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new(Exit::Settings, format!("cannot start: {error}")))?;
        runtime.block_on(calls(client))
    }

    /// Whether stdin is taken by the root key.
    pub(crate) fn reads_stdin(&self) -> bool {
        self.root_key_stdin
    }

    fn client(&self) -> Result<Client, Failure> {
        let root_key = if self.root_key_stdin { from_stdin()? } else { from_environment()? };
        let url = match self.url.clone().or_else(|| variable(URL_ENV)) {
            Some(url) => url,
            None => from_file()?,
        };
        Ok(Client::new(&url, root_key)?)
    }
}

/// Whether somebody pipes something in that nobody has read. Looks, and takes nothing: it may be meant for others.
pub(crate) fn stdin_is_unread() -> bool {
    let stdin = std::io::stdin();
    !stdin.is_terminal() && rustix::io::ioctl_fionread(&stdin).is_ok_and(|bytes| bytes > 0)
}

/// A variable of ours that is set to something.
pub(crate) fn variable(name: &str) -> Option<String> {
    let given = settings::environment().into_iter().find(|(given, _)| given == name);
    given.map(|(_, text)| text).filter(|text| !text.is_empty())
}

/// As the settings file has it, or the default. Of the environment only where that file is matters here.
fn from_file() -> Result<String, Failure> {
    let config = |(name, _): &(String, String)| name == CONFIG_ENV;
    let named: Vec<_> = settings::environment().into_iter().filter(config).collect();
    let raw = settings::Raw::gather(&BTreeMap::new(), &named);
    let raw = raw.map_err(|problems| Failure::new(Exit::Settings, problems.to_string()))?;
    Ok(raw.text("url").unwrap_or(URL_DEFAULT).to_owned())
}

fn from_environment() -> Result<Secret, Failure> {
    match variable(ROOT_KEY_ENV) {
        Some(key) => Ok(Secret::new(key)),
        None => Err(Failure::new(Exit::Settings, format!("{ROOT_KEY_ENV} is not set")).with_next(
            "set it to the root key that the server printed at its first start, or pipe it in with --root-key-stdin",
        )),
    }
}

/// A secret on stdin, without the line's end and otherwise as it is; `what` names it where it cannot be read.
pub(crate) fn piped(what: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(STDIN_BYTES_MAX).read_to_string(&mut text);
    match read {
        Ok(_) => Ok(text
            .strip_suffix('\n')
            .map_or(&*text, |line| line.strip_suffix('\r').unwrap_or(line))
            .to_owned()),
        Err(error) => {
            Err(Failure::new(Exit::Settings, format!("cannot read {what} from stdin: {error}")))
        }
    }
}

fn from_stdin() -> Result<Secret, Failure> {
    match piped("the root key")?.trim() {
        "" => Err(Failure::new(Exit::Settings, "stdin holds no root key")
            .with_next("pipe it in, such as `tollkeeper limit … --root-key-stdin < root.key`")),
        key => Ok(Secret::new(key)),
    }
}
