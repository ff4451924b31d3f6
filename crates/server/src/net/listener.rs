//! The listener: accepts, counts, and hands over. It never reads a byte.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;

use super::gauges::Gauges;
use super::turned_away::TurnedAway;
use super::worker::Workers;
use crate::app::Readiness;

/// How long to hold back after an accept failed for lack of resources; trying harder would only burn a core.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Clients that the kernel keeps for us until they are accepted. Beyond it a connect is silently dropped and tried
/// again after a second, so a short rush must fit. The kernel cuts this to its own bound.
const BACKLOG: u32 = 4096;

/// How long a server that is told to end still answers new connections, with `/readyz` saying 503: one look of
/// an attentive load balancer.
const FAREWELL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    max: u64,
    gauges: Arc<Gauges>,
}

#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error(
        "{at} is in use by another program: stop it, or choose another address with TOLLKEEPER_HTTP_LISTEN \
         (`tollkeeper doctor` says who answers there)"
    )]
    Taken { at: SocketAddr },
    #[error("cannot listen on {at}: choose an address of this machine with TOLLKEEPER_HTTP_LISTEN")]
    Impossible { at: SocketAddr, source: io::Error },
}

// === impl Listener ===

impl Listener {
    pub fn bind(at: SocketAddr, max: u64, gauges: Arc<Gauges>) -> Result<Self, ListenError> {
        match listen(at) {
            Ok(socket) => Ok(Self { socket, max, gauges }),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                Err(ListenError::Taken { at })
            }
            Err(source) => Err(ListenError::Impossible { at, source }),
        }
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Accepts until told to stop, and a moment longer: first it is said that no traffic should come,
    /// then none is taken.
    pub async fn run(
        self,
        workers: &Workers,
        readiness: &Readiness,
        turned_away: &TurnedAway,
        mut stop: watch::Receiver<bool>,
    ) {
        tokio::select! {
            () = self.accept(workers, turned_away) => {}
            _ = stop.changed() => {}
        }
        readiness.set(false);
        let _ = tokio::time::timeout(FAREWELL, self.accept(workers, turned_away)).await;
    }

    /// Over the cap a connection is closed at once, and counted.
    async fn accept(&self, workers: &Workers, turned_away: &TurnedAway) {
        let mut turn = 0;
        loop {
            let accepted = self.socket.accept().await;
            let Ok((socket, _)) = accepted else {
                pause().await;
                continue;
            };
            let Some(place) = self.gauges.enter(self.max) else {
                // Into an empty send buffer, so without waiting; a client that is still sending may not see it.
                let _ = socket.try_write(&turned_away.reply());
                continue;
            };
            // A reply is one write; waiting to fill a packet would only delay it.
            let handed = socket.set_nodelay(true).and_then(|()| socket.into_std());
            if let Ok(socket) = handed {
                if !workers.hand(turn, socket, place) {
                    self.gauges.refuse();
                }
                turn += 1;
            }
        }
    }
}

fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = if at.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restart must not wait for connections of the last process to be forgotten.
    socket.set_reuseaddr(true)?;
    socket.bind(at)?;
    socket.listen(BACKLOG)
}

#[allow(
    clippy::disallowed_methods,
    reason = "there is nothing to wait for but time: descriptors come back by themselves"
)]
async fn pause() {
    tokio::time::sleep(ACCEPT_PAUSE).await;
}
