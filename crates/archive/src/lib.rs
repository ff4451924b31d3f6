//! Past months of the decision audit as Parquet files, on a disk or in an S3-compatible store.
//! It moves, lists and brings back whole months. It knows neither settings nor a clock, and no type of Parquet or
//! Arrow leaves it.

mod columns;
mod error;
mod fetched;
mod label;
mod listing;
mod merged;
mod object;
mod place;
mod progress;
mod restored;
mod run;
mod seal;
#[cfg(test)]
mod testing;

pub use error::ArchiveError;
pub use label::Label;
pub use listing::{Listed, Listing, list};
pub use place::Place;
pub use progress::{Progress, Step, Tell};
pub use restored::{Target, restore};
pub use run::{Archived, Outcome, archive};
pub use seal::Seal;
