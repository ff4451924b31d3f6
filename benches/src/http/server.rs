//! A server under load: a process of its own that is ended when nobody needs it any more.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use tempfile::TempDir;

use super::requests::ROOT_KEY;
use crate::failure::Failure;

/// Which cores a process may use.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Core {
    Any,
    Only(usize),
}

#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    address: String,
    /// Held open: a server that prints into a closed pipe would end.
    _said: BufReader<ChildStdout>,
    /// Removed with everything in it when the server is gone.
    _data: Option<TempDir>,
}

// === impl Core ===

impl Core {
    pub(crate) fn command(self, program: impl AsRef<OsStr>) -> Command {
        match self {
            Self::Any => Command::new(program),
            Self::Only(core) => {
                let mut command = Command::new("taskset");
                command.arg("-c").arg(core.to_string()).arg(program);
                command
            }
        }
    }
}

// === impl Server ===

impl Server {
    /// The product, as `tollkeeper serve` runs it.
    pub(crate) fn tollkeeper(
        program: &Path,
        scratch: &TempDir,
        core: Core,
    ) -> Result<Self, Failure> {
        Self::tollkeeper_with(program, scratch, core, &[])
    }

    /// The same with further settings, as variables of its environment.
    pub(crate) fn tollkeeper_with(
        program: &Path,
        scratch: &TempDir,
        core: Core,
        settings: &[(&str, &str)],
    ) -> Result<Self, Failure> {
        let data = tempfile::tempdir_in(scratch).map_err(Failure::io("a data folder"))?;
        let mut command = core.command(program);
        command
            .arg("serve")
            // Away from any settings file that lies about.
            .current_dir(data.path())
            .env("TOLLKEEPER_DATA_DIR", data.path())
            .env("TOLLKEEPER_HTTP_LISTEN", "127.0.0.1:0")
            .env("TOLLKEEPER_ROOT_KEY", ROOT_KEY)
            // Some loads need keys that have to be made first.
            .env("TOLLKEEPER_ADMIN_WRITES_PER_SECOND", "1000000")
            .envs(settings.iter().copied());
        Self::start("tollkeeper serve", &mut command, Some(data))
    }

    /// One of this program's own servers.
    pub(crate) fn bare(
        kind: &str,
        reply: &Path,
        threads: usize,
        core: Core,
    ) -> Result<Self, Failure> {
        let bench = std::env::current_exe().map_err(Failure::io("this program"))?;
        let mut command = core.command(bench);
        command.arg(kind).arg(reply).arg(threads.to_string());
        Self::start(kind, &mut command, None)
    }

    fn start(what: &str, command: &mut Command, data: Option<TempDir>) -> Result<Self, Failure> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(Failure::io(what))?;
        let said = child.stdout.take().map(BufReader::new);
        let mut said = said.ok_or_else(|| Failure::Invalid(format!("{what} has no output")))?;
        let mut heard = String::new();
        while said.read_line(&mut heard).map_err(Failure::io(what))? > 0 {
            let address =
                heard.lines().last().and_then(|line| line.strip_prefix("listening on http://"));
            if let Some(address) = address.map(str::to_owned) {
                return Ok(Self { child, address, _said: said, _data: data });
            }
        }
        let _ = child.wait();
        Err(Failure::Child { what: what.into(), said: heard })
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is ours and holds nothing worth keeping.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Builds the release binary; it lies beside this one.
pub(crate) fn build() -> Result<PathBuf, Failure> {
    let built = Command::new("cargo")
        .args(["build", "--release", "--quiet", "--package", "tollkeeper"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .map_err(Failure::io("cargo"))?;
    if !built.success() {
        let said = "the compiler's messages are above".into();
        return Err(Failure::Child { what: "cargo build".into(), said });
    }
    let bench = std::env::current_exe().map_err(Failure::io("this program"))?;
    Ok(bench.with_file_name("tollkeeper"))
}
