//! How far a run is, for whoever watches.

use crate::Label;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub month: Label,
    pub step: Step,
    /// Done in this step.
    pub rows: u64,
    /// To be done in this step; more may come while it is under way.
    pub of: u64,
}

/// In the order in which a month goes through them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Rows go from the database into an object that has no name yet.
    Writing,
    /// It is read back and compared with what was written.
    Checking,
    /// It has its name now, and is read back under it.
    Naming,
    /// Rows that are safe leave the database.
    Dropping,
}

// === impl Step ===

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Writing => "writing",
            Self::Checking => "checking",
            Self::Naming => "naming",
            Self::Dropping => "dropping",
        })
    }
}

/// Where progress is told to.
pub type Tell<'a> = &'a mut (dyn FnMut(Progress) + Send);
