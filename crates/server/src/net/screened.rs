//! A socket as hyper is given it: no request over HTTP/1 reaches hyper before its head was looked at. hyper would answer one that
//! it cannot take without a word, count it nowhere, and settle by itself where a doubtful one ends. Behind a head that may not
//! pass the connection looks ended to hyper, and the socket is given back for the refusal.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

use super::front::Fault;
use super::screen::{Pass, Screen, Versions};
use super::watched::{Activity, Watched};

/// What is read at once of what must be looked at.
const ROOM: usize = 8 << 10;

#[derive(Debug)]
pub(super) struct Screened {
    /// There until it is given back.
    socket: Option<Watched>,
    activity: Arc<Activity>,
    screen: Screen,
    /// Requests that were answered before.
    answered: u64,
    /// Read, and not passed on.
    held: Vec<u8>,
    /// So many bytes of it may pass.
    cleared: usize,
    /// Wants to read on once the answer under way was written.
    waiting: Option<Waker>,
    back: Option<oneshot::Sender<(Watched, Fault)>>,
}

// === impl Screened ===

impl Screened {
    /// Behind a refused head the socket comes back when this is dropped.
    pub(super) fn new(
        socket: Watched,
        activity: Arc<Activity>,
        versions: Versions,
    ) -> (Self, oneshot::Receiver<(Watched, Fault)>) {
        let (back, given_back) = oneshot::channel();
        let screened = Self {
            socket: Some(socket),
            answered: activity.answered(),
            activity,
            screen: Screen::new(versions),
            held: Vec::new(),
            cleared: 0,
            waiting: None,
            back: Some(back),
        };
        (screened, given_back)
    }

    fn socket(&mut self) -> io::Result<Pin<&mut Watched>> {
        self.socket.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Is there a request that passed, and no answer to it?
    fn is_owing(&self) -> bool {
        self.activity.answered() < self.answered + self.screen.requests()
    }

    /// Reads more of what must be looked at; false at the end.
    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut room = [0; ROOM];
        let mut read = ReadBuf::new(&mut room);
        ready!(self.socket()?.poll_read(context, &mut read))?;
        self.held.extend_from_slice(read.filled());
        Poll::Ready(Ok(!read.filled().is_empty()))
    }

    fn pass_held(&mut self, out: &mut ReadBuf<'_>) {
        let bytes = self.cleared.min(out.remaining());
        out.put_slice(&self.held[..bytes]);
        self.held.drain(..bytes);
        self.cleared -= bytes;
        if self.held.is_empty() {
            self.held = Vec::new();
        }
    }
}

impl Drop for Screened {
    fn drop(&mut self) {
        let lent = (self.socket.take(), self.screen.fault(), self.back.take());
        if let (Some(socket), Some(fault), Some(back)) = lent {
            // Who was cut takes nothing back.
            let _ = back.send((socket, fault));
        }
    }
}

impl AsyncRead for Screened {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.cleared == 0 {
            match this.screen.look(&this.held) {
                Pass::Held(bytes) => this.cleared = bytes,
                Pass::Unread(most) => {
                    let before = out.filled().len();
                    let mut part = this.socket()?.take(most);
                    ready!(Pin::new(&mut part).poll_read(context, out))?;
                    this.screen.passed(out.filled().len() - before);
                    return Poll::Ready(Ok(()));
                }
                Pass::NotYet if ready!(this.poll_more(context))? => {}
                // To hyper it would be the end of the request before, whose answer is still to come.
                Pass::Nothing(Some(_)) if this.is_owing() => {
                    this.waiting = Some(context.waker().clone());
                    return Poll::Pending;
                }
                Pass::NotYet | Pass::Nothing(_) => return Poll::Ready(Ok(())),
            }
        }
        this.pass_held(out);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Screened {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(waiting) = self.waiting.take() {
            waiting.wake();
        }
        self.socket()?.poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.socket()?.poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket()?.poll_flush(context)
    }

    /// Not behind a refused head: the refusal is still to be written.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.screen.fault().is_some() {
            return Poll::Ready(Ok(()));
        }
        self.socket()?.poll_shutdown(context)
    }
}
