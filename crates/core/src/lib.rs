//! The arithmetic Tollkeeper rests on: time, limits, the four algorithms, bundles, overrides, permissions.
//! Pure. It reads no clock, does no I/O, spawns nothing, has no async and no wire types: values in, values out.

mod amount;
mod bundle;
mod calendar;
mod fixed_window;
mod limit;
mod outcome;
mod overrides;
mod permission;
mod sliding_log;
mod sliding_window;
mod state;
mod time;
mod token_bucket;
mod wildcard;

pub use amount::{AMOUNT_MAX, Cost, Quota};
pub use bundle::{Check, Settled, settle};
pub use calendar::Window;
pub use fixed_window::FixedWindow;
pub use limit::{Algorithm, LOG_QUOTA_MAX, Limit};
pub use outcome::{Admission, Outcome};
pub use overrides::{Override, Overrides};
pub use permission::Permissions;
pub use sliding_log::SlidingLog;
pub use sliding_window::SlidingWindow;
pub use state::State;
pub use time::{Millis, WIDTH_MS_MAX, Width};
pub use token_bucket::{Refill, TokenBucket};
pub use wildcard::Wildcard;
