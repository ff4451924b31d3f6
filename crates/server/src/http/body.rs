//! Reads a request's body: bounded in size and in time, without a copy when it came in one piece.
//! What nobody wants to read is let run out, within bounds, so that its sender comes to read the answer.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::status::Refusal;

/// 1 MiB: a hundred limits in one call take some 40 KiB.
pub const BODY_MAX: usize = 1 << 20;
/// Larger bodies at once, where a route takes them: together they fill 64 MiB, whoever sends them.
const LARGE_AT_ONCE: usize = 4;
static LARGE: Semaphore = Semaphore::const_new(LARGE_AT_ONCE);
/// Whoever needs longer for a megabyte is holding a connection, not sending a body.
const BODY_PATIENCE: Duration = Duration::from_secs(10);

/// What is read of a body that was refused, and for how long. Whoever sends more, or slower, finds the connection closed.
const RUN_OUT_MAX: usize = 16 << 20;
const RUN_OUT_PATIENCE: Duration = Duration::from_secs(2);

/// A large body's place among those at once; it is given back with the request.
pub type Room = Option<SemaphorePermit<'static>>;

/// Where a route takes more than usual: is this more, or of unknown size?
pub fn may_be_large(body: &Incoming, max: usize) -> bool {
    max > BODY_MAX && body.size_hint().exact().is_none_or(|size| size > BODY_MAX as u64)
}

pub async fn read(body: &mut Incoming, max: usize) -> Result<(Bytes, Room), Refusal> {
    let declared = body.size_hint().lower();
    if declared > max as u64 {
        return Err(Refusal::BodyTooLarge { max });
    }
    let first = match next(body).await? {
        Some(first) if body.is_end_stream() => return Ok((first, None)),
        Some(first) => first,
        None => return Ok((Bytes::new(), None)),
    };
    let rest = Box::pin(tokio::time::timeout(BODY_PATIENCE, join(first, body, max))).await;
    rest.unwrap_or(Err(Refusal::BodyTooSlow))
}

async fn join(first: Bytes, body: &mut Incoming, max: usize) -> Result<(Bytes, Room), Refusal> {
    let mut whole = BytesMut::from(first);
    let mut room = None;
    loop {
        if whole.len() > max {
            return Err(Refusal::BodyTooLarge { max });
        }
        if whole.len() > BODY_MAX && room.is_none() {
            room = LARGE.acquire().await.ok();
        }
        match next(body).await? {
            Some(piece) => whole.extend_from_slice(&piece),
            None => return Ok((whole.freeze(), room)),
        }
    }
}

/// Lets the rest of a body run out beside its answer. Many clients (Node's fetch, Python's http.client) read nothing
/// before they have sent everything: closed on, they would see a broken connection and not the refusal.
pub fn run_out(mut body: Incoming) {
    let rest = async move {
        let mut read = 0;
        while let Some(Ok(frame)) = body.frame().await {
            read += frame.data_ref().map_or(0, Bytes::len);
            if read > RUN_OUT_MAX {
                return;
            }
        }
    };
    tokio::spawn(tokio::time::timeout(RUN_OUT_PATIENCE, rest));
}

/// The next piece of data; trailers are skipped. Waiting for the first one is bounded like the rest,
/// but only when it is not there yet: a timer for every request would cost more than the read.
async fn next(body: &mut Incoming) -> Result<Option<Bytes>, Refusal> {
    loop {
        let frame = {
            let mut frame = std::pin::pin!(body.frame());
            match ready_now(frame.as_mut()).await {
                Some(frame) => frame,
                None => Box::pin(tokio::time::timeout(BODY_PATIENCE, frame))
                    .await
                    .map_err(|_| Refusal::BodyTooSlow)?,
            }
        };
        match frame {
            None => return Ok(None),
            Some(Err(_)) => return Err(Refusal::BodyUnreadable),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// What a future has ready right now, if anything.
async fn ready_now<F: Future + Unpin>(mut future: F) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        let polled = std::pin::Pin::new(&mut future).poll(context);
        std::task::Poll::Ready(match polled {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        })
    })
    .await
}
