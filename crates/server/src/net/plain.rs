//! Plain requests: HTTP/1.1, a body of known length or none, nothing that would have to be agreed upon. They are nearly all
//! there are, and are read and answered here, without a channel for the body and a map for every header. Whatever is not
//! plain, or not whole soon, is put back unread, and hyper serves that connection from there on.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::Version;
use http::header::HeaderMap;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};

use super::date::Date;
use super::front::{Fault, Front, Request, is_of_a_call, look};
use super::parting::part;
use super::watched::{Activity, Watched};
use crate::app::App;
use crate::http::{Asked, Reply, answer_whole};

/// A request comes in so many pieces, at most: each means to look at its head once more.
const PIECES_MAX: u32 = 4;
/// So long each further piece is waited for. hyper waits longer, and says so in the end.
const REST_PATIENCE: Duration = Duration::from_secs(1);
/// What a read has room for at least.
const ROOM: usize = 2 << 10;
/// A buffer that has grown beyond it is not kept.
const KEPT_MAX: usize = 32 << 10;

thread_local! {
    /// Where replies are put together. One for all connections of a thread: it stays in the core's cache, and connections that
    /// wait hold none. Whoever has to wait while it writes keeps it so long, and the next one begins another.
    static OUT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// How it ended here.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// There is nobody to answer any more.
    Gone,
    /// Something that is not plain comes next.
    NotPlain,
}

/// Why there is no next request to answer here.
#[derive(Debug, PartialEq, Eq)]
enum Stop {
    Ended(End),
    Bad(Fault),
}

/// What it means that a client will send no more before it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Silence {
    /// It has sent all, and waits: what it asked for may be done by now, and it wants to know.
    WantsToKnow,
    /// It is gone: a proxy's client left, and what is held back for it only takes a place.
    IsGone,
}

/// Answers plain requests until there comes another or the client leaves. What was read and not answered is put back.
pub(super) async fn serve(socket: &mut Watched, app: &Arc<App>, activity: &Activity) -> End {
    let mut arrived = Vec::new();
    let mut headers = HeaderMap::new();
    let mut date = Date::default();
    loop {
        let request = match next(socket, activity, &mut arrived, &mut headers).await {
            Ok(request) => request,
            Err(Stop::Ended(end)) => {
                socket.put_back(arrived);
                return end;
            }
            Err(Stop::Bad(fault)) => {
                part(socket, app, activity, fault).await;
                return End::Gone;
            }
        };
        let mut ahead = Vec::new();
        let answering = activity.begin(Version::HTTP_11);
        let reply = {
            let (path, body) = (&arrived[request.path], &arrived[request.body.clone()]);
            let path = std::str::from_utf8(path).unwrap_or("");
            let asked = Asked { method: &request.method, path, headers: &mut headers };
            // Pinned where it is made: it has two kilobytes and more, and would be copied on its way.
            let answer = pin!(answer_whole(app, asked, body));
            // Who sent more behind it is there: nobody looks further, or a client could send faster than it is answered.
            let all_is_read = arrived.len() > request.body.end;
            if all_is_read {
                Some(answer.await)
            } else {
                let silence =
                    if is_of_a_call(path) { Silence::WantsToKnow } else { Silence::IsGone };
                unless_gone(answer, silence, socket, &mut ahead).await
            }
        };
        let Some(mut reply) = reply else { return End::Gone };
        drop(answering);
        if activity.is_leaving() {
            reply.end();
        }
        let mut out = OUT.take();
        reply.write(date.at(app.clock.now().0 / 1000), &mut out);
        let (is_last, shared) = (reply.is_last(), reply.shared_body().cloned());
        reply.left();
        if socket.write_all(&out).await.is_err() {
            return End::Gone;
        }
        if let Some(body) = shared
            && socket.write_all(&body).await.is_err()
        {
            return End::Gone;
        }
        out.clear();
        out.shrink_to(KEPT_MAX);
        OUT.set(out);
        if is_last {
            let _ = socket.shutdown().await;
            return End::Gone;
        }
        arrived.drain(..request.body.end);
        arrived.append(&mut ahead);
        arrived.shrink_to(KEPT_MAX);
    }
}

/// The next request, once it is whole.
async fn next(
    socket: &mut Watched,
    activity: &Activity,
    arrived: &mut Vec<u8>,
    headers: &mut HeaderMap,
) -> Result<Request, Stop> {
    let mut pieces = 0;
    loop {
        headers.clear();
        match look(arrived, headers) {
            Front::Whole(request) => return Ok(request),
            Front::Bad(fault) => return Err(Stop::Bad(fault)),
            Front::NotPlain => return Err(Stop::Ended(End::NotPlain)),
            Front::Part if pieces == PIECES_MAX => return Err(Stop::Ended(End::NotPlain)),
            Front::Part => pieces += 1,
        }
        arrived.reserve(ROOM);
        let read = if arrived.is_empty() {
            if activity.is_leaving() {
                return Err(Stop::Ended(End::Gone));
            }
            activity.begin_pause();
            let read = socket.read_buf(arrived).await;
            activity.end_pause();
            read
        } else {
            activity.arrive();
            let rest = tokio::time::timeout(REST_PATIENCE, socket.read_buf(arrived));
            Box::pin(rest).await.map_err(|_| Stop::Ended(End::NotPlain))?
        };
        if !matches!(read, Ok(1..)) {
            return Err(Stop::Ended(End::Gone));
        }
    }
}

/// The answer, unless the client leaves before there is one. Something may come from it meanwhile: that is kept for later, and
/// then it is there for certain.
async fn unless_gone(
    mut answer: Pin<&mut impl Future<Output = Reply>>,
    silence: Silence,
    socket: &mut Watched,
    ahead: &mut Vec<u8>,
) -> Option<Reply> {
    let mut has_ended = false;
    poll_fn(|context| {
        if let Poll::Ready(reply) = answer.as_mut().poll(context) {
            return Poll::Ready(Some(reply));
        }
        if ahead.is_empty() && !has_ended {
            let mut room = [0; ROOM];
            let mut read = ReadBuf::new(&mut room);
            match Pin::new(&mut *socket).poll_read(context, &mut read) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) if !read.filled().is_empty() => ahead.extend(read.filled()),
                Poll::Ready(Ok(())) if silence == Silence::WantsToKnow => has_ended = true,
                Poll::Ready(_) => return Poll::Ready(None),
            }
        }
        Poll::Pending
    })
    .await
}
