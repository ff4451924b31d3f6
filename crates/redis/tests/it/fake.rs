//! A server that says what it is told to, for answers that no real one can be brought to give.
//! It passes vetting; what it answers to a script is the test's choice.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// What it pretends to be.
#[derive(Clone)]
pub struct Fake {
    pub version: &'static str,
    /// Each INFO about the server names the next of these, and then the first again.
    pub run_ids: Vec<&'static str>,
    /// The bytes sent for EVALSHA.
    pub answer: Vec<u8>,
}

pub struct FakeServer {
    pub address: SocketAddr,
    answer: Arc<Mutex<Vec<u8>>>,
    task: AbortHandle,
}

impl Default for Fake {
    fn default() -> Self {
        Self { version: "7.0.0", run_ids: vec!["aa"], answer: b"+OK\r\n".to_vec() }
    }
}

impl Fake {
    pub async fn start(self) -> FakeServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answer = Arc::new(Mutex::new(self.answer.clone()));
        let given = answer.clone();
        let asked = Arc::new(AtomicUsize::new(0));
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(self.clone().serve(socket, given.clone(), asked.clone()));
            }
        });
        FakeServer { address, answer, task: task.abort_handle() }
    }

    async fn serve(self, socket: TcpStream, answer: Arc<Mutex<Vec<u8>>>, asked: Arc<AtomicUsize>) {
        let mut socket = BufReader::new(socket);
        while let Some(command) = command(&mut socket).await {
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            let reply = match words.as_slice() {
                ["HELLO", ..] => b"%1\r\n$5\r\nproto\r\n:3\r\n".to_vec(),
                ["INFO", "server"] => {
                    let turn = asked.fetch_add(1, Ordering::Relaxed) % self.run_ids.len();
                    let run_id = self.run_ids[turn];
                    bulk(&format!("redis_version:{}\r\nrun_id:{run_id}\r\n", self.version))
                }
                ["INFO", ..] => bulk("role:master\r\nmaster_replid:bb\r\n"),
                ["ROLE"] => b"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n".to_vec(),
                ["SCRIPT", ..] => bulk("0123456789012345678901234567890123456789"),
                ["EVALSHA", ..] => answer.lock().unwrap().clone(),
                _ => b"-ERR unknown command\r\n".to_vec(),
            };
            if socket.write_all(&reply).await.is_err() {
                return;
            }
        }
    }
}

impl FakeServer {
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    pub fn answer(&self, bytes: &[u8]) {
        *self.answer.lock().unwrap() = bytes.to_vec();
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn bulk(text: &str) -> Vec<u8> {
    format!("${}\r\n{text}\r\n", text.len()).into_bytes()
}

async fn command(socket: &mut BufReader<TcpStream>) -> Option<Vec<String>> {
    let mut words = Vec::new();
    for _ in 0..number(socket).await? {
        let mut word = vec![0; number(socket).await? + 2];
        socket.read_exact(&mut word).await.ok()?;
        words.push(String::from_utf8_lossy(&word[..word.len() - 2]).into_owned());
    }
    Some(words)
}

async fn number(socket: &mut BufReader<TcpStream>) -> Option<usize> {
    let mut line = String::new();
    socket.read_line(&mut line).await.ok()?;
    line.trim().get(1..)?.parse().ok()
}
