//! Whether limits are shared: for the whole fleet or one tenant, changed at run time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

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
    /// When somebody last went the other way.
    joined_redis: AtomicU64,
}

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
            joined_redis: AtomicU64::new(0),
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
        let steps: Vec<(Mode, Mode)> = known
            .chain(tenants.keys().cloned())
            .map(|id| (self.of(&id), tenants.get(&id).copied().unwrap_or(fleet)))
            .chain([(self.of_fleet(), fleet)])
            .collect();
        if steps.iter().any(|(from, to)| *from == Mode::Redis && *to != Mode::Redis) {
            self.left_redis.store(now.0, Ordering::Relaxed);
        }
        if steps.contains(&(Mode::Memory, Mode::Redis)) {
            self.joined_redis.store(now.0, Ordering::Relaxed);
        }
        self.set(fleet, tenants);
    }

    /// When shared limits were last given up for those of each node, by anybody.
    pub fn left_redis(&self) -> Option<Millis> {
        Some(self.left_redis.load(Ordering::Relaxed)).filter(|at| *at > 0).map(Millis)
    }

    /// When memory was last given up for shared limits, by anybody. Not by the way of shadow: there Redis was told.
    pub fn joined_redis(&self) -> Option<Millis> {
        Some(self.joined_redis.load(Ordering::Relaxed)).filter(|at| *at > 0).map(Millis)
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
    fn every_way_out_of_redis_and_the_direct_way_into_it_are_remembered() {
        let modes = Modes::new(Mode::Memory);
        modes.change(Mode::Shadow, HashMap::new(), Millis(1));
        modes.change(Mode::Redis, HashMap::new(), Millis(1));
        assert_eq!(modes.joined_redis(), None);
        modes.change(Mode::Shadow, HashMap::new(), Millis(2));
        modes.change(Mode::Memory, HashMap::new(), Millis(3));
        assert_eq!(modes.left_redis(), Some(Millis(2)));
        modes.change(Mode::Memory, own(Mode::Redis), Millis(4));
        assert_eq!((modes.left_redis(), modes.joined_redis()), (Some(Millis(2)), Some(Millis(4))));
        modes.change(Mode::Memory, HashMap::new(), Millis(5));
        assert_eq!(modes.left_redis(), Some(Millis(5)), "a tenant that is like the fleet again");
        modes.change(Mode::Redis, HashMap::new(), Millis(6));
        modes.change(Mode::Memory, HashMap::new(), Millis(7));
        assert_eq!(modes.left_redis(), Some(Millis(7)));
    }
}
