//! A socket that knows whether a request has begun to arrive, so that a slow head can be told from an idle client.
//! It adds one flag per read and no timer.

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
    /// Frames that are no requests (pings) come in on such connections, so that bytes alone mean nothing.
    multiplexed: AtomicBool,
}

#[derive(Debug)]
pub(super) struct Watched {
    socket: TcpStream,
    activity: Arc<Activity>,
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

    pub(super) fn is_arriving(&self) -> bool {
        self.arriving.load(Ordering::Relaxed) && !self.multiplexed.load(Ordering::Relaxed)
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
        Self { socket, activity }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.socket).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.activity.arriving.store(true, Ordering::Relaxed);
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
