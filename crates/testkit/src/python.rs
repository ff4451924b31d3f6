//! Python with the packages that tests need, installed at the first use.

use std::io;
use std::path::PathBuf;
use std::process::Command;

/// The interpreter. The first call of all on a machine takes half a minute.
pub fn python() -> io::Result<PathBuf> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/test-python");
    let ran = Command::new(script).output()?;
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        return Err(io::Error::other(format!("scripts/test-python failed: {said}")));
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&ran.stdout).trim_end()))
}
