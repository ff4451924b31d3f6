//! Runs one step under callgrind and reads how many instructions it took.

use std::process::Command;

use super::subjects::{ITERATIONS, Subject};
use crate::failure::Failure;

/// Instructions per iteration.
pub(super) fn instructions(subject: Subject) -> Result<f64, Failure> {
    let bench = std::env::current_exe().map_err(Failure::io("this program"))?;
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect=*gate_{}*", subject.name()))
        .arg(bench)
        .args(["gate-subject", subject.name()]);
    let ran = valgrind.output().map_err(Failure::io("valgrind (is it installed?)"))?;
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    if !ran.status.success() {
        return Err(Failure::Child { what: "valgrind".into(), said });
    }
    let collected = said.lines().find_map(|line| line.split_once("Collected : "));
    let total = collected.and_then(|(_, number)| number.trim().parse::<u64>().ok());
    match total {
        Some(total) if total > 0 => Ok(total as f64 / ITERATIONS as f64),
        _ => Err(Failure::unreadable("callgrind's count", said)),
    }
}

pub(super) fn compiler() -> Result<String, Failure> {
    let said = Command::new("rustc").arg("--version").output().map_err(Failure::io("rustc"))?;
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}
