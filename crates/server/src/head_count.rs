//! How many nodes this one counted, kept in the data directory: a start without Redis takes its share of each limit by it. It
//! goes up at once and comes down late: who shares with nodes that are gone refuses too much, and never admits too much.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};
use tollkeeper_core::Millis;
use tollkeeper_decide::Fleet;

use crate::data_dir::write_whole;

const LOOK: Duration = Duration::from_secs(1);

/// Nodes that are stopped one after the other, all to be started again, are each counted by the last of them for so long.
const FEWER_MS: u64 = 600_000;

#[derive(Debug)]
pub struct HeadCount {
    path: PathBuf,
    /// None before anybody was counted.
    kept: Option<u64>,
    /// Since when there are fewer, and the most that there were since.
    fewer: Option<(Millis, u64)>,
}

// === impl HeadCount ===

impl HeadCount {
    /// What the last process here has kept. A file that cannot be read counts as none.
    pub fn read(path: PathBuf) -> Self {
        let kept = match fs::read_to_string(&path) {
            Ok(text) => text.trim_end().parse().ok().filter(|nodes| *nodes > 0),
            Err(_) => None,
        };
        Self { path, kept, fewer: None }
    }

    pub fn kept(&self) -> Option<u64> {
        self.kept
    }

    /// Keeps the count of a fleet for as long as this node lives.
    pub async fn follow(mut self, fleet: Arc<Fleet>) {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut failing = false;
        loop {
            looks.tick().await;
            let Some(nodes) = self.due(fleet.table().counted(), fleet.now()) else { continue };
            match self.write(nodes).await {
                Ok(()) => (self.kept, self.fewer, failing) = (Some(nodes), None, false),
                Err(error) if !failing => {
                    failing = true;
                    tracing::warn!(
                        "the number of nodes cannot be kept in {}: {error}; a start without Redis goes by an older one, or \
                         by this node alone",
                        self.path.display()
                    );
                }
                Err(_) => {}
            }
        }
    }

    /// What is to be kept from now on, where that is another number than before.
    fn due(&mut self, counted: u64, now: Millis) -> Option<u64> {
        let kept = self.kept.unwrap_or(0);
        if counted == 0 || counted >= kept {
            self.fewer = self.fewer.filter(|_| counted == 0);
            return (counted > kept).then_some(counted);
        }
        let (since, most) = self.fewer.get_or_insert((now, counted));
        *most = counted.max(*most);
        (now.since(*since) >= FEWER_MS).then_some(*most)
    }

    async fn write(&self, nodes: u64) -> io::Result<()> {
        let path = self.path.clone();
        spawn_blocking(move || write_number(&path, nodes)).await.map_err(io::Error::other)?
    }
}

fn write_number(path: &Path, nodes: u64) -> io::Result<()> {
    write_whole(path, &nodes.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn of(kept: Option<u64>) -> HeadCount {
        HeadCount { path: PathBuf::new(), kept, fewer: None }
    }

    #[test]
    fn more_nodes_are_kept_at_once_and_fewer_when_they_have_been_fewer_for_ten_minutes() {
        assert_eq!(of(None).due(0, Millis(0)), None, "nobody was counted");
        assert_eq!(of(None).due(1, Millis(0)), Some(1));
        let mut count = of(Some(3));
        assert_eq!(count.due(5, Millis(0)), Some(5));
        assert_eq!(count.due(3, Millis(0)), None);
        assert_eq!(count.due(1, Millis(0)), None);
        assert_eq!(count.due(3, Millis(FEWER_MS)), None, "they were back");
        assert_eq!(count.due(1, Millis(FEWER_MS)), None);
        assert_eq!(count.due(2, Millis(FEWER_MS + 1_000)), None);
        assert_eq!(count.due(1, Millis(2 * FEWER_MS)), Some(2), "the most of those ten minutes");
    }

    #[test]
    fn what_is_kept_is_found_again_and_what_is_no_number_is_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nodes");
        assert_eq!(HeadCount::read(path.clone()).kept(), None);
        write_number(&path, 3).unwrap();
        assert_eq!(HeadCount::read(path.clone()).kept(), Some(3));
        for broken in ["", "0", "-1", "three", "3 3"] {
            fs::write(&path, broken).unwrap();
            assert_eq!(HeadCount::read(path.clone()).kept(), None, "{broken:?}");
        }
    }
}
