//! The rows without a body: probes, metrics and the description of the API.

use tollkeeper_wire as wire;
use wire::Described;

use super::{Answers, Endpoint, METRICS_TYPE, Route, get};

pub const ROUTES: &[Route] = &[
    get(
        "/v2/liveness",
        Endpoint::Liveness,
        "Is the server there?",
        Answers::Data(wire::LivenessReply::SHAPE),
    ),
    get(
        "/livez",
        Endpoint::Livez,
        "Is the process alive? Never asks a dependency.",
        Answers::Plain(&["text/plain"]),
    ),
    get(
        "/readyz",
        Endpoint::Readyz,
        "May traffic be sent here? 503 while starting and while draining.",
        Answers::Plain(&["text/plain"]),
    ),
    get(
        "/metrics",
        Endpoint::Metrics,
        "Metrics in the OpenMetrics text format.",
        Answers::Plain(&[METRICS_TYPE]),
    ),
    get(
        "/openapi.json",
        Endpoint::OpenApi,
        "This document.",
        Answers::Plain(&["application/json"]),
    ),
];
