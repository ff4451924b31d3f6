//! The life of one connection: requests are answered until the client leaves, loses our patience, or we drain.

use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, timeout};

use super::aside::Aside;
use super::framing::{HEAD_BYTES_MAX, HEADERS_MAX};
use super::front::is_of_a_proxy;
use super::gauges::Place;
use super::parting::part;
use super::plain::{self, End};
use super::screen::Versions;
use super::screened::Screened;
use super::watched::{Activity, Watched};
use crate::app::App;
use crate::http::answer;

/// How often a connection looks at itself. Patience is counted in looks, which needs no clock per request.
const LOOK: Duration = Duration::from_millis(2500);
/// A request head must be whole within four looks (10 s), and so must the first of a connection come.
const HEAD_LOOKS: u32 = 4;
/// An idle client keeps its connection for thirty looks (75 s), longer than the 60 s that proxies keep theirs.
const IDLE_LOOKS: u32 = 30;

/// What is under way when a connection is to end may take so long.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// Enough for a proxy that sends everything over one connection.
const STREAMS_MAX: u32 = 256;

/// How a worker serves every one of its connections.
pub(super) fn protocol() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .header_read_timeout(None)
        // Most answers are a few hundred bytes: putting body and head together costs less than having the kernel do it.
        .writev(false);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(16 << 10)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(10));
    builder
}

pub(super) async fn serve(
    protocol: auto::Builder<TokioExecutor>,
    socket: TcpStream,
    app: Arc<App>,
    _place: Place,
    draining: watch::Receiver<bool>,
) {
    let activity = Arc::new(Activity::default());
    let mut socket = Watched::new(socket, Arc::clone(&activity));
    let dismissed = pin!(dismissed(draining, &activity));
    let mut dismissed = Aside::new(dismissed);
    let leaving = {
        let mut plain = pin!(plain::serve(&mut socket, &app, &activity));
        tokio::select! {
            biased;
            end = plain.as_mut() => match end {
                End::Gone => return,
                End::NotPlain => false,
            },
            verdict = &mut dismissed => {
                if verdict == Verdict::Cut {
                    app.gauges.time_out();
                    return;
                }
                if activity.is_between() {
                    return;
                }
                activity.leave();
                if !matches!(timeout(LAST_WORDS, plain).await, Ok(End::NotPlain)) {
                    return;
                }
                true
            },
        }
    };
    let mut protocol = if activity.answered() > 0 { protocol.http1_only() } else { protocol };
    // Who has sent everything and says so is answered. To a proxy that is an end: what is held back for a client that left is given
    // up, and where it is not seen to be a proxy's, after its delay.
    protocol.http1().half_close(!is_of_a_proxy(socket.early()));
    // In boxes, like all that is rare.
    if leaving {
        protocol.http1().keep_alive(false);
        let rest = serve_any(protocol, socket, &app, &activity, pending());
        let _ = Box::pin(timeout(LAST_WORDS, rest)).await;
    } else {
        Box::pin(serve_any(protocol, socket, &app, &activity, dismissed)).await;
    }
}

/// Whatever else there is: HTTP/2, bodies in chunks or of a size, heads that must be looked at closely.
async fn serve_any(
    protocol: auto::Builder<TokioExecutor>,
    socket: Watched,
    app: &Arc<App>,
    activity: &Arc<Activity>,
    dismissed: impl Future<Output = Verdict>,
) {
    let versions = if activity.answered() > 0 { Versions::Http1 } else { Versions::Any };
    let (screened, given_back) = Screened::new(socket, Arc::clone(activity), versions);
    serve_by_hyper(protocol, screened, app, activity, dismissed).await;
    if let Ok((mut socket, fault)) = given_back.await {
        part(&mut socket, app, activity, fault).await;
    }
}

async fn serve_by_hyper(
    protocol: auto::Builder<TokioExecutor>,
    socket: Screened,
    app: &Arc<App>,
    activity: &Arc<Activity>,
    dismissed: impl Future<Output = Verdict>,
) {
    let service = service_fn(|request: Request<Incoming>| {
        let (app, activity) = (Arc::clone(app), Arc::clone(activity));
        async move {
            let _answering = activity.begin(request.version());
            Ok::<_, Infallible>(answer(&app, request).await)
        }
    });
    let mut connection = pin!(protocol.serve_connection(TokioIo::new(socket), service));
    tokio::select! {
        biased;
        // Whatever ends it, the client knows better than we do; there is nobody left to tell.
        _ = connection.as_mut() => return,
        verdict = dismissed => if verdict == Verdict::Cut {
            app.gauges.time_out();
            return;
        },
    }
    connection.as_mut().graceful_shutdown();
    let _ = timeout(LAST_WORDS, connection).await;
}

/// Waits until the connection is to end: we drain, or have lost our patience.
async fn dismissed(mut draining: watch::Receiver<bool>, activity: &Activity) -> Verdict {
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut patience = Patience::default();
    loop {
        tokio::select! {
            biased;
            _ = draining.changed() => return Verdict::Leave,
            _ = looks.tick() => match patience.look(activity) {
                Verdict::Stay => {}
                verdict => return verdict,
            },
        }
    }
}

/// Counts looks at which nothing had moved.
#[derive(Debug, Default)]
struct Patience {
    looks: u32,
    answered: u64,
    /// At the last look part of a request was there.
    arriving: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Stay,
    /// Idle for long: close in order.
    Leave,
    /// Too slow: close now.
    Cut,
}

// === impl Patience ===

impl Patience {
    fn look(&mut self, activity: &Activity) -> Verdict {
        let answered = activity.answered();
        if activity.is_answering() || answered != self.answered {
            *self = Self { looks: 0, answered, arriving: false };
            return Verdict::Stay;
        }
        // The time of a client that was idle is not that of the request it has begun to send.
        if activity.is_arriving() && !self.arriving && answered > 0 {
            (self.looks, self.arriving) = (0, true);
        }
        self.looks += 1;
        // The first look comes at once, before anything could have moved.
        let head_due = activity.is_arriving() || answered == 0;
        if head_due && self.looks > HEAD_LOOKS {
            Verdict::Cut
        } else if self.looks > IDLE_LOOKS {
            Verdict::Leave
        } else {
            Verdict::Stay
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks_until(verdict: &Verdict, activity: &Activity, patience: &mut Patience) -> u32 {
        let mut looks = 0;
        while patience.look(activity) != *verdict {
            looks += 1;
            assert!(looks < 100);
        }
        looks
    }

    #[test]
    fn a_connection_that_never_sends_a_request_is_cut_after_ten_seconds() {
        let looks = looks_until(&Verdict::Cut, &Activity::default(), &mut Patience::default());
        assert_eq!(looks, HEAD_LOOKS);
    }

    #[test]
    fn an_idle_client_keeps_its_connection_and_every_answer_renews_our_patience() {
        let (activity, mut patience) = (Activity::default(), Patience::default());
        drop(activity.begin(http::Version::HTTP_11));
        assert_eq!(patience.look(&activity), Verdict::Stay);
        assert_eq!(looks_until(&Verdict::Leave, &activity, &mut patience), IDLE_LOOKS);
        drop(activity.begin(http::Version::HTTP_11));
        assert_eq!(patience.look(&activity), Verdict::Stay);
        assert_eq!(looks_until(&Verdict::Leave, &activity, &mut patience), IDLE_LOOKS);
    }

    #[test]
    fn a_request_that_begins_after_a_long_pause_has_as_long_as_any_other() {
        let (activity, mut patience) = (Activity::default(), Patience::default());
        drop(activity.begin(http::Version::HTTP_11));
        assert!((0..20).all(|_| patience.look(&activity) == Verdict::Stay));
        activity.arrive();
        assert_eq!(looks_until(&Verdict::Cut, &activity, &mut patience), HEAD_LOOKS);
    }

    #[test]
    fn a_request_that_is_being_answered_is_never_cut() {
        let (activity, mut patience) = (Activity::default(), Patience::default());
        let _answering = activity.begin(http::Version::HTTP_11);
        assert!((0..100).all(|_| patience.look(&activity) == Verdict::Stay));
    }
}
