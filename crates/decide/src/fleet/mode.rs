//! Whether limits are shared: for the whole fleet or one tenant, changed at run time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use tollkeeper_core::Millis;

use crate::lease::Consistency;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Every limit is this node's own.
    Memory,
    /// Decided as in memory; the origin is asked beside it, and disagreement is counted.
    Shadow,
    /// Each limit as it says.
    #[default]
    Redis,
}

#[derive(Debug)]
pub struct Modes {
    fleet: AtomicU8,
    differs: AtomicBool,
    tenants: RwLock<HashMap<Arc<str>, Mode>>,
    /// When somebody last went from shared limits to memory or shadow; 0: never.
    left_redis: AtomicU64,
    /// When memory was last given up for shadow or shared limits, by the fleet; 0: never.
    left_memory: AtomicU64,
    /// And by those of the tenants that did so at another time.
    apart: RwLock<HashMap<Arc<str>, u64>>,
    any_apart: AtomicBool,
}

/// Tenants that once had a mode of their own and no longer have, of which it is kept when memory was given up for them. It
/// matters until the windows of that moment are over; beyond so many they are forgotten, and go by the fleet.
const APART_MAX: usize = 10_000;

// === impl Mode ===

impl Mode {
    pub fn word(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Shadow => "shadow",
            Self::Redis => "redis",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Memory, Self::Shadow, Self::Redis].into_iter().find(|mode| mode.word() == word)
    }

    fn of(number: u8) -> Self {
        match number {
            0 => Self::Memory,
            1 => Self::Shadow,
            _ => Self::Redis,
        }
    }
}

// === impl Modes ===

impl Modes {
    pub fn new(mode: Mode) -> Self {
        Self {
            fleet: AtomicU8::new(mode as u8),
            differs: AtomicBool::new(false),
            tenants: RwLock::default(),
            left_redis: AtomicU64::new(0),
            left_memory: AtomicU64::new(0),
            apart: RwLock::default(),
            any_apart: AtomicBool::new(false),
        }
    }

    /// What counts for this tenant.
    pub fn of(&self, tenant_id: &str) -> Mode {
        if self.differs.load(Ordering::Relaxed) {
            let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(mode) = tenants.get(tenant_id) {
                return *mode;
            }
        }
        self.of_fleet()
    }

    pub fn of_fleet(&self) -> Mode {
        Mode::of(self.fleet.load(Ordering::Relaxed))
    }

    /// Those that differ from the fleet's, by tenant id, in order.
    pub fn of_tenants(&self) -> Vec<(Arc<str>, Mode)> {
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = tenants.iter().map(|(id, mode)| (Arc::clone(id), *mode)).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// Nobody has anything to do with the origin.
    pub fn are_all_memory(&self) -> bool {
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        self.of_fleet() == Mode::Memory && tenants.values().all(|mode| *mode == Mode::Memory)
    }

    /// Takes the modes as they are stored, at run time.
    pub fn change(&self, fleet: Mode, tenants: HashMap<Arc<str>, Mode>, now: Millis) {
        let known = self.of_tenants().into_iter().map(|(id, _)| id);
        let steps: HashMap<Arc<str>, (Mode, Mode)> = known
            .chain(tenants.keys().cloned())
            .chain(self.apart().keys().cloned())
            .map(|id| {
                let step = (self.of(&id), tenants.get(&id).copied().unwrap_or(fleet));
                (id, step)
            })
            .collect();
        let of_fleet = (self.of_fleet(), fleet);
        let leaves_redis = |(from, to)| from == Mode::Redis && to != Mode::Redis;
        if steps.values().copied().chain([of_fleet]).any(leaves_redis) {
            self.left_redis.store(now.0, Ordering::Relaxed);
        }
        self.note_left_memory(&steps, of_fleet, &tenants, now);
        self.set(fleet, tenants);
    }

    fn note_left_memory(
        &self,
        steps: &HashMap<Arc<str>, (Mode, Mode)>,
        of_fleet: (Mode, Mode),
        own: &HashMap<Arc<str>, Mode>,
        now: Millis,
    ) {
        let leaves = |(from, to)| from == Mode::Memory && to != Mode::Memory;
        let before = self.left_memory.load(Ordering::Relaxed);
        let after = if leaves(of_fleet) { now.0 } else { before };
        let mut apart = self.apart.write().unwrap_or_else(PoisonError::into_inner);
        for (id, step) in steps {
            let kept = apart.get(id).copied().unwrap_or(before);
            apart.insert(Arc::clone(id), if leaves(*step) { now.0 } else { kept });
        }
        apart.retain(|id, at| own.contains_key(id) || *at != after);
        if apart.len() > own.len() + APART_MAX {
            apart.retain(|id, _| own.contains_key(id));
        }
        self.any_apart.store(!apart.is_empty(), Ordering::Relaxed);
        self.left_memory.store(after, Ordering::Relaxed);
    }

    fn apart(&self) -> RwLockReadGuard<'_, HashMap<Arc<str>, u64>> {
        self.apart.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// When shared limits were last given up for those of each node, by anybody.
    pub fn left_redis(&self) -> Option<Millis> {
        Some(self.left_redis.load(Ordering::Relaxed)).filter(|at| *at > 0).map(Millis)
    }

    /// When memory was last given up for this tenant, for shadow or for shared limits: of what was admitted before, Redis was
    /// not told.
    pub fn left_memory(&self, tenant_id: &str) -> Option<Millis> {
        let of_fleet = || self.left_memory.load(Ordering::Relaxed);
        let at = if self.any_apart.load(Ordering::Relaxed) {
            self.apart().get(tenant_id).copied().unwrap_or_else(of_fleet)
        } else {
            of_fleet()
        };
        Some(at).filter(|at| *at > 0).map(Millis)
    }

    /// Takes the modes as they are stored.
    pub fn set(&self, fleet: Mode, tenants: HashMap<Arc<str>, Mode>) {
        self.differs.store(!tenants.is_empty(), Ordering::Relaxed);
        *self.tenants.write().unwrap_or_else(PoisonError::into_inner) = tenants;
        self.fleet.store(fleet as u8, Ordering::Relaxed);
    }

    /// How a limit of this tenant is counted, where it asks for `wanted`.
    pub fn consistency(&self, tenant_id: &str, wanted: Option<Consistency>) -> Consistency {
        match self.of(tenant_id) {
            Mode::Redis => wanted.unwrap_or_default(),
            Mode::Memory | Mode::Shadow => Consistency::Local,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(mode: Mode) -> HashMap<Arc<str>, Mode> {
        HashMap::from([("ten_1".into(), mode)])
    }

    #[test]
    fn a_tenant_without_a_mode_of_its_own_has_the_fleets() {
        let modes = Modes::new(Mode::Redis);
        modes.set(Mode::Shadow, own(Mode::Memory));
        assert_eq!((modes.of("ten_1"), modes.of("ten_2")), (Mode::Memory, Mode::Shadow));
        assert_eq!(modes.of_tenants(), [("ten_1".into(), Mode::Memory)]);
        assert!(!modes.are_all_memory());
        modes.set(Mode::Memory, HashMap::new());
        assert_eq!(modes.of("ten_1"), Mode::Memory);
        assert!(modes.are_all_memory());
        modes.set(Mode::Memory, own(Mode::Shadow));
        assert!(!modes.are_all_memory());
    }

    #[test]
    fn every_way_out_of_redis_and_out_of_memory_is_remembered() {
        let modes = Modes::new(Mode::Memory);
        assert_eq!(modes.left_memory("ten_1"), None);
        modes.change(Mode::Shadow, HashMap::new(), Millis(1));
        modes.change(Mode::Redis, HashMap::new(), Millis(2));
        assert_eq!((modes.left_redis(), modes.left_memory("ten_1")), (None, Some(Millis(1))));
        modes.change(Mode::Shadow, HashMap::new(), Millis(3));
        modes.change(Mode::Memory, HashMap::new(), Millis(4));
        assert_eq!(modes.left_redis(), Some(Millis(3)));
        modes.change(Mode::Memory, own(Mode::Redis), Millis(5));
        assert_eq!(modes.left_redis(), Some(Millis(3)));
        modes.change(Mode::Memory, HashMap::new(), Millis(6));
        assert_eq!(modes.left_redis(), Some(Millis(6)), "a tenant that is like the fleet again");
        modes.change(Mode::Redis, HashMap::new(), Millis(7));
        assert_eq!(modes.left_memory("ten_1"), Some(Millis(7)));
        modes.change(Mode::Memory, HashMap::new(), Millis(8));
        assert_eq!(modes.left_redis(), Some(Millis(8)));
    }

    #[test]
    fn when_a_tenant_left_memory_is_its_own_and_not_the_fleets() {
        let modes = Modes::new(Mode::Memory);
        let left = |id: &str| modes.left_memory(id).map(|at| at.0);
        modes.change(Mode::Memory, own(Mode::Shadow), Millis(1));
        assert_eq!((left("ten_1"), left("ten_2")), (Some(1), None));
        modes.change(Mode::Shadow, own(Mode::Shadow), Millis(2));
        assert_eq!((left("ten_1"), left("ten_2")), (Some(1), Some(2)), "it had left before");
        modes.change(Mode::Shadow, HashMap::new(), Millis(3));
        assert_eq!((left("ten_1"), left("ten_2")), (Some(1), Some(2)), "also without a row");
        modes.change(Mode::Shadow, own(Mode::Memory), Millis(4));
        modes.change(Mode::Redis, own(Mode::Memory), Millis(5));
        assert_eq!((left("ten_1"), left("ten_2")), (Some(1), Some(2)));
        modes.change(Mode::Redis, HashMap::new(), Millis(6));
        assert_eq!((left("ten_1"), left("ten_2")), (Some(6), Some(2)), "back to the fleet's");
        modes.change(Mode::Memory, HashMap::new(), Millis(7));
        modes.change(Mode::Redis, HashMap::new(), Millis(8));
        assert_eq!((left("ten_1"), left("ten_2")), (Some(8), Some(8)));
        assert!(modes.apart().is_empty(), "nobody is told apart who need not be");
    }
}
