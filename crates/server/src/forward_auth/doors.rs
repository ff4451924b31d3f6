//! Whose door the proxy stands at: the project that it names in `X-Tollkeeper-Project`, or the only tenant there is.
//! Found near after the first request. Whether a key opens it is never asked here.

use std::sync::Arc;

use http::HeaderMap;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tollkeeper_core::{Millis, Permissions};
use tollkeeper_decide::{Due, Lifetime, Loading, Near, OriginError, RootKey, Swr};
use tollkeeper_store::{Door, DoorFound, Store};

use crate::status::Refusal;

const PROJECT: &str = "x-tollkeeper-project";
/// Longer than `tenant/slug` and every id.
const NAME_BYTES_MAX: usize = 160;
/// More than the proxies of any server name. Names that nobody has are kept apart from those.
const DOORS_MAX: usize = 4_096;
/// Whether a key is good is said by its own record, which follows changes within a second; a door only says whose keys
/// count. A project that was renamed or deleted is known by that name for so long.
const LIFETIME: Lifetime = Lifetime { fresh_ms: 2_000, stale_ms: 60_000 };
/// A proxy that hands on whatever its clients put into the header must not keep the database busy.
const LOADS_MAX: usize = 8;

#[derive(Debug)]
pub struct Doors {
    /// By what the proxy calls it; empty: by nothing.
    near: Arc<Swr<Box<str>, Found>>,
    store: Store,
    backstage: Handle,
    loads: Arc<Semaphore>,
}

/// A door as a request goes through it.
#[derive(Debug)]
pub struct Entrance {
    /// Nobody's key acts here: the tenant whose door it is asks about its own keys, and may do nothing else.
    pub caller: Arc<RootKey>,
    /// Only keys of this project count; absent: all of the tenant's.
    pub project_id: Option<Arc<str>>,
}

/// What is known under a name.
#[derive(Clone, Debug)]
enum Found {
    One(Arc<Entrance>),
    Several,
}

// === impl Doors ===

impl Doors {
    pub fn new(store: Store, backstage: Handle) -> Self {
        let near = Arc::new(Swr::new(DOORS_MAX, DOORS_MAX, LIFETIME));
        Self { near, store, backstage, loads: Arc::new(Semaphore::new(LOADS_MAX)) }
    }

    pub async fn of(&self, headers: &HeaderMap, now: Millis) -> Result<Arc<Entrance>, Refusal> {
        let name = name_of(headers)?;
        match self.find(name, now).await? {
            Some(Found::One(entrance)) => Ok(entrance),
            Some(Found::Several) if name.is_empty() => Err(Refusal::DoorUnnamed),
            Some(Found::Several) => Err(Refusal::DoorAmbiguous(name.to_owned())),
            None => Err(Refusal::DoorUnknown(name.to_owned())),
        }
    }

    async fn find(&self, name: &str, now: Millis) -> Result<Option<Found>, OriginError> {
        match self.near.near(name, now) {
            Near::Known(found) => Ok(found),
            Near::Due(found) => {
                self.renew(name, now);
                Ok(Some(found))
            }
            Near::Stale { value, renew } => {
                if renew {
                    self.renew(name, now);
                }
                Ok(Some(value))
            }
            Near::Unknown => self.near.fetch(name.into(), now, || self.load(name)).await,
        }
    }

    fn renew(&self, name: &str, now: Millis) {
        let (near, load, name) = (Arc::clone(&self.near), self.load(name), Box::from(name));
        self.backstage.spawn(async move { near.renew(name, now, load).await });
    }

    /// On threads that answer no requests, and to its end also when the client leaves.
    fn load(&self, name: &str) -> Loading<Option<Found>> {
        let Ok(turn) = Arc::clone(&self.loads).try_acquire_owned() else {
            return Box::pin(async { Err(OriginError::Spared) });
        };
        let finding =
            if name.is_empty() { self.store.only_door() } else { self.store.door_of_project(name) };
        let running = self.backstage.spawn(async move {
            let found = finding.await;
            drop(turn);
            found
        });
        Box::pin(async move {
            Ok(match running.await.map_err(OriginError::new)?? {
                DoorFound::One(door) => Some(Found::One(Arc::new(door.into()))),
                DoorFound::Several => Some(Found::Several),
                DoorFound::None => None,
            })
        })
    }
}

// === impl Entrance ===

impl From<Door> for Entrance {
    fn from(door: Door) -> Self {
        let caller = RootKey {
            id: "forward_auth".into(),
            tenant: door.tenant,
            permissions: Permissions::default(),
            enabled: true,
            expires: None,
            operator: false,
            noted: Due::default(),
        };
        Self { caller: Arc::new(caller), project_id: door.project_id }
    }
}

/// Two of them are one too many: the second would be a client's.
fn name_of(headers: &HeaderMap) -> Result<&str, Refusal> {
    let mut given = headers.get_all(PROJECT).iter();
    let Some(first) = given.next() else { return Ok("") };
    let name = first.to_str().ok().filter(|name| name.len() <= NAME_BYTES_MAX);
    match (name, given.next()) {
        (Some(name), None) => Ok(name.trim()),
        _ => Err(Refusal::DoorUnnamed),
    }
}
