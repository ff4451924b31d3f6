//! How each server of the origin is doing. Read on every request, so that a healthy fleet costs one load.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tollkeeper_core::Millis;

use super::breaker::Breaker;
use crate::lease::Link;

/// More servers than anybody shards limits over; beyond it two share a breaker.
const SERVERS_MAX: usize = 64;

/// A server that was seen learning is taken to be at it for so long; then somebody asks again.
const LEARNING_MS: u64 = 250;

#[derive(Debug)]
pub(super) struct Links {
    servers: Vec<Mutex<Server>>,
    /// Servers that are not up.
    troubles: AtomicU64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Server {
    breaker: Breaker,
    learning_until: Millis,
    /// A call was told that it learns, and nobody has looked into it since.
    seen_learning: bool,
    /// Counted among the troubles.
    counted: bool,
}

/// A server's state, for whoever shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkView {
    pub server: usize,
    pub link: Link,
}

// === impl Links ===

impl Default for Links {
    fn default() -> Self {
        Self {
            servers: (0..SERVERS_MAX).map(|_| Mutex::default()).collect(),
            troubles: AtomicU64::new(0),
        }
    }
}

impl Links {
    pub(super) fn are_all_up(&self) -> bool {
        self.troubles.load(Ordering::Relaxed) == 0
    }

    pub(super) fn link(&self, server: usize, now: Millis) -> Link {
        self.with(server, |server| server.link(now))
    }

    pub(super) fn note(&self, server: usize, answered: bool, now: Millis) {
        let opened = self.with(server, |server| server.breaker.note(answered, now));
        if opened {
            tracing::warn!("redis does not answer in time: limits go on by their outage policy");
        }
    }

    pub(super) fn hangs(&self, server: usize) {
        if self.with(server, |server| server.breaker.hangs()) {
            tracing::warn!("redis does not answer a probe: limits go on by their outage policy");
        }
    }

    pub(super) fn connected(&self, server: usize, connected: bool, now: Millis) {
        let opened = self.with(server, |server| server.breaker.connected(connected, now));
        if opened {
            tracing::warn!("redis is away: limits go on by their outage policy");
        }
    }

    pub(super) fn learning(&self, server: usize, now: Millis) {
        self.with(server, |server| {
            server.learning_until = now + LEARNING_MS;
            server.seen_learning = true;
        });
    }

    /// Was any call told since the last time that it learns?
    pub(super) fn was_learning(&self, server: usize) -> bool {
        self.with(server, |server| std::mem::take(&mut server.seen_learning))
    }

    /// It answers again. True when it was away.
    pub(super) fn recovered(&self, server: usize) -> bool {
        self.with(server, |server| {
            let was_open = server.breaker.is_open();
            if was_open {
                server.breaker.close();
            }
            was_open
        })
    }

    pub(super) fn view(&self, server: usize, now: Millis) -> LinkView {
        LinkView { server, link: self.link(server, now) }
    }

    fn with<T>(&self, server: usize, then: impl FnOnce(&mut Server) -> T) -> T {
        let lock = &self.servers[server % SERVERS_MAX];
        let mut server = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let result = then(&mut server);
        let trouble = server.breaker.is_open() || server.learning_until > Millis(0);
        if trouble != server.counted {
            server.counted = trouble;
            let by = if trouble { 1 } else { u64::MAX };
            self.troubles.fetch_add(by, Ordering::Relaxed);
        }
        result
    }
}

// === impl Server ===

impl Server {
    fn link(&mut self, now: Millis) -> Link {
        if self.breaker.is_open() {
            return Link::Away;
        }
        if self.learning_until > now {
            return Link::Learning;
        }
        self.learning_until = Millis(0);
        Link::Up
    }
}
