//! Many clients that send a request one byte at a time and never finish it.
//! They live in the calling thread and move only when told, so that a test controls the pace.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A header that never ends: after the opening come filler bytes of one endless field.
const OPENING: &[u8] = b"GET /livez HTTP/1.1\r\nhost: slow\r\nx-slow: ";
const FILLER: u8 = b'a';

#[derive(Debug)]
pub struct SlowSockets {
    open: Vec<TcpStream>,
    sent: usize,
}

impl SlowSockets {
    pub fn open(address: SocketAddr, count: usize) -> io::Result<Self> {
        raise_open_files()?;
        let connect = || {
            let socket = TcpStream::connect(address)?;
            socket.set_nodelay(true)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let open: io::Result<Vec<_>> = (0..count).map(|_| connect()).collect();
        Ok(Self { open: open?, sent: 0 })
    }

    /// Sends the next byte on every socket that the server has not given up on; says how many are left.
    pub fn trickle(&mut self) -> usize {
        let byte = OPENING.get(self.sent).copied().unwrap_or(FILLER);
        self.sent += 1;
        self.open.retain_mut(|socket| is_open(socket) && written(socket, byte));
        self.open.len()
    }

    /// How many the server still holds open.
    pub fn held(&mut self) -> usize {
        self.open.retain_mut(is_open);
        self.open.len()
    }
}

fn is_open(socket: &mut TcpStream) -> bool {
    let mut answer = [0; 512];
    loop {
        match socket.read(&mut answer) {
            Ok(0) => return false,
            // A farewell such as 408 comes before the close; read past it.
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

fn written(socket: &mut TcpStream, byte: u8) -> bool {
    match socket.write(&[byte]) {
        Ok(sent) => sent == 1,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}

/// Thousands of sockets do not fit in the usual soft limit of 1024; the hard limit is ours to use.
fn raise_open_files() -> io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::SlowSockets;
    use std::io::Read;
    use std::net::TcpListener;

    #[test]
    fn each_call_sends_one_byte_on_every_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut slow = SlowSockets::open(listener.local_addr().unwrap(), 3).unwrap();
        let mut peers: Vec<_> = (0..3).map(|_| listener.accept().unwrap().0).collect();
        for _ in 0..4 {
            assert_eq!(slow.trickle(), 3);
        }
        for peer in &mut peers {
            let mut got = [0; 4];
            peer.read_exact(&mut got).unwrap();
            assert_eq!(&got, b"GET ");
        }
        assert_eq!(slow.held(), 3);
        drop(peers);
        // The close travels over loopback at once, but not before the call returns.
        while slow.held() > 0 {
            std::thread::yield_now();
        }
    }
}
