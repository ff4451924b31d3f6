//! A file of rules, read whole and checked by the server's own rules: every fault with the line that it stands on.

use std::io::Read;
use std::path::Path;

use clap::ValueEnum;
use serde_json::Value;
use tollkeeper_client::wire::FieldError;
use tollkeeper_client::wire::rules::RULES_BYTES_MAX;
use tollkeeper_server::rules::check_file;

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

/// The rules of a good file.
#[derive(Debug)]
pub(super) struct RulesRead {
    /// In the spelling in which they are stored.
    pub(super) rules: Vec<Value>,
    pub(super) notes: Vec<String>,
}

pub(super) fn read(path: &Path, format: Option<Format>) -> Result<RulesRead, Failure> {
    let name = if is_stdin(path) { "stdin".to_owned() } else { path.display().to_string() };
    let text = text(path, &name)?;
    let read = match format.unwrap_or_else(|| Format::of(path)) {
        Format::Yaml => yaml::read(&text),
        Format::Toml => toml::read(&text),
        Format::Json => json::read(&text),
    };
    let located =
        read.map_err(|Broken { line, message }| refused(&[format!("{name}:{line}: {message}")]))?;
    match check_file(&located.value) {
        Ok(checked) => {
            let rules = checked.rules.into_iter().map(|rule| Value::Object(rule.text)).collect();
            Ok(RulesRead { rules, notes: checked.notes })
        }
        Err(faults) => {
            let told: Vec<_> = faults.iter().map(|fault| told(&name, fault, &located)).collect();
            Err(refused(&told))
        }
    }
}

fn told(name: &str, fault: &FieldError, located: &Located) -> String {
    let line = located.lines.of(&fault.location);
    let place = fault.location.strip_prefix("body.").unwrap_or("file");
    let fix = fault.fix.as_deref().unwrap_or_default();
    format!("{name}:{line}: {place}: {} {fix}", fault.message)
}

fn refused(told: &[String]) -> Failure {
    let count = match told.len() {
        1 => "the file is wrong in 1 place".to_owned(),
        count => format!("the file is wrong in {count} places"),
    };
    Failure::new(Exit::Settings, printable(&format!("{count}:\n  {}", told.join("\n  "))))
        .with_next("correct these places; nothing was sent")
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
