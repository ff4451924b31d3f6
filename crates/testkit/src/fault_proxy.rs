//! A TCP proxy that misbehaves when told to: slow, silent, gone, or losing what the server says.
//! Of what passes through it knows nothing but how Redis frames a message of a channel.
//! It runs in a thread of its own and ends with its owner.

use std::io;
use std::net::{SocketAddr, TcpListener as BoundListener};
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::port::free_port;

/// Chunks on the way through; beyond it the sender is slowed down, as by a full socket.
const CHUNKS_MAX: usize = 1024;
const CHUNK_BYTES: usize = 16 << 10;

/// What the proxy does from now on, also to connections that are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Pass,
    /// Both ways; the order stays.
    Delay(Duration),
    DelayReplies(Duration),
    /// Accepts and forwards nothing. What came meanwhile goes on when this ends.
    Stall,
    /// Closes every connection and refuses new ones.
    Cut,
    /// Requests arrive, replies are lost. A connection that lost one gets none any more, as TCP has it.
    DropReplies,
    /// Like a lost network path: with this chance a chunk of replies is lost, and all that follow on its connection.
    LoseReplies {
        seed: u64,
        per_mille: u16,
    },
    /// Like lost packets: with this chance a chunk of replies comes only when it was sent again, so much later, and all that
    /// follow on its connection wait for it, as TCP has it. To a caller with less patience than that it is lost; the
    /// connection is whole.
    LateReplies {
        seed: u64,
        per_mille: u16,
        by: Duration,
    },
    /// Like no network, but like a broken proxy: single chunks of replies are missing, so that what follows is taken for
    /// the answer to another request.
    SkipReplies {
        seed: u64,
        per_mille: u16,
    },
    /// What is published gets lost, and nothing else: answers go on, and no connection ends.
    SwallowMessages,
}

/// Dropping it closes everything.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    fault: watch::Sender<Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Requests,
    Replies,
}

/// Whether a chunk goes on.
enum Fate {
    After(Duration),
    Lost,
    AllLost,
}

// === impl FaultProxy ===

impl FaultProxy {
    /// In front of `127.0.0.1:port`.
    pub fn start(port: u16) -> io::Result<Self> {
        let bound = BoundListener::bind(("127.0.0.1", free_port()?))?;
        bound.set_nonblocking(true)?;
        let address = bound.local_addr()?;
        let upstream = SocketAddr::from(([127, 0, 0, 1], port));
        let (fault, told) = watch::channel(Fault::Pass);
        let runtime = Builder::new_current_thread().enable_all().build()?;
        thread::spawn(move || runtime.block_on(serve(bound, upstream, told)));
        Ok(Self { address, fault })
    }

    pub fn set(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn serve(bound: BoundListener, upstream: SocketAddr, mut told: watch::Receiver<Fault>) {
    let Ok(address) = bound.local_addr() else { return };
    let mut listener = TcpListener::from_std(bound);
    loop {
        if let Ok(listener) = listener {
            let mut open = JoinSet::new();
            loop {
                let cut = async { told.wait_for(|fault| *fault == Fault::Cut).await.is_ok() };
                tokio::select! {
                    cut = cut => if cut { break } else { return },
                    Ok((client, _)) = listener.accept() => {
                        open.spawn(relay(client, upstream, told.clone()));
                    }
                    Some(_) = open.join_next() => {}
                }
            }
        }
        if told.wait_for(|fault| *fault != Fault::Cut).await.is_err() {
            return;
        }
        listener = TcpListener::bind(address).await;
    }
}

async fn relay(client: TcpStream, upstream: SocketAddr, told: watch::Receiver<Fault>) {
    let Ok(server) = TcpStream::connect(upstream).await else { return };
    // Whether it is set changes only how fast it goes.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let ((from_client, to_client), (from_server, to_server)) =
        (client.into_split(), server.into_split());
    tokio::select! {
        () = carry(from_client, to_server, Way::Requests, told.clone()) => {}
        () = carry(from_server, to_client, Way::Replies, told) => {}
    }
}

/// Reads and writes at their own pace, so that a delay does not add up.
async fn carry(
    from: impl AsyncRead + Unpin,
    to: impl AsyncWrite + Unpin,
    way: Way,
    told: watch::Receiver<Fault>,
) {
    let (sender, receiver) = mpsc::channel(CHUNKS_MAX);
    tokio::join!(take_in(from, way, told.clone(), sender), give_out(to, told, receiver));
}

async fn take_in(
    mut from: impl AsyncRead + Unpin,
    way: Way,
    told: watch::Receiver<Fault>,
    sender: mpsc::Sender<(Instant, Vec<u8>)>,
) {
    let mut drawn = 0;
    loop {
        let mut chunk = vec![0; CHUNK_BYTES];
        let Ok(read @ 1..) = from.read(&mut chunk).await else { return };
        chunk.truncate(read);
        let fault = *told.borrow();
        if fault == Fault::SwallowMessages && way == Way::Replies {
            swallow_messages(&mut chunk);
        }
        let after = match fate(fault, way, &mut drawn) {
            Fate::After(delay) => delay,
            Fate::Lost => continue,
            Fate::AllLost => break,
        };
        #[allow(clippy::disallowed_methods, reason = "a delay on the wire is real time")]
        let due = Instant::now() + after;
        if sender.send((due, chunk)).await.is_err() {
            return;
        }
    }
    let mut rest = vec![0; CHUNK_BYTES];
    while let Ok(1..) = from.read(&mut rest).await {}
}

async fn give_out(
    mut to: impl AsyncWrite + Unpin,
    mut told: watch::Receiver<Fault>,
    mut receiver: mpsc::Receiver<(Instant, Vec<u8>)>,
) {
    while let Some((due, chunk)) = receiver.recv().await {
        sleep_until(due).await;
        if told.wait_for(|fault| *fault != Fault::Stall).await.is_err() {
            return;
        }
        if to.write_all(&chunk).await.is_err() {
            return;
        }
    }
}

fn fate(fault: Fault, way: Way, drawn: &mut u64) -> Fate {
    match (fault, way) {
        (Fault::Delay(delay), _) | (Fault::DelayReplies(delay), Way::Replies) => Fate::After(delay),
        (Fault::DropReplies, Way::Replies) => Fate::AllLost,
        (Fault::LoseReplies { seed, per_mille }, Way::Replies)
            if drawn_below(seed, per_mille, drawn) =>
        {
            Fate::AllLost
        }
        (Fault::LateReplies { seed, per_mille, by }, Way::Replies)
            if drawn_below(seed, per_mille, drawn) =>
        {
            Fate::After(by)
        }
        (Fault::SkipReplies { seed, per_mille }, Way::Replies)
            if drawn_below(seed, per_mille, drawn) =>
        {
            Fate::Lost
        }
        _ => Fate::After(Duration::ZERO),
    }
}

/// Takes every whole message out of a chunk, as RESP3 frames it: `>3`, the word `message`, the channel, the text.
fn swallow_messages(chunk: &mut Vec<u8>) {
    const HEAD: &[u8] = b">3\r\n$7\r\nmessage\r\n";
    let mut from = 0;
    while let Some(found) = chunk[from..].windows(HEAD.len()).position(|part| part == HEAD) {
        let begin = from + found;
        let channel = bulk_end(chunk, begin + HEAD.len());
        match channel.and_then(|text| bulk_end(chunk, text)) {
            Some(end) => drop(chunk.drain(begin..end)),
            None => from = begin + HEAD.len(),
        }
    }
}

/// Behind the text of so many bytes that begins here, if all of it is there.
fn bulk_end(chunk: &[u8], at: usize) -> Option<usize> {
    let rest = chunk.get(at..)?.strip_prefix(b"$")?;
    let digits = rest.iter().position(|byte| *byte == b'\r')?;
    let length: usize = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    let end = at + 1 + digits + 2 + length + 2;
    (end <= chunk.len()).then_some(end)
}

/// The next draw of a sequence that is the same for the same seed (splitmix64).
fn drawn_below(seed: u64, per_mille: u16, drawn: &mut u64) -> bool {
    *drawn += 1;
    let mut bits = seed.wrapping_add(drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ (bits >> 31)) % 1000 < u64::from(per_mille)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_swallowed_and_all_else_passes() {
        let message = b">3\r\n$7\r\nmessage\r\n$6\r\ntk:bus\r\n$4\r\n1\r\n2\r\n";
        let greeting = b">3\r\n$9\r\nsubscribe\r\n$6\r\ntk:bus\r\n:1\r\n";
        let mut chunk = [&b":1\r\n"[..], message, greeting, message, b"$1\r\n7\r\n"].concat();
        swallow_messages(&mut chunk);
        assert_eq!(chunk, [&b":1\r\n"[..], greeting, b"$1\r\n7\r\n"].concat());
        let mut half = message[..35].to_vec();
        swallow_messages(&mut half);
        assert_eq!(half, message[..35]);
    }
}
