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

/// One of several faults, as it is, on stderr.
pub(crate) fn fault(text: &str) {
    // There is nowhere left to complain to when stderr is gone.
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// A foreign text without anything that a terminal would obey. Line breaks stay.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

/// Something that a person should know but no script should read, on stderr.
pub(crate) fn note(text: &str) {
    let noted = tinted(Tone::Doubtful, "note:", stderr_shows_colour());
    // Who closed stderr wants no notes.
    let _ = std::io::stderr().write_all(format!("{noted}  {text}\n").as_bytes());
}

/// The named values of one record, in the order in which they are shown.
pub(crate) type Columns<'a> = [(&'a str, String)];

/// One record: a heading over its values for people, `name=value` pairs for everything else.
pub(crate) fn record(columns: &Columns<'_>) -> Result<(), Failure> {
    records(&[columns.to_vec()])
}

/// Records of the same columns: one table for people, one line of pairs each for everything else. None is no line.
pub(crate) fn records(rows: &[Vec<(&str, String)>]) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    if is_terminal() {
        return line(table(rows));
    }
    let lines: Vec<_> = rows.iter().map(|row| pairs(row)).collect();
    line(lines.join("\n"))
}

/// One record with many values: a line for each for people, one line of pairs for everything else.
pub(crate) fn details(columns: &Columns<'_>) -> Result<(), Failure> {
    if !is_terminal() {
        return line(pairs(columns));
    }
    let width = columns.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default() + 2;
    columns.iter().try_for_each(|(name, value)| {
        let head = format!("{:<width$}", name.to_uppercase());
        line(format!("{}{value}", toned(Tone::Heading, &head)))
    })
}

/// How far something is, on one line of stderr that is written over; nothing where nobody watches.
pub(crate) fn progress(text: &str) {
    if std::io::stderr().is_terminal() {
        // Who closed stderr does not watch.
        let _ = std::io::stderr().write_all(format!("\r\x1b[K{text}").as_bytes());
    }
}

fn table(rows: &[Vec<(&str, String)>]) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let mut lines = vec![String::new(); rows.len() + 1];
    for (at, (name, _)) in first.iter().enumerate() {
        let values = rows.iter().map(|row| row.get(at).map_or("", |(_, value)| value.as_str()));
        let cells: Vec<_> = std::iter::once(name.to_uppercase())
            .chain(values.map(|value| if value.is_empty() { "-" } else { value }.to_owned()))
            .collect();
        let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or_default() + 2;
        for (line, cell) in lines.iter_mut().zip(cells) {
            // Writing to a String cannot fail.
            let _ = write!(line, "{cell:<width$}");
        }
    }
    let mut lines = lines.iter().map(|line| line.trim_end());
    let heads = toned(Tone::Heading, lines.next().unwrap_or_default());
    lines.fold(heads, |shown, line| shown + "\n" + line)
}

fn pairs(columns: &Columns<'_>) -> String {
    let pairs: Vec<_> =
        columns.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
    pairs.join(" ")
}

/// As a JSON string where a space or a quote in it would confuse who takes the pairs apart.
fn quoted(value: &str) -> String {
    let plain = !value.contains(|c: char| c.is_whitespace() || c.is_control() || c == '"');
    if plain { value.to_owned() } else { serde_json::Value::from(value).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_keeps_values_under_their_headings() {
        let row = |verdict: &str, limit: &str, left: &str| {
            vec![
                ("verdict", verdict.to_owned()),
                ("limit", limit.to_owned()),
                ("left", left.to_owned()),
            ]
        };
        let shown = table(&[row("denied", "9007199254740991", "0"), row("", "1", "1")]);
        let lines = [
            "VERDICT  LIMIT             LEFT",
            "denied   9007199254740991  0",
            "-        1                 1",
        ];
        assert_eq!(shown, lines.join("\n"));
    }

    #[test]
    fn a_value_with_spaces_stays_one_value() {
        let shown = pairs(&[("name", "Ann's \"x\"".to_owned()), ("none", String::new())]);
        assert_eq!(shown, r#"name="Ann's \"x\"" none="#);
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
