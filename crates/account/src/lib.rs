//! What follows a decision: it is counted, and it is kept so that it survives the process.
//! Nothing here waits on the request path, and nothing decides.

mod audit;
mod histogram;
mod journal;
mod keeper;
mod last_used;
mod lease_left;
mod lease_marks;
mod ledger;
mod meter;
mod rollup;
mod tally;

pub use audit::{Audit, AuditCounts, Sample};
pub use histogram::{BOUNDS_US, Histogram, HistogramReading, quantile_us};
pub use journal::{
    BootId, CreditSpent, Entry, Former, Journal, JournalError, KEPT_MS, Noted, Pages, PagesReading,
    Recovered, Sealed, SharedJournal,
};
pub use keeper::{Health, Keeper};
pub use last_used::{LastUsed, Waiting};
pub use lease_left::LeaseLeft;
pub use lease_marks::LeaseMarks;
pub use ledger::{Answer, Ledger};
pub use meter::Meter;
pub use rollup::{
    CacheSight, ENDPOINTS_MAX, OTHER_ENDPOINT, OTHER_IDENTITIES, Rollups, Sight, Whose,
};
pub use tally::{Code, Kind, Reading, Tally};
