//! A socket that knows whether a request has begun to arrive, so that a slow head can be told from an idle client, and that
//! gives what somebody read of it before once more. It adds one flag per read and no timer.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// What a connection is doing, shared by its socket, its service and its watch.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Bytes came in that are not a whole request head yet.
    arriving: AtomicBool,
    /// Requests being answered. More than one only over HTTP/2.
    answering: AtomicU64,
    answered: AtomicU64,
    /// Nothing is under way: no request, and no answer.
    between: AtomicBool,
    /// Its end is decided: what is under way is the last.
    leaving: AtomicBool,
    /// Frames that are no requests (pings) come in on such connections, so that bytes alone mean nothing.
    multiplexed: AtomicBool,
}

#[derive(Debug)]
pub(super) struct Watched {
    socket: TcpStream,
    activity: Arc<Activity>,
    /// Read already, and to be read again first.
    early: Vec<u8>,
}

/// Marks a request as being answered until it is dropped, also when it is dropped half way.
#[derive(Debug)]
pub(super) struct Answering<'a>(&'a Activity);

// === impl Activity ===

impl Activity {
    pub(super) fn begin(&self, version: http::Version) -> Answering<'_> {
        self.arriving.store(false, Ordering::Relaxed);
        self.multiplexed.store(version == http::Version::HTTP_2, Ordering::Relaxed);
        self.answering.fetch_add(1, Ordering::Relaxed);
        Answering(self)
    }

    pub(super) fn is_answering(&self) -> bool {
        self.answering.load(Ordering::Relaxed) > 0
    }

    /// Part of a request is there.
    pub(super) fn arrive(&self) {
        self.arriving.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_arriving(&self) -> bool {
        self.arriving.load(Ordering::Relaxed) && !self.multiplexed.load(Ordering::Relaxed)
    }

    /// From here on nothing is under way…
    pub(super) fn begin_pause(&self) {
        self.between.store(true, Ordering::Relaxed);
    }

    /// …until here.
    pub(super) fn end_pause(&self) {
        self.between.store(false, Ordering::Relaxed);
    }

    pub(super) fn is_between(&self) -> bool {
        self.between.load(Ordering::Relaxed)
    }

    pub(super) fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        // The body's bytes are no new head.
        self.0.arriving.store(false, Ordering::Relaxed);
        self.0.answering.fetch_sub(1, Ordering::Relaxed);
        self.0.answered.fetch_add(1, Ordering::Relaxed);
    }
}

// === impl Watched ===

impl Watched {
    pub(super) fn new(socket: TcpStream, activity: Arc<Activity>) -> Self {
        Self { socket, activity, early: Vec::new() }
    }

    /// Whoever reads next reads these first.
    pub(super) fn put_back(&mut self, read: Vec<u8>) {
        self.early = read;
    }

    /// What was put back and not read again.
    pub(super) fn early(&self) -> &[u8] {
        &self.early
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.early.is_empty() {
            let most = self.early.len().min(buffer.remaining());
            buffer.put_slice(&self.early[..most]);
            self.early.drain(..most);
            if self.early.is_empty() {
                self.early = Vec::new();
            }
            self.activity.arrive();
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.socket).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.activity.arrive();
        }
        polled
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
