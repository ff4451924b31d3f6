//! The one place that writes to the terminal: results to stdout, complaints to stderr, colour only where it is wanted.
//! A closed pipe is not an error; whoever reads has read enough.

use std::fmt::{Display, Write as _};
use std::io::{ErrorKind, IsTerminal, Write};

use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Doubtful,
    Bad,
    Heading,
}

impl Tone {
    fn escape(self) -> &'static str {
        match self {
            Self::Good => "\x1b[32m",
            Self::Doubtful => "\x1b[33m",
            Self::Bad => "\x1b[31m",
            Self::Heading => "\x1b[1m",
        }
    }
}

/// Whether a person looks at stdout.
pub(crate) fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// The text in the tone's colour, where stdout shows colours.
pub(crate) fn toned(tone: Tone, text: &str) -> String {
    tinted(tone, text, is_terminal() && colour_is_welcome())
}

/// Also for the log, which goes there: a log file full of escapes is no use to anybody.
pub(crate) fn stderr_shows_colour() -> bool {
    std::io::stderr().is_terminal() && colour_is_welcome()
}

fn tinted(tone: Tone, text: &str, colourful: bool) -> String {
    if colourful { format!("{}{text}\x1b[0m", tone.escape()) } else { text.to_owned() }
}

#[allow(clippy::disallowed_methods, reason = "a convention among terminals, not a setting of ours")]
fn colour_is_welcome() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
}

pub(crate) fn line(text: impl Display) -> Result<(), Failure> {
    bytes(format!("{text}\n").as_bytes())
}

pub(crate) fn json<T: serde::Serialize>(value: &T) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(|error| {
        Failure::new(Exit::Settings, format!("cannot write the answer as JSON: {error}"))
    })?;
    line(text)
}

pub(crate) fn bytes(content: &[u8]) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(content).and_then(|()| stdout.flush());
    written.or_else(|error| unless_closed(&error).map(drop))
}

/// Forgives a reader who went away, and nothing else.
pub(crate) fn unless_closed(error: &std::io::Error) -> Result<Exit, Failure> {
    match error.kind() {
        ErrorKind::BrokenPipe => Ok(Exit::Done),
        _ => Err(Failure::new(Exit::Settings, format!("cannot write to stdout: {error}"))),
    }
}

/// What is wrong and what to do next, on stderr.
pub(crate) fn complaint(what: &str, next: Option<&str>) {
    let mut text = format!("{} {what}\n", tinted(Tone::Bad, "error:", stderr_shows_colour()));
    if let Some(next) = next {
        text.push_str("next:  ");
        text.push_str(next);
        text.push('\n');
    }
    // There is nowhere left to complain to when stderr is gone.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// A foreign text without anything that a terminal would obey. Line breaks stay.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

/// One record: a heading over its values for people, `name=value` pairs for everything else.
pub(crate) fn record(columns: &[(&str, String)]) -> Result<(), Failure> {
    line(if is_terminal() { table(columns) } else { pairs(columns) })
}

fn table(columns: &[(&str, String)]) -> String {
    let (mut heads, mut values) = (String::new(), String::new());
    for (name, value) in columns {
        let width = name.chars().count().max(value.chars().count()) + 2;
        // Writing to a String cannot fail.
        let _ = write!(heads, "{:<width$}", name.to_uppercase());
        let _ = write!(values, "{value:<width$}");
    }
    format!("{}\n{}", toned(Tone::Heading, heads.trim_end()), values.trim_end())
}

fn pairs(columns: &[(&str, String)]) -> String {
    let pairs: Vec<_> = columns.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_keeps_values_under_their_headings() {
        let shown = table(&[
            ("verdict", "denied".to_owned()),
            ("limit", "9007199254740991".to_owned()),
            ("left", "0".to_owned()),
        ]);
        assert_eq!(shown, "VERDICT  LIMIT             LEFT\ndenied   9007199254740991  0");
    }

    #[test]
    fn foreign_text_cannot_steer_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\nc"), "a\u{fffd}[2Jb\nc");
    }

    #[test]
    fn colour_is_only_added_where_it_is_wanted() {
        assert_eq!(tinted(Tone::Good, "ok", false), "ok");
        assert_eq!(tinted(Tone::Good, "ok", true), "\x1b[32mok\x1b[0m");
    }
}
