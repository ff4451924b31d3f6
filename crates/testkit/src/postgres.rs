//! A real PostgreSQL for a test: its own folder, socket and free port, gone with the process that started it.
//! Nothing in it is worth keeping, so it never waits for the disk.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::geteuid;
use tempfile::TempDir;

use crate::FaultyDisk;
use crate::output::Output;

/// A start takes a third of a second; the rest is for a busy build machine.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// What it says, without a prefix, when it can be used.
const READY: &str = "LOG:  database system is ready to accept connections";

/// Lives exactly as long as the pipe from the test: when the test ends, however it ends, the shell reads the end of the
/// pipe, ends the server and removes its folder. A word on the pipe is a signal to send instead, and keeps the folder.
const KEEPER: &str = r#"dir=$1; shift
"$@" & pid=$!
read -r how
kill -"${how:-QUIT}" $pid
wait $pid
[ -n "$how" ] || rm -rf "$dir""#;

/// One server for all tests of a process, or a server of its own for a test that stops it.
#[derive(Debug)]
pub struct Postgres {
    folder: PathBuf,
    programs: PathBuf,
    user: Option<(u32, u32)>,
    port: u16,
    settings: Vec<String>,
    /// The disk that its data is on, if that is to fail.
    disk: Vec<(&'static str, PathBuf)>,
    keeper: Option<Keeper>,
    databases: AtomicU32,
}

/// A fresh database in it.
#[derive(Clone, Debug)]
pub struct Database {
    pub name: String,
    /// `postgres://postgres@127.0.0.1:PORT/NAME`
    pub url: String,
}

#[derive(Debug)]
struct Keeper {
    shell: Child,
    pipe: Option<ChildStdin>,
    said: Output,
}

/// Its Debug is its Display, so that `unwrap` in a test shows what is missing.
pub struct PostgresFailure(String);

// === impl Postgres ===

impl Postgres {
    /// The server that all tests of this process share. Each takes a [`Postgres::database`] of its own.
    pub fn shared() -> Result<&'static Self, PostgresFailure> {
        static SHARED: OnceLock<Result<Postgres, String>> = OnceLock::new();
        let shared = SHARED.get_or_init(|| Self::start().map_err(|failure| failure.0));
        shared.as_ref().map_err(|text| PostgresFailure(text.clone()))
    }

    /// A server of its own, for a test that stops it. Dropping it ends it.
    pub fn start() -> Result<Self, PostgresFailure> {
        Self::start_with(&[])
    }

    /// With settings on top of ours, as `name=value`.
    pub fn start_with(settings: &[&str]) -> Result<Self, PostgresFailure> {
        let mut server = Self::prepared(settings)?;
        server.again()?;
        Ok(server)
    }

    /// One that waits for its disk, which does as it is told.
    pub fn start_on(disk: &FaultyDisk) -> Result<Self, PostgresFailure> {
        // With syncfs a start after a crash does not go through a thousand files one by one.
        let settings = [
            "fsync=on",
            "synchronous_commit=on",
            "full_page_writes=on",
            "recovery_init_sync_method=syncfs",
        ];
        let mut server = Self::prepared(&settings)?;
        server.disk = disk.env(&server.folder.join("data")).into();
        server.again()?;
        Ok(server)
    }

    fn prepared(settings: &[&str]) -> Result<Self, PostgresFailure> {
        let programs = programs()?;
        let folder = TempDir::new().map_err(|error| failed("a folder", &error))?.keep();
        let user = unprivileged()?;
        if let Some((uid, gid)) = user {
            chown(&folder, Some(uid), Some(gid)).map_err(|error| failed("the folder", &error))?;
        }
        let port = free_port().map_err(|error| failed("a free port", &error))?;
        let settings = settings.iter().map(ToString::to_string).collect();
        let (disk, keeper, databases) = (Vec::new(), None, AtomicU32::new(0));
        let server = Self { folder, programs, user, port, settings, disk, keeper, databases };
        server.make_cluster()?;
        Ok(server)
    }
    /// A server that counts every statement; [`Postgres::ask`] reads `pg_stat_statements` in the database given.
    pub fn start_counting() -> Result<Self, PostgresFailure> {
        Self::start_with(&[
            "shared_preload_libraries=pg_stat_statements",
            "pg_stat_statements.track=top",
        ])
    }

    /// What the server answers to one statement, as text: a line for each row, columns apart by `|`.
    pub fn ask(&self, database: &str, statement: &str) -> Result<String, PostgresFailure> {
        self.client(
            "psql",
            &["--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-qAtd", database, "-c", statement],
        )
    }

    /// Everything that is in a database, as text.
    pub fn dump(&self, database: &str) -> Result<String, PostgresFailure> {
        self.client("pg_dump", &[database])
    }

    /// Makes an empty database that nobody else uses.
    pub fn database(&self) -> Result<Database, PostgresFailure> {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.client("createdb", &[&name])?;
        Ok(self.named(name))
    }

    /// A second database with everything that is in the first. Nobody may be connected to that one.
    pub fn copy(&self, database: &Database) -> Result<Database, PostgresFailure> {
        let name = format!("{}_copy", database.name);
        self.client("createdb", &["--template", &database.name, &name])?;
        Ok(self.named(name))
    }

    fn named(&self, name: String) -> Database {
        let url = format!("postgres://postgres@127.0.0.1:{}/{name}", self.port);
        Database { name, url }
    }

    /// What one of PostgreSQL's own programs says.
    fn client(&self, program: &str, arguments: &[&str]) -> Result<String, PostgresFailure> {
        let ran = Command::new(self.programs.join(program))
            .arg("--host")
            .arg(&self.folder)
            .args(["--port", &self.port.to_string(), "--username", "postgres"])
            .args(arguments)
            .output();
        let ran = ran.map_err(|error| failed(program, &error))?;
        if ran.status.success() {
            return Ok(String::from_utf8_lossy(&ran.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        Err(PostgresFailure(format!("{program} failed: {said}")))
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its own folder, which its user may write to; the data directory is `data` in it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What a script says that runs beside the server: as its user, with its programs at hand, told where it is.
    pub fn beside(
        &self,
        script: &Path,
        arguments: &[&str],
        env: &[(&str, &str)],
    ) -> Result<String, PostgresFailure> {
        let path = format!("{}:/usr/bin:/bin", self.programs.display());
        let mut command = Command::new(script);
        command.args(arguments).env_clear().env("PATH", path).env("PGHOST", &self.folder);
        command.env("PGPORT", self.port.to_string()).env("PGUSER", "postgres");
        let ran = self.as_user(command.envs(env.iter().copied())).output();
        let ran = ran.map_err(|error| failed("a script", &error))?;
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if ran.status.success() {
            return Ok(said(&ran.stdout));
        }
        Err(PostgresFailure(format!("{} failed: {}", script.display(), said(&ran.stderr))))
    }

    /// Orderly, and cutting every connection, as an operator stops it for a moment.
    pub fn stop(&mut self) {
        self.end("INT\n");
    }

    /// As a power cut would.
    pub fn kill9(&mut self) {
        self.end("KILL\n");
    }

    /// Starts it once more on the same port, with everything that was committed.
    pub fn again(&mut self) -> Result<(), PostgresFailure> {
        let keeper = self.spawn().map_err(|error| failed("the server", &error))?;
        if keeper.said.wait_line(READY, START_PATIENCE).is_none() {
            let said = keeper.said.so_far();
            return Err(PostgresFailure(format!("PostgreSQL did not start:\n{said}")));
        }
        self.keeper = Some(keeper);
        Ok(())
    }

    /// What it has logged since it was last started by us.
    pub fn said(&self) -> String {
        self.keeper.as_ref().map(|keeper| keeper.said.so_far()).unwrap_or_default()
    }

    fn end(&mut self, how: &str) {
        if let Some(mut keeper) = self.keeper.take() {
            if let Some(pipe) = &mut keeper.pipe {
                let _ = pipe.write_all(how.as_bytes());
            }
            let _ = keeper.shell.wait();
        }
    }

    fn make_cluster(&self) -> Result<(), PostgresFailure> {
        let mut command = Command::new(self.programs.join("initdb"));
        command.arg("--pgdata").arg(self.folder.join("data"));
        command.args(["--username=postgres", "--auth=trust", "--encoding=UTF8"]);
        command.args(["--locale=C", "--no-sync", "--no-instructions"]);
        let made = self.as_user(&mut command).output();
        let made = made.map_err(|error| failed("initdb", &error))?;
        if made.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&made.stderr).into_owned();
        Err(PostgresFailure(format!("initdb failed: {said}")))
    }

    fn spawn(&self) -> io::Result<Keeper> {
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "keeper"]).arg(&self.folder);
        command.arg(self.programs.join("postgres")).arg("-D").arg(self.folder.join("data"));
        command.arg("-k").arg(&self.folder).args(["-p", &self.port.to_string()]);
        for setting in [
            "listen_addresses=127.0.0.1",
            "fsync=off",
            "synchronous_commit=off",
            "full_page_writes=off",
            "max_connections=200",
            "log_line_prefix=",
            "wal_level=replica",
        ] {
            command.args(["-c", setting]);
        }
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.envs(self.disk.iter().map(|(name, value)| (name, value)));
        let mut shell = self.as_user(&mut command).spawn()?;
        let pipe = shell.stdin.take();
        let said = shell.stderr.take().ok_or_else(|| io::Error::other("the shell has no pipe"))?;
        Ok(Keeper { shell, pipe, said: Output::collect(said) })
    }

    /// PostgreSQL refuses to be run by root.
    fn as_user<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.current_dir(&self.folder);
        match self.user {
            Some((uid, gid)) => command.uid(uid).gid(gid),
            None => command,
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(mut keeper) = self.keeper.take() {
            drop(keeper.pipe.take());
            let _ = keeper.shell.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Debian keeps the server's programs out of the path, one folder per version; the newest is taken.
fn programs() -> Result<PathBuf, PostgresFailure> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<(u32, PathBuf)> = versions
        .filter_map(|version| {
            let number = version.file_name().to_str()?.parse().ok()?;
            Some((number, version.path().join("bin")))
        })
        .filter(|(_, folder)| holds_server(folder))
        .collect();
    folders.sort();
    let installed = folders.pop().map(|(_, folder)| folder);
    let missing = || {
        PostgresFailure(
            "PostgreSQL is not installed: these tests need the Debian package `postgresql`".into(),
        )
    };
    installed.or_else(in_path).ok_or_else(missing)
}

fn in_path() -> Option<PathBuf> {
    #[allow(
        clippy::disallowed_methods,
        reason = "the test's own environment, not a setting of ours"
    )]
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find(|folder| holds_server(folder))
}

fn holds_server(folder: &Path) -> bool {
    folder.join("initdb").is_file() && folder.join("postgres").is_file()
}

/// Whom to run it as: ourselves, or `postgres` when we are root.
fn unprivileged() -> Result<Option<(u32, u32)>, PostgresFailure> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").map_err(|error| failed("/etc/passwd", &error))?;
    let line = users.lines().find(|line| line.starts_with("postgres:"));
    let mut fields = line.into_iter().flat_map(|line| line.split(':').skip(2));
    let mut number = || fields.next().and_then(|field| field.parse().ok());
    match (number(), number()) {
        (Some(uid), Some(gid)) => Ok(Some((uid, gid))),
        _ => Err(PostgresFailure(
            "there is no user `postgres` to run it as: install the Debian package `postgresql`"
                .into(),
        )),
    }
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn failed(what: &str, error: &io::Error) -> PostgresFailure {
    PostgresFailure(format!("{what}: {error}"))
}

// === impl PostgresFailure ===

impl fmt::Display for PostgresFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for PostgresFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for PostgresFailure {}
