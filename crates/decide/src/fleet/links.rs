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
    /// There is no connection, or not even a question that nobody waits for was answered. One that is slow, or refuses, is
    /// not deaf.
    deaf: bool,
    /// Counted among the troubles.
    counted: bool,
}

/// A server's state, for whoever shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkView {
    pub server: usize,
    pub link: Link,
}

/// Some servers, by their number. One beyond the last that there is room for is in no set.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ServerSet(u64);

// === impl ServerSet ===

impl ServerSet {
    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn insert(&mut self, server: usize) {
        self.0 |= Self::bit(server);
    }

    pub(super) fn contains(self, server: usize) -> bool {
        self.0 & Self::bit(server) != 0
    }

    pub(super) fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    pub(super) fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    fn bit(server: usize) -> u64 {
        u32::try_from(server).ok().and_then(|server| 1_u64.checked_shl(server)).unwrap_or(0)
    }
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

    /// A probe came to nothing after so long.
    pub(super) fn unheard(&self, server: usize, waited_ms: u64, now: Millis) {
        if self.with(server, |server| server.breaker.unheard(waited_ms, now)) {
            tracing::warn!("redis does not answer probes: limits go on by their outage policy");
        }
    }

    /// A probe was answered, however late.
    pub(super) fn heard(&self, server: usize) {
        self.with(server, |server| server.breaker.heard());
    }

    pub(super) fn connected(&self, server: usize, connected: bool, now: Millis) {
        let opened = self.with(server, |server| {
            server.deaf |= !connected;
            server.breaker.connected(connected, now)
        });
        if opened {
            tracing::warn!("redis is away: limits go on by their outage policy");
        }
    }

    /// Something came back from a probe, however late.
    pub(super) fn answered(&self, server: usize) {
        self.with(server, |server| server.deaf = false);
    }

    /// Nothing did.
    pub(super) fn silent(&self, server: usize) {
        self.with(server, |server| server.deaf = true);
    }

    /// Those of so many servers that hear nothing.
    pub(super) fn deaf(&self, servers: usize) -> ServerSet {
        let mut deaf = ServerSet::default();
        // Beyond that two share what is known of either.
        if !self.are_all_up() && servers <= SERVERS_MAX {
            let found = (0..servers).filter(|server| self.with(*server, |server| server.deaf));
            found.for_each(|server| deaf.insert(server));
        }
        deaf
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

    /// It answers again.
    pub(super) fn recovered(&self, server: usize) {
        self.with(server, |server| {
            if server.breaker.is_open() {
                server.breaker.close();
            }
        });
    }

    /// There are only so many servers from now on: nobody looks at the others any more, so none may count as in trouble.
    pub(super) fn forget_from(&self, servers: usize) {
        for gone in servers..SERVERS_MAX {
            self.with(gone, |server| {
                *server = Server { counted: server.counted, ..Server::default() }
            });
        }
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
