//! Short turns for the threads that answer. Linux lets whoever has a core finish its turn, some milliseconds, before it looks
//! at who woke up meanwhile, unless that one asked for shorter turns. A request takes some ten microseconds: whoever answers
//! asks for the shortest, and does not wait behind SQLite, a checkpoint or ten thousand rules that are being checked.

/// The shortest that Linux gives.
#[cfg(target_os = "linux")]
const TURN_NS: u64 = 100_000;
/// `SCHED_FLAG_RESET_ON_FORK`.
#[cfg(target_os = "linux")]
const RESET_ON_FORK: u64 = 1;

/// Of this thread, and not of those that it starts: what is long must not come before it. Kernels before 6.12 know one length
/// of turns and leave it at that, and other systems are not asked.
pub(super) fn shorten() {
    #[cfg(target_os = "linux")]
    if let Err(error) = ask_for(TURN_NS) {
        tracing::debug!("requests wait for the turns of others: {error}");
    }
}

#[cfg(target_os = "linux")]
#[allow(
    unsafe_code,
    reason = "nobody wraps these calls: std and rustix have no scheduling attributes"
)]
fn ask_for(turn_ns: u64) -> std::io::Result<()> {
    // SAFETY: takes and gives numbers.
    if unsafe { libc::sched_getscheduler(0) } != libc::SCHED_OTHER {
        // Somebody has chosen otherwise for the whole process.
        return Ok(());
    }
    let nice = rustix::process::getpriority_process(None)?;
    let attributes = libc::sched_attr {
        size: u32::try_from(size_of::<libc::sched_attr>()).unwrap_or(0),
        sched_policy: 0,
        sched_flags: RESET_ON_FORK,
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

    fn on_its_own<T: Send + 'static>(look: impl FnOnce() -> T + Send + 'static) -> T {
        std::thread::spawn(look).join().unwrap()
    }

    /// 6.12, the first that listens.
    fn kernel_listens() -> bool {
        let name = rustix::system::uname();
        let mut numbers = name.release().to_str().unwrap_or("").split('.').map(|n| n.parse().ok());
        let (major, minor): (Option<u32>, Option<u32>) =
            (numbers.next().flatten(), numbers.next().flatten());
        (major, minor) >= (Some(6), Some(12))
    }

    #[test]
    fn a_thread_asks_for_short_turns_for_itself_alone_and_keeps_its_priority() {
        on_its_own(|| {
            let usual = turn_ns();
            rustix::process::setpriority_process(None, 5).unwrap();
            ask_for(TURN_NS).unwrap();
            assert_eq!(rustix::process::getpriority_process(None).unwrap(), 5);
            if kernel_listens() && usual.is_some() {
                assert_eq!((turn_ns(), on_its_own(turn_ns)), (Some(TURN_NS), usual));
            }
        });
    }
}
