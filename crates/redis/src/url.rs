//! `TOLLKEEPER_REDIS_URL`, read into what it means. All problems are found at once, each as a sentence.
//! Neither a problem nor any text of the result shows a password.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::percent_decode_str;

use crate::address::{Address, Login};

const REDIS_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// A checked URL: `redis://`, `rediss://`, `redis-sentinel://`, `redis-cluster://` or `redis-ring://`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisUrl {
    pub(crate) layout: Layout,
    pub(crate) login: Login,
    pub(crate) db: i64,
    pub(crate) tls: Option<Tls>,
}

/// How the servers share the tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Single(Address),
    Sentinel { sentinels: Vec<Address>, name: String, login: Login },
    Cluster(Vec<Address>),
    Ring(Vec<Address>),
}

/// Servers are believed by the system's certificates, or only by those in this file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tls {
    pub(crate) ca: Option<PathBuf>,
}

/// All that is wrong with a URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct UrlProblems(pub Vec<String>);

/// What stands after `?`.
#[derive(Default)]
struct Query {
    tls: bool,
    ca: Option<PathBuf>,
    sentinel: Login,
}

// === impl RedisUrl ===

impl RedisUrl {
    pub fn parse(text: &str) -> Result<Self, UrlProblems> {
        let mut problems = Vec::new();
        let url = Self::read(text, &mut problems);
        match url {
            Some(url) if problems.is_empty() => Ok(url),
            _ => Err(UrlProblems(problems)),
        }
    }

    fn read(text: &str, problems: &mut Vec<String>) -> Option<Self> {
        let Some((scheme, rest)) = text.split_once("://") else {
            problems.push("is no URL: expected redis://HOST:PORT".into());
            return None;
        };
        // The last @, so that a password with a slash or a question mark is cut off as a whole and never quoted below.
        let (login, rest) = rest.rsplit_once('@').map_or(("", rest), |(login, rest)| (login, rest));
        let login = read_login(login, problems);
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let query = read_query(query, scheme == "redis-sentinel", problems);
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let default_port = if scheme == "redis-sentinel" { SENTINEL_PORT } else { REDIS_PORT };
        let addresses = read_addresses(hosts, default_port, problems);
        let (layout, db) = match scheme {
            "redis" | "rediss" => (single(addresses, problems)?, read_db(path, problems)),
            "redis-ring" => (Layout::Ring(addresses), read_db(path, problems)),
            "redis-cluster" => {
                if !matches!(path, "" | "0") {
                    problems.push("a cluster has only database 0: leave out the path".into());
                }
                (Layout::Cluster(addresses), 0)
            }
            "redis-sentinel" => {
                let (name, db) = path.split_once('/').unwrap_or((path, ""));
                if name.is_empty() {
                    problems.push(
                        "names no primary: expected redis-sentinel://HOST,HOST/NAME as in `sentinel monitor NAME`"
                            .into(),
                    );
                }
                let name = name.to_owned();
                let login = query.sentinel.clone();
                (Layout::Sentinel { sentinels: addresses, name, login }, read_db(db, problems))
            }
            _ => {
                problems.push(
                    "has an unknown scheme: expected redis, rediss, redis-sentinel, redis-cluster or redis-ring"
                        .into(),
                );
                return None;
            }
        };
        let encrypted = scheme == "rediss" || query.tls;
        if query.ca.is_some() && !encrypted {
            problems.push("has ca= but no TLS: add tls=true or use rediss://".into());
        }
        let tls = encrypted.then_some(Tls { ca: query.ca });
        Some(Self { layout, login, db, tls })
    }

    fn scheme(&self) -> &'static str {
        match &self.layout {
            Layout::Single(_) if self.tls.is_some() => "rediss",
            Layout::Single(_) => "redis",
            Layout::Sentinel { .. } => "redis-sentinel",
            Layout::Cluster(_) => "redis-cluster",
            Layout::Ring(_) => "redis-ring",
        }
    }
}

impl FromStr for RedisUrl {
    type Err = UrlProblems;

    fn from_str(text: &str) -> Result<Self, UrlProblems> {
        Self::parse(text)
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme())?;
        if self.login != Login::default() {
            write!(f, "{}:***@", self.login.user.as_deref().unwrap_or_default())?;
        }
        let (addresses, name) = match &self.layout {
            Layout::Single(address) => (std::slice::from_ref(address), None),
            Layout::Sentinel { sentinels, name, .. } => (sentinels.as_slice(), Some(name)),
            Layout::Cluster(addresses) | Layout::Ring(addresses) => (addresses.as_slice(), None),
        };
        let addresses: Vec<String> = addresses.iter().map(Address::to_string).collect();
        f.write_str(&addresses.join(","))?;
        if let Some(name) = name {
            write!(f, "/{name}")?;
        }
        if self.db != 0 { write!(f, "/{}", self.db) } else { Ok(()) }
    }
}

fn single(mut addresses: Vec<Address>, problems: &mut Vec<String>) -> Option<Layout> {
    if addresses.len() > 1 {
        problems.push(
            "names several servers: say how they share the work with redis-cluster://, redis-ring:// or redis-sentinel://"
                .into(),
        );
    }
    addresses.pop().map(Layout::Single)
}

fn read_login(text: &str, problems: &mut Vec<String>) -> Login {
    if text.is_empty() {
        return Login::default();
    }
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let login = Login { user: decoded(user, problems), password: decoded(password, problems) };
    if login.password.is_none() {
        problems.push("has a user but no password: expected redis://USER:PASSWORD@HOST".into());
    }
    login
}

fn decoded(text: &str, problems: &mut Vec<String>) -> Option<String> {
    if text.is_empty() {
        return None;
    }
    let plain = percent_decode_str(text).decode_utf8();
    if plain.is_err() {
        problems.push("user and password must be UTF-8 once their %XX are read".into());
    }
    plain.ok().map(std::borrow::Cow::into_owned)
}

fn read_query(text: &str, to_sentinels: bool, problems: &mut Vec<String>) -> Query {
    let mut query = Query::default();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match name {
            "tls" if matches!(value, "true" | "false") => query.tls = value == "true",
            "tls" => problems.push("tls must be true or false".into()),
            "ca" => query.ca = decoded(value, problems).map(PathBuf::from),
            "sentinel_user" if to_sentinels => query.sentinel.user = decoded(value, problems),
            "sentinel_password" if to_sentinels => {
                query.sentinel.password = decoded(value, problems);
            }
            _ => problems.push(format!(
                "has an unknown parameter `{name}`: expected tls, ca{}",
                if to_sentinels { ", sentinel_user, sentinel_password" } else { "" }
            )),
        }
    }
    query
}

fn read_db(path: &str, problems: &mut Vec<String>) -> i64 {
    if path.is_empty() {
        return 0;
    }
    let number = path.parse::<u16>();
    if number.is_err() {
        problems.push("the path must be the number of a database, as in redis://HOST/0".into());
    }
    number.map_or(0, i64::from)
}

fn read_addresses(text: &str, default_port: u16, problems: &mut Vec<String>) -> Vec<Address> {
    let mut addresses = Vec::new();
    for part in text.split(',') {
        match read_address(part, default_port) {
            Some(address) if addresses.contains(&address) => {
                problems.push(format!("names {address} twice"));
            }
            Some(address) => addresses.push(address),
            None => problems.push(format!("`{part}` is no HOST:PORT")),
        }
    }
    addresses
}

fn read_address(text: &str, default_port: u16) -> Option<Address> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        let port = port.strip_prefix(':').map_or(Some(default_port), |port| port.parse().ok())?;
        return Some(Address::new(host, port));
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (text, default_port),
    };
    (!host.is_empty() && port != 0).then(|| Address::new(host, port))
}

#[cfg(test)]
mod tests;
