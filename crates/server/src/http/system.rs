//! `system.*`: where limits are counted, and how this server is doing. A tenant is told of itself and of what
//! concerns everybody, never of other tenants and never where servers stand.

use std::time::Duration;

use tokio::time::timeout;
use tollkeeper_decide::{Link, Mode, RootKey};
use tollkeeper_store::Thing;
use tollkeeper_wire as wire;

use super::call::{Call, permit};
use super::desk::{self, Author, reply};
use super::reply::Reply;
use super::route::SystemCall;
use super::stored::owned;
use crate::app::App;
use crate::fleet::Shared;
use crate::skew::Skew;
use crate::status::Refusal;

/// Who asks how things are wants to hear it also when the store is what is wrong.
const STORE_PATIENCE: Duration = Duration::from_millis(500);

pub async fn handle(which: SystemCall, call: &mut Call<'_>) -> Result<Reply, Refusal> {
    match which {
        SystemCall::SetMode => set_mode(call).await,
        SystemCall::Status => status(call).await,
    }
}

async fn set_mode(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::SetModeRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "system", "*", "setMode")?;
    let tenant_id = owned(request.tenant.as_ref());
    match &tenant_id {
        None if !caller.operator => return Err(Refusal::OperatorOnly),
        None if request.mode.is_none() => return Err(Refusal::Fields(vec![no_fleet_to_follow()])),
        Some(id) if !caller.operator && **id != *caller.tenant.id => {
            return Err(Refusal::not_found(Thing::Tenant, id));
        }
        _ => {}
    }
    let mode = request.mode.map(stored_mode);
    if mode.is_some_and(|mode| mode != Mode::Memory) && call.app.shared.is_none() {
        return Err(Refusal::Precondition(
            "This server has no Redis: start it with TOLLKEEPER_REDIS_URL first. Until then limits are counted in memory.",
        ));
    }
    let author = Author::new(call, &caller);
    desk::write(call, |store| async move {
        store.set_mode(author.by(), tenant_id.as_deref(), mode).await
    })
    .await?;
    Ok(reply(call, wire::Empty {}))
}

fn no_fleet_to_follow() -> wire::FieldError {
    let fix = "Send `memory`, `shadow` or `redis`, or name a `tenant` that is to be like the fleet again.";
    wire::FieldError::new("body.mode", "Is null, and no tenant is named.", fix)
}

async fn status(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let _: wire::StatusRequest = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "system", "*", "status")?;
    let app = call.app;
    let revision = app.store.clone();
    let asked = desk::read(call, |_| async move {
        Ok(timeout(STORE_PATIENCE, revision.current_revision()).await)
    });
    let newest = asked.await?.ok().and_then(Result::ok);
    let answers = newest.is_some();
    let shared = app.shared.as_ref();
    let seen = Seen { app, caller: &caller };
    Ok(reply(
        call,
        wire::StatusReply {
            version: env!("CARGO_PKG_VERSION").into(),
            node: (&*app.node).into(),
            mode: shared
                .map_or(wire::Mode::Memory, |shared| shown_mode(shared.fleet.modes.of_fleet())),
            tenants: seen.tenants(),
            redis: shared.map(|shared| seen.servers(shared)).unwrap_or_default(),
            database: wire::DatabaseStatus {
                kind: app.database,
                answers,
                writes: answers && !app.store.refuses_writes(),
            },
            cells: seen.cells(),
            keys_cached: app.decider.keys_cached() as u64,
            degraded: !answers || app.is_degraded(call.now),
            peers: shared.map_or(0, |shared| shared.fleet.table().nodes().saturating_sub(1)),
            lag: newest.map(|newest| newest.saturating_sub(app.followed.reached())),
            rollback: app.rollback.is_on(),
            shadow: seen.shadow(),
        },
    ))
}

/// What one caller may see of this server.
struct Seen<'a> {
    app: &'a App,
    caller: &'a RootKey,
}

// === impl Seen ===

impl Seen<'_> {
    fn tenants(&self) -> Vec<wire::TenantMode<'static>> {
        let Some(shared) = &self.app.shared else { return Vec::new() };
        let own = |id: &str| self.caller.operator || *id == *self.caller.tenant.id;
        let differing = shared.fleet.modes.of_tenants().into_iter().filter(|(id, _)| own(id));
        let row = |(tenant, mode): (std::sync::Arc<str>, Mode)| wire::TenantMode {
            tenant: tenant.to_string().into(),
            mode: shown_mode(mode),
        };
        differing.map(row).collect()
    }

    fn servers(&self, shared: &Shared) -> Vec<wire::RedisServer<'static>> {
        let links = shared.fleet.links();
        let link_of = |server: usize| links.iter().find(|view| view.server == server);
        let shown = |view: tollkeeper_redis::ServerView| {
            // One without any cells has no place among those that are asked, and nothing is known of it but this.
            let server = shared.origin.place_of(view.address.as_ref());
            let skew = server.and_then(|server| shared.skew(server));
            let idle = if view.connected { wire::Link::Up } else { wire::Link::Away };
            wire::RedisServer {
                address: view
                    .address
                    .filter(|_| self.caller.operator)
                    .map(|at| at.to_string().into()),
                connected: view.connected,
                link: server.and_then(link_of).map_or(idle, |view| shown_link(view.link)),
                clock: skew.map(shown_clock),
                clock_skew_ms: skew.map(|skew| skew.ahead_ms.unsigned_abs()),
            }
        };
        shared.origin.redis().servers().into_iter().map(shown).collect()
    }

    fn cells(&self) -> u64 {
        let shared =
            self.app.shared.as_ref().map_or(0, |shared| shared.fleet.table().stats().cells);
        (self.app.decider.cells().stats().live + shared) as u64
    }

    fn shadow(&self) -> Vec<wire::ShadowLine<'static>> {
        let Some(shared) = &self.app.shared else { return Vec::new() };
        let prefix = format!("{}/", self.caller.tenant.slug);
        let own = |limit: &str| self.caller.operator || limit.starts_with(&prefix);
        let lines = shared.fleet.shadowed.read().into_iter().filter(|(limit, _)| own(limit));
        let line = |(limit, agreement): (String, tollkeeper_decide::Agreement)| wire::ShadowLine {
            limit: limit.into(),
            compared: agreement.compared,
            stricter: agreement.stricter,
            looser: agreement.looser,
        };
        lines.map(line).collect()
    }
}

fn stored_mode(mode: wire::Mode) -> Mode {
    match mode {
        wire::Mode::Memory => Mode::Memory,
        wire::Mode::Shadow => Mode::Shadow,
        wire::Mode::Redis => Mode::Redis,
    }
}

fn shown_mode(mode: Mode) -> wire::Mode {
    match mode {
        Mode::Memory => wire::Mode::Memory,
        Mode::Shadow => wire::Mode::Shadow,
        Mode::Redis => wire::Mode::Redis,
    }
}

fn shown_clock(skew: Skew) -> wire::ClockStand {
    match skew.ahead_ms {
        _ if !skew.matters() => wire::ClockStand::Agrees,
        1.. => wire::ClockStand::Ahead,
        _ => wire::ClockStand::Behind,
    }
}

fn shown_link(link: Link) -> wire::Link {
    match link {
        Link::Up => wire::Link::Up,
        Link::Away => wire::Link::Away,
        Link::Learning => wire::Link::Learning,
    }
}
