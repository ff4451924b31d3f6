//! Why a command did not do its work: what is wrong, and what to do next.
//! It never holds a secret, and what a server said is shown without control characters.

use std::error::Error;
use std::fmt::Write as _;

use tollkeeper_client::ClientError;

use crate::exit::Exit;
use crate::output::{self, printable};

#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    what: String,
    next: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, what: what.into(), next: None }
    }

    #[must_use]
    pub(crate) fn with_next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// Tells the person and names the exit code.
    pub(crate) fn report(&self) -> Exit {
        output::complaint(&self.what, self.next.as_deref());
        self.exit
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match &error {
            ClientError::Unreachable { source, .. } => {
                let why = chain(source);
                Self::new(Exit::Unreachable, format!("{error}: {why}")).with_next(
                    "is the server running? Start it with `tollkeeper serve`, or name another with TOLLKEEPER_URL",
                )
            }
            ClientError::Refused { .. } => refused(&error),
            ClientError::Garbled { .. } => Self::new(Exit::Refused, printable(&error.to_string()))
                .with_next("check that TOLLKEEPER_URL is the address of a Tollkeeper server"),
            _ => Self::new(Exit::Settings, error.to_string())
                .with_next("correct TOLLKEEPER_URL or TOLLKEEPER_ROOT_KEY"),
        }
    }
}

fn refused(error: &ClientError) -> Failure {
    let ClientError::Refused { status, kind, errors, request_id, .. } = error else {
        return Failure::new(Exit::Refused, error.to_string());
    };
    let mut what = error.to_string();
    for fault in errors {
        let fix = fault.fix.as_deref().unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = write!(what, "\n  {}: {} {fix}", fault.location, fault.message);
    }
    let _ = write!(what, "\n  request {request_id}");
    let failure = Failure::new(Exit::Refused, printable(&what));
    match status {
        401 => failure.with_next(
            "put the right root key into TOLLKEEPER_ROOT_KEY: the server printed it at its first start, \
             or was given it in its own TOLLKEEPER_ROOT_KEY",
        ),
        403 => failure.with_next("use a root key that has the permission named above"),
        404 => failure.with_next(format!("check the name or id above{}", shown_by(kind))),
        409 => failure.with_next("use another name, or change what is there"),
        410 => failure.with_next("that namespace was deleted; use another name"),
        429 => failure.with_next("wait a moment and ask again"),
        500.. => failure.with_next("look into the server's log for the request named above"),
        _ => failure,
    }
}

/// Where a person sees what there is, for things that a command lists.
fn shown_by(kind: &str) -> &'static str {
    match kind.rsplit('/').next().unwrap_or_default() {
        "identity_not_found" => ": `tollkeeper identities list` shows what there is",
        "api_not_found" => ": `tollkeeper projects list` shows what there is",
        "key_not_found" => {
            ": `tollkeeper keys list` and `tollkeeper root-keys list` show what there is"
        }
        "rule_not_found" => ": `tollkeeper rules list` shows what there is",
        "rule_version_not_found" => {
            ": the last hundred versions are kept, and `tollkeeper audit changes --action rules.apply` shows which"
        }
        _ => "",
    }
}

/// An error and everything beneath it, in one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let said = inner.to_string();
        // Wrappers often repeat what they wrap.
        if !text.contains(&said) {
            let _ = write!(text, ": {said}");
        }
        cause = inner.source();
    }
    printable(&text)
}
