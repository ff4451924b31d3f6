//! What a caller may rely on: shapes, numbers, headers and semantics of every endpoint, over a real connection.

mod doors;
mod headers;
mod limit;
mod limits;
mod multi_limit;
mod overrides;
mod ways;
