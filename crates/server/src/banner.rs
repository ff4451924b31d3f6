//! What a person reads when the server starts: where it listens, the root key once, and a line to try.

use std::fmt;
use std::net::SocketAddr;

use tollkeeper_decide::Mode;

use crate::redacted::Redacted;
use crate::settings::{Database, Setting, Settings, setting};

#[derive(Debug)]
pub struct Banner<'a> {
    pub settings: &'a Settings,
    pub address: SocketAddr,
    /// As it is stored, or memory where there is nothing else.
    pub mode: Mode,
    /// The root key, if it was made just now. Shown here and never again.
    pub made: Option<&'a Redacted<String>>,
}

impl fmt::Display for Banner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = self.settings;
        writeln!(
            f,
            "tollkeeper {} on node {}, counting in {}",
            env!("CARGO_PKG_VERSION"),
            settings.node,
            match self.mode {
                Mode::Memory => "memory",
                Mode::Shadow => "memory, with redis as its shadow",
                Mode::Redis => "redis",
            }
        )?;
        if let Some(redis) = &settings.redis {
            writeln!(f, "shared with the fleet over {redis}")?;
        }
        writeln!(
            f,
            "return to memory by itself when redis is the trouble: {}",
            if settings.rollback { "on" } else { "off" }
        )?;
        writeln!(f, "data in {}", settings.data_dir.display())?;
        for key in &settings.unbuilt_given {
            let name = setting(key).map_or_else(|| (*key).to_owned(), Setting::env);
            writeln!(f, "{name} was given, but its part is not in this version: it has no effect")?;
        }
        if let Some(key) = self.made {
            writeln!(f, "\nroot key, shown only this once:\n\n    {}\n", key.expose())?;
        }
        writeln!(f, "listening on http://{}", self.address)?;
        let key = self.made.map_or("$TOLLKEEPER_ROOT_KEY", |key| key.expose());
        if self.made.is_none() && settings.root_key.is_none() {
            let (shown, then) = match settings.database {
                Database::Sqlite { .. } => (
                    "the root key was shown at the first start",
                    "it is valid while it is given, and the next start without it shows a new one",
                ),
                Database::Postgres { .. } => (
                    "the root key was given to another node, or shown by the one that started first on this database",
                    "it takes the place of the one before, on every node",
                ),
            };
            writeln!(f, "{shown}. To replace a lost one, start with another as")?;
            writeln!(f, "TOLLKEEPER_ROOT_KEY: {then}")?;
        }
        writeln!(f, "\ntry it:\n")?;
        writeln!(f, "  curl -s http://{}/v2/ratelimit.limit \\", self.address)?;
        writeln!(
            f,
            "    -H \"Authorization: Bearer {key}\" -H 'Content-Type: application/json' \\"
        )?;
        let body = r#"{"namespace":"demo","identifier":"me","limit":10,"duration":60000}"#;
        writeln!(f, "    -d '{body}'\n")
    }
}
