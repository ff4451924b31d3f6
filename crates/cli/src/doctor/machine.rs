//! What the machine itself must offer: enough open files and a clock that can be believed.
//! It never changes a limit or the clock; both belong to the machine's keeper.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Resource, getrlimit};

use super::finding::Finding;

const OPEN_FILES_MIN: u64 = 4096;
/// Store, journal, listeners and log need files of their own beside the connections.
const OWN_FILES: u64 = 256;
/// 1 January 2025 and 2100, in hours since 1970: a clock outside was never set, or set wrongly.
const CLOCK_MIN: Duration = Duration::from_hours(482_136);
const CLOCK_MAX: Duration = Duration::from_hours(1_139_568);
/// Clocks of disks and machines differ by this much without anything being wrong.
const CLOCK_SLACK: Duration = Duration::from_mins(1);

/// What counts is the most that the server may have: it raises its own limit to that.
pub(super) fn open_files(max_connections: u64) -> Finding {
    graded_open_files(getrlimit(Resource::Nofile).maximum, max_connections)
}

/// No limit at all is `None`.
fn graded_open_files(limit: Option<u64>, max_connections: u64) -> Finding {
    let wanted = OPEN_FILES_MIN.max(max_connections.saturating_add(OWN_FILES));
    let next = format!(
        "raise it to {wanted}: `ulimit -Hn {wanted}` as root, or LimitNOFILE={wanted} in the systemd unit"
    );
    match limit {
        None => Finding::ok("open_files", "unlimited"),
        Some(limit) if limit >= wanted => Finding::ok("open_files", format!("up to {limit}")),
        Some(limit) if limit >= OPEN_FILES_MIN => {
            let found = format!("up to {limit}, fewer than {max_connections} connections need");
            Finding::warn("open_files", found, next)
        }
        Some(limit) => Finding::warn("open_files", format!("only up to {limit}"), next),
    }
}

#[allow(clippy::disallowed_methods, reason = "the clock itself is what is examined")]
pub(super) fn clock(data_dir: Option<&Path>) -> Finding {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    graded_clock(now, data_dir.and_then(newest_file))
}

fn graded_clock(now: Duration, newest: Option<Duration>) -> Finding {
    let next =
        "set the clock, and keep it set with an NTP service such as chrony or systemd-timesyncd";
    if !(CLOCK_MIN..CLOCK_MAX).contains(&now) {
        return Finding::fail(
            "clock",
            format!("{} seconds since 1970 cannot be right", now.as_secs()),
            next,
        );
    }
    match newest.and_then(|written| written.checked_sub(now)) {
        Some(ahead) if ahead > CLOCK_SLACK => {
            let found =
                format!("{} seconds behind the newest file of the data folder", ahead.as_secs());
            Finding::warn("clock", found, next)
        }
        _ => Finding::ok("clock", "plausible"),
    }
}

fn newest_file(folder: &Path) -> Option<Duration> {
    let entries = std::fs::read_dir(folder).ok()?;
    let changed = entries.filter_map(|entry| entry.ok()?.metadata().ok()?.modified().ok());
    changed.filter_map(|at| at.duration_since(UNIX_EPOCH).ok()).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Grade;

    #[test]
    fn few_open_files_are_named() {
        let cases = [
            (None, Grade::Ok),
            (Some(20_000), Grade::Ok),
            (Some(5_000), Grade::Warn),
            (Some(1_024), Grade::Warn),
        ];
        for (limit, grade) in cases {
            assert_eq!(graded_open_files(limit, 10_000).grade, grade, "{limit:?}");
        }
        assert_eq!(graded_open_files(Some(4_096), 16).grade, Grade::Ok);
    }

    #[test]
    fn a_clock_that_was_never_set_fails_and_one_behind_its_own_files_is_doubted() {
        let now = CLOCK_MIN + Duration::from_secs(1);
        assert_eq!(graded_clock(Duration::ZERO, None).grade, Grade::Fail);
        assert_eq!(graded_clock(CLOCK_MAX, None).grade, Grade::Fail);
        assert_eq!(graded_clock(now, Some(now + CLOCK_SLACK)).grade, Grade::Ok);
        assert_eq!(graded_clock(now, Some(now + CLOCK_SLACK * 2)).grade, Grade::Warn);
    }
}
