//! From a request to its reply: find the route, read the body, call the handler, count the answer.

use bytes::Bytes;
use http::Request;
use http::header::{CONNECTION, HeaderMap, HeaderValue, TRANSFER_ENCODING};
use hyper::body::{Body, Incoming};

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
        Err(refusal) => refused(Sheet::new(), id, refusal),
    };
    app.ledger.page().response(reply.status().as_u16());
    reply
}

/// What was read of a cache before the refusal is told on `sheet` all the same.
fn refused(sheet: Sheet, id: RequestId, refusal: Refusal) -> Reply {
    if let Some(internal) = refusal.internal() {
        tracing::error!(request_id = id.as_str(), "{internal}");
    }
    // Where this body ends is unknown or in doubt, and with it where a next request would begin.
    let ends = matches!(refusal, Refusal::BodyUnreadable);
    let mut reply = sheet.failure(id, refusal);
    if ends {
        reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    reply
}

async fn dispatch(app: &App, request: Request<Incoming>, id: RequestId) -> Result<Reply, Refusal> {
    let (head, body) = request.into_parts();
    if body.size_hint().exact().is_none() && !is_chunked_once(&head.headers) {
        return Err(Refusal::BodyUnreadable);
    }
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
    let reply = handle(route.endpoint, &mut call).await.unwrap_or_else(|refusal| {
        let mut sheet = Sheet::new();
        sheet.timing(&call.timing);
        refused(sheet, id, refusal)
    });
    app.ledger.page().decisions.observe_ns(Stamp::now().nanos_since(start));
    Ok(reply)
}

/// A body of undeclared length is chunked, once, or (over HTTP/2) needs no coding. Of any other coding others on
/// the way may think differently, and then disagree with us about where the body ends.
fn is_chunked_once(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let plain =
        codings.next().is_none_or(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"));
    plain && codings.next().is_none()
}

/// The hot call in place, all others in a box: every request would otherwise carry the room of the largest.
async fn handle(endpoint: Endpoint, call: &mut Call<'_>) -> Result<Reply, Refusal> {
    match endpoint {
        Endpoint::Limit => ratelimit::limit(call).await,
        other => Box::pin(handle_rare(other, call)).await,
    }
}

async fn handle_rare(endpoint: Endpoint, call: &mut Call<'_>) -> Result<Reply, Refusal> {
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
