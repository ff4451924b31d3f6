//! What follows a decision: it is counted, and it is kept so that it survives the process.
//! Nothing here waits on the request path, and nothing decides.

mod histogram;
mod journal;
mod keeper;
mod last_used;
mod lease_left;
mod lease_marks;
mod ledger;
mod tally;

pub use histogram::{BOUNDS_US, Histogram, HistogramReading};
pub use journal::{
    BootId, CreditSpent, Entry, Journal, JournalError, Recovered, Sealed, SharedJournal,
};
pub use keeper::{Health, Keeper};
pub use last_used::{LastUsed, Waiting};
pub use lease_left::LeaseLeft;
pub use lease_marks::LeaseMarks;
pub use ledger::{Answer, Ledger};
pub use tally::{Code, Kind, Reading, Tally};
