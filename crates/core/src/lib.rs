//! The arithmetic Tollkeeper rests on: time, limits, the four algorithms, bundles, overrides, rules, permissions.
//! Pure. It reads no clock, does no I/O, spawns nothing, has no async and no wire types: values in, values out.

mod amount;
mod audit_row;
mod bundle;
mod calendar;
mod cidr;
mod fixed_window;
mod host;
mod judge;
mod key_record;
mod key_text;
mod lease;
mod limit;
mod month;
mod outcome;
mod overrides;
mod permission;
mod permission_query;
mod refill;
mod rollup;
mod rules;
mod signature;
mod sliding_log;
mod sliding_window;
mod state;
mod time;
mod token_bucket;
mod usage;
mod wildcard;
mod window_text;

pub use amount::{AMOUNT_MAX, Cost, Quota};
pub use audit_row::{AuditRow, Decision};
pub use bundle::{Check, Settled, settle, settle_if};
pub use calendar::Window;
pub use cidr::{Cidr, NotACidr};
pub use fixed_window::FixedWindow;
pub use host::{HostPattern, host_of};
pub use judge::{Use, Verdict, judge};
pub use key_record::{
    Block, CreditTerms, IdentityQuota, IdentityRecord, KeyRecord, ProjectRecord, StoredLimit,
};
pub use key_text::{key_is_intact, key_start, key_text};
pub use lease::{
    AHEAD_MS, ALPHA, Boot, Record, Stand, Take, Taken, Totals, dated_at, first_log_moment, log_copy,
};
pub use limit::{Algorithm, Consistency, LOG_QUOTA_MAX, Limit, OnOutage, Sharing};
pub use month::Month;
pub use outcome::{Admission, Outcome};
pub use overrides::{Override, Overrides};
pub use permission::Permissions;
pub use permission_query::{PermissionQuery, QUERY_CHARS_MAX, QueryFault};
pub use refill::{CreditRefill, RefillEvery};
pub use rollup::{BUCKETS, Grain, RollupCounts, RollupKey};
pub use rules::{
    Action, Explained, Facts, MET_LIMITS_MAX, Matched, MetLimit, Mismatch, NotAPattern,
    PathPattern, Rehearsal, Rehearsed, RequestPath, Rule, RuleLimit, RuleResponse, RuleScope,
    RuleSet, Said, ScopeList, Throttle, TooManyLimits, Unmet, Written, identifier, identifier_of,
};
pub use signature::{
    SIGNATURE_MEMORY_MS, SIGNATURE_TOLERANCE_MS, SealedSecret, Signature, Unsigned,
};
pub use sliding_log::SlidingLog;
pub use sliding_window::SlidingWindow;
pub use state::State;
pub use time::{Micros, Millis, WIDTH_MS_MAX, Width};
pub use token_bucket::{Refill, TokenBucket};
pub use usage::{Component, Minute, Usage, boot_of_text, boot_text, date_start, date_text};
pub use wildcard::Wildcard;
pub use window_text::{NotAWindow, WindowText};
