//! A real S3-compatible server (moto) for a test, with one empty bucket, gone with the process that started it.
//! It keeps objects in memory and checks no signature.

use std::io;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::connection::{Connection, Response};
use crate::output::Output;
use crate::port::free_port;
use crate::python::python;

/// A start takes a few seconds, most of them imports; the rest is for a busy build machine.
const START_PATIENCE: Duration = Duration::from_mins(1);
const STEP: Duration = Duration::from_millis(50);

/// Lives exactly as long as the pipe from the test.
const KEEPER: &str = r#""$@" & pid=$!
read -r _
kill -KILL $pid
wait $pid"#;

/// The bucket that is there from the start.
pub const BUCKET: &str = "archive";

/// Dropping it ends it.
#[derive(Debug)]
pub struct S3Server {
    port: u16,
    shell: Child,
    pipe: Option<ChildStdin>,
    said: Output,
}

// === impl S3Server ===

impl S3Server {
    pub fn start() -> io::Result<Self> {
        let port = free_port()?;
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "keeper"]).arg(python()?);
        command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut shell = command.spawn()?;
        let pipe = shell.stdin.take();
        let said = shell.stderr.take().ok_or_else(|| io::Error::other("the shell has no pipe"))?;
        let server = Self { port, shell, pipe, said: Output::collect(said) };
        for _ in 0..START_PATIENCE.as_millis() / STEP.as_millis() {
            if server.ask("PUT", "").is_ok_and(|answer| answer.status == 200) {
                return Ok(server);
            }
            #[allow(
                clippy::disallowed_methods,
                reason = "what a foreign process does can only be polled for"
            )]
            thread::sleep(STEP);
        }
        Err(io::Error::other(format!("moto did not start:\n{}", server.said.so_far())))
    }

    /// `http://127.0.0.1:PORT`
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What a client of S3 takes from its environment to find this server.
    pub fn env(&self) -> Vec<(String, String)> {
        let url = self.url();
        let pairs = [
            ("AWS_ENDPOINT_URL", url.as_str()),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("AWS_REGION", "us-east-1"),
        ];
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
    }

    /// The content of an object, or its status where there is none.
    pub fn get(&self, key: &str) -> io::Result<Response> {
        self.ask("GET", &format!("/{key}"))
    }

    fn ask(&self, method: &str, path: &str) -> io::Result<Response> {
        // Nobody checks the signature, but there has to be one.
        const SIGNED: &str = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, \
             SignedHeaders=host, Signature=0";
        let mut connection = Connection::open(&self.url())?;
        let headers = [("authorization", SIGNED)];
        connection.exchange(method, &format!("/{BUCKET}{path}"), &headers, b"")
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ = self.shell.wait();
    }
}
