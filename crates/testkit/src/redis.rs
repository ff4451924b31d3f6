//! A real Redis server for a test: its own folder and port, gone with the process that started it.
//! It keeps nothing on disk unless it is started with arguments that say so.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::output::Output;
use crate::port::free_port;

/// A start takes some ten milliseconds; the rest is for a busy build machine.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// How often something that a foreign process does is looked for.
const STEP: Duration = Duration::from_millis(10);

const PID_LINE: &str = "keeper started ";

/// Lives exactly as long as the pipe from the test: when the test ends, however it ends, the shell reads the end of the
/// pipe, ends the server and removes its folder. A word on the pipe is a signal to send instead, and keeps the folder.
const KEEPER: &str = r#"dir=$1; shift
"$@" & pid=$!
echo "keeper started $pid"
read -r how
kill -"${how:-KILL}" $pid
wait $pid
[ -n "$how" ] || rm -rf "$dir""#;

/// Dropping it ends it.
#[derive(Debug)]
pub struct RedisServer {
    folder: PathBuf,
    port: u16,
    args: Vec<String>,
    keeper: Option<Keeper>,
}

#[derive(Debug)]
struct Keeper {
    shell: Child,
    pipe: Option<ChildStdin>,
    server: Pid,
    said: Output,
}

/// Its Debug is its Display, so that `unwrap` in a test shows what is missing.
pub struct RedisFailure(pub(crate) String);

// === impl RedisServer ===

impl RedisServer {
    pub fn start() -> Result<Self, RedisFailure> {
        Self::start_with(&[])
    }

    /// `args` as on the command line: `["--maxmemory", "2mb"]`.
    pub fn start_with(args: &[&str]) -> Result<Self, RedisFailure> {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        Self::start_in(new_folder()?, args)
    }

    /// In a folder that the caller has made, for files that the arguments name.
    pub fn start_in(folder: PathBuf, args: Vec<String>) -> Result<Self, RedisFailure> {
        let port = free_port().map_err(|error| failed("a free port", &error))?;
        Self::start_at(folder, port, args)
    }

    pub(crate) fn start_at(
        folder: PathBuf,
        port: u16,
        args: Vec<String>,
    ) -> Result<Self, RedisFailure> {
        let mut server = Self { folder, port, args, keeper: None };
        server.again()?;
        Ok(server)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// `127.0.0.1:PORT`
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// `redis://127.0.0.1:PORT`
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What it printed since its last start.
    pub fn said(&self) -> String {
        self.keeper.as_ref().map(|keeper| keeper.said.so_far()).unwrap_or_default()
    }

    /// The answer to one command as `redis-cli` prints it; an error of the server is an answer too.
    pub fn ask(&self, command: &[&str]) -> String {
        let mut cli = Command::new("redis-cli");
        cli.args(["-h", "127.0.0.1", "-p", &self.port.to_string()]).args(command);
        match cli.stdin(Stdio::null()).output() {
            Ok(done) => {
                let said = [done.stdout, done.stderr].concat();
                String::from_utf8_lossy(&said).trim_end().to_owned()
            }
            Err(error) => format!("redis-cli: {error}"),
        }
    }

    /// The answers to many commands, a line each, from one `redis-cli`.
    pub fn ask_all(&self, commands: &[String]) -> String {
        let lines = self.folder.join("commands");
        let asked = fs::write(&lines, commands.join("\n")).and_then(|()| {
            let mut cli = Command::new("redis-cli");
            cli.args(["-h", "127.0.0.1", "-p", &self.port.to_string()]);
            cli.stdin(fs::File::open(&lines)?).output()
        });
        asked.map_or_else(
            |error| format!("redis-cli: {error}"),
            |done| String::from_utf8_lossy(&done.stdout).trim_end().to_owned(),
        )
    }

    /// Asks until the answer contains `part`.
    pub fn ask_until(&self, command: &[&str], part: &str) -> Result<(), RedisFailure> {
        let mut answer = String::new();
        for _ in 0..START_PATIENCE.as_millis() / STEP.as_millis() {
            answer = self.ask(command);
            if answer.contains(part) {
                return Ok(());
            }
            wait_a_step();
        }
        let command = command.join(" ");
        Err(RedisFailure(format!("{command} never said {part}; the last answer was:\n{answer}")))
    }

    pub fn flushall(&self) {
        self.ask(&["FLUSHALL"]);
    }

    /// Orderly (SIGTERM), as an operator stops it.
    pub fn stop(&mut self) {
        self.resume();
        self.end("TERM\n");
    }

    /// As a power cut would.
    pub fn kill(&mut self) {
        self.end("KILL\n");
    }

    /// It keeps its connections and the kernel accepts new ones, but nobody answers (SIGSTOP).
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Starts it once more on the same port and folder.
    pub fn again(&mut self) -> Result<(), RedisFailure> {
        self.end("KILL\n");
        self.keeper = Some(self.spawn().map_err(|error| failed("redis-server", &error))?);
        for _ in 0..START_PATIENCE.as_millis() / STEP.as_millis() {
            if self.ended() {
                break;
            }
            // Any answer will do: one that is still loading, or wants a password, has started.
            if !self.ask(&["PING"]).starts_with("Could not connect") {
                return Ok(());
            }
            wait_a_step();
        }
        Err(RedisFailure(format!("redis-server did not start:\n{}", self.said())))
    }

    fn spawn(&self) -> io::Result<Keeper> {
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "keeper"]).arg(&self.folder).arg("redis-server");
        // A sentinel wants its file first; a server is given all it needs here.
        if !self.is_sentinel() {
            command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        }
        command.args(&self.args).args(["--port", &self.port.to_string(), "--dir"]);
        command.arg(&self.folder).current_dir(&self.folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut shell = command.spawn()?;
        let pipe = shell.stdin.take();
        let said = shell.stdout.take().ok_or_else(|| io::Error::other("the shell has no pipe"))?;
        let said = Output::collect(said);
        let line = said.wait_line(PID_LINE, START_PATIENCE).unwrap_or_default();
        let pid = line.trim_start_matches(PID_LINE).parse().ok().and_then(Pid::from_raw);
        let server = pid.ok_or_else(|| io::Error::other(format!("no process id in `{line}`")))?;
        Ok(Keeper { shell, pipe, server, said })
    }

    fn is_sentinel(&self) -> bool {
        self.args.iter().any(|arg| arg == "--sentinel")
    }

    fn ended(&self) -> bool {
        // The keeper waits for its end with the folder, so a fatal error shows only in what was said.
        self.said().contains("FATAL CONFIG FILE ERROR") || self.said().contains("Failed listening")
    }

    fn signal(&self, signal: Signal) {
        if let Some(keeper) = &self.keeper {
            // Fails only when the server has ended already.
            let _ = kill_process(keeper.server, signal);
        }
    }

    fn end(&mut self, how: &str) {
        if let Some(mut keeper) = self.keeper.take() {
            if let Some(pipe) = &mut keeper.pipe {
                let _ = pipe.write_all(how.as_bytes());
            }
            let _ = keeper.shell.wait();
        }
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        if let Some(mut keeper) = self.keeper.take() {
            drop(keeper.pipe.take());
            let _ = keeper.shell.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Removed by the server that is started in it.
pub(crate) fn new_folder() -> Result<PathBuf, RedisFailure> {
    Ok(TempDir::new().map_err(|error| failed("a folder", &error))?.keep())
}

pub(crate) fn failed(what: &str, error: &io::Error) -> RedisFailure {
    RedisFailure(format!("{what}: {error} (these tests need the Debian package `redis-server`)"))
}

fn wait_a_step() {
    #[allow(
        clippy::disallowed_methods,
        reason = "what a foreign process does can only be polled for"
    )]
    thread::sleep(STEP);
}

// === impl RedisFailure ===

impl fmt::Display for RedisFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RedisFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for RedisFailure {}
