//! From a request to its reply: find the route, read the body, call the handler, count the answer.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, EXPECT, HeaderMap, HeaderValue, TRANSFER_ENCODING,
};
use http::request::Parts;
use http::{Request, Version};
use hyper::body::{Body, Incoming};

use super::call::Call;
use super::reply::{JSON, PROBLEM_JSON, Reply, Sheet, plain};
use super::route::{Answers, Effect, Endpoint, Route};
use super::{
    apis, audit, identities, keys, permissions, projects, quotas, roles, root_keys, rules, stats,
};
use super::{body, changes, gate, health, limits, metrics, openapi, overrides, ratelimit, verify};
use super::{system, tenants, usage};
use crate::app::App;
use crate::clock::Stamp;
use crate::forward_auth;
use crate::hush::tell;
use crate::ids::RequestId;
use crate::status::Refusal;

/// Answers any request; every way out is counted.
pub async fn answer(app: &Arc<App>, request: Request<Incoming>) -> Reply {
    let id = app.ids.next();
    let (mut head, mut body) = request.into_parts();
    // Both stay here: whatever awaits would otherwise copy them into its own room.
    let mut reply = match dispatch(app, &mut head, &mut body, id).await {
        Ok(reply) => reply,
        Err(refusal) => refused(Sheet::new(), id, refusal),
    };
    // Who asks whether to send a body at all is answered, and over HTTP/2 is told to stop.
    if !body.is_end_stream() && head.version < Version::HTTP_2 && !head.headers.contains_key(EXPECT)
    {
        body::run_out(body);
    }
    app.ledger.page().response(reply.status().as_u16());
    if !app.readiness.get() && head.version < Version::HTTP_2 {
        // It ends soon, and so would the next request on this connection.
        reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    reply
}

/// What was read of a cache before the refusal is told on `sheet` all the same.
fn refused(sheet: Sheet, id: RequestId, refusal: Refusal) -> Reply {
    tell(id, &refusal);
    // Where this body ends is unknown or in doubt, and with it where a next request would begin.
    let ends = matches!(refusal, Refusal::BodyUnreadable);
    let mut reply = sheet.failure(id, refusal);
    if ends {
        reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    reply
}

async fn dispatch(
    app: &Arc<App>,
    head: &mut Parts,
    body: &mut Incoming,
    id: RequestId,
) -> Result<Reply, Refusal> {
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
        Endpoint::Check(dialect) => {
            let start = Stamp::now();
            let call = Call::new(app, &head.headers, &[], id, start);
            return Ok(Box::pin(forward_auth::check(dialect, call, start)).await);
        }
        _ => {}
    }
    if is_encoded(&head.headers) {
        return Err(Refusal::BodyEncoded);
    }
    if body::may_be_large(body, route.body_max) {
        // Read for nobody who is not let in: it takes room that others need.
        Box::pin(Call::new(app, &head.headers, &[], id, Stamp::now()).caller()).await?;
    }
    let (body, _room): (Bytes, _) = body::read(body, route.body_max).await?;
    // The moment the request is whole: what comes before it is the network's time, not ours.
    let start = Stamp::now();
    let reply = match route.effect {
        Effect::Asks => serve(route, &mut Call::new(app, &head.headers, &body, id, start)).await,
        Effect::Changes => {
            let headers = std::mem::take(&mut head.headers);
            Box::pin(to_its_end(app, route, headers, body, id, start)).await?
        }
    };
    app.ledger.page().decisions.observe_ns(Stamp::now().nanos_since(start));
    Ok(reply)
}

/// A change that has begun is finished and remembered also when the client leaves: its retry must find the answer.
async fn to_its_end(
    app: &Arc<App>,
    route: &'static Route,
    headers: HeaderMap,
    body: Bytes,
    id: RequestId,
    start: Stamp,
) -> Result<Reply, Refusal> {
    let app = Arc::clone(app);
    let change =
        async move { serve(route, &mut Call::new(&app, &headers, &body, id, start)).await };
    tokio::spawn(change).await.map_err(|error| Refusal::Unexpected(error.to_string()))
}

/// The two calls whose clients know every refusal, a 429 too, by plain JSON.
const PLAIN_PROBLEMS: [&str; 2] =
    ["/v2/permissions.updatePermission", "/v2/permissions.updateRole"];

/// One call, answered or refused.
async fn serve(route: &'static Route, call: &mut Call<'_>) -> Reply {
    let outcome = match route.effect {
        Effect::Asks => handle(route.endpoint, call).await,
        Effect::Changes => Box::pin(changes::answer(route, call)).await,
    };
    let mut reply = outcome.unwrap_or_else(|refusal| {
        let mut sheet = Sheet::new();
        sheet.timing(&call.timing);
        let mut reply = refused(sheet, call.id, refusal);
        // Where an answer is `meta` alone, clients know every refusal by the type of problems.
        if matches!(route.answers, Answers::Done) {
            reply.headers_mut().insert(CONTENT_TYPE, PROBLEM_JSON);
        }
        if PLAIN_PROBLEMS.contains(&route.path) {
            reply.headers_mut().insert(CONTENT_TYPE, JSON);
        }
        reply
    });
    if let Some(tenant) = &call.tenant {
        tenant.write(reply.headers_mut());
    }
    reply
}

/// A body of undeclared length is chunked, once, or (over HTTP/2) needs no coding. Of any other coding others on
/// the way may think differently, and then disagree with us about where the body ends.
fn is_chunked_once(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let plain =
        codings.next().is_none_or(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"));
    plain && codings.next().is_none()
}

/// Nothing is unpacked here: a few bytes could become gigabytes.
fn is_encoded(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(CONTENT_ENCODING).iter();
    codings.any(|coding| !coding.is_empty() && !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// The hot calls in place, all others in a box: every request would otherwise carry the room of the largest, which is
/// copied for each of them.
pub async fn handle(endpoint: Endpoint, call: &mut Call<'_>) -> Result<Reply, Refusal> {
    match endpoint {
        Endpoint::Limit => ratelimit::limit(call).await,
        Endpoint::VerifyKey => verify::verify(call).await,
        Endpoint::GateCheck => Box::pin(gate::check(call)).await,
        other => Box::pin(handle_rare(other, call)).await,
    }
}

async fn handle_rare(endpoint: Endpoint, call: &mut Call<'_>) -> Result<Reply, Refusal> {
    match endpoint {
        Endpoint::Limit => ratelimit::limit(call).await,
        Endpoint::VerifyKey => verify::verify(call).await,
        Endpoint::GateCheck => gate::check(call).await,
        Endpoint::GateExplain => gate::explain(call).await,
        Endpoint::MultiLimit => ratelimit::multi_limit(call).await,
        Endpoint::Peek => limits::peek(call).await,
        Endpoint::Reset => limits::reset(call).await,
        Endpoint::Stats => limits::stats(call).await,
        Endpoint::SetOverride => overrides::set(call).await,
        Endpoint::GetOverride => overrides::get(call).await,
        Endpoint::ListOverrides => overrides::list(call).await,
        Endpoint::DeleteOverride => overrides::delete(call).await,
        Endpoint::DeleteNamespace => overrides::delete_namespace(call).await,
        Endpoint::Keys(which) => keys::handle(which, call).await,
        Endpoint::Apis(which) => apis::handle(which, call).await,
        Endpoint::Projects(which) => projects::handle(which, call).await,
        Endpoint::Tenants(which) => tenants::handle(which, call).await,
        Endpoint::Identities(which) => identities::handle(which, call).await,
        Endpoint::Permissions(which) => permissions::handle(which, call).await,
        Endpoint::Roles(which) => roles::handle(which, call).await,
        Endpoint::RootKeys(which) => root_keys::handle(which, call).await,
        Endpoint::System(which) => system::handle(which, call).await,
        Endpoint::Rules(which) => rules::handle(which, call).await,
        Endpoint::Quotas(which) => quotas::handle(which, call).await,
        Endpoint::Usage(which) => usage::handle(which, call).await,
        Endpoint::Audit(which) => audit::handle(which, call).await,
        Endpoint::Rollups => stats::query(call).await,
        Endpoint::Check(_)
        | Endpoint::Liveness
        | Endpoint::Livez
        | Endpoint::Readyz
        | Endpoint::Metrics
        | Endpoint::OpenApi => {
            Err(Refusal::Unexpected("a route without a body reached the handlers of bodies".into()))
        }
    }
}
