//! Settings as they are used: typed, in range, consistent with each other, or a list of all that is wrong.
//! It reads no file and no environment, and a [`Settings`] can only come out of the check.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tollkeeper_decide::{Mode, Patience};
use tollkeeper_redis::RedisUrl;

use super::problems::{Problem, Problems};
use super::raw::Raw;
use super::syntax;
use super::table::{SETTINGS, setting};
use crate::redacted::Redacted;

/// Everything a server needs to know before it starts.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    pub http_listen: SocketAddr,
    pub data_dir: PathBuf,
    pub database: Database,
    pub root_key: Option<Redacted<String>>,
    pub secret: Option<Redacted<String>>,
    pub node: String,
    pub region: Option<String>,
    /// Shared counters of a fleet.
    pub redis: Option<RedisUrl>,
    /// How long a request waits for them.
    pub redis_patience: Patience,
    /// Where limits are counted, at the first start; without Redis it is memory whatever this says.
    pub mode: Mode,
    /// Whether this node sets the mode to memory by itself when Redis is the trouble.
    pub rollback: bool,
    pub cache_fresh_ms: u64,
    pub cache_stale_ms: u64,
    /// How often usage goes on towards the database.
    pub flush_ms: u64,
    /// How long a bucket of usage in Redis is left alone.
    pub flush_lag_ms: u64,
    /// Share of allowed decisions that the audit keeps.
    pub audit_sample: f64,
    pub audit_days: u64,
    /// Where old decisions go, as it was given.
    pub archive_url: Option<String>,
    pub max_cells: u64,
    pub max_connections: u64,
    /// By one root key, on one node.
    pub admin_writes_per_second: u64,
    /// Where client commands find a server.
    pub url: String,
    pub log: String,
    /// Keys of what was given but steers a part that this version does not have; for the start line.
    pub unbuilt_given: Vec<&'static str>,
}

/// Where the durable records are.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Database {
    Sqlite { path: PathBuf },
    Postgres { url: Redacted<String>, replica: Option<Redacted<String>> },
}

impl Settings {
    /// The lock on the data directory is then a lock on the database too: no other process can have it open.
    pub fn is_alone_on_its_database(&self) -> bool {
        matches!(&self.database, Database::Sqlite { path } if path.parent() == Some(&self.data_dir))
    }

    /// Gathers and checks in one go: bad names and bad values come back together.
    pub fn load(
        flags: &BTreeMap<String, String>,
        env: &[(String, String)],
    ) -> Result<Self, Problems> {
        let (raw, mut problems) = Raw::gather_all(flags, env);
        match Self::check(&raw) {
            Ok(settings) if problems.is_empty() => Ok(settings),
            Ok(_) => Err(problems),
            Err(later) => {
                problems.append(later);
                Err(problems)
            }
        }
    }

    /// Reports every problem there is, not only the first.
    pub fn check(raw: &Raw) -> Result<Self, Problems> {
        let mut sheet = Sheet { raw, problems: Problems::default() };
        sheet.check_unbuilt();
        let settings = sheet.settings();
        match settings {
            Some(settings) if sheet.problems.is_empty() => Ok(settings),
            _ => Err(sheet.problems),
        }
    }
}

/// The raw settings under examination, and what was found wrong so far.
struct Sheet<'a> {
    raw: &'a Raw,
    problems: Problems,
}

impl Sheet<'_> {
    /// Reads all before giving up on any, so that each gets its line.
    fn settings(&mut self) -> Option<Settings> {
        let http_listen = self.required("http_listen", syntax::address);
        let data_dir = self.required("data_dir", syntax::path);
        let database = self.database(data_dir.as_deref());
        let root_key = self.optional("root_key", syntax::root_key);
        let secret = self.optional("secret", syntax::secret);
        let node = self.optional("node", syntax::label);
        let region = self.optional("region", syntax::label);
        let mode = self.mode();
        let redis = self.optional("redis_url", |text| RedisUrl::parse(text).ok());
        let redis_patience_ms =
            self.required("redis_patience_ms", |text| syntax::whole(text, &(1..=200)));
        let rollback = self.required("rollback", syntax::switch);
        let caching = self.caching();
        let audit_sample = self.required("audit_sample", syntax::share);
        let audit_days = self.required("audit_days", |text| syntax::whole(text, &(1..=36_500)));
        let flush_seconds =
            self.required("flush_seconds", |text| syntax::whole(text, &(1..=86_400)));
        let flush_lag_seconds =
            self.required("flush_lag_seconds", |text| syntax::whole(text, &(0..=86_400)));
        let archive_url = self.optional("archive_url", |text| {
            syntax::has_scheme(text, &["file", "s3"]).map(|()| text.to_owned())
        });
        let max_cells = self.required("max_cells", |text| syntax::whole(text, &(16..=100_000_000)));
        let max_connections =
            self.required("max_connections", |text| syntax::whole(text, &(16..=1_000_000)));
        let admin_writes_per_second =
            self.required("admin_writes_per_second", |text| syntax::whole(text, &(1..=1_000_000)));
        let url = self.required("url", syntax::http_url);
        let log = self.required("log", syntax::log_filter);
        let (cache_fresh_ms, cache_stale_ms) = caching?;
        let mode = mode?;
        Some(Settings {
            http_listen: http_listen?,
            data_dir: data_dir?,
            database: database?,
            root_key: root_key?.map(Redacted::new),
            secret: secret?.map(Redacted::new),
            node: node?.unwrap_or_else(host_name),
            region: region?,
            redis: redis?,
            redis_patience: Patience::from_millis(redis_patience_ms?),
            mode,
            rollback: rollback?,
            cache_fresh_ms,
            cache_stale_ms,
            flush_ms: flush_seconds? * 1_000,
            flush_lag_ms: flush_lag_seconds? * 1_000,
            audit_sample: audit_sample?,
            audit_days: audit_days?,
            archive_url: archive_url?,
            max_cells: max_cells?,
            max_connections: max_connections?,
            admin_writes_per_second: admin_writes_per_second?,
            url: url?,
            log: log?,
            unbuilt_given: self.unbuilt_given(),
        })
    }

    /// Not in this version, but a slip in them should not wait for the version that has them.
    fn check_unbuilt(&mut self) {
        self.optional("grpc_listen", syntax::address_or_off);
        self.optional("resp_listen", syntax::address_or_off);
        self.optional("envoy_config", syntax::path);
        self.optional("webhook_allow", syntax::networks);
    }

    fn database(&mut self, data_dir: Option<&Path>) -> Option<Database> {
        if self.raw.text("database_url").is_some_and(syntax::is_postgres) {
            return self.postgres();
        }
        if self.replica()?.is_some() {
            let expected = "nothing, because SQLite has no replica";
            self.refuse("database_replica_url", "an address", expected);
        }
        let path = match self.optional("database_url", syntax::sqlite)? {
            Some(path) => path,
            None => data_dir?.join("tollkeeper.db"),
        };
        Some(Database::Sqlite { path })
    }

    /// Many nodes share one database, so none may make up a secret of its own.
    fn postgres(&mut self) -> Option<Database> {
        let address = |text: &str| {
            syntax::has_scheme(text, &["postgres", "postgresql"])
                .map(|()| Redacted::new(text.to_owned()))
        };
        let url = self.optional("database_url", address)?;
        let replica = self.replica()?;
        if !self.raw.is_given("secret") {
            let expected = "at least 32 characters, the same on every node of this database";
            self.refuse("secret", "nothing", expected);
        }
        Some(Database::Postgres { url: url?, replica })
    }

    #[allow(
        clippy::option_option,
        reason = "as `optional` has it: a problem, or a setting without a value"
    )]
    fn replica(&mut self) -> Option<Option<Redacted<String>>> {
        self.optional("database_replica_url", |text| {
            syntax::has_scheme(text, &["postgres", "postgresql"])
                .map(|()| Redacted::new(text.to_owned()))
        })
    }

    fn mode(&mut self) -> Option<Mode> {
        let mode = self.optional("mode", |text| match text {
            "memory" => Some(Mode::Memory),
            "shadow" => Some(Mode::Shadow),
            "redis" => Some(Mode::Redis),
            _ => None,
        })?;
        let is_alone = !self.raw.is_given("redis_url");
        if let Some(mode) = mode.filter(|mode| is_alone && *mode != Mode::Memory) {
            self.refuse("mode", mode.word(), "memory, or redis_url as well");
            return None;
        }
        Some(mode.unwrap_or(if is_alone { Mode::Memory } else { Mode::Redis }))
    }

    /// Fresh and stale, in milliseconds.
    fn caching(&mut self) -> Option<(u64, u64)> {
        let seconds = |text: &str| syntax::whole(text, &(1..=3_600));
        let fresh = self.required("cache_fresh_seconds", seconds);
        let stale = self.required("cache_stale_seconds", seconds);
        let (fresh, stale) = (fresh?, stale?);
        if stale < fresh {
            self.refuse_stale_below(fresh, stale);
            return None;
        }
        Some((fresh * 1_000, stale * 1_000))
    }

    /// Blames the one that a person gave; a default cannot be corrected.
    fn refuse_stale_below(&mut self, fresh: u64, stale: u64) {
        if self.raw.is_given("cache_stale_seconds") {
            let found = format!("{stale}, below cache_fresh_seconds ({fresh})");
            self.refuse("cache_stale_seconds", &found, &format!("at least {fresh}"));
        } else {
            let found = format!("{fresh}, above cache_stale_seconds ({stale})");
            let expected = format!("at most {stale}, or a larger cache_stale_seconds too");
            self.refuse("cache_fresh_seconds", &found, &expected);
        }
    }

    /// `None` is a problem already noted; `Some(None)` is a setting without a value.
    #[allow(
        clippy::option_option,
        reason = "the outer layer is 'was wrong', the inner one 'was not given'"
    )]
    fn optional<T>(&mut self, key: &str, read: impl Fn(&str) -> Option<T>) -> Option<Option<T>> {
        let Some(text) = self.raw.text(key) else {
            return Some(None);
        };
        let value = read(text);
        if value.is_none() {
            let (shown, expects) =
                setting(key).map(|row| (row.shown(text), row.expects)).unwrap_or_default();
            self.refuse(key, &shown, expects);
        }
        value.map(Some)
    }

    /// For settings whose default is a value, so that there always is one to read.
    fn required<T>(&mut self, key: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        self.optional(key, read).flatten()
    }

    fn refuse(&mut self, key: &str, found: &str, expected: &str) {
        self.problems.add(Problem {
            name: key.to_owned(),
            origin: self.raw.origin(key).to_string(),
            found: found.to_owned(),
            expected: expected.to_owned(),
        });
    }

    fn unbuilt_given(&self) -> Vec<&'static str> {
        // "off" asks for nothing, so nothing is missing.
        let asked = |key: &str| {
            self.raw.is_given(key) && !matches!(self.raw.text(key), Some("off" | "false"))
        };
        SETTINGS.iter().filter(|row| !row.built && asked(row.key)).map(|row| row.key).collect()
    }
}

/// What the machine calls itself, where that can be a label.
fn host_name() -> String {
    let system = rustix::system::uname();
    let name = system.nodename().to_str().ok().and_then(syntax::label);
    name.unwrap_or_else(|| "localhost".to_owned())
}

#[cfg(test)]
mod tests;
