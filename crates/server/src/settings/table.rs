//! The table of settings: one row each, with its default and what a value looks like.
//! It is data for the checks, for `serve --help` and for the docs. It never reads a value.

use std::fmt;

use super::ENV_PREFIX;

/// One setting. Its key is its name in the file; the flag and the variable are derived from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    pub key: &'static str,
    pub default: Preset,
    pub about: &'static str,
    /// What a valid value looks like, as it stands in messages after "expected".
    pub expects: &'static str,
    /// False while the part it steers is not in this version: checked, accepted and named at the start.
    pub built: bool,
    /// A secret has no flag, because every user of the machine can read the arguments of a process.
    pub secret: bool,
}

/// What holds when a setting is not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// This text, checked like any other value.
    Value(&'static str),
    /// No value; the words say what happens then.
    Unset(&'static str),
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Value(text) | Self::Unset(text)) = self;
        f.write_str(text)
    }
}

impl Setting {
    /// The long flag without its dashes; a secret has none.
    pub fn flag(&self) -> Option<String> {
        (!self.secret).then(|| self.key.replace('_', "-"))
    }

    pub fn env(&self) -> String {
        format!("{ENV_PREFIX}{}", self.key.to_ascii_uppercase())
    }

    /// A given value as it may be shown to a person: quoted, short, and without anything secret.
    pub fn shown(&self, text: &str) -> String {
        // Long enough for every honest value, short enough that a pasted file does not bury the message.
        const SHOWN_CHARS_MAX: usize = 80;
        if self.secret {
            return format!("{} characters (not shown)", text.chars().count());
        }
        // Addresses of databases carry passwords, and a misspelt one may carry it anywhere.
        if text.contains('@') {
            return "an address with credentials (not shown)".into();
        }
        let short: String = text.chars().take(SHOWN_CHARS_MAX).collect();
        let rest = if short.len() < text.len() { "…" } else { "" };
        format!("{short:?}{rest}")
    }

    const fn new(
        key: &'static str,
        default: Preset,
        about: &'static str,
        expects: &'static str,
    ) -> Self {
        Self { key, default, about, expects, built: true, secret: false }
    }

    const fn unbuilt(mut self) -> Self {
        self.built = false;
        self
    }

    const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }
}

/// The row of a key, if there is such a setting.
pub fn setting(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

use Preset::{Unset, Value};

/// Every setting there is, in the order in which a reader meets them.
#[rustfmt::skip]
pub static SETTINGS: &[Setting] = &[
    Setting::new("http_listen", Value("127.0.0.1:7700"), "Where the HTTP API, forward auth, metrics and the dashboard listen",
        "an IP address and port, such as 127.0.0.1:7700 or [::]:7700"),
    Setting::new("grpc_listen", Value("127.0.0.1:7701"), "Where gRPC (Envoy rate limit service, ext_authz, health) listens",
        "an IP address and port, such as 127.0.0.1:7701, or off").unbuilt(),
    Setting::new("resp_listen", Value("off"), "Where the Redis protocol listens",
        "an IP address and port, such as 127.0.0.1:7702, or off").unbuilt(),
    Setting::new("data_dir", Value("./tollkeeper-data"), "Folder of the SQLite file, the journal, snapshots and the generated secret",
        "a folder"),
    Setting::new("config", Value("./tollkeeper.toml"), "Settings file; may be absent unless named",
        "a readable TOML file"),
    Setting::new("database_url", Unset("sqlite in the data folder"), "The durable store",
        "sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME"),
    Setting::new("database_replica_url", Unset("none"), "A read-only copy of the store for key lookups",
        "postgres://USER:PASSWORD@HOST/NAME"),
    Setting::new("redis_url", Unset("none"), "Shared state of a fleet",
        "redis://, rediss://, redis-sentinel://HOST,HOST/NAME, redis-cluster://HOST,HOST or redis-ring://HOST,HOST"),
    Setting::new("redis_patience_ms", Value("5"), "How long a request waits for Redis before it asks once more; after twice that it is refused as degraded (sliding logs: 5 at most)",
        "a whole number of milliseconds from 1 to 200"),
    Setting::new("root_key", Unset("generated at the first start and printed once"), "Bootstrap root key with all permissions",
        "16 to 512 printable ASCII characters, no space at either end").secret(),
    Setting::new("secret", Unset("generated in the data folder"), "What keys are hashed and secrets are encrypted under",
        "32 to 4096 characters").secret(),
    Setting::new("node", Unset("the host name"), "Label of this node in metrics and audit",
        "1 to 253 letters, digits, dots, dashes or underscores"),
    Setting::new("region", Unset("none"), "Label of this node's region in metrics and audit",
        "1 to 253 letters, digits, dots, dashes or underscores"),
    Setting::new("envoy_config", Unset("none"), "Folder of envoyproxy/ratelimit YAML files",
        "a folder").unbuilt(),
    Setting::new("mode", Unset("redis if redis_url is given, else memory"), "Where limits are counted, at the first start with redis_url only; later `tollkeeper mode` says it",
        "memory, shadow or redis"),
    Setting::new("flush_seconds", Value("10"), "How often usage is flushed",
        "a whole number of seconds from 1 to 86400"),
    Setting::new("flush_lag_seconds", Value("90"), "How long a usage bucket is left alone before it is flushed",
        "a whole number of seconds from 0 to 86400"),
    Setting::new("audit_sample", Value("0.01"), "Share of allowed decisions kept in the audit; denials are always kept",
        "a number from 0 to 1"),
    Setting::new("audit_days", Value("90"), "Days that audit rows stay in the database at least; they go by whole months, a week later",
        "a whole number of days from 1 to 36500"),
    Setting::new("cache_fresh_seconds", Value("10"), "How long a cached record is used without asking again",
        "a whole number of seconds from 1 to 3600"),
    Setting::new("cache_stale_seconds", Value("60"), "How long a cached record may be used at all",
        "a whole number of seconds from 1 to 3600, not below cache_fresh_seconds"),
    Setting::new("rollback", Value("off"), "Return to memory mode by itself when the indicators say so",
        "on or off"),
    Setting::new("webhook_allow", Unset("none"), "Private networks that webhooks may reach",
        "CIDRs separated by commas, such as 10.0.0.0/8,fd00::/8").unbuilt(),
    Setting::new("url", Value("http://127.0.0.1:7700"), "Where the commands find the server",
        "http://HOST:PORT or https://HOST"),
    Setting::new("max_cells", Value("1000000"), "Most limits times identifiers that one node counts in memory",
        "a whole number from 16 to 100000000"),
    Setting::new("max_connections", Value("10000"), "Most client connections open at once",
        "a whole number from 16 to 1000000"),
    Setting::new("admin_writes_per_second", Value("200"), "Most changes that one root key makes in a second, on one node",
        "a whole number from 1 to 1000000"),
    Setting::new("archive_url", Unset("none"), "Where audit rows older than audit_days go as Parquet files, once a day and by `tollkeeper archive`",
        "file://PATH or s3://BUCKET/PREFIX"),
    Setting::new("log", Value("info"), "What is logged",
        "off, error, warn, info, debug or trace, or a list such as warn,tollkeeper_server=debug"),
];

#[cfg(test)]
mod tests {
    use super::{SETTINGS, setting};
    use std::collections::BTreeSet;

    #[test]
    fn every_key_is_there_once() {
        let keys: BTreeSet<_> = SETTINGS.iter().map(|setting| setting.key).collect();
        assert_eq!(keys.len(), SETTINGS.len());
        assert_eq!(keys.len(), 29);
    }

    #[test]
    fn a_secret_has_a_variable_and_no_flag() {
        let secrets: Vec<_> = SETTINGS.iter().filter(|setting| setting.secret).collect();
        assert_eq!(secrets.len(), 2);
        assert!(secrets.iter().all(|setting| setting.flag().is_none()));
        assert_eq!(
            setting("root_key").map(super::Setting::env).as_deref(),
            Some("TOLLKEEPER_ROOT_KEY")
        );
        assert_eq!(
            setting("http_listen").and_then(super::Setting::flag).as_deref(),
            Some("http-listen")
        );
    }
}
