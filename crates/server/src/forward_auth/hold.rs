//! Answers that are held back: a throttled request may pass, but only after its delay, and a proxy cannot wait by itself.
//! A place to wait in is taken before anything is spent, so that who finds none is refused and not counted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tollkeeper_decide::WaitingRoom;

/// Each one holds a connection of the proxy's; beyond this, waiting would be what takes the node down.
const HELD_MAX: usize = 2_000;

/// One for all workers. A tenant may take a place as long as it has fewer than are still free: alone half of them, and
/// however many tenants take what they can get, the next one finds some.
#[derive(Debug, Default)]
pub struct Holds(Mutex<Taken>);

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// Only of those who have any.
    by_tenant: HashMap<Arc<str>, usize>,
}

/// One request's way to a place: asked for by the first rule that may have it wait, and taken once.
#[derive(Debug)]
pub struct Room<'h, 't> {
    holds: &'h Holds,
    tenant_id: &'t Arc<str>,
    place: OnceLock<Option<Held<'h>>>,
}

/// A place among those who wait; free again when it is dropped, also because the client left.
#[derive(Debug)]
pub struct Held<'h> {
    holds: &'h Holds,
    tenant_id: Arc<str>,
}

// === impl Holds ===

impl Holds {
    pub fn taken(&self) -> u64 {
        self.lock().all as u64
    }

    pub fn room<'t>(&self, tenant_id: &'t Arc<str>) -> Room<'_, 't> {
        Room { holds: self, tenant_id, place: OnceLock::new() }
    }

    fn take(&self, tenant_id: &Arc<str>) -> Option<Held<'_>> {
        let mut taken = self.lock();
        let own = taken.by_tenant.get(tenant_id).copied().unwrap_or(0);
        if own >= HELD_MAX - taken.all {
            return None;
        }
        taken.all += 1;
        taken.by_tenant.insert(Arc::clone(tenant_id), own + 1);
        Some(Held { holds: self, tenant_id: Arc::clone(tenant_id) })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Room ===

impl<'h> Room<'h, '_> {
    /// The place, if one was asked for and there was one.
    pub fn into_place(self) -> Option<Held<'h>> {
        self.place.into_inner().flatten()
    }
}

impl WaitingRoom for Room<'_, '_> {
    fn has_place(&self) -> bool {
        self.place.get_or_init(|| self.holds.take(self.tenant_id)).is_some()
    }
}

// === impl Held ===

impl Held<'_> {
    /// Keeps the place for so long.
    pub async fn wait(self, delay_ms: u64) {
        pause(delay_ms).await;
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut taken = self.holds.lock();
        taken.all -= 1;
        if let Some(own) = taken.by_tenant.get_mut(&self.tenant_id) {
            *own -= 1;
            if *own == 0 {
                taken.by_tenant.remove(&self.tenant_id);
            }
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "what is waited for is time itself: the delay")]
async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill<'a>(holds: &'a Holds, tenant: &str) -> Vec<Held<'a>> {
        let tenant = Arc::from(tenant);
        std::iter::from_fn(|| holds.take(&tenant)).collect()
    }

    #[test]
    fn no_tenant_can_take_the_places_of_all_others() {
        let holds = Holds::default();
        let greedy = fill(&holds, "greedy");
        assert_eq!(greedy.len(), HELD_MAX / 2);
        let mut all = vec![greedy];
        for (place, least) in [500, 250, 125, 62, 31].into_iter().enumerate() {
            let next = fill(&holds, &format!("tenant {place}"));
            assert!(next.len() >= least, "{} of {least}", next.len());
            all.push(next);
        }
        assert!(holds.taken() <= HELD_MAX as u64);
        drop(all);
        assert_eq!(holds.taken(), 0);
        assert!(holds.lock().by_tenant.is_empty(), "nobody is remembered who has no place");
    }

    #[test]
    fn a_request_takes_one_place_however_many_rules_may_have_it_wait() {
        let (holds, tenant) = (Holds::default(), Arc::from("tenant"));
        let room = holds.room(&tenant);
        assert_eq!(holds.taken(), 0, "who meets no such rule takes none");
        assert!(room.has_place() && room.has_place());
        assert_eq!(holds.taken(), 1);
        drop(room.into_place());
        assert_eq!(holds.taken(), 0);
        let full = fill(&holds, "tenant");
        let none = holds.room(&tenant);
        assert!(!none.has_place());
        drop(full);
        assert!(!none.has_place(), "what a request was told does not change while it is decided");
    }
}
