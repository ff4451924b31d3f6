//! The secret that requests of a key are to be signed with, for `--signing`. It comes from `TOLLKEEPER_SIGNING` or stdin,
//! never from the arguments, which every user of the machine can read.

use tollkeeper_client::wire::KeyText;

use crate::connection::{self, Connection};
use crate::exit::Exit;
use crate::failure::Failure;

const SIGNING_ENV: &str = "TOLLKEEPER_SIGNING";

/// `None` where it was not asked for. `command` is an example of how to do it right.
pub(super) fn secret(
    asked_for: Option<&'static str>,
    connection: &Connection,
) -> Result<Option<KeyText<'static>>, Failure> {
    let Some(command) = asked_for else { return Ok(None) };
    let secret = match connection::variable(SIGNING_ENV) {
        Some(secret) => secret,
        None if connection.reads_stdin() => String::new(),
        None => connection::piped("the signing secret")?,
    };
    if secret.is_empty() {
        return Err(Failure::new(Exit::Settings, "no signing secret was given").with_next(
            format!(
                "pipe it in, such as `{command} --signing < signing.txt`, or set {SIGNING_ENV}"
            ),
        ));
    }
    Ok(Some(KeyText::new(secret)))
}
