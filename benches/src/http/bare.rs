//! A server with nothing in it but hyper: parses the body, gives the captured reply. What HTTP itself costs.

use std::convert::Infallible;
use std::hint::black_box;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::runtime::Builder;
use tokio::sync::mpsc;

use super::reply::Reply;
use crate::failure::Failure;
use crate::report;

/// Connections on their way to a thread; more than the load opens.
const ARRIVALS_MAX: usize = 1024;

/// The body of `ratelimit.limit`, borrowed.
#[derive(Debug, Deserialize)]
struct Check<'a> {
    namespace: &'a str,
    identifier: &'a str,
    limit: u64,
    duration: u64,
    cost: u64,
    algorithm: &'a str,
}

/// The body of `keys.verifyKey`, as the load has it.
#[derive(Debug, Deserialize)]
struct Verification<'a> {
    key: &'a str,
}

/// Whether a body can be read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reads {
    Limits,
    Verifications,
}

/// One single-threaded runtime per thread, fed in turn by one listener, as the product does it.
pub(crate) fn bare_per_core(reads: Reads, reply: &str, threads: &str) -> Result<(), Failure> {
    let (reply, listener) = open(reply)?;
    let start = |_| start_thread(reads, Arc::clone(&reply)).map_err(Failure::io("a thread"));
    let threads = (0..count(threads)?).map(start).collect::<Result<Vec<_>, _>>()?;
    for (turn, socket) in listener.incoming().flatten().enumerate() {
        if ready(&socket).is_ok() {
            let _ = threads[turn % threads.len()].try_send(socket);
        }
    }
    Ok(())
}

/// One runtime over all threads, which take work from each other.
pub(crate) fn bare_shared(reply: &str, threads: &str) -> Result<(), Failure> {
    let (reply, listener) = open(reply)?;
    let runtime = Builder::new_multi_thread().worker_threads(count(threads)?).enable_all().build();
    let runtime = runtime.map_err(Failure::io("a runtime"))?;
    for socket in listener.incoming().flatten() {
        if ready(&socket).is_ok() {
            runtime.spawn(serve(socket, Reads::Limits, Arc::clone(&reply)));
        }
    }
    Ok(())
}

fn open(reply: &str) -> Result<(Arc<Reply>, TcpListener), Failure> {
    let reply = Arc::new(Reply::load(Path::new(reply))?);
    let listener = TcpListener::bind("127.0.0.1:0").map_err(Failure::io("a port"))?;
    let address = listener.local_addr().map_err(Failure::io("a port"))?;
    report::answer(format_args!("listening on http://{address}"));
    Ok((reply, listener))
}

fn start_thread(reads: Reads, reply: Arc<Reply>) -> io::Result<mpsc::Sender<TcpStream>> {
    let (arrivals, mut incoming) = mpsc::channel(ARRIVALS_MAX);
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let work = async move {
        while let Some(socket) = incoming.recv().await {
            tokio::spawn(serve(socket, reads, Arc::clone(&reply)));
        }
    };
    thread::Builder::new().spawn(move || runtime.block_on(work))?;
    Ok(arrivals)
}

fn ready(socket: &TcpStream) -> io::Result<()> {
    socket.set_nonblocking(true).and_then(|()| socket.set_nodelay(true))
}

async fn serve(socket: TcpStream, reads: Reads, reply: Arc<Reply>) {
    let Ok(socket) = tokio::net::TcpStream::from_std(socket) else { return };
    let service = service_fn(|request| {
        let reply = Arc::clone(&reply);
        async move { Ok::<_, Infallible>(answer(request, reads, &reply).await) }
    });
    // Whatever ends it, the load has what it wanted.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
}

async fn answer(request: Request<Incoming>, reads: Reads, reply: &Reply) -> Response<Full<Bytes>> {
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes);
    if body.is_ok_and(|body| reads.parse(&body)) {
        return reply.give();
    }
    let mut refused = Response::new(Full::default());
    *refused.status_mut() = StatusCode::BAD_REQUEST;
    refused
}

// === impl Reads ===

impl Reads {
    fn parse(self, body: &[u8]) -> bool {
        match self {
            Self::Limits => serde_json::from_slice::<Check<'_>>(body).is_ok_and(|body| {
                let Check { namespace, identifier, limit, duration, cost, algorithm } = body;
                black_box((namespace, identifier, limit, duration, cost, algorithm));
                true
            }),
            Self::Verifications => serde_json::from_slice::<Verification<'_>>(body)
                .is_ok_and(|body| !black_box(body.key).is_empty()),
        }
    }
}

fn count(threads: &str) -> Result<usize, Failure> {
    let count = threads.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| Failure::unreadable("a number of threads", threads))
}
