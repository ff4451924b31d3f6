//! One raw HTTP/1.1 connection: bytes go out, responses come in, and it lives as long as the server lets it.
//! It never retries, repairs or follows anything: what the server did is what the test sees.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// Longer than the server's own patience with a slow client, so that a test sees the server's and not ours.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Connection {
    socket: BufReader<TcpStream>,
}

/// What came back: names in lower case, in the order of arrival.
#[derive(Debug, Clone)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

// === impl Connection ===

impl Connection {
    /// `url` as [`Tollkeeper::url`](crate::Tollkeeper::url) gives it.
    pub fn open(url: &str) -> io::Result<Self> {
        let socket = TcpStream::connect(url.trim_start_matches("http://"))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { socket: BufReader::new(socket) })
    }

    /// Sends a whole request and waits for its answer. A server that refuses early stops reading: its answer
    /// counts for more than our failure to send the rest.
    pub fn exchange(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Response> {
        let sent = self.send(&request(method, path, headers, body));
        let head = self.head()?;
        let closed = || io::Error::new(ErrorKind::UnexpectedEof, "closed without an answer");
        match head {
            Some(head) if method == "HEAD" => Ok(head),
            Some(head) => self.with_body(head),
            None => sent.and(Err(closed())),
        }
    }

    /// Bytes as they are, right or wrong.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.get_mut().write_all(bytes)
    }

    /// Says that nothing more will be sent.
    pub fn end(&mut self) -> io::Result<()> {
        self.socket.get_mut().shutdown(Shutdown::Write)
    }

    /// The next response; nothing when the server has closed in order.
    pub fn receive(&mut self) -> io::Result<Option<Response>> {
        self.head()?.map(|head| self.with_body(head)).transpose()
    }

    /// Every response until the server closes, or says nothing for so long.
    pub fn receive_all(&mut self, silence: Duration) -> io::Result<Vec<Response>> {
        self.socket.get_ref().set_read_timeout(Some(silence))?;
        let mut all = Vec::new();
        loop {
            match self.receive() {
                Ok(Some(response)) => all.push(response),
                Ok(None) => return Ok(all),
                Err(error) if is_end(error.kind()) => return Ok(all),
                Err(error) => return Err(error),
            }
        }
    }

    fn head(&mut self) -> io::Result<Option<Response>> {
        let Some(line) = self.line()? else { return Ok(None) };
        let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
        let status = status.ok_or_else(|| garbled(&line))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?.ok_or_else(|| garbled("a head that ends early"))?;
            if line.is_empty() {
                return Ok(Some(Response { status, headers, body: Vec::new() }));
            }
            let (name, value) = line.split_once(':').ok_or_else(|| garbled(&line))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    fn with_body(&mut self, mut head: Response) -> io::Result<Response> {
        if let Some(length) = head.header("content-length") {
            let length = length.parse().map_err(|_| garbled(length))?;
            head.body = vec![0; length];
            self.socket.read_exact(&mut head.body)?;
        }
        Ok(head)
    }

    fn line(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        if self.socket.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        Ok(Some(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned()))
    }
}

// === impl Response ===

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Every value of a header that may come more than once.
    pub fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        let named = move |(known, _): &&(String, String)| known == name;
        self.headers.iter().filter(named).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The bytes of a request with its length declared.
fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let fields: String =
        headers.iter().map(|(name, value)| [name, ": ", value, "\r\n"].concat()).collect();
    let length = if method == "POST" {
        format!("content-length: {}\r\n", body.len())
    } else {
        String::new()
    };
    let head = format!("{method} {path} HTTP/1.1\r\nhost: test\r\n{fields}{length}\r\n");
    [head.as_bytes(), body].concat()
}

fn garbled(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("this is no HTTP response: {what:?}"))
}

/// A reset after the last answer is an end too: the server had no more to say.
fn is_end(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::ConnectionReset)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use std::net::TcpListener;

    fn answering(answer: &'static str) -> Connection {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            let _ = peer.read(&mut [0; 1024]);
            peer.write_all(answer.as_bytes()).unwrap();
        });
        Connection::open(&url).unwrap()
    }

    #[test]
    fn responses_are_told_apart_by_their_length() {
        let two = "HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 404 Not Found\r\n\r\n";
        let mut connection = answering(two);
        let first = connection.exchange("GET", "/", &[], b"").unwrap();
        assert_eq!((first.status, first.text().as_str()), (200, "ok"));
        assert_eq!(first.all("x-a").collect::<Vec<_>>(), ["1", "2"]);
        let rest = connection.receive_all(Duration::from_secs(5)).unwrap();
        assert_eq!(rest.iter().map(|one| one.status).collect::<Vec<_>>(), [404]);
    }

    #[test]
    fn an_orderly_close_is_nothing_and_a_foreign_answer_an_error() {
        let mut connection = answering("");
        connection.send(b"x").unwrap();
        assert!(connection.receive().unwrap().is_none());
        let garbled = answering("-ERR\r\n").exchange("GET", "/", &[], b"");
        assert_eq!(garbled.unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
