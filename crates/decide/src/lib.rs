//! The engine of one node: the table of cells, what is brought near before a decision, and the decision.
//! It knows storage only as ports (traits), and no HTTP, no SQL, no clock.

mod ask;
mod budget;
mod calls;
mod cell;
mod cells;
mod change;
mod counts;
mod decided;
mod decider;
mod due;
mod filter;
mod fleet;
mod join;
mod keyed;
mod lease;
mod limit_terms;
mod loaded_key;
mod namespace;
mod offstage;
mod on_shelf;
mod overflow;
mod parking;
mod ports;
mod purse;
mod resets;
mod rule_books;
mod shard;
mod sharing;
mod slots;
mod swr;
mod sync;
mod verify;
mod warm;
mod whereabouts;

pub use ask::{LimitAsk, LimitCheck, Limited, LimitedOne, Missing};
pub use budget::Loads;
pub use cell::{CellHasher, CellKey, NamespaceTag};
pub use cells::{CellAsk, CellStats, Cells, Far, Returned};
pub use change::Change;
pub use counts::{CountOf, Counted, Counts, LimitCount, LimitCounts, WHOLE_RULE};
pub use decided::Decided;
pub use decider::{CacheName, Decider};
pub use due::Due;
pub use fleet::{
    Agreement, Asking, Fleet, Gathered, History, LinkView, Mode, Modes, News, Origin, Patience,
    Shadowed, SharedAsk, Steady,
};
pub use join::join_all;
pub use lease::{
    Ceilings, CellName, Consistency, Dealt, Errand, Hold, LeaseAsk, LeaseMark, LeaseStats,
    LeaseTable, Link, Missed, Near as NearLease, OnOutage, Place, Scope, Stage, Turn, Units,
};
pub use limit_terms::{LimitTerms, OfRule, Source};
pub use loaded_key::{LoadedIdentity, LoadedKey, LoadedLimit, owner};
pub use namespace::Namespace;
pub use overflow::{Overflow, ROUND};
pub use ports::{
    Bank, CreditLease, Directory, KeyHash, KeyHashes, LEASE_LIFE_MS, Loading, NamespaceRecord,
    OriginError, ParkedCell, Ports, RootKey, Shelf, Tenant, Which,
};
pub use purse::{Filled, Held, Purse, Taken};
pub use rule_books::{RuleBook, RuleBooks};
pub use swr::{Freshness, Lifetime, Near, Swr};
pub use verify::{
    AskedLimit, KeyText, Purpose, Reach, Reason, Told, Verified, VerifiedLimit, VerifyAsk,
    WaitingRoom, WarmKey, tier_of,
};
pub use warm::{Warm, WarmError};
pub use whereabouts::fetch_ahead;
