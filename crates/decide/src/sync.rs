//! The locks and atomics of the cell table: the standard library's, or shuttle's when a test drives the schedule.

#[cfg(not(feature = "shuttle"))]
pub(crate) use std::sync::{
    Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::sync::{
    Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// Takes the lock also after a panic elsewhere: every step leaves a cell whole,
/// and a counter that is off by one request beats a node that answers nothing.
#[cfg(not(feature = "shuttle"))]
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => wait_for(mutex),
    }
}

#[cfg(feature = "shuttle")]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Tries for a lock before one sleeps for it: 248 pauses in all, some ten microseconds.
/// A step holds it for a tenth of one, and to sleep and be woken takes several.
#[cfg(not(feature = "shuttle"))]
const TRIES: u32 = 5;

/// Waits awake for as long as a lock is usually held. The pauses begin at eight and double, so that whoever has the
/// lock and the cell in its cache can take some steps before both move to another core.
#[cfg(not(feature = "shuttle"))]
#[cold]
fn wait_for<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    for tries in 0..TRIES {
        (0..8 << tries).for_each(|_| std::hint::spin_loop());
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {}
        }
    }
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(std::sync::PoisonError::into_inner)
}
