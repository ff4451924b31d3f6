//! `/check/<proxy>`: a proxy asks with every request whether to let it through, and the end user's own key is the only one.
//! Whoever reaches this route may try keys and name any path and address: it belongs on a network that only proxies reach.
//!
//! No root key is needed, because what can be had here is no more than what each key opens anyway: a verdict on that very
//! key. Denials are copied to the end user by the proxy, so they carry no id of ours.

mod caddy;
mod credentials;
mod doors;
mod hold;
mod signature;
mod verdict;

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use http::HeaderMap;
use tokio::runtime::Handle;
use tollkeeper_account::{Answer, Kind};
use tollkeeper_core::{Cost, RequestPath, Signature, Use};
use tollkeeper_decide::{Purpose, Reach, Told, Verified, VerifyAsk};
use tollkeeper_store::Store;

use crate::clock::Stamp;
use crate::http::{Call, Noted, Reply, key_text, note, warm};
use crate::status::{Refusal, Ruling};
use doors::{Doors, Entrance};
use hold::{Held, Holds};

/// Which proxy asks: what it calls the parts of the original request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    Caddy,
}

/// The end user's request, as the proxy tells of it.
#[derive(Debug)]
pub struct Original<'a> {
    /// In upper case.
    method: Cow<'a, str>,
    /// Path and query as they came.
    uri: Cow<'a, str>,
    ip: IpAddr,
}

/// One for all workers.
#[derive(Debug)]
pub struct ForwardAuth {
    doors: Doors,
    holds: Holds,
}

// === impl ForwardAuth ===

impl ForwardAuth {
    pub fn new(store: Store, backstage: Handle) -> Self {
        Self { doors: Doors::new(store, backstage), holds: Holds::default() }
    }

    /// Answers that are being held back for their delay.
    pub fn held(&self) -> u64 {
        self.holds.taken()
    }
}

// === impl Dialect ===

impl Dialect {
    /// A proxy that does not say what was asked for is refused: rules would silently not match.
    fn original(self, headers: &HeaderMap) -> Result<Original<'_>, Refusal> {
        match self {
            Self::Caddy => caddy::original(headers),
        }
    }
}

pub async fn check(dialect: Dialect, mut call: Call<'_>, start: Stamp) -> Reply {
    let decided = decide(dialect, &mut call).await;
    call.app.ledger.page().decisions.observe_ns(Stamp::now().nanos_since(start));
    match decided {
        Err(refusal) => verdict::refused(&call, refusal),
        Ok((answer, place)) if answer.made().passed() => {
            let delay_ms = answer.made().delay_ms;
            if let Some(place) = place.filter(|_| delay_ms > 0) {
                place.wait(delay_ms).await;
            }
            verdict::passed(&Ruling::of(&answer))
        }
        Ok((answer, _)) => verdict::denied(&call, &Ruling::of(&answer)),
    }
}

/// The life of a request up to its answer. Nothing comes between deciding and recording.
async fn decide<'a>(
    dialect: Dialect,
    call: &mut Call<'a>,
) -> Result<(Answer<Box<Verified>>, Option<Held<'a>>), Refusal> {
    let key = credentials::key_of(call.headers)?;
    let original = dialect.original(call.headers)?;
    let entrance = call.app.forward_auth.doors.of(call.headers, call.now).await?;
    call.count(&entrance.caller).await?;
    let hashed = key_text(call, key, &entrance.caller.tenant);
    let app = call.app;
    let room = app.forward_auth.holds.room(&entrance.caller.tenant.id);
    let signature = signature::signature_of(call.headers, &original, &app.keyring);
    let mut ask = VerifyAsk {
        key: Some(hashed),
        waiting: Some(&room),
        ..ask(call.headers, &original, &entrance)
    };
    ask.wanted.signature = signature.as_deref().map(|given| given as &dyn Signature);
    let warm = warm(call, &ask).await?;
    let decided = call.app.decider.verify(warm, call.now);
    let answer = call.app.ledger.record_verified(Kind::Check, decided);
    let noted = Noted {
        tenant_id: &entrance.caller.tenant.id,
        key_text: Some(key),
        external_id: ask.told.external_id,
        ip: ask.wanted.ip,
        method: ask.told.method,
        path: Some(&original.uri),
    };
    note(call, noted, &Ruling::of(&answer));
    drop(ask);
    Ok((answer, room.into_place()))
}

fn ask<'a>(
    headers: &'a HeaderMap,
    original: &'a Original<'_>,
    entrance: &'a Entrance,
) -> VerifyAsk<'a> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    VerifyAsk {
        caller: Arc::clone(&entrance.caller),
        reach: Reach::Tenant,
        key: None,
        wanted: Use {
            ip: Some(original.ip),
            referer: text(http::header::REFERER),
            source: text(http::header::ORIGIN),
            signature: None,
            permissions: None,
        },
        told: Told {
            method: Some(&original.method),
            path: Some(RequestPath::new(&original.uri)),
            ..Told::default()
        },
        projects: entrance.project_id.as_deref().into_iter().collect(),
        limits: Vec::new(),
        cost: Cost::ONE,
        credits: 1,
        purpose: Purpose::Spend,
        bytes: 0,
        once: false,
        at: None,
        waiting: None,
    }
}
