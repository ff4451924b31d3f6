//! Whether the server can have its HTTP address, or who has it already.
//! It never keeps the address: the listener that tries it is closed at once.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use super::finding::Finding;

/// A server on this machine answers in far less; a doctor who waits longer is not worth asking.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) fn check(address: SocketAddr) -> Finding {
    match TcpListener::bind(address) {
        Ok(_) => Finding::ok("port", format!("{address} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => taken(address),
        Err(error) => Finding::fail(
            "port",
            format!("{address} cannot be used: {error}"),
            "choose an address of this machine, and a port of 1024 or above, with --http-listen",
        ),
    }
}

fn taken(address: SocketAddr) -> Finding {
    if is_alive(reachable(address)) {
        return Finding::ok("port", format!("{address} is taken by a Tollkeeper that answers"));
    }
    Finding::fail(
        "port",
        format!("{address} is taken by another program"),
        "stop that program, or choose another address with --http-listen",
    )
}

/// Where to knock: "all addresses" is an address to listen on, not one to connect to.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Many programs answer a probe with 200; ours gives a request id as well.
fn is_alive(address: SocketAddr) -> bool {
    /// Head and body of that answer are far shorter.
    const ANSWER_MAX: u64 = 4096;
    // In one piece: a server that answers the first bytes and closes would reset the connection over the rest.
    let request =
        format!("GET /v2/liveness HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    let mut answer = Vec::new();
    let asked = TcpStream::connect_timeout(&address, PATIENCE).and_then(|mut stream| {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(request.as_bytes())?;
        stream.take(ANSWER_MAX).read_to_end(&mut answer)
    });
    let text = String::from_utf8_lossy(&answer);
    asked.is_ok() && text.starts_with("HTTP/1.1 200") && text.contains(r#""requestId":"req_"#)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Grade;

    fn taken_by(answer: &'static str) -> Grade {
        let Ok(listener) = TcpListener::bind("127.0.0.1:0") else {
            return Grade::Warn;
        };
        let Ok(address) = listener.local_addr() else {
            return Grade::Warn;
        };
        std::thread::spawn(move || {
            let Ok((mut stream, _)) = listener.accept() else {
                return;
            };
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(answer.as_bytes());
        });
        check(address).grade
    }

    #[test]
    fn a_free_port_is_fine() {
        assert_eq!(check(SocketAddr::from(([127, 0, 0, 1], 0))).grade, Grade::Ok);
    }

    #[test]
    fn a_port_where_tollkeeper_answers_is_fine_and_one_taken_by_others_is_not() {
        let ours = "HTTP/1.1 200 OK\r\n\r\n{\"meta\":{\"requestId\":\"req_1\"},\"data\":{}}";
        assert_eq!(taken_by(ours), Grade::Ok);
        assert_eq!(taken_by("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"), Grade::Fail);
        assert_eq!(taken_by("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"), Grade::Fail);
        assert_eq!(taken_by("-ERR unknown command\r\n"), Grade::Fail);
    }

    #[test]
    fn an_address_of_another_machine_is_refused() {
        assert_eq!(check(SocketAddr::from(([192, 0, 2, 1], 7700))).grade, Grade::Fail);
    }
}
