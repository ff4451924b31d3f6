//! A real server process for a test: started on a free port with a clean environment, ended with the test.
//! It never talks to the server; that is the test's part.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::output::Output;

/// The root key of every test server that was not given another one.
pub const ROOT_KEY: &str = "test-root-key-of-no-value";

/// What the server prints once it answers.
const READY: &str = "listening on http://";

/// A start takes well under a second; ten leave room for a busy build machine.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// Longer than the server's own limit for draining, so that a test sees the server's behaviour and not ours.
const STOP_PATIENCE: Duration = Duration::from_secs(30);

/// The pipes close with the process; this only covers the readers' last lines.
const PIPE_PATIENCE: Duration = Duration::from_secs(2);

/// A running `tollkeeper serve`. Dropping it kills it.
#[derive(Debug)]
pub struct Tollkeeper {
    child: Child,
    url: String,
    root_key: String,
    stdout: Output,
    stderr: Output,
}

impl Tollkeeper {
    /// `binary` is `env!("CARGO_BIN_EXE_tollkeeper")` of the calling test; `env` adds to or replaces our variables,
    /// and an empty value takes one away.
    pub fn start(
        binary: &str,
        data_dir: &Path,
        env: &[(&str, &str)],
    ) -> Result<Self, StartFailure> {
        let mut server = Self::spawn(binary, data_dir, env).map_err(StartFailure::unspawned)?;
        match server.stdout.wait_line(READY, START_PATIENCE) {
            Some(line) => {
                server.url = address_in(&line);
                Ok(server)
            }
            None => Err(server.failed()),
        }
    }

    fn spawn(binary: &str, data_dir: &Path, env: &[(&str, &str)]) -> io::Result<Self> {
        let mut command = Command::new(binary);
        command
            .arg("serve")
            .env_clear()
            .env("TOLLKEEPER_HTTP_LISTEN", "127.0.0.1:0")
            .env("TOLLKEEPER_DATA_DIR", data_dir)
            .env("TOLLKEEPER_ROOT_KEY", ROOT_KEY)
            .envs(env.iter().copied().filter(|(_, value)| !value.is_empty()))
            // A settings file in the folder where the tests run must not reach this server.
            .current_dir(data_dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (name, _) in env.iter().filter(|(_, value)| value.is_empty()) {
            command.env_remove(name);
        }
        let mut child = command.spawn()?;
        let no_pipe = || io::Error::other("the child has no pipe");
        let stdout = Output::collect(child.stdout.take().ok_or_else(no_pipe)?);
        let stderr = Output::collect(child.stderr.take().ok_or_else(no_pipe)?);
        let given = env.iter().find(|(name, _)| *name == "TOLLKEEPER_ROOT_KEY");
        let root_key = given.map_or(ROOT_KEY, |(_, key)| key).to_owned();
        Ok(Self { child, url: String::new(), root_key, stdout, stderr })
    }

    /// `http://127.0.0.1:PORT`, without a slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn root_key(&self) -> &str {
        &self.root_key
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn stdout(&self) -> String {
        self.stdout.so_far()
    }

    pub fn stderr(&self) -> String {
        self.stderr.so_far()
    }

    /// As a power cut would: no warning, nothing flushed.
    pub fn kill9(&mut self) -> io::Result<ExitStatus> {
        self.child.kill()?;
        self.wait_for_end()
    }

    /// Asks it to end (SIGTERM) and waits; a server that does not is killed and reported as timed out.
    pub fn terminate(&mut self) -> io::Result<ExitStatus> {
        if self.child.try_wait()?.is_none() {
            kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        }
        self.end()
    }

    /// What a server is told whose terminal is closed (SIGHUP).
    pub fn hang_up(&self) -> io::Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), Signal::HUP)?)
    }

    /// Waits for one that was asked to end.
    pub fn end(&mut self) -> io::Result<ExitStatus> {
        if self.ended_within(STOP_PATIENCE)? {
            return self.wait_for_end();
        }
        self.kill9()?;
        let text = format!(
            "still running {STOP_PATIENCE:?} after it was asked to end; it said:\n{}",
            self.stderr()
        );
        Err(io::Error::new(io::ErrorKind::TimedOut, text))
    }

    fn ended_within(&mut self, patience: Duration) -> io::Result<bool> {
        const STEP: Duration = Duration::from_millis(5);
        for _ in 0..patience.as_millis() / STEP.as_millis() {
            if self.child.try_wait()?.is_some() {
                return Ok(true);
            }
            #[allow(
                clippy::disallowed_methods,
                reason = "the end of a foreign process can only be polled for"
            )]
            thread::sleep(STEP);
        }
        Ok(false)
    }

    fn wait_for_end(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait()?;
        self.stdout.wait_closed(PIPE_PATIENCE);
        self.stderr.wait_closed(PIPE_PATIENCE);
        Ok(status)
    }

    /// The server closed its output or said nothing in time. Give it a moment to end by itself, for its status.
    fn failed(mut self) -> StartFailure {
        let ended = self.ended_within(PIPE_PATIENCE).unwrap_or(false);
        let status = if ended { self.wait_for_end() } else { self.kill9() };
        StartFailure {
            status: status.ok().filter(|_| ended),
            stdout: self.stdout(),
            stderr: self.stderr(),
        }
    }
}

impl Drop for Tollkeeper {
    fn drop(&mut self) {
        // Fails only when it has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server that never came to listen. Its Debug is its Display, so that `unwrap` in a test shows what it said.
pub struct StartFailure {
    /// Its exit status, or nothing if it hung.
    pub status: Option<ExitStatus>,
    pub stdout: String,
    pub stderr: String,
}

impl StartFailure {
    #[allow(clippy::needless_pass_by_value, reason = "the shape of map_err")]
    fn unspawned(error: io::Error) -> Self {
        Self { status: None, stdout: String::new(), stderr: format!("not started: {error}") }
    }
}

impl fmt::Display for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, stdout, stderr } = self;
        match status {
            Some(status) => write!(f, "the server ended with {status}")?,
            None => write!(f, "the server did not listen within {START_PATIENCE:?}")?,
        }
        write!(f, "\n--- stdout ---\n{stdout}\n--- stderr ---\n{stderr}")
    }
}

impl fmt::Debug for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for StartFailure {}

fn address_in(line: &str) -> String {
    let from = line.find("http://").unwrap_or(0);
    let address = line[from..].split_whitespace().next().unwrap_or_default();
    address.trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests;
