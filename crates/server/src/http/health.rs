//! Probes: is the process alive, and may traffic be sent here? No secrets, no authentication.

use http::StatusCode;
use tollkeeper_wire::LivenessReply;

use super::reply::{Reply, plain};
use super::sheet::Sheet;
use crate::app::App;
use crate::ids::RequestId;

const TEXT: &str = "text/plain; charset=utf-8";

/// Never asks a dependency: a restart would not heal those.
pub fn livez() -> Reply {
    plain(StatusCode::OK, TEXT, "ok\n")
}

/// Ready is a node that can answer. One whose database is away can, from its caches, until these are too old; asking the
/// database is left to who does so every second anyway.
pub fn readyz(app: &App) -> Reply {
    let why = if !app.readiness.get() {
        "not ready: starting or draining\n"
    } else if app.is_cut_off(app.clock.now()) {
        "not ready: the database has not answered for longer than cached keys may be used; see that it runs and can be reached from here\n"
    } else {
        return plain(StatusCode::OK, TEXT, "ready\n");
    };
    plain(StatusCode::SERVICE_UNAVAILABLE, TEXT, why)
}

pub fn liveness(id: RequestId) -> Reply {
    Sheet::new().success(id, LivenessReply::OK)
}
