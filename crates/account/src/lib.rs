//! What follows a decision: it is counted, and it is kept so that it survives the process.
//! Nothing here waits on the request path, and nothing decides.

mod histogram;
mod journal;
mod keeper;
mod ledger;
mod tally;

pub use histogram::{BOUNDS_US, Histogram, HistogramReading};
pub use journal::{BootId, Journal, JournalError, Recovered, Sealed};
pub use keeper::{Health, Keeper};
pub use ledger::{Answer, Ledger};
pub use tally::{Code, Kind, Reading, Tally};
