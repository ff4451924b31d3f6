//! The settings file: flat TOML with the keys of the table.
//! It reads one file, once. It never shows a line of it, since any line may hold a secret.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use toml::{Table, Value};

use super::problems::{Problem, Problems};
use super::raw::{Given, Layer, Origin};
use super::table::setting;

/// Read when no other file is named; it may be absent. Equal to the default of `config` in the table.
pub(super) const DEFAULT_PATH: &str = "./tollkeeper.toml";

/// A hundred times the longest honest file; stops a mistaken path from being read into memory whole.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A file that a person named must be there.
pub(super) fn read_named(path: &Path, origin: &Origin, problems: &mut Problems) -> Layer {
    match read(path) {
        Ok(text) => parse(&text, path, problems),
        Err(found) => refuse("config", origin.to_string(), found, "a readable TOML file", problems),
    }
}

pub(super) fn read_default(problems: &mut Problems) -> Layer {
    let path = Path::new(DEFAULT_PATH);
    if matches!(path.try_exists(), Ok(false)) {
        return Layer::new();
    }
    read_named(path, &Origin::Default, problems)
}

fn read(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    file.take(FILE_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(|error| unreadable(path, &error))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("{} with more than {FILE_BYTES_MAX} bytes", path.display()));
    }
    Ok(text)
}

fn unreadable(path: &Path, error: &std::io::Error) -> String {
    let path = path.display();
    match error.kind() {
        ErrorKind::NotFound => format!("no file at {path}"),
        ErrorKind::InvalidData => format!("{path}, which is not UTF-8 text"),
        _ => format!("{path}, which cannot be read: {error}"),
    }
}

fn parse(text: &str, path: &Path, problems: &mut Problems) -> Layer {
    let table = match text.parse::<Table>() {
        Ok(table) => table,
        Err(error) => {
            // The error's own Display quotes the line; only the place and the rule are safe to show.
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            let origin = format!("file {}: line {line}", path.display());
            let found = format!("broken TOML ({})", error.message());
            return refuse("config", origin, found, "key = value lines", problems);
        }
    };
    let mut layer = Layer::new();
    for (key, value) in &table {
        let origin = Origin::File { path: path.to_owned(), key: key.clone() };
        take(key, value, origin, &mut layer, problems);
    }
    layer
}

fn take(key: &str, value: &Value, origin: Origin, layer: &mut Layer, problems: &mut Problems) {
    let Some(known) = setting(key) else {
        return problems.add_unknown(key, origin.to_string(), str::to_owned);
    };
    let wrong = |found: &str, expected: &str| Problem {
        name: key.to_owned(),
        origin: origin.to_string(),
        found: found.to_owned(),
        expected: expected.to_owned(),
    };
    if key == "config" {
        let found = "the settings file naming a settings file";
        return problems.add(wrong(found, "--config or TOLLKEEPER_CONFIG"));
    }
    match scalar(value) {
        Some(text) => {
            layer.insert(known.key, Given::new(text, origin));
        }
        None => problems.add(wrong(&format!("a TOML {}", value.type_str()), known.expects)),
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(flag) => Some(flag.to_string()),
        Value::Datetime(_) | Value::Array(_) | Value::Table(_) => None,
    }
}

fn refuse(
    name: &str,
    origin: String,
    found: String,
    expected: &str,
    problems: &mut Problems,
) -> Layer {
    problems.add(Problem { name: name.to_owned(), origin, found, expected: expected.to_owned() });
    Layer::new()
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}
