//! Exact limits over a shared origin: leases, and what becomes of asks while one is on its way.
//! Nothing in here waits or reads a clock, so that a simulator can drive it as well as the server.

mod absorb;
mod ahead;
mod asleep;
mod cell;
mod depart;
mod errand;
mod fast;
mod hold;
mod loss;
mod mark;
mod name;
mod outage;
mod pace;
mod packed;
mod parked;
mod past;
mod seen;
mod sight;
mod table;
mod waiter;

pub use tollkeeper_core::{Consistency, OnOutage};
use tollkeeper_core::{Cost, Limit, Millis, Outcome};

use crate::CellKey;

pub use errand::{Errand, Missed};
pub use hold::{Hold, Stage, Units};
pub use mark::{Ceilings, LeaseMark};
pub use name::{CellName, Scope};
pub(crate) use table::UnderWay;
pub use table::{LeaseStats, LeaseTable, Place, Turn};

/// How the origin of a cell is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    Up,
    /// The breaker is open.
    Away,
    /// It lost its history, and nodes are telling it theirs.
    Learning,
}

/// One cost against one shared cell.
#[derive(Clone, Copy, Debug)]
pub struct LeaseAsk {
    pub key: CellKey,
    pub limit: Limit,
    pub cost: Cost,
    pub consistency: Consistency,
    pub on_outage: OnOutage,
    /// One of several that are spent together or not at all.
    pub bundled: bool,
    /// What those before it among these have pledged of the same cell.
    pub beside: u64,
}

/// What became of an ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dealt {
    pub outcome: Outcome,
    /// What was set aside for it, where it was admitted.
    pub units: Option<Units>,
    /// Decided without the origin, or against an ask because the origin did not answer.
    pub degraded: bool,
    /// Refused by policy and not by the limit.
    pub unavailable: bool,
    /// The moment of the decision on the origin's clock: the one that outcomes speak of.
    pub at: Millis,
}

/// The first look at an ask, without waiting.
#[derive(Debug)]
pub enum Near {
    /// Decided. The errand is not for this ask: it can be run behind it.
    Dealt(Dealt, Option<Errand>),
    /// It waits under this number. An errand must be run, unless one is under way already.
    Waits(u64, Option<Errand>),
}
