//! The requests of the load: real ones, with a key and an identifier that varies, written as a script for wrk.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::failure::Failure;
use crate::identifiers::identifier;
use crate::limits::AMPLE;

pub(super) const IDENTIFIERS: u64 = 20_000;
pub(super) const ROOT_KEY: &str = "tk_root_of_a_bench_that_nobody_else_uses";
pub(super) const PATH: &str = "/v2/ratelimit.limit";

/// wrk builds all requests before it connects, so that Lua takes no time from the load.
const SCRIPT: &str = include_str!("wrk.lua");

#[derive(Debug)]
pub(super) struct Requests {
    pub(super) script: PathBuf,
    pub(super) body_bytes: usize,
}

// === impl Requests ===

impl Requests {
    pub(super) fn write_to(scratch: &TempDir) -> Result<Self, Failure> {
        let (script, bodies) = (scratch.path().join("wrk.lua"), scratch.path().join("bodies"));
        let lines: Vec<String> = (0..IDENTIFIERS).map(body).collect();
        fs::write(&bodies, lines.join("\n")).map_err(Failure::io("the bodies of the load"))?;
        let text = SCRIPT
            .replace("@BODIES@", &bodies.to_string_lossy())
            .replace("@PATH@", PATH)
            .replace("@KEY@", ROOT_KEY);
        fs::write(&script, text).map_err(Failure::io("the script of the load"))?;
        Ok(Self { script, body_bytes: body(0).len() })
    }

    /// One of them, as bytes on the wire.
    pub(super) fn one(host: &str) -> String {
        let body = body(0);
        format!(
            "POST {PATH} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {ROOT_KEY}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    }
}

fn body(n: u64) -> String {
    let identifier = identifier(n);
    format!(
        r#"{{"namespace":"demo","identifier":"{identifier}","limit":{AMPLE},"duration":60000,"cost":1,"algorithm":"sliding_window"}}"#
    )
}
