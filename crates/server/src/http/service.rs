//! From a request to its reply: find the route, read the body, call the handler, count the answer.

use bytes::Bytes;
use http::Request;
use hyper::body::Incoming;

use super::call::Call;
use super::reply::{Reply, Sheet, plain};
use super::route::{Endpoint, Route};
use super::{body, health, limits, metrics, openapi, overrides, ratelimit};
use crate::app::App;
use crate::clock::Stamp;
use crate::ids::RequestId;
use crate::status::Refusal;

/// Answers any request; every way out is counted.
pub async fn answer(app: &App, request: Request<Incoming>) -> Reply {
    let id = app.ids.next();
    let reply = match dispatch(app, request, id).await {
        Ok(reply) => reply,
        Err(refusal) => {
            if let Some(internal) = refusal.internal() {
                tracing::error!(request_id = id.as_str(), "{internal}");
            }
            Sheet::new().failure(id, refusal)
        }
    };
    app.ledger.page().response(reply.status().as_u16());
    reply
}

async fn dispatch(app: &App, request: Request<Incoming>, id: RequestId) -> Result<Reply, Refusal> {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    let route = Route::find(path).ok_or_else(|| Refusal::UnknownRoute(path.to_owned()))?;
    if !route.accepts(&head.method) {
        return Err(Refusal::WrongMethod { allowed: route.allowed() });
    }
    match route.endpoint {
        Endpoint::Liveness => return Ok(health::liveness(id)),
        Endpoint::Livez => return Ok(health::livez()),
        Endpoint::Readyz => return Ok(health::readyz(app)),
        Endpoint::Metrics => return Ok(metrics::metrics(app)),
        Endpoint::OpenApi => {
            return Ok(plain(http::StatusCode::OK, "application/json", openapi::text()));
        }
        _ => {}
    }
    let body: Bytes = body::read(body).await?;
    // The moment the request is whole: what comes before it is the network's time, not ours.
    let start = Stamp::now();
    let mut call = Call::new(app, &head.headers, &body, id, start);
    let reply = handle(route.endpoint, &mut call).await;
    app.ledger.page().decisions.observe_ns(Stamp::now().nanos_since(start));
    reply
}

async fn handle(endpoint: Endpoint, call: &mut Call<'_>) -> Result<Reply, Refusal> {
    match endpoint {
        Endpoint::Limit => ratelimit::limit(call).await,
        Endpoint::MultiLimit => ratelimit::multi_limit(call).await,
        Endpoint::Peek => limits::peek(call).await,
        Endpoint::Reset => limits::reset(call).await,
        Endpoint::SetOverride => overrides::set(call).await,
        Endpoint::GetOverride => overrides::get(call).await,
        Endpoint::ListOverrides => overrides::list(call).await,
        Endpoint::DeleteOverride => overrides::delete(call).await,
        Endpoint::DeleteNamespace => overrides::delete_namespace(call).await,
        Endpoint::Liveness
        | Endpoint::Livez
        | Endpoint::Readyz
        | Endpoint::Metrics
        | Endpoint::OpenApi => {
            Err(Refusal::Unexpected("a route without a body reached the handlers of bodies".into()))
        }
    }
}
