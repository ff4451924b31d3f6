//! The rows of `stats.*`.

use tollkeeper_wire as wire;
use wire::Described;

use super::{Answers, Endpoint, Route, post};

pub const ROUTES: &[Route] = &[post::<wire::QueryStatsRequest<'static>>(
    "/v2/stats.query",
    Endpoint::Rollups,
    "stats.*.query",
    "Decisions added up by the minute, hour or day, oldest first.",
    Answers::Page(wire::StatsLine::SHAPE),
)];
