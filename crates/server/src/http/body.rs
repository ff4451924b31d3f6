//! Reads a request's body: bounded in size, in time, and in what all of them take together; without a copy when it came in
//! one piece.
//! What nobody wants to read is let run out, within bounds, so that its sender comes to read the answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::status::Refusal;

/// 1 MiB: a hundred limits in one call take some 40 KiB.
pub const BODY_MAX: usize = 1 << 20;
/// So much of a body is read without asking for room: what a plain request may have too. Nearly none is longer.
const FREE: usize = 16 << 10;
/// What is longer takes room as it grows, in such units, of 64 MiB for all: whoever begins bodies and never ends them holds no
/// more of the memory than that, over however many connections and streams.
const UNIT: usize = 16 << 10;
static UNITS: Semaphore = Semaphore::const_new((64 << 20) / UNIT);
/// Bodies above [`BODY_MAX`] at once, where a route takes them: together they fill 64 MiB more.
const LARGE_AT_ONCE: usize = 4;
static LARGE: Semaphore = Semaphore::const_new(LARGE_AT_ONCE);
/// Bodies that found no room in time.
static CROWDED_OUT: AtomicU64 = AtomicU64::new(0);
/// Whoever needs longer for a megabyte is holding a connection, not sending a body.
const BODY_PATIENCE: Duration = Duration::from_secs(10);

/// What is read behind what was refused, and for how long. Whoever sends more, or slower, finds the connection closed, or
/// over HTTP/2 the stream.
pub const RUN_OUT_MAX: usize = 16 << 20;
pub const RUN_OUT_PATIENCE: Duration = Duration::from_secs(2);

/// What a body takes of what there is for all; it is given back with the request.
#[derive(Debug, Default)]
pub struct Room {
    units: Option<SemaphorePermit<'static>>,
    large: Option<SemaphorePermit<'static>>,
    /// There was not enough at once.
    has_waited: bool,
}

/// A body that comes in several pieces, on its way to being whole.
#[derive(Debug)]
struct Joining {
    whole: BytesMut,
    /// Up to this length there is room.
    paid: usize,
    room: Room,
}

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
        Some(first) if body.is_end_stream() => return Ok((first, Room::default())),
        Some(first) => first,
        None => return Ok((Bytes::new(), Room::default())),
    };
    let (whole, room) = (first.into(), Room::default());
    let mut joining = Joining { whole, paid: FREE, room };
    match Box::pin(tokio::time::timeout(BODY_PATIENCE, joining.join(body, max))).await {
        Ok(joined) => joined.map(|()| (joining.whole.freeze(), joining.room)),
        // It may have got room by now, too late: others were slow, and not its sender.
        Err(_) if joining.room.has_waited => {
            CROWDED_OUT.fetch_add(1, Ordering::Relaxed);
            Err(Refusal::BodiesCrowded)
        }
        Err(_) => Err(Refusal::BodyTooSlow),
    }
}

/// Bodies that found no room in time.
pub fn crowded_out() -> u64 {
    CROWDED_OUT.load(Ordering::Relaxed)
}

/// Lets the rest of a body run out beside its answer. Many clients (Node's fetch, Python's http.client) read nothing
/// before they have sent everything: closed on, they would see a broken connection and not the refusal. Over HTTP/2 a stream that
/// is reset behind its answer takes the answer along. Nothing of it is kept.
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

// === impl Joining ===

impl Joining {
    async fn join(&mut self, body: &mut Incoming, max: usize) -> Result<(), Refusal> {
        self.make_room(self.whole.len()).await;
        while let Some(piece) = next(body).await? {
            let length = self.whole.len() + piece.len();
            if length > max {
                return Err(Refusal::BodyTooLarge { max });
            }
            self.make_room(length).await;
            self.whole.extend_from_slice(&piece);
        }
        Ok(())
    }

    /// Waits for room for so many bytes. It is doubled where it does not suffice, and paid for before it is there.
    async fn make_room(&mut self, length: usize) {
        if length <= self.paid {
            return;
        }
        let capacity = length.next_power_of_two();
        self.room.grow_to(capacity).await;
        let mut whole = BytesMut::with_capacity(capacity);
        whole.extend_from_slice(&self.whole);
        (self.whole, self.paid) = (whole, capacity);
    }
}

// === impl Room ===

impl Room {
    async fn grow_to(&mut self, capacity: usize) {
        let wanted = capacity.min(BODY_MAX).saturating_sub(FREE).div_ceil(UNIT);
        let held = self.units.as_ref().map_or(0, SemaphorePermit::num_permits);
        // At most 64 of them.
        let more = u32::try_from(wanted.saturating_sub(held)).unwrap_or(0);
        if more > 0 {
            let more = self.taken(&UNITS, more).await;
            match (&mut self.units, more) {
                (Some(units), Some(more)) => units.merge(more),
                (none, more) => *none = more,
            }
        }
        if capacity > BODY_MAX && self.large.is_none() {
            self.large = self.taken(&LARGE, 1).await;
        }
    }

    /// Nobody closes these, so that there is always something to take in the end.
    async fn taken(
        &mut self,
        from: &'static Semaphore,
        count: u32,
    ) -> Option<SemaphorePermit<'static>> {
        if let Ok(taken) = from.try_acquire_many(count) {
            return Some(taken);
        }
        self.has_waited = true;
        from.acquire_many(count).await.ok()
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
