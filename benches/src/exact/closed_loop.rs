//! As much load as the servers take: every connection sends its next request when the last was answered.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::task::{LocalSet, spawn_local};

use crate::clock::Stopwatch;
use crate::failure::Failure;
use crate::http::server::Core;
use crate::verify::open_loop::{Write, find, is_whole};

#[derive(Clone, Debug)]
pub(super) struct Load {
    /// Without a scheme; requests go round these.
    pub(super) hosts: Vec<String>,
    /// To each.
    pub(super) connections: usize,
    pub(super) core: Core,
}

/// When it ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    Sent(u64),
    Passed(Duration),
}

/// What became of it.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) answered: u64,
    /// Neither refused nor decided without Redis.
    pub(super) admitted: u64,
    pub(super) degraded: u64,
    /// Any status but 200.
    failed: u64,
    pub(super) took: Duration,
    latencies_us: Vec<u32>,
}

// === impl Load ===

impl Load {
    /// On one thread. Requests are numbered from nought.
    pub(super) fn run(&self, until: Until, write: Write) -> Result<Tally, Failure> {
        let load = self.clone();
        let ran = thread::spawn(move || load.run_here(until, &write)).join();
        ran.unwrap_or_else(|_| Err(Failure::Invalid("the load ended early".into())))
    }

    fn run_here(&self, until: Until, write: &Write) -> Result<Tally, Failure> {
        if let Core::Only(core) = self.core {
            let mut cores = CpuSet::new();
            cores.set(core);
            sched_setaffinity(None, &cores).map_err(|error| Failure::io("a core")(error.into()))?;
        }
        let runtime = Builder::new_current_thread().enable_io().build();
        let runtime = runtime.map_err(Failure::io("a runtime"))?;
        LocalSet::new().block_on(&runtime, async {
            let (next, watch) = (Rc::new(Cell::new(0)), Stopwatch::start());
            let mut running = Vec::new();
            for _ in 0..self.connections {
                for host in &self.hosts {
                    let socket = TcpStream::connect(host.as_str()).await;
                    let socket = socket.map_err(Failure::io("a connection"))?;
                    socket.set_nodelay(true).map_err(Failure::io("a connection"))?;
                    let turn = Turn { next: Rc::clone(&next), until, watch };
                    running.push(spawn_local(serve(socket, turn, Write::clone(write))));
                }
            }
            let mut all = Tally::default();
            for one in running {
                let one = one.await.map_err(|_| Failure::Invalid("a connection died".into()))?;
                all.add(one.map_err(Failure::io("a connection"))?);
            }
            if all.failed > 0 {
                return Err(Failure::Invalid(format!(
                    "{} requests of the load failed",
                    all.failed
                )));
            }
            all.took = watch.elapsed();
            Ok(all)
        })
    }
}

/// Which request is the next.
struct Turn {
    next: Rc<Cell<u64>>,
    until: Until,
    watch: Stopwatch,
}

// === impl Turn ===

impl Turn {
    fn take(&self) -> Option<u64> {
        let n = self.next.get();
        let goes_on = match self.until {
            Until::Sent(most) => n < most,
            Until::Passed(most) => self.watch.elapsed() < most,
        };
        self.next.set(n + 1);
        goes_on.then_some(n)
    }
}

async fn serve(mut socket: TcpStream, turn: Turn, write: Write) -> io::Result<Tally> {
    let mut tally = Tally::default();
    let mut answer = Vec::with_capacity(4096);
    while let Some(n) = turn.take() {
        let request = write(n);
        let began = turn.watch.elapsed();
        socket.write_all(&request).await?;
        answer.clear();
        while !is_whole(&answer) {
            if socket.read_buf(&mut answer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let took = turn.watch.elapsed().saturating_sub(began).as_micros();
        tally.latencies_us.push(u32::try_from(took).unwrap_or(u32::MAX));
        tally.count(&answer);
    }
    Ok(tally)
}

// === impl Tally ===

impl Tally {
    pub(super) fn per_second(&self) -> f64 {
        self.answered as f64 / self.took.as_secs_f64()
    }

    /// So many of a thousand were answered within.
    pub(super) fn within_us(&mut self, of_a_thousand: usize) -> f64 {
        self.latencies_us.sort_unstable();
        let at = self.latencies_us.len() * of_a_thousand / 1000;
        f64::from(self.latencies_us.get(at).copied().unwrap_or(u32::MAX))
    }

    fn count(&mut self, answer: &[u8]) {
        let has = |what: &[u8]| find(answer, what).is_some();
        let degraded = has(br#""degraded":true"#);
        self.answered += 1;
        self.failed += u64::from(!answer.starts_with(b"HTTP/1.1 200"));
        self.degraded += u64::from(degraded);
        self.admitted += u64::from(!degraded && has(br#""success":true"#));
    }

    pub(super) fn add(&mut self, other: Self) {
        self.answered += other.answered;
        self.admitted += other.admitted;
        self.degraded += other.degraded;
        self.failed += other.failed;
        self.took += other.took;
        self.latencies_us.extend(other.latencies_us);
    }
}
