//! The types of the HTTP API as they stand on the wire: envelopes, requests, replies, and one description per body.
//! No I/O and no domain logic. Nothing here panics on hostile input; a bad body becomes a list of field errors.

mod choice;
pub mod envelope;
mod faults;
mod json_schema;
pub mod limits;
pub mod liveness;
mod object_only;
pub mod overrides;
pub mod parse;
pub mod ratelimit;
pub mod schema;
pub mod verdict;

pub use envelope::{Failure, FieldError, Meta, Pagination, Problem, Success};
pub use limits::{PeekReply, PeekRequest, ResetReply, ResetRequest};
pub use liveness::LivenessReply;
pub use overrides::{
    DeleteNamespaceRequest, DeleteOverrideRequest, Empty, GetOverrideRequest, ListOverridesRequest,
    OverrideReply, SetOverrideReply, SetOverrideRequest,
};
pub use parse::{Request, parse};
pub use ratelimit::{Algorithm, Consistency, LimitRequest, MultiLimitRequest, OnOutage};
pub use schema::{Described, Shape};
pub use verdict::{LimitReply, MultiLimitLine, MultiLimitReply};
