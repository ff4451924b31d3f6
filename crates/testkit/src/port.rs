//! Ports for servers that come back on the port they had.
//! They lie below those that the kernel gives to outgoing connections, so that nobody takes one while its server is down.

use std::io;
use std::net::TcpListener;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

const FIRST: u32 = 20_000;
const COUNT: u32 = 12_000;

/// A port that was free a moment ago. Test processes begin at places far from each other.
pub(crate) fn free_port() -> io::Result<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let offset = process::id().wrapping_mul(131).wrapping_add(step) % COUNT;
        let port = u16::try_from(FIRST + offset).map_err(io::Error::other)?;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::Error::other("no port is free"))
}
