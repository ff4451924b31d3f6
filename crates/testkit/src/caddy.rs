//! A real Caddy for a test: on a free port of this machine, with a folder of its own, ended with the test.
//! What it does is said by the Caddyfile alone; its port and its neighbours come in as variables.

use std::fmt;
use std::fs;
use std::io;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::output::Output;
use crate::port::free_port;

/// A start takes some hundred milliseconds; the rest is for a busy build machine.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// How often it is looked whether it listens.
const STEP: Duration = Duration::from_millis(20);

/// Dropping it ends it.
#[derive(Debug)]
pub struct Caddy {
    child: Child,
    port: u16,
    said: Output,
    _folder: TempDir,
}

/// Its Debug is its Display, so that `unwrap` in a test shows what is missing.
pub struct CaddyFailure(String);

// === impl Caddy ===

impl Caddy {
    /// With the text of a Caddyfile. `variables` are what it asks for as `{$NAME}`; `listen` is the one that gets the
    /// address to listen on.
    pub fn start(
        caddyfile: &str,
        listen: &str,
        variables: &[(&str, &str)],
    ) -> Result<Self, CaddyFailure> {
        let mut caddy = Self::spawn(caddyfile, listen, variables).map_err(|error| {
            CaddyFailure(format!("caddy: {error} (these tests need the Debian package `caddy`)"))
        })?;
        for _ in 0..START_PATIENCE.as_millis() / STEP.as_millis() {
            let ended = caddy.child.try_wait().is_ok_and(|status| status.is_some());
            if ended {
                break;
            }
            if TcpStream::connect(("127.0.0.1", caddy.port)).is_ok() {
                return Ok(caddy);
            }
            wait_a_step();
        }
        Err(CaddyFailure(format!("caddy did not start:\n{}", caddy.said())))
    }

    fn spawn(caddyfile: &str, listen: &str, variables: &[(&str, &str)]) -> io::Result<Self> {
        let (folder, port) = (TempDir::new()?, free_port()?);
        let file = folder.path().join("Caddyfile");
        fs::write(&file, caddyfile)?;
        let path = std::env::join_paths(["/usr/local/bin", "/usr/bin", "/bin"]);
        let mut child = Command::new("caddy")
            .args(["run", "--adapter", "caddyfile", "--config"])
            .arg(&file)
            .env_clear()
            .env("PATH", path.map_err(io::Error::other)?)
            // Where it would else keep certificates and its last configuration.
            .env("HOME", folder.path())
            .env("XDG_DATA_HOME", folder.path())
            .env("XDG_CONFIG_HOME", folder.path())
            .env(listen, format!("http://:{port}"))
            .envs(variables.iter().copied())
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let pipe = child.stderr.take().ok_or_else(|| io::Error::other("the child has no pipe"))?;
        Ok(Self { child, port, said: Output::collect(pipe), _folder: folder })
    }

    /// `http://127.0.0.1:PORT`
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What it logged so far.
    pub fn said(&self) -> String {
        self.said.so_far()
    }
}

impl Drop for Caddy {
    fn drop(&mut self) {
        // Fails only when it has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_a_step() {
    #[allow(
        clippy::disallowed_methods,
        reason = "what a foreign process does can only be polled for"
    )]
    thread::sleep(STEP);
}

// === impl CaddyFailure ===

impl fmt::Display for CaddyFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for CaddyFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for CaddyFailure {}
