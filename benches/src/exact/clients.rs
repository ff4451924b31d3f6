//! Clients that keep a pace, all of them on one thread, and one that says when: nodes and Redis share the machine with them,
//! and hundreds of threads would take from those what they need to answer in time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::Notify;
use tollkeeper_testkit::ROOT_KEY;

use super::case::Case;
use super::judge::Seen;
use crate::clock::{Stopwatch, pause};
use crate::failure::Failure;
use crate::verify::open_loop::{find, is_whole};

/// One connection, and every so many of a case's requests.
pub(super) struct Client<'a> {
    case: &'a Case,
    identifier: &'a str,
    node: usize,
    first: u64,
    step: u64,
    /// Requests whose moment has come and that are not sent yet: who waits for an answer is late for the next one.
    due: AtomicU64,
    more: Notify,
}

/// Where a node is, while it is anywhere.
pub(super) type Whereabouts<'a> = &'a dyn Fn(usize) -> Option<String>;

#[derive(Deserialize)]
struct Answer {
    data: Verdict,
}

#[derive(Deserialize)]
struct Verdict {
    success: bool,
    reset: u64,
    #[serde(default)]
    degraded: bool,
}

/// Has every client do its part from `begun` on; what each has seen, in the same order.
pub(super) fn run(
    clients: &[Client<'_>],
    begun: Instant,
    whereabouts: Whereabouts<'_>,
) -> Result<Vec<Vec<Seen>>, Failure> {
    let runtime = Builder::new_current_thread().enable_io().build();
    let runtime = runtime.map_err(Failure::io("a runtime"))?;
    thread::scope(|scope| {
        scope.spawn(|| pace(clients, begun));
        let asking = join_all(clients.iter().map(|client| client.ask(begun, whereabouts)));
        runtime.block_on(asking).into_iter().collect()
    })
}

/// Tells each client when its next request is due.
fn pace(clients: &[Client<'_>], begun: Instant) {
    let next = |at: usize, number| clients[at].due_us(number).map(|due| Reverse((due, at, number)));
    let mut ahead: BinaryHeap<_> =
        clients.iter().enumerate().filter_map(|(at, client)| next(at, client.first)).collect();
    while let Some(Reverse((due, at, number))) = ahead.pop() {
        let moment = begun + Duration::from_micros(due);
        pause(moment.saturating_duration_since(Stopwatch::start().begun()));
        let client = &clients[at];
        client.due.fetch_add(1, Ordering::Relaxed);
        client.more.notify_one();
        ahead.extend(next(at, number + client.step));
    }
}

// === impl Client ===

impl<'a> Client<'a> {
    /// All that ask for one identifier, on so many nodes.
    pub(super) fn of_case(case: &'a Case, identifier: &'a str, nodes: usize) -> Vec<Self> {
        let step = match case.rate() {
            // As many connections as it takes to keep the pace.
            500.. => (nodes * 2).max(4),
            _ => nodes.max(2),
        };
        let client = |place: usize| Self {
            case,
            identifier,
            node: place % nodes,
            first: place as u64,
            step: step as u64,
            due: AtomicU64::new(0),
            more: Notify::new(),
        };
        (0..step).map(client).collect()
    }

    /// When a request is due, as long as the case lasts.
    fn due_us(&self, number: u64) -> Option<u64> {
        let due = self.case.due_us(number);
        (due / 1_000 <= self.case.lasts_ms).then_some(due)
    }

    async fn ask(&self, begun: Instant, nodes: Whereabouts<'_>) -> Result<Vec<Seen>, Failure> {
        let mut seen = Vec::new();
        let (mut socket, mut answer) = (connect(self.node, nodes).await, Vec::with_capacity(1024));
        let mut number = self.first;
        while self.due_us(number).is_some() {
            while self.due.load(Ordering::Relaxed) == 0 {
                self.more.notified().await;
            }
            self.due.fetch_sub(1, Ordering::Relaxed);
            let cost = self.case.cost.of(number, self.case.limit);
            number += self.step;
            let request = self.request(cost);
            let sent_us = begun.elapsed().as_micros() as u64;
            if socket.is_none() {
                socket = connect(self.node, nodes).await;
            }
            let Some(open) = &mut socket else { continue };
            // A node that was killed said nothing: whatever it did, nobody was let in.
            if exchange(open, &request, &mut answer).await.is_err() {
                socket = None;
                continue;
            }
            let heard_us = begun.elapsed().as_micros() as u64;
            let Verdict { success: admitted, reset, degraded } = verdict(&answer)?;
            seen.push(Seen { sent_us, heard_us, cost, admitted, degraded, reset });
        }
        Ok(seen)
    }

    fn request(&self, cost: u64) -> Vec<u8> {
        let Case { algorithm, limit, window_ms, .. } = self.case;
        let identifier = self.identifier;
        let body = format!(
            r#"{{"namespace":"exact","identifier":"{identifier}","limit":{limit},"cost":{cost},"duration":{window_ms},"algorithm":"{algorithm}"}}"#
        );
        let length = body.len();
        format!(
            "POST /v2/ratelimit.limit HTTP/1.1\r\nhost: node\r\nauthorization: Bearer {ROOT_KEY}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

async fn connect(node: usize, nodes: Whereabouts<'_>) -> Option<TcpStream> {
    let url = nodes(node)?;
    let mut socket = TcpStream::connect(url.trim_start_matches("http://")).await.ok()?;
    socket.set_nodelay(true).ok()?;
    let request = b"GET /livez HTTP/1.1\r\nhost: node\r\n\r\n";
    exchange(&mut socket, request, &mut Vec::new()).await.ok()?;
    Some(socket)
}

async fn exchange(socket: &mut TcpStream, request: &[u8], answer: &mut Vec<u8>) -> io::Result<()> {
    answer.clear();
    socket.write_all(request).await?;
    while !is_whole(answer) {
        if socket.read_buf(answer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

fn verdict(answer: &[u8]) -> Result<Verdict, Failure> {
    let body = find(answer, b"\r\n\r\n").map_or(&[][..], |head| &answer[head + 4..]);
    let answer: Result<Answer, _> = serde_json::from_slice(body);
    let no_verdict = |error| {
        let body = String::from_utf8_lossy(body);
        Failure::Invalid(format!("an answer without a verdict: {error}: {body}"))
    };
    answer.map(|answer| answer.data).map_err(no_verdict)
}
