//! The requests of the load: real ones, with a key and a body that varies, written as a script for wrk.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::failure::Failure;
use crate::identifiers::identifier;
use crate::limits::AMPLE;

pub(crate) const IDENTIFIERS: u64 = 20_000;
pub(crate) const ROOT_KEY: &str = "tk_root_of_a_bench_that_nobody_else_uses";

/// wrk builds all requests before it connects, so that Lua takes no time from the load.
const SCRIPT: &str = include_str!("wrk.lua");

#[derive(Debug)]
pub(crate) struct Requests {
    pub(crate) script: PathBuf,
    pub(crate) body_bytes: usize,
    path: &'static str,
    bodies: Vec<String>,
    /// What only the wanted answer holds.
    pub(crate) answered: &'static str,
}

// === impl Requests ===

impl Requests {
    /// `ratelimit.limit` for many identifiers.
    pub(crate) fn limits(scratch: &TempDir) -> Result<Self, Failure> {
        let bodies = (0..IDENTIFIERS).map(limit).collect();
        Self::write_to(scratch, "/v2/ratelimit.limit", bodies, r#""success":true"#)
    }

    /// `keys.verifyKey` for these keys.
    pub(crate) fn verifications(scratch: &TempDir, keys: &[String]) -> Result<Self, Failure> {
        let bodies = keys.iter().map(|key| verification(key)).collect();
        Self::write_to(scratch, "/v2/keys.verifyKey", bodies, r#""code":"VALID""#)
    }

    /// `gate.check` of one request for each of these keys.
    pub(crate) fn checks(scratch: &TempDir, keys: &[String]) -> Result<Self, Failure> {
        let bodies = keys.iter().enumerate().map(|(n, key)| check(n, key)).collect();
        Self::write_to(scratch, "/v2/gate.check", bodies, r#""allowed":true"#)
    }

    fn write_to(
        scratch: &TempDir,
        path: &'static str,
        bodies: Vec<String>,
        answered: &'static str,
    ) -> Result<Self, Failure> {
        let (script, lines) = (scratch.path().join("wrk.lua"), scratch.path().join("bodies"));
        fs::write(&lines, bodies.join("\n")).map_err(Failure::io("the bodies of the load"))?;
        let text = SCRIPT
            .replace("@BODIES@", &lines.to_string_lossy())
            .replace("@PATH@", path)
            .replace("@KEY@", ROOT_KEY);
        fs::write(&script, text).map_err(Failure::io("the script of the load"))?;
        let body_bytes = bodies.first().map_or(0, String::len);
        Ok(Self { script, body_bytes, path, bodies, answered })
    }

    /// One of them, as bytes on the wire.
    pub(crate) fn one(&self, host: &str) -> String {
        let body = self.bodies.first().map_or("", String::as_str);
        on_the_wire(self.path, host, body)
    }

    /// All of them.
    pub(crate) fn all(&self, host: &str) -> Vec<Vec<u8>> {
        let one = |body: &String| on_the_wire(self.path, host, body).into_bytes();
        self.bodies.iter().map(one).collect()
    }
}

pub(crate) fn verification(key: &str) -> String {
    format!(r#"{{"key":"{key}"}}"#)
}

fn on_the_wire(path: &str, host: &str, body: &str) -> String {
    on_the_wire_as(ROOT_KEY, path, host, body)
}

pub(crate) fn on_the_wire_as(root_key: &str, path: &str, host: &str, body: &str) -> String {
    let host = host.trim_start_matches("http://");
    format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {root_key}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn check(n: usize, key: &str) -> String {
    let host = n % 250;
    format!(r#"{{"key":"{key}","ip":"10.0.0.{host}","method":"GET","path":"/v1/things/{n}"}}"#)
}

fn limit(n: u64) -> String {
    let identifier = identifier(n);
    format!(
        r#"{{"namespace":"demo","identifier":"{identifier}","limit":{AMPLE},"duration":60000,"cost":1,"algorithm":"sliding_window"}}"#
    )
}
