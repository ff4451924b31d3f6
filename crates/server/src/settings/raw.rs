//! Settings as they were typed: for each, the text and where it was given.
//! Flags win over the environment, that over the file, that over defaults. It never judges a value.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::ENV_PREFIX;
use super::file;
use super::problems::{Problem, Problems};
use super::table::{Preset, SETTINGS, Setting, setting};
use crate::redacted::Redacted;

/// Where a value was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Flag(String),
    Environment(String),
    File { path: PathBuf, key: String },
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "flag --{name}"),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::File { path, key } => write!(f, "file {}: {key}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A text and its origin. All texts are redacted, because secrets travel among them.
#[derive(Debug, Clone)]
pub(super) struct Given {
    text: Redacted<String>,
    origin: Origin,
}

impl Given {
    pub(super) fn new(text: impl Into<String>, origin: Origin) -> Self {
        Self { text: Redacted::new(text.into()), origin }
    }
}

/// The values of one source, by key.
pub(super) type Layer = BTreeMap<&'static str, Given>;

/// All settings that have a value, defaults included.
#[derive(Debug, Clone)]
pub struct Raw {
    given: Layer,
}

impl Raw {
    /// `flags` by setting key; `env` as name and value, see [`environment`](super::environment).
    pub fn gather(
        flags: &BTreeMap<String, String>,
        env: &[(String, String)],
    ) -> Result<Self, Problems> {
        let (raw, problems) = Self::gather_all(flags, env);
        if problems.is_empty() { Ok(raw) } else { Err(problems) }
    }

    /// Keeps going past a problem, so that bad names and bad values can be reported together.
    pub(super) fn gather_all(
        flags: &BTreeMap<String, String>,
        env: &[(String, String)],
    ) -> (Self, Problems) {
        let mut problems = Problems::default();
        let mut raw = Self { given: defaults() };
        let from_env = environment_layer(env, &mut problems);
        let from_flags = flag_layer(flags, &mut problems);
        // The file's path comes from the layers above the file.
        let named = from_flags.get("config").or_else(|| from_env.get("config"));
        let from_file = match named {
            Some(given) => {
                file::read_named(Path::new(given.text.expose()), &given.origin, &mut problems)
            }
            None => file::read_default(&mut problems),
        };
        raw.given.extend(from_file);
        raw.given.extend(from_env);
        raw.given.extend(from_flags);
        (raw, problems)
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        self.given.get(key).map(|given| given.text.expose().as_str())
    }

    pub fn origin(&self, key: &str) -> &Origin {
        self.given.get(key).map_or(&Origin::Default, |given| &given.origin)
    }

    /// Whether a person gave it, as opposed to a default.
    pub fn is_given(&self, key: &str) -> bool {
        *self.origin(key) != Origin::Default
    }

    /// The value as it may be printed; what happens without one, where there is none.
    pub fn shown(&self, setting: &Setting) -> String {
        self.text(setting.key)
            .map_or_else(|| setting.default.to_string(), |text| setting.shown(text))
    }
}

fn defaults() -> Layer {
    let preset = |setting: &Setting| match setting.default {
        Preset::Value(text) => Some((setting.key, Given::new(text, Origin::Default))),
        Preset::Unset(_) => None,
    };
    SETTINGS.iter().filter_map(preset).collect()
}

fn flag_layer(flags: &BTreeMap<String, String>, problems: &mut Problems) -> Layer {
    let mut layer = Layer::new();
    for (key, text) in flags {
        let flag = key.replace('_', "-");
        match setting(key) {
            Some(known) if known.secret => problems.add(Problem {
                name: key.clone(),
                origin: Origin::Flag(flag).to_string(),
                found: "a secret among the arguments, which other users of the machine can read"
                    .into(),
                expected: format!(
                    "{} in the environment, or {key} in the settings file",
                    known.env()
                ),
            }),
            Some(known) => {
                layer.insert(known.key, Given::new(text, Origin::Flag(flag)));
            }
            None => problems.add_unknown(key, Origin::Flag(flag).to_string(), str::to_owned),
        }
    }
    layer
}

fn environment_layer(env: &[(String, String)], problems: &mut Problems) -> Layer {
    let mut layer = Layer::new();
    for (name, text) in env.iter().filter(|(name, _)| name.starts_with(ENV_PREFIX)) {
        let origin = Origin::Environment(name.clone());
        match SETTINGS.iter().find(|setting| setting.env() == *name) {
            Some(known) => {
                layer.insert(known.key, Given::new(text, origin));
            }
            None if is_service_link(name, text) => {}
            None => {
                let as_variable = |key: &str| format!("{ENV_PREFIX}{}", key.to_ascii_uppercase());
                problems.add_unknown(name, "environment".into(), as_variable);
            }
        }
    }
    layer
}

/// Kubernetes puts the addresses of a Service named `tollkeeper` (or `tollkeeper-anything`) into every container
/// beside it, under our prefix. Refusing those would keep the server from starting where it is most at home.
fn is_service_link(name: &str, text: &str) -> bool {
    let numbered_port = |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit());
    name == "TOLLKEEPER_KEY"
        || name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || (name.ends_with("_PORT") && text.contains("://"))
        || name.split_once("_PORT_").is_some_and(|(_, rest)| numbered_port(rest))
}

#[cfg(test)]
mod tests;
