//! From a request to its reply: find the route, read the body, call the handler, count the answer.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, EXPECT, HOST, HeaderMap};
use http::{Method, Request, Response, Version};
use http_body_util::Full;
use hyper::body::{Body, Incoming};

use super::call::Call;
use super::reply::{JSON, Reply, shared};
use super::route::{Effect, Endpoint, Route};
use super::sheet::Sheet;
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

/// What is asked, as far as the way to its handler reads it.
#[derive(Debug)]
pub struct Asked<'a> {
    pub method: &'a Method,
    pub path: &'a str,
    pub headers: &'a mut HeaderMap,
}

/// A body: as it comes in, or whole from the start.
enum Sent<'a> {
    Coming(&'a mut Incoming),
    Whole(&'a [u8]),
}

/// Answers any request; every way out is counted.
pub async fn answer(app: &Arc<App>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let id = app.ids.next();
    let (mut head, mut body) = request.into_parts();
    // Both stay here: whatever awaits would otherwise copy them into its own room.
    let asked = Asked { method: &head.method, path: head.uri.path(), headers: &mut head.headers };
    let dispatched = if head.version == Version::HTTP_11 && !is_for_one_host(asked.headers) {
        Err(Refusal::HostUnclear)
    } else {
        dispatch(app, asked, Sent::Coming(&mut body), id).await
    };
    let mut reply = counted(app, id, head.uri.path(), dispatched);
    // Who asks whether to send a body at all is answered; over HTTP/2 the answer must not be lost to a reset of its stream.
    let is_asked = head.headers.contains_key(EXPECT) && head.version < Version::HTTP_2;
    if !body.is_end_stream() && !is_asked {
        body::run_out(body);
    }
    if head.version >= Version::HTTP_2 {
        reply.go_on();
    }
    reply.into_response()
}

/// The same for a request that is whole.
pub async fn answer_whole(app: &Arc<App>, asked: Asked<'_>, body: &[u8]) -> Reply {
    let (id, path) = (app.ids.next(), asked.path);
    let dispatched = dispatch(app, asked, Sent::Whole(body), id).await;
    counted(app, id, path, dispatched)
}

/// What is refused before it is a request.
pub fn refuse(app: &App, refusal: Refusal) -> Reply {
    counted(app, app.ids.next(), "", Err(refusal))
}

fn counted(app: &App, id: RequestId, path: &str, dispatched: Result<Reply, Refusal>) -> Reply {
    let mut reply =
        dispatched.unwrap_or_else(|refusal| refused(Sheet::new(), id, Route::find(path), refusal));
    app.ledger.page().response(reply.status().as_u16());
    if !app.readiness.get() {
        // It ends soon, and so would the next request on this connection.
        reply.end();
    }
    reply
}

/// What was read of a cache before the refusal is told on `sheet` all the same.
fn refused(sheet: Sheet, id: RequestId, route: Option<&Route>, refusal: Refusal) -> Reply {
    tell(id, &refusal);
    // Where this body ends is unknown or in doubt, and with it where a next request would begin.
    let ends = matches!(
        refusal,
        Refusal::BodyUnreadable
            | Refusal::HeadUnreadable
            | Refusal::HostUnclear
            | Refusal::FramingUnclear
            | Refusal::HeadTooLarge
    );
    let mut reply = sheet.failure(id, refusal);
    if let Some(route) = route {
        reply.set_kind(route.kind_of_refusal(reply.status()));
    }
    if ends {
        reply.end();
    }
    reply
}

async fn dispatch(
    app: &Arc<App>,
    asked: Asked<'_>,
    sent: Sent<'_>,
    id: RequestId,
) -> Result<Reply, Refusal> {
    let Asked { method, path, headers } = asked;
    let route = Route::find(path).ok_or_else(|| Refusal::UnknownRoute(path.to_owned()))?;
    if !route.accepts(method) {
        return Err(Refusal::WrongMethod { allowed: route.allowed() });
    }
    match route.endpoint {
        Endpoint::Liveness => return Ok(health::liveness(id)),
        Endpoint::Livez => return Ok(health::livez()),
        Endpoint::Readyz => return Ok(health::readyz(app)),
        Endpoint::Metrics => return Ok(metrics::metrics(app)),
        Endpoint::OpenApi => {
            return Ok(shared(http::StatusCode::OK, JSON, openapi::text()));
        }
        Endpoint::Check(dialect) => {
            let start = Stamp::now();
            let call = Call::new(app, headers, &[], id, start);
            return Ok(Box::pin(forward_auth::check(dialect, call, start)).await);
        }
        _ => {}
    }
    if is_encoded(headers) {
        return Err(Refusal::BodyEncoded);
    }
    // With what it takes of the room for all.
    let mut read = None;
    let body: &[u8] = match sent {
        Sent::Whole(body) => body,
        Sent::Coming(body) => {
            if body::may_be_large(body, route.body_max) {
                // Read for nobody who is not let in: it takes room that others need.
                Box::pin(Call::new(app, headers, &[], id, Stamp::now()).caller()).await?;
            }
            read = Some(body::read(body, route.body_max).await?);
            read.as_ref().map_or(&[], |(read, _)| read)
        }
    };
    // The moment the request is whole: what comes before it is the network's time, not ours.
    let start = Stamp::now();
    let reply = match route.effect {
        Effect::Asks | Effect::Spends => {
            serve(route, &mut Call::new(app, headers, body, id, start)).await
        }
        Effect::Changes => {
            let headers = std::mem::take(headers);
            let body =
                read.as_ref().map_or_else(|| Bytes::copy_from_slice(body), |read| read.0.clone());
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

/// One call, answered or refused.
async fn serve(route: &'static Route, call: &mut Call<'_>) -> Reply {
    let outcome = match route.effect {
        Effect::Asks | Effect::Spends => handle(route.endpoint, call).await,
        Effect::Changes => Box::pin(changes::answer(route, call)).await,
    };
    let mut reply = outcome.unwrap_or_else(|refusal| {
        let mut sheet = Sheet::new();
        sheet.timing(&call.timing);
        refused(sheet, call.id, Some(route), refusal)
    });
    if let Some(tenant) = &call.tenant {
        tenant.write(&mut reply);
    }
    reply
}

/// RFC 9112, 3.2.
fn is_for_one_host(headers: &HeaderMap) -> bool {
    headers.get_all(HOST).iter().count() == 1
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
        Endpoint::GateCheck => gate::check(call).await,
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
