//! The signals that ask a server to end in order.

use std::future::pending;
use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// True when the process is asked to end. Registered before anything starts, so that no signal is missed.
pub(super) fn stop_signal() -> io::Result<watch::Receiver<bool>> {
    let (tell, told) = watch::channel(false);
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut hang_up = hears_hang_ups().then(|| signal(SignalKind::hangup())).transpose()?;
    tokio::spawn(async move {
        let hung_up = async {
            match &mut hang_up {
                Some(hang_up) => hang_up.recv().await,
                None => pending().await,
            }
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hung_up => {}
        }
        let _ = tell.send(true);
        // A sender that is dropped would look like a second signal.
        pending::<()>().await;
    });
    Ok(told)
}

/// A terminal that is closed ends what was started from it, and not what `nohup` started, which has us ignore SIGHUP. Where the
/// kernel does not say which it is, nothing is changed.
fn hears_hang_ups() -> bool {
    let ignored = |status: String| {
        let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
        u64::from_str_radix(set.trim(), 16).ok()
    };
    let ignored = std::fs::read_to_string("/proc/self/status").ok().and_then(ignored);
    // Signals are counted from 1.
    let hang_up = 1 << (SignalKind::hangup().as_raw_value() - 1);
    ignored.is_some_and(|set| set & hang_up == 0)
}
