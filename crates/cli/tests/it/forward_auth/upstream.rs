//! The API behind the proxy: it answers every request with the request itself, as it came.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) struct Upstream {
    pub(crate) address: String,
    seen: Arc<AtomicUsize>,
}

impl Upstream {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        let seen = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&seen);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                // Counted when a request is read, not when a connection is made: a proxy may make some in reserve.
                if answer(socket).is_some() {
                    count.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        Self { address, seen }
    }

    /// Requests that came through.
    pub(crate) fn seen(&self) -> usize {
        self.seen.load(Ordering::SeqCst)
    }
}

/// The head of the request is the body of the answer.
fn answer(socket: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(socket);
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let length = head.len();
    let text =
        format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{head}");
    reader.get_mut().write_all(text.as_bytes()).ok()
}
