//! Long work beside traffic: on a thread of its own, one piece after the other, and behind every thread that answers.

use std::io;
use std::sync::Arc;

use tokio::sync::{Semaphore, oneshot};

/// As `nice` counts: a tenth of what an ordinary thread gets where they want the same core, and all of it where they do
/// not. Behind everybody (19) a busy machine would hardly ever get to it.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// A clone waits for the same turn.
#[derive(Clone, Debug)]
pub struct Aside {
    name: &'static str,
    turn: Arc<Semaphore>,
}

// === impl Aside ===

impl Aside {
    /// `name` is the thread's, for whoever looks at the process.
    pub fn new(name: &'static str) -> Self {
        Self { name, turn: Arc::new(Semaphore::new(1)) }
    }

    /// Does this when its turn comes. What has begun is done to its end, also when nobody waits for it any more.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let turn = Arc::clone(&self.turn).acquire_owned().await.map_err(io::Error::other)?;
        let (tell, told) = oneshot::channel();
        std::thread::Builder::new().name(self.name.to_owned()).spawn(move || {
            give_way();
            // Who left has no use for it.
            let _ = tell.send(work());
            drop(turn);
        })?;
        told.await.map_err(|_| io::Error::other(format!("{} ended early", self.name)))
    }
}

/// Of this thread alone, which is how Linux counts; elsewhere it would be the whole process that gives way.
fn give_way() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!("long work goes on at the usual priority: {error}");
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn pieces_are_done_one_at_a_time_and_a_broken_one_ends_no_other() {
        let (aside, at_once) = (Aside::new("test"), Arc::new(AtomicUsize::new(0)));
        let piece = |number: u64| {
            let at_once = Arc::clone(&at_once);
            aside.run(move || {
                assert_eq!(at_once.fetch_add(1, Ordering::SeqCst), 0);
                std::thread::yield_now();
                at_once.fetch_sub(1, Ordering::SeqCst);
                number
            })
        };
        let (one, two, three) = tokio::join!(piece(1), piece(2), piece(3));
        assert_eq!([one.unwrap(), two.unwrap(), three.unwrap()], [1, 2, 3]);
        #[allow(clippy::panic, reason = "what is tried is a panic")]
        let broken = aside.run(|| panic!("on purpose")).await;
        assert!(
            broken.is_err_and(|error: io::Error| error.to_string().contains("test ended early"))
        );
        assert_eq!(piece(4).await.unwrap(), 4);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn it_gives_way_and_whoever_asked_does_not() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let before = niceness();
        let there = Aside::new("test").run(niceness).await.unwrap();
        assert_eq!((there, niceness()), (before.max(NICENESS), before));
    }
}
