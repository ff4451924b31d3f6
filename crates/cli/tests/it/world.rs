//! A server of its own for one test, on a folder of its own: asked over kept-alive connections, restarted at will.

use std::fs;
use std::path::Path;
use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;
use tollkeeper_testkit::{Connection, Response, StartFailure, Tollkeeper};

use crate::time::eventually;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_tollkeeper");

/// The longest window there is. It ends within a test once in a month, at midnight.
pub(crate) const LONG_MS: u64 = 2_592_000_000;

pub(crate) const ALGORITHMS: [&str; 4] =
    ["sliding_window", "fixed_window", "token_bucket", "sliding_log"];

pub(crate) struct World {
    pub(crate) server: Tollkeeper,
    env: Vec<(&'static str, &'static str)>,
    folder: TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(env: &[(&'static str, &'static str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let server = start(folder.path(), env).expect("the server starts");
        Self { server, env: env.to_vec(), folder }
    }

    pub(crate) fn data_dir(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.server.url(), self.server.root_key())
    }

    /// Ends in order and starts again on the same folder.
    pub(crate) fn restart(&mut self) {
        let status = self.server.terminate().expect("it ends when told to");
        assert!(status.success(), "{status}: {}", self.server.stderr());
        self.start_again();
    }

    /// Dies without warning and starts again on the same folder.
    pub(crate) fn crash(&mut self) {
        self.server.kill9().expect("it can be killed");
        self.start_again();
    }

    pub(crate) fn start_again(&mut self) {
        self.server = start(self.folder.path(), &self.env).expect("the server starts again");
    }

    /// The value of one series, labels included; a series that is not there counts nothing yet.
    pub(crate) fn metric(&self, series: &str) -> u64 {
        let text = self.client().get("/metrics").text();
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.map_or(0, |value| value.parse().expect("a whole number"))
    }

    /// Decisions that were counted as spending, allowed or not.
    pub(crate) fn spends(&self) -> u64 {
        let kinds = ["limit", "multi_limit"].iter();
        let outcomes = |kind| ["valid", "rate_limited"].map(|outcome| (kind, outcome));
        kinds
            .flat_map(outcomes)
            .map(|(kind, outcome)| {
                self.metric(&format!(
                    "tollkeeper_checks_total{{kind=\"{kind}\",outcome=\"{outcome}\"}}"
                ))
            })
            .sum()
    }
}

pub(crate) fn start(folder: &Path, env: &[(&str, &str)]) -> Result<Tollkeeper, StartFailure> {
    Tollkeeper::start(BINARY, folder, env)
}

/// Starts the server behind a script: the harness runs `sh serve` in the folder.
pub(crate) fn start_behind(
    script: &str,
    folder: &Path,
    env: &[(&str, &str)],
) -> Result<Tollkeeper, StartFailure> {
    fs::write(folder.join("serve"), format!("{script}\nexec {BINARY} serve\n")).expect("written");
    Tollkeeper::start("/bin/sh", folder, env)
}

/// One caller with one connection.
pub(crate) struct Client {
    pub(crate) connection: Connection,
    authorization: String,
}

/// An answer in the envelope.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) response: Response,
    pub(crate) json: Value,
}

impl Client {
    pub(crate) fn new(url: &str, root_key: &str) -> Self {
        let connection = Connection::open(url).expect("the server listens");
        Self { connection, authorization: format!("Bearer {root_key}") }
    }

    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.connection.exchange("GET", path, &[], b"").expect("an answer")
    }

    pub(crate) fn post(&mut self, method: &str, body: &Value) -> Answer {
        self.try_post(method, body).expect("an answer")
    }

    pub(crate) fn try_post(&mut self, method: &str, body: &Value) -> std::io::Result<Answer> {
        self.post_bytes(method, body.to_string().as_bytes())
    }

    pub(crate) fn post_bytes(&mut self, method: &str, body: &[u8]) -> std::io::Result<Answer> {
        let path = format!("/v2/{method}");
        let headers =
            [("authorization", &*self.authorization), ("content-type", "application/json")];
        let response = self.connection.exchange("POST", &path, &headers, body)?;
        // An export is plain text; everything else is JSON.
        let kind = response.header("content-type").unwrap_or_default();
        if ["text/csv", "application/x-ndjson"].iter().any(|plain| kind.starts_with(plain)) {
            return Ok(Answer { json: Value::Null, response });
        }
        let json = serde_json::from_slice(&response.body).unwrap_or_else(|error| {
            panic!("{error}: {} {}", response.status, response.text());
        });
        Ok(Answer { response, json })
    }

    /// Posts again as long as storage does not answer in time: where something was killed, or on a busy machine, it may not, and
    /// says to try again.
    pub(crate) fn post_patiently(&mut self, method: &str, body: &Value) -> Answer {
        let mut answer = self.post(method, body);
        eventually("storage answers", || {
            if answer.status() == 503 {
                answer = self.post(method, body);
            }
            answer.status() != 503
        });
        answer
    }

    /// The same call under a name of its own: sent again, it must not be done again.
    pub(crate) fn post_once(&mut self, method: &str, body: &Value, key: &str) -> Answer {
        let path = format!("/v2/{method}");
        let headers = [("authorization", &*self.authorization), ("idempotency-key", key)];
        let body = body.to_string();
        let response = self.connection.exchange("POST", &path, &headers, body.as_bytes());
        let response = response.expect("an answer");
        let json = serde_json::from_slice(&response.body).expect("JSON");
        Answer { response, json }
    }

    /// The data of a success.
    pub(crate) fn data(&mut self, method: &str, body: &Value) -> Value {
        let mut answer = self.post(method, body);
        assert_eq!(answer.response.status, 200, "{method} {body}: {}", answer.json);
        answer.json["data"].take()
    }

    pub(crate) fn limit(&mut self, body: &Value) -> Value {
        self.data("ratelimit.limit", body)
    }

    /// Spends `cost` for an identifier of the namespace `api`, within a limit that it never reaches.
    pub(crate) fn spend(&mut self, identifier: &str, algorithm: &str, cost: u64) {
        let mut body = ask("api", identifier, 10_000);
        body["algorithm"] = json!(algorithm);
        body["cost"] = json!(cost);
        let data = self.limit(&body);
        assert_eq!(data["success"], true, "{data}");
    }

    /// What [`spend`](Self::spend) has spent there.
    pub(crate) fn used(&mut self, identifier: &str, algorithm: &str) -> u64 {
        let mut body = ask("api", identifier, 10_000);
        body["algorithm"] = json!(algorithm);
        self.data("limits.peek", &body)["used"].as_u64().expect("a count")
    }
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.response.status
    }

    /// Where the field errors point.
    pub(crate) fn places(&self) -> Vec<&str> {
        let errors = self.json["error"]["errors"].as_array().expect("a list of errors");
        errors.iter().map(|error| error["location"].as_str().expect("a place")).collect()
    }

    /// A refusal as the contract has it: the envelope, whole, and in JSON.
    pub(crate) fn assert_refused(&self, what: &str) {
        let (status, json) = (self.status(), &self.json);
        assert!((400..500).contains(&status), "{what}: {status} {json}");
        assert_eq!(keys(json), ["error", "meta"], "{what}");
        assert_eq!(keys(&json["meta"]), ["requestId"], "{what}");
        assert_eq!(keys(&json["error"]), ["detail", "errors", "status", "title", "type"], "{what}");
        assert_eq!(json["error"]["status"], status, "{what}");
        let kind = json["error"]["type"].as_str().expect("a type");
        assert!(kind.starts_with("https://tollkeeper.dev/errors/"), "{what}: {kind}");
        assert_eq!(self.response.header("content-type"), Some("application/json"), "{what}");
        for place in self.places() {
            assert!(!place.contains(char::is_control), "{what}: {place:?}");
        }
    }

    /// The last part of the error's type.
    pub(crate) fn code(&self) -> &str {
        let kind = self.json["error"]["type"].as_str().expect("a type");
        kind.rsplit('/').next().unwrap_or_default()
    }
}

/// An ask of cost 1 in the longest window.
pub(crate) fn ask(namespace: &str, identifier: &str, limit: u64) -> Value {
    json!({"namespace": namespace, "identifier": identifier, "limit": limit, "duration": LONG_MS})
}

/// The names of an object's fields, sorted.
pub(crate) fn keys(object: &Value) -> Vec<&str> {
    let mut keys: Vec<_> =
        object.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// Runs the same thing on many threads at once and hands back what each of them found.
/// A whole folder, into one that is there.
pub(crate) fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            fs::create_dir(&target).expect("a folder");
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).expect("a copy");
        }
    }
}

pub(crate) fn side_by_side<T: Send>(threads: usize, run: impl Fn(usize) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let run = &run;
        let all: Vec<_> = (0..threads).map(|at| scope.spawn(move || run(at))).collect();
        all.into_iter().map(|one| one.join().expect("the thread ends well")).collect()
    })
}
