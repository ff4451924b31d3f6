//! Runs the binary with nothing of this process's environment, so that a test says everything that counts.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) struct Program {
    command: Command,
    stdin: String,
}

impl Program {
    pub(crate) fn new(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollkeeper"));
        command.env_clear().args(arguments);
        Self { command, stdin: String::new() }
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn folder(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    pub(crate) fn stdin(mut self, text: &str) -> Self {
        text.clone_into(&mut self.stdin);
        self
    }

    pub(crate) fn run(mut self) -> Ran {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("the binary starts");
        let mut stdin = child.stdin.take().expect("piped");
        // A program that does not read its stdin closes it; that is its right.
        let _ = stdin.write_all(self.stdin.as_bytes());
        drop(stdin);
        let output = child.wait_with_output().expect("the binary ends");
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }
}

/// A server that answers one request with a prepared text and hands back what it was sent.
pub(crate) struct Stub {
    pub(crate) url: String,
    request: JoinHandle<String>,
}

impl Stub {
    pub(crate) fn answering(status: &'static str, body: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let request = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("a caller");
            let request = read_request(&mut socket);
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            socket.write_all(answer.as_bytes()).expect("the caller listens");
            request
        });
        Self { url, request }
    }

    pub(crate) fn request(self) -> String {
        self.request.join().expect("was asked")
    }
}

fn read_request(socket: &mut impl Read) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let count = socket.read(&mut buffer).expect("readable");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if count == 0 || body.len() >= length.map_or(0, |length| length.parse().expect("a number"))
        {
            return text;
        }
    }
}
