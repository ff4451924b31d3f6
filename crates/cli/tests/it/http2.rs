//! HTTP/2 frame by frame, as a client that does what no library would: stops half way, or takes nothing.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Longer than the server's own patience.
const PATIENCE: Duration = Duration::from_secs(30);

/// Methods as HPACK has them without a table.
#[derive(Clone, Copy)]
pub(crate) enum Method {
    Get = 0x82,
    Post = 0x83,
}

#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

pub(crate) struct Http2(TcpStream);

impl Http2 {
    /// With these settings of ours.
    pub(crate) fn open(url: &str, settings: &[u8]) -> Self {
        let socket = TcpStream::connect(url.trim_start_matches("http://")).expect("open");
        socket.set_read_timeout(Some(PATIENCE)).expect("a patience");
        let mut connection = Self(socket);
        connection.send(&[PREFACE, &frame(SETTINGS, 0, 0, settings)].concat());
        connection
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).expect("sent");
    }

    pub(crate) fn receive(&mut self) -> Frame {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).expect("a frame");
        let [a, b, c, kind, flags, stream @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        self.0.read_exact(&mut payload).expect("all of a frame");
        Frame { kind, flags, stream: u32::from_be_bytes(stream), payload }
    }
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Method, scheme, path and authority.
pub(crate) fn asks_for(method: Method, path: &str) -> Vec<u8> {
    let length = u8::try_from(path.len()).expect("short");
    [&[method as u8, 0x86, 0x04, length], path.as_bytes(), &[0x01, 4], b"test"].concat()
}
