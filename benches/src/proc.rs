//! What the kernel says about a process: its memory and its processor time.

use std::fs;
use std::time::Duration;

use rustix::param::{clock_ticks_per_second, page_size};

use crate::failure::Failure;

/// Resident memory of this process, in bytes.
pub(crate) fn resident_bytes() -> Result<u64, Failure> {
    resident_bytes_of(std::process::id())
}

pub(crate) fn resident_bytes_of(pid: u32) -> Result<u64, Failure> {
    let text = read(&format!("/proc/{pid}/statm"))?;
    let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    let pages = pages.ok_or_else(|| Failure::unreadable("/proc/<pid>/statm", &text))?;
    Ok(pages * page_size() as u64)
}

/// Processor time of a process and all its threads, user and system.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration, Failure> {
    cpu_ticks(pid, 2).map(|ticks| Duration::from_secs(ticks) / ticks_per_second())
}

/// The sum of so many fields from the 14th on: user, system, and both again of children that have ended.
pub(crate) fn cpu_ticks(pid: u32, fields: usize) -> Result<u64, Failure> {
    let text = read(&format!("/proc/{pid}/stat"))?;
    // The name in parentheses may hold anything, so fields are counted from behind it.
    let (_, behind) = text.rsplit_once(')').unwrap_or_default();
    let times = behind.split_whitespace().skip(11).take(fields).map(str::parse::<u64>);
    times.sum::<Result<u64, _>>().map_err(|_| Failure::unreadable("/proc/<pid>/stat", text))
}

pub(crate) fn ticks_per_second() -> u32 {
    u32::try_from(clock_ticks_per_second()).unwrap_or(100)
}

fn read(path: &str) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(Failure::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_takes_time() {
        assert!(resident_bytes().is_ok_and(|bytes| bytes > 100_000));
        assert!(cpu_time(std::process::id()).is_ok());
    }
}
