//! Redis as Tollkeeper uses it: a script or a command for a tag, sent once, by a deadline, with every failure told apart.
//! It never retries, never waits for a connection, and knows nothing of limits or leases.
//!
//! A URL names the servers; [`Redis::start`] connects to them in the background and keeps at it. Every new connection is
//! *vetted* before it is used: a process of Redis 7.0 or newer, a primary, its run id the same before and after the
//! scripts were loaded. Each script's text begins with that run id, so its digest is valid for one life of one process:
//! after a restart or a failover the server answers NOSCRIPT before it has granted anything, the call fails as
//! [`CallError::Unvetted`] and the link starts over. [`OnVetted`] is asked about each new connection while nobody uses
//! it yet; there lost history is found.
//!
//! Messages are numbered, so that a subscriber knows of those it did not hear ([`Heard::Gap`]).
//!
//! The user of the URL needs `+info +role +script|load +evalsha`, what the scripts do, `+publish`, `+subscribe`, `+get`,
//! `+set` and `+time`, with access to the channels and to keys that begin with a channel's name; `+select` for a database other
//! than 0; in a cluster `+cluster|info`, `+cluster|slots` and `+asking`.

mod address;
mod backoff;
mod client;
mod clock;
mod cluster;
mod config_cache;
mod dialer;
mod epoch;
mod error;
mod fresh;
mod heard;
mod histogram;
mod link;
mod live;
mod name;
mod news;
mod numbering;
mod options;
mod origin;
mod ring;
mod route;
mod script;
mod sentinel;
mod server_time;
mod slot;
mod stats;
mod subscription;
mod tags;
mod take;
mod task;
mod topology;
mod trouble;
mod url;
mod usage_buffer;
mod vetting;

pub use address::Address;
pub use client::Redis;
pub use config_cache::{ConfigCache, EntryKind, EntryName, Kept, Over};
pub use error::{CallError, Refusal};
pub use fresh::{Checking, Fresh, OnVetted};
pub use histogram::{BOUNDS_US, HistogramReading};
pub use link::ServerView;
pub use live::Identity;
pub use news::BUS;
pub use options::Options;
pub use origin::{BusEvent, Listener, RedisOrigin};
/// Commands and values are the client library's own.
pub use redis::{Cmd, Value, cmd};
pub use script::{Arg, ScriptId};
pub use stats::StatsReading;
pub use subscription::{Heard, Subscription};
pub use tags::{At, HOME, TAGS, Tags};
pub use trouble::Trouble;
pub use url::{RedisUrl, UrlProblems};
pub use usage_buffer::{BUCKET_MINUTES, BucketPart, Marked, UsageBuffer};
