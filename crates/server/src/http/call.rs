//! One request on its way through the edge: who asks, when, under which id, and how long the reads took.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use tollkeeper_account::Kind;
use tollkeeper_core::Millis;
use tollkeeper_decide::{RootKey, Tenant};
use tollkeeper_wire::{FieldError, Request, parse};

use super::throttle::TenantStanding;
use super::timing::Timing;
use crate::app::App;
use crate::clock::Stamp;
use crate::ids::RequestId;
use crate::status::Refusal;

#[derive(Debug)]
pub struct Call<'a> {
    pub app: &'a App,
    pub headers: &'a HeaderMap,
    pub body: &'a [u8],
    pub id: RequestId,
    /// Read once, when the request came in; everything in it happens at this moment.
    pub now: Millis,
    /// The same moment, to measure from.
    pub start: Stamp,
    pub timing: Timing,
    /// Who asks, where that is needed more than once.
    caller: Option<Arc<RootKey>>,
    /// Where the caller's tenant stands, if its calls are bounded.
    pub tenant: Option<TenantStanding>,
    /// What is wrong with its headers: nothing is done, and it is told with what is wrong with the body.
    wrong: Vec<FieldError>,
}

// === impl Call ===

impl<'a> Call<'a> {
    pub fn new(
        app: &'a App,
        headers: &'a HeaderMap,
        body: &'a [u8],
        id: RequestId,
        start: Stamp,
    ) -> Self {
        let (now, timing) = (app.clock.at(start), Timing::from(start));
        Self {
            app,
            headers,
            body,
            id,
            now,
            start,
            timing,
            caller: None,
            tenant: None,
            wrong: Vec::new(),
        }
    }

    /// The body as this endpoint takes it, or everything that is wrong with the request. Comes before
    /// authentication, as the contract has it.
    pub fn request<T: Request<'a>>(&self) -> Result<T, Refusal> {
        if self.headers.contains_key(AUTHORIZATION) && self.wrong.is_empty() {
            return parse(self.body).map_err(Refusal::Fields);
        }
        let missing = !self.headers.contains_key(AUTHORIZATION);
        let mut errors: Vec<_> = missing.then(no_authorization).into_iter().collect();
        errors.extend(self.wrong.iter().cloned());
        errors.extend(parse::<T>(self.body).err().into_iter().flatten());
        Err(Refusal::Fields(errors))
    }

    /// From here on the request is refused, once all that is wrong with it is known.
    pub fn is_wrong(&mut self, fault: FieldError) {
        self.wrong.push(fault);
    }

    /// What was read of the body by another way than [`Self::request`], unless the headers are wrong.
    pub fn unless_wrong<T>(&self, read: Result<T, Vec<FieldError>>) -> Result<T, Refusal> {
        if self.wrong.is_empty() {
            return read.map_err(Refusal::Fields);
        }
        let errors = self.wrong.iter().cloned().chain(read.err().into_iter().flatten());
        Err(Refusal::Fields(errors.collect()))
    }

    /// The root key that asks. Its text is hashed here and goes no further.
    pub async fn caller(&mut self) -> Result<Arc<RootKey>, Refusal> {
        if let Some(caller) = &self.caller {
            return Ok(Arc::clone(caller));
        }
        let key_text = self.bearer()?;
        self.timing.restart();
        let hash = self.app.keyring.hash(key_text);
        let (timing, tally) = (&mut self.timing, self.app.ledger.page());
        let mut see = |cache, freshness| timing.note(tally, cache, freshness);
        let found = self.app.decider.root_key(hash, self.now, &mut see).await?;
        let caller = found.ok_or(Refusal::KeyUnknown)?;
        if caller.expires.is_some_and(|expires| expires <= self.now) {
            return Err(Refusal::KeyUnknown);
        }
        if !caller.enabled {
            return Err(Refusal::KeyDisabled);
        }
        if !caller.tenant.enabled {
            return Err(Refusal::TenantDisabled);
        }
        self.count(&caller).await?;
        self.app.ledger.last_used().note_root_key(&caller, self.now);
        Ok(caller)
    }

    /// Whoever asks again gets this one, and is not counted twice.
    pub fn settle_caller(&mut self, caller: &Arc<RootKey>) {
        self.caller = Some(Arc::clone(caller));
    }

    /// Counts one call of the caller's tenant, where somebody set a bound.
    pub async fn count(&mut self, caller: &RootKey) -> Result<(), Refusal> {
        match caller.tenant.requests_per_minute {
            // Boxed, like all that is rare.
            Some(per_minute) => Box::pin(self.count_call(&caller.tenant, per_minute)).await,
            None => Ok(()),
        }
    }

    async fn count_call(&mut self, tenant: &Tenant, per_minute: u64) -> Result<(), Refusal> {
        let warm = self.app.decider.warm_call(tenant, per_minute, self.now).await?;
        let Some(warm) = warm else { return Ok(()) };
        let decided = self.app.decider.limit(warm, self.now);
        let answer = self.app.ledger.record(Kind::Call, decided);
        let outcome = answer.made().limits.first().map(|one| one.outcome);
        self.tenant = outcome.map(|outcome| TenantStanding::new(outcome, answer.at()));
        self.tenant.and_then(|standing| standing.refusal()).map_or(Ok(()), Err)
    }

    fn bearer(&self) -> Result<&'a [u8], Refusal> {
        let mut lines = self.headers.get_all(AUTHORIZATION).iter();
        let header = lines.next().ok_or_else(no_authorization)?.as_bytes();
        // Somebody on the way may have believed the other one.
        if lines.any(|other| other.as_bytes() != header) {
            return Err(Refusal::AuthAmbiguous);
        }
        let (scheme, key) = header.split_at_checked(7).ok_or(Refusal::AuthMalformed)?;
        let key = key.trim_ascii();
        if !scheme.eq_ignore_ascii_case(b"bearer ") || key.is_empty() {
            return Err(Refusal::AuthMalformed);
        }
        Ok(key)
    }
}

/// Refuses a caller without the permission `resource.<id|*>.action`.
pub fn permit(caller: &RootKey, resource: &str, id: &str, action: &str) -> Result<(), Refusal> {
    if caller.permissions.allow(resource, id, action) {
        return Ok(());
    }
    Err(Refusal::Forbidden { needs: format!("{resource}.{id}.{action}") })
}

fn no_authorization() -> FieldError {
    FieldError::new(
        "header.Authorization",
        "Is missing.",
        "Send `Authorization: Bearer <root key>`; the server printed its root key at its first start.",
    )
}
