//! Why a bench could not be run, or what it found wanting.

use std::io;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("usage:\n{0}")]
    Usage(&'static str),
    #[error("{what} could not be used: {source}")]
    Io { what: String, source: io::Error },
    #[error("{what} ended badly; it said:\n{said}")]
    Child { what: String, said: String },
    #[error("{what} cannot be read: {text:?}")]
    Unreadable { what: &'static str, text: String },
    /// The measurement would not be of what it claims to be.
    #[error("not a valid measurement: {0}")]
    Invalid(String),
    #[error(
        "{0} of the counts above are too high: make the hot path shorter, or, if the work is \
         meant, record them anew with `cargo run --release --package tollkeeper-bench -- gate --record`"
    )]
    Slower(usize),
}

// === impl Failure ===

impl Failure {
    /// Names what an I/O error was about.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    pub(crate) fn unreadable(what: &'static str, text: impl Into<String>) -> Self {
        Self::Unreadable { what, text: text.into() }
    }
}
