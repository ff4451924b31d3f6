//! A file of rules, read whole and checked by the server's own rules: every fault with the line that it stands on.

use std::io::Read;
use std::path::Path;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;
use tollkeeper_client::wire::rules::{RULES_BYTES_MAX, RuleTestFile};
use tollkeeper_client::wire::{Described, FieldError};
use tollkeeper_server::rules::{CheckedRule, check_file};

use super::cases::{self, Known};
use super::located::{Broken, Located};
use super::{json, toml, yaml};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::printable;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Yaml,
    Toml,
    Json,
}

/// What a good file says.
#[derive(Debug)]
pub(super) struct RulesRead {
    pub(super) checked: Vec<CheckedRule>,
    pub(super) notes: Vec<String>,
    /// What the rules are expected to do. Whoever applies them has no use for it.
    pub(super) tests: Vec<Value>,
}

/// All that is wrong with a file, in the order of its lines.
#[derive(Debug)]
pub(super) struct Faulty {
    name: String,
    pub(super) faults: Vec<Fault>,
}

#[derive(Debug, Serialize)]
pub(super) struct Fault {
    pub(super) line: usize,
    /// Absent where the file is not even what its name says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) place: Option<String>,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fix: Option<String>,
}

/// Every fault of rules and tests, or the whole of it. What is outside of both keeps a file from being read.
pub(super) fn read(
    path: &Path,
    format: Option<Format>,
) -> Result<Result<RulesRead, Faulty>, Failure> {
    let (name, located) = match located(path, format)? {
        Ok(read) => read,
        Err(faulty) => return Ok(Err(faulty)),
    };
    let tests = tests_of(&located.value);
    let faults = match check_file(&located.value) {
        Err(faults) => faults,
        Ok(checked) => {
            let faults = cases::faults(tests, &Known::of(&checked.rules));
            if faults.is_empty() {
                let tests = tests.to_vec();
                return Ok(Ok(RulesRead { checked: checked.rules, notes: checked.notes, tests }));
            }
            faults
        }
    };
    Ok(Err(wrong(name, faults, &located)))
}

/// The tests of a file that holds nothing else, of these rules.
pub(super) fn read_tests(path: &Path, rules: &[CheckedRule]) -> Result<Vec<Value>, Failure> {
    let (name, located) = located(path, None)??;
    let tests = tests_of(&located.value);
    let mut faults = RuleTestFile::SHAPE.faults(&located.value);
    faults.extend(cases::faults(tests, &Known::of(rules)));
    if faults.is_empty() { Ok(tests.to_vec()) } else { Err(wrong(name, faults, &located).into()) }
}

fn tests_of(file: &Value) -> &[Value] {
    file.get("tests").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn located(
    path: &Path,
    format: Option<Format>,
) -> Result<Result<(String, Located), Faulty>, Failure> {
    let name = if is_stdin(path) { "stdin".to_owned() } else { path.display().to_string() };
    let text = text(path, &name)?;
    let read = match format.unwrap_or_else(|| Format::of(path)) {
        Format::Yaml => yaml::read(&text),
        Format::Toml => toml::read(&text),
        Format::Json => json::read(&text),
    };
    Ok(match read {
        Ok(located) => Ok((name, located)),
        Err(Broken { line, message }) => {
            Err(Faulty { name, faults: vec![Fault { line, place: None, message, fix: None }] })
        }
    })
}

fn wrong(name: String, faults: Vec<FieldError>, located: &Located) -> Faulty {
    let tests = tests_of(&located.value);
    let mut faults: Vec<_> = faults
        .into_iter()
        .map(|fault| {
            let FieldError { location, message, fix, .. } = cases::named(fault, tests);
            let place = location.strip_prefix("body.").unwrap_or("file").to_owned();
            let line = located.lines.of(&location);
            Fault { line, place: Some(place), message, fix }
        })
        .collect();
    faults.sort_by_key(|fault| fault.line);
    Faulty { name, faults }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn text(path: &Path, name: &str) -> Result<String, Failure> {
    let mut text = String::new();
    // One byte more than there may be says that there are too many, however large the file is.
    let most = RULES_BYTES_MAX as u64 + 1;
    let read = if is_stdin(path) {
        std::io::stdin().lock().take(most).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(most).read_to_string(&mut text))
    };
    match read {
        Ok(bytes) if bytes > RULES_BYTES_MAX => Err(Failure::new(
            Exit::Settings,
            format!("{name} is larger than {} MiB", RULES_BYTES_MAX >> 20),
        )
        .with_next("write the rules shorter, or in several files without --prune")),
        Ok(_) => Ok(text),
        Err(error) => {
            Err(Failure::new(Exit::Settings, printable(&format!("cannot read {name}: {error}"))))
        }
    }
}

// === impl Faulty ===

impl From<Faulty> for Failure {
    fn from(Faulty { name, faults }: Faulty) -> Self {
        let told = faults.iter().map(|Fault { line, place, message, fix }| match place {
            None => format!("{name}:{line}: {message}"),
            Some(place) => {
                format!("{name}:{line}: {place}: {message} {}", fix.as_deref().unwrap_or_default())
            }
        });
        let count = match faults.len() {
            1 => "the file is wrong in 1 place".to_owned(),
            count => format!("the file is wrong in {count} places"),
        };
        let told = told.collect::<Vec<_>>().join("\n  ");
        Self::new(Exit::Settings, printable(&format!("{count}:\n  {told}")))
            .with_next("correct these places; nothing was sent")
    }
}

// === impl RulesRead ===

impl RulesRead {
    /// In the spelling in which they are stored.
    pub(super) fn into_texts(self) -> Vec<Value> {
        self.checked.into_iter().map(|rule| Value::Object(rule.text)).collect()
    }
}

// === impl Format ===

impl Format {
    fn of(path: &Path) -> Self {
        let extension = path.extension().map(|name| name.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("toml") => Self::Toml,
            Some("json") => Self::Json,
            _ => Self::Yaml,
        }
    }
}
