//! A load that does not wait for the server: every request has its moment, and its latency counts from then, also when
//! it could only be sent later. So a server that stalls is charged for all that should have been sent meanwhile.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::Notify;
use tokio::task::{LocalSet, spawn_local, yield_now};

use crate::clock::{Stopwatch, pause};
use crate::failure::Failure;
use crate::http::server::Core;

/// The bytes of the n-th request.
pub(crate) type Write = Arc<dyn Fn(u64) -> Vec<u8> + Send + Sync>;

/// Requests at a steady pace, over connections that serve one at a time.
#[derive(Clone)]
pub(crate) struct Stream {
    pub(crate) per_second: u64,
    pub(crate) requests: u64,
    pub(crate) connections: usize,
    pub(crate) write: Write,
    /// What only the wanted answer holds.
    pub(crate) wanted: &'static str,
}

/// What became of a stream.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// Sorted.
    latencies_us: Vec<u32>,
    pub(crate) wanted: u64,
    /// 429 and 503.
    pub(crate) unavailable: u64,
    pub(crate) other: u64,
}

/// Requests that are due, each with its moment. Without a bound, because a request that is left out would not be charged.
#[derive(Default)]
struct Due {
    waiting: RefCell<VecDeque<(Vec<u8>, Duration)>>,
    more: Notify,
    ended: Cell<bool>,
}

/// How a moment is waited for.
#[derive(Clone, Debug)]
pub(crate) enum Pace {
    /// Without ever sleeping, to the microsecond. Needs a core of its own.
    Exact(Core),
    /// By a clock that ticks every [`TICK`], beside servers that need the cores. All that is due is sent together.
    Ticking,
}

/// Short against what is measured with it, long enough to leave the cores alone.
const TICK: Duration = Duration::from_micros(200);

/// Runs all streams side by side on one thread.
pub(crate) fn run(
    address: &str,
    pace: Pace,
    streams: Vec<Stream>,
) -> Result<Vec<Answers>, Failure> {
    let address = address.trim_start_matches("http://").to_owned();
    let ran = thread::spawn(move || run_here(&address, &pace, streams)).join();
    ran.unwrap_or_else(|_| Err(ended()))
}

fn run_here(address: &str, pace: &Pace, streams: Vec<Stream>) -> Result<Vec<Answers>, Failure> {
    if let Pace::Exact(Core::Only(core)) = *pace {
        let mut cores = CpuSet::new();
        cores.set(core);
        sched_setaffinity(None, &cores).map_err(|error| Failure::io("a core")(error.into()))?;
    }
    let runtime = Builder::new_current_thread().enable_io().build();
    let runtime = runtime.map_err(Failure::io("a runtime"))?;
    LocalSet::new().block_on(&runtime, async {
        let mut ready = Vec::new();
        for stream in streams {
            ready.push((stream.connect(address).await?, stream));
        }
        let clock = Clock::start(pace);
        let drive =
            |(sockets, stream): (_, Stream)| spawn_local(stream.drive(sockets, clock.clone()));
        let running: Vec<_> = ready.into_iter().map(drive).collect();
        let mut all = Vec::new();
        for one in running {
            all.push(one.await.map_err(|_| ended())??);
        }
        Ok(all)
    })
}

fn ended() -> Failure {
    Failure::Invalid("the load ended early".into())
}

// === impl Stream ===

impl Stream {
    async fn connect(&self, address: &str) -> Result<Vec<TcpStream>, Failure> {
        let mut sockets = Vec::with_capacity(self.connections);
        for _ in 0..self.connections {
            let socket = TcpStream::connect(address).await.map_err(Failure::io("a connection"))?;
            socket.set_nodelay(true).map_err(Failure::io("a connection"))?;
            sockets.push(socket);
        }
        Ok(sockets)
    }

    async fn drive(self, sockets: Vec<TcpStream>, clock: Clock) -> Result<Answers, Failure> {
        let due = Rc::new(Due::default());
        let serve = |socket| spawn_local(serve(socket, Rc::clone(&due), self.wanted, clock.watch));
        let serving: Vec<_> = sockets.into_iter().map(serve).collect();
        for n in 0..self.requests {
            let at = Duration::from_nanos(n * 1_000_000_000 / self.per_second);
            clock.reach(at).await;
            due.waiting.borrow_mut().push_back(((self.write)(n), at));
            due.more.notify_one();
        }
        due.ended.set(true);
        due.more.notify_waiters();
        let mut all = Answers::default();
        for one in serving {
            all.add(one.await.map_err(|_| ended())?.map_err(Failure::io("a connection"))?);
        }
        all.latencies_us.sort_unstable();
        Ok(all)
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("per_second", &self.per_second).finish_non_exhaustive()
    }
}

/// The load's own time.
#[derive(Clone, Debug)]
struct Clock {
    watch: Stopwatch,
    /// Ends its thread when nobody listens any more.
    ticks: Option<Arc<Notify>>,
}

// === impl Clock ===

impl Clock {
    fn start(pace: &Pace) -> Self {
        let ticks = matches!(pace, Pace::Ticking).then(|| Arc::new(Notify::new()));
        if let Some(ticks) = &ticks {
            let ticks = Arc::downgrade(ticks);
            thread::spawn(move || {
                while let Some(ticks) = ticks.upgrade() {
                    ticks.notify_waiters();
                    pause(TICK);
                }
            });
        }
        Self { watch: Stopwatch::start(), ticks }
    }

    async fn reach(&self, moment: Duration) {
        while self.watch.elapsed() < moment {
            match &self.ticks {
                Some(ticks) => ticks.notified().await,
                None => yield_now().await,
            }
        }
    }
}

// === impl Due ===

impl Due {
    /// The next request, once there is one; nothing when there will be none.
    async fn next(&self) -> Option<(Vec<u8>, Duration)> {
        loop {
            if let Some(next) = self.waiting.borrow_mut().pop_front() {
                return Some(next);
            }
            if self.ended.get() {
                return None;
            }
            self.more.notified().await;
        }
    }
}

/// One connection to its end.
async fn serve(
    mut socket: TcpStream,
    due: Rc<Due>,
    wanted: &str,
    watch: Stopwatch,
) -> io::Result<Answers> {
    let mut answers = Answers::default();
    let mut answer = Vec::with_capacity(4096);
    while let Some((request, at)) = due.next().await {
        socket.write_all(&request).await?;
        answer.clear();
        while !is_whole(&answer) {
            if socket.read_buf(&mut answer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let late = watch.elapsed().saturating_sub(at).as_micros();
        answers.latencies_us.push(u32::try_from(late).unwrap_or(u32::MAX));
        answers.count(&answer, wanted);
    }
    Ok(answers)
}

pub(crate) fn is_whole(answer: &[u8]) -> bool {
    const LENGTH: &[u8] = b"content-length: ";
    let Some(head) = find(answer, b"\r\n\r\n") else { return false };
    let lower = answer[..head].to_ascii_lowercase();
    let digits = find(&lower, LENGTH).map(|at| &lower[at + LENGTH.len()..]);
    let digits = digits.into_iter().flatten().take_while(|byte| byte.is_ascii_digit());
    let length = digits.fold(0, |length, digit| length * 10 + usize::from(digit - b'0'));
    answer.len() >= head + 4 + length
}

pub(crate) fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

// === impl Answers ===

impl Answers {
    /// In µs: so many of a thousand were answered within.
    pub(crate) fn within_us(&self, of_a_thousand: usize) -> f64 {
        let last = self.latencies_us.len().saturating_sub(1);
        let at = (self.latencies_us.len() * of_a_thousand / 1000).min(last);
        f64::from(self.latencies_us.get(at).copied().unwrap_or(u32::MAX))
    }

    /// Anything but the wanted answer would make it a measurement of something else.
    pub(crate) fn all_wanted(self) -> Result<Self, Failure> {
        if self.unavailable + self.other == 0 {
            return Ok(self);
        }
        let text = format!("{} unavailable, {} others", self.unavailable, self.other);
        Err(Failure::Invalid(format!("requests of the load failed: {text}")))
    }

    fn count(&mut self, answer: &[u8], wanted: &str) {
        if find(answer, wanted.as_bytes()).is_some() {
            self.wanted += 1;
        } else if [b"HTTP/1.1 429", b"HTTP/1.1 503"].iter().any(|head| answer.starts_with(*head)) {
            self.unavailable += 1;
        } else {
            self.other += 1;
        }
    }

    fn add(&mut self, other: Self) {
        self.latencies_us.extend(other.latencies_us);
        self.wanted += other.wanted;
        self.unavailable += other.unavailable;
        self.other += other.other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_with_its_last_byte() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        assert!(is_whole(text));
        assert!((0..text.len()).all(|end| !is_whole(&text[..end])));
    }

    #[test]
    fn of_a_thousand_the_slowest_ten_are_above_the_99th_percentile() {
        let answers = Answers { latencies_us: (0..1000).collect(), ..Answers::default() };
        assert!((answers.within_us(990) - 990.0).abs() < 1e-9);
        assert!((answers.within_us(1000) - 999.0).abs() < 1e-9);
    }
}
