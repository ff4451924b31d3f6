//! The life of one connection: requests are answered until the client leaves, loses our patience, or we drain.

use std::convert::Infallible;
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
use tokio::time::MissedTickBehavior;

use super::aside::Aside;
use super::gauges::Place;
use super::plain::{self, End};
use super::watched::{Activity, Watched};
use crate::app::App;
use crate::http::answer;

/// How often a connection looks at itself. Patience is counted in looks, which needs no clock per request.
const LOOK: Duration = Duration::from_millis(2500);
/// A request head must be whole within four looks (10 s), and so must the first of a connection come.
const HEAD_LOOKS: u32 = 4;
/// An idle client keeps its connection for thirty looks (75 s), longer than the 60 s that proxies keep theirs.
const IDLE_LOOKS: u32 = 30;

/// Larger heads are nobody's: a root key has at most 512 characters.
const HEAD_BYTES_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 64;
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
    {
        let mut plain = pin!(plain::serve(&mut socket, &app, &activity));
        tokio::select! {
            biased;
            end = plain.as_mut() => if end == End::Gone {
                return;
            },
            verdict = &mut dismissed => {
                if verdict == Verdict::Cut {
                    app.gauges.time_out();
                } else if !activity.is_between() {
                    activity.leave();
                    let _ = tokio::time::timeout(LOOK * HEAD_LOOKS, plain).await;
                }
                return;
            },
        }
    }
    // In a box, like all that is rare.
    Box::pin(serve_any(protocol, socket, &app, &activity, dismissed)).await;
}

/// Whatever else there is: HTTP/2, bodies in chunks or of a size, heads that must be looked at closely.
async fn serve_any(
    protocol: auto::Builder<TokioExecutor>,
    socket: Watched,
    app: &Arc<App>,
    activity: &Arc<Activity>,
    dismissed: Aside<'_, impl Future<Output = Verdict>>,
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
    let _ = tokio::time::timeout(LOOK * HEAD_LOOKS, connection).await;
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
            *self = Self { looks: 0, answered };
            return Verdict::Stay;
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
    fn a_request_that_is_being_answered_is_never_cut() {
        let (activity, mut patience) = (Activity::default(), Patience::default());
        let _answering = activity.begin(http::Version::HTTP_11);
        assert!((0..100).all(|_| patience.look(&activity) == Verdict::Stay));
    }
}
