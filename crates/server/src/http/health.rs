//! Probes: is the process alive, and may traffic be sent here? No secrets, no authentication.

use http::StatusCode;
use tollkeeper_wire::LivenessReply;

use super::reply::{Reply, Sheet, plain};
use crate::app::App;
use crate::ids::RequestId;

const TEXT: &str = "text/plain; charset=utf-8";

/// Never asks a dependency: a restart would not heal those.
pub fn livez() -> Reply {
    plain(StatusCode::OK, TEXT, "ok\n")
}

pub fn readyz(app: &App) -> Reply {
    if app.readiness.get() {
        plain(StatusCode::OK, TEXT, "ready\n")
    } else {
        plain(StatusCode::SERVICE_UNAVAILABLE, TEXT, "not ready: starting or draining\n")
    }
}

pub fn liveness(id: RequestId) -> Reply {
    Sheet::new().success(id, LivenessReply::OK)
}
