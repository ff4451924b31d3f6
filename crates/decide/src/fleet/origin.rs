//! Where shared counters live, as the engine sees it: a trait. It knows no Redis.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tollkeeper_core::{Boot, Limit, Millis, Take, Taken};

use crate::lease::{CellName, Missed, Scope};

/// An answer that may not come.
pub type Asking<T> = Pin<Box<dyn Future<Output = Result<T, Missed>> + Send>>;

/// What nodes tell each other. It may get lost; nothing depends on it but speed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// Whoever holds units of this cell should give back what it does not need.
    Recall { name: Arc<CellName>, limit: Limit },
    /// The record of this cell is not the one that somebody was heard in: whoever has spent of it should say so again.
    Lost { name: Arc<CellName>, limit: Limit },
    /// Those counters are about to be set back, by this node: holders give back what they have and say what they spent, and
    /// what nodes count for themselves is set back now.
    Gather { by: Boot, scope: Arc<Scope>, identifier: Option<Box<str>> },
    /// The counters of one identifier, or of a whole scope, were set back.
    Reset { scope: Arc<Scope>, identifier: Option<Box<str>> },
    /// Something that verdicts depend on was changed in the database.
    Changed,
}

/// Whether a server still knows all that it granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    Whole,
    /// It lost something and is being told. By its own clock: when that began at the latest, and what time it is.
    Learning {
        began: Millis,
        now: Millis,
    },
}

pub trait Origin: Send + Sync + 'static {
    /// One delivery of a call. It may have been heard although nothing came back.
    fn take(&self, name: &Arc<CellName>, take: &Take, patience: Duration) -> Asking<Taken>;

    /// Which server's business a cell is: a small number.
    fn server(&self, name: &CellName) -> usize;

    /// How many servers there are.
    fn servers(&self) -> usize;

    /// Counts up whenever the number of a server may mean another one than before.
    fn numbering(&self) -> u64 {
        0
    }

    /// Counts up whenever another process is behind that number: it may know nothing of what the one before was told, and has
    /// a clock of its own.
    fn life(&self, _server: usize) -> u64 {
        0
    }

    /// Is there a connection to it?
    fn is_connected(&self, server: usize) -> bool;

    /// Does it answer, and is its history whole?
    fn probe(&self, server: usize) -> Asking<History>;

    /// Says that this node is alive, and asks how many are.
    fn members(&self) -> Asking<u64>;

    /// No longer: this node leaves.
    fn leave(&self) -> Asking<()>;

    /// Tells the other nodes, if they hear it.
    fn announce(&self, news: &News);

    /// Sets counters back; says how many records there were.
    fn reset(&self, scope: &Arc<Scope>, identifier: Option<&str>) -> Asking<u64>;
}
