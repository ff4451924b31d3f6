//! Short turns for the threads that answer. Linux lets whoever has a core finish its turn, some milliseconds, before it looks
//! at who woke up meanwhile, unless that one asked for shorter turns. A request takes some ten microseconds: whoever answers
//! asks for the shortest, and does not wait behind SQLite, a checkpoint or ten thousand rules that are being checked.

/// The shortest that Linux gives.
#[cfg(target_os = "linux")]
const TURN_NS: u64 = 100_000;

/// Of this thread, and of those that it starts. Kernels before 6.12 know one length of turns and leave it at that, and other
/// systems are not asked.
pub(super) fn shorten() {
    #[cfg(target_os = "linux")]
    if let Err(error) = ask_for(TURN_NS) {
        tracing::debug!("requests wait for the turns of others: {error}");
    }
}

#[cfg(target_os = "linux")]
#[allow(
    unsafe_code,
    reason = "nobody wraps this call: std and rustix have no scheduling attributes"
)]
fn ask_for(turn_ns: u64) -> std::io::Result<()> {
    let nice = rustix::process::getpriority_process(None)?;
    let attributes = libc::sched_attr {
        size: u32::try_from(size_of::<libc::sched_attr>()).unwrap_or(0),
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: nice,
        sched_priority: 0,
        sched_runtime: turn_ns,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel reads `size` bytes of `attributes`, which is as long and lives until the call is over, and writes
    // nothing. 0 is this thread, and the last one are flags, of which there are none.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// As the kernel tells it, where it does.
    fn turn_ns() -> Option<u64> {
        let told = std::fs::read_to_string("/proc/thread-self/sched").ok()?;
        let line = told.lines().find(|line| line.starts_with("se.slice"))?;
        line.rsplit(':').next()?.trim().parse().ok()
    }

    #[test]
    fn a_thread_asks_for_short_turns_and_keeps_its_priority() {
        let priority = || rustix::process::getpriority_process(None).unwrap();
        std::thread::spawn(move || {
            let (nice, usual) = (priority(), turn_ns());
            ask_for(TURN_NS).unwrap();
            assert_eq!(priority(), nice);
            // An older kernel has one length for all.
            assert!([Some(TURN_NS), usual].contains(&turn_ns()), "{:?}", turn_ns());
        })
        .join()
        .unwrap();
    }
}
