//! Settings: flags over environment over `tollkeeper.toml` over defaults, checked before anything starts.
//! Reads text and hands back types. It never opens a port or a store, and never prints a secret.
//!
//! The way of a value: a row in [`table`] names it, [`raw`] finds where it was given, [`checked`] makes it a type.

mod checked;
mod file;
mod problems;
mod raw;
mod syntax;
mod table;

pub use checked::{Database, Settings};
pub use problems::{Problem, Problems};
pub use raw::{Origin, Raw};
pub use table::{Preset, SETTINGS, Setting, setting};

/// What every variable of ours starts with.
pub const ENV_PREFIX: &str = "TOLLKEEPER_";

/// The variables of this process that are meant for us; the only place that reads the environment.
///
/// A value that is not UTF-8 comes through with replacement characters, so that the check names it instead of
/// the process dying on it.
pub fn environment() -> Vec<(String, String)> {
    variables(ENV_PREFIX)
}

/// What tools for S3 agree to find in the environment: keys, region, endpoint. Not settings of ours, so unknown ones
/// are nobody's mistake.
pub fn cloud_environment() -> Vec<(String, String)> {
    variables("AWS_")
}

#[allow(clippy::disallowed_methods, reason = "this is the place that the ban points to")]
fn variables(prefix: &str) -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            let ours = name.starts_with(prefix);
            ours.then(|| (name, value.to_string_lossy().into_owned()))
        })
        .collect()
}
