//! Worker threads: each runs its own single-threaded runtime, so that a request never changes threads
//! and nothing on its way is shared for writing.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::connection;
use super::gauges::Place;
use super::turns;
use crate::app::App;

/// Connections on their way to a worker, at most. A worker that lags this far behind is overloaded.
const ARRIVALS_MAX: usize = 1024;
/// How long a drain waits for clients that are in the middle of something: with the rest of the way down
/// it stays below the five seconds after which impatient supervisors kill.
const DRAIN: Duration = Duration::from_secs(3);

/// All workers of this process.
#[derive(Debug)]
pub struct Workers {
    workers: Vec<Worker>,
    drain: watch::Sender<bool>,
}

#[derive(Debug)]
pub struct Worker {
    arrivals: mpsc::Sender<(TcpStream, Place)>,
    thread: JoinHandle<()>,
}

// === impl Workers ===

impl Workers {
    pub fn start(apps: Vec<App>) -> io::Result<Self> {
        let (drain, draining) = watch::channel(false);
        let start = |(at, app)| Worker::start(at, Arc::new(app), draining.clone());
        let workers = apps.into_iter().enumerate().map(start).collect::<io::Result<_>>()?;
        Ok(Self { workers, drain })
    }

    /// Hands a connection to the `turn`-th worker. False if that one lags: the connection is dropped.
    pub fn hand(&self, turn: usize, socket: TcpStream, place: Place) -> bool {
        let worker = self.workers.get(turn % self.workers.len().max(1));
        worker.is_some_and(|worker| worker.arrivals.try_send((socket, place)).is_ok())
    }

    /// Lets every request that has begun end, then ends the threads.
    pub fn drain(self) {
        // Nobody listens any more only when every worker has ended by itself.
        let _ = self.drain.send(true);
        for worker in self.workers {
            drop(worker.arrivals);
            if worker.thread.join().is_err() {
                tracing::error!("a worker thread had panicked");
            }
        }
    }
}

// === impl Worker ===

impl Worker {
    fn start(at: usize, app: Arc<App>, draining: watch::Receiver<bool>) -> io::Result<Self> {
        let (arrivals, incoming) = mpsc::channel(ARRIVALS_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let run = move || {
            turns::shorten();
            runtime.block_on(work(app, incoming, draining));
        };
        let thread = std::thread::Builder::new().name(format!("worker-{at}")).spawn(run)?;
        Ok(Self { arrivals, thread })
    }
}

async fn work(
    app: Arc<App>,
    mut incoming: mpsc::Receiver<(TcpStream, Place)>,
    draining: watch::Receiver<bool>,
) {
    let protocol = connection::protocol();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            arrival = incoming.recv() => {
                let Some((socket, place)) = arrival else { break };
                let Ok(socket) = tokio::net::TcpStream::from_std(socket) else { continue };
                let served = connection::serve(protocol.clone(), socket, Arc::clone(&app), place, draining.clone());
                connections.spawn(served);
            }
        }
    }
    let ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN, ended).await.is_err() {
        tracing::warn!("some connections did not end in {DRAIN:?} and were cut");
    }
}
