//! The yardstick of a call: a script that counts a fixed window, called as often as a node calls Redis, and with as many
//! commands in one write. A Redis that is called less often sleeps in between, and takes longer for each.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::Range;

use tollkeeper_testkit::RedisServer;

use super::redis_side::Pace;
use crate::clock::Stopwatch;
use crate::failure::Failure;
use crate::identifiers::identifier;

const SCRIPT: &str = "\
local counted = redis.call('INCR', KEYS[1])
if counted == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return counted";

/// As the first call of a key answers.
const FIRST: &[u8] = b":1\r\n";

#[derive(Debug)]
pub(super) struct Counter {
    socket: TcpStream,
    digest: String,
    width_ms: String,
}

// === impl Counter ===

impl Counter {
    pub(super) fn open(redis: &RedisServer, width_ms: u64) -> Result<Self, Failure> {
        let digest = redis.ask(&["SCRIPT", "LOAD", SCRIPT]);
        let socket = TcpStream::connect(redis.address()).map_err(Failure::io("Redis"))?;
        socket.set_nodelay(true).map_err(Failure::io("Redis"))?;
        Ok(Self { socket, digest, width_ms: width_ms.to_string() })
    }

    /// Counts each of these identifiers once. `key` is one of the node's own keys, of this identifier.
    pub(super) fn count(
        &mut self,
        numbers: Range<u64>,
        (key, of): (&str, u64),
        pace: Pace,
    ) -> Result<(), Failure> {
        let (before, behind) = key.split_once(&identifier(of)).unwrap_or((key, ""));
        let (first, watch) = (numbers.start, Stopwatch::start());
        let (mut numbers, mut due) = (numbers.peekable(), 0.0);
        let (mut batch, mut answers) = (Vec::new(), Vec::new());
        while let Some(next) = numbers.peek() {
            // Sleeping would be too coarse, and the node's core is not idle either.
            while watch.elapsed().as_secs_f64() * pace.per_second < (next - first) as f64 {
                std::hint::spin_loop();
            }
            due += pace.at_once.max(1.0);
            batch.clear();
            let mut sent = 0;
            while due >= 1.0
                && let Some(n) = numbers.next()
            {
                self.command(&mut batch, &format!("{before}{}{behind}", identifier(n)));
                (sent, due) = (sent + 1, due - 1.0);
            }
            self.socket.write_all(&batch).map_err(Failure::io("Redis"))?;
            answers.resize(sent * FIRST.len(), 0);
            self.socket.read_exact(&mut answers).map_err(Failure::io("Redis"))?;
            if answers.chunks(FIRST.len()).any(|answer| answer != FIRST) {
                let said = String::from_utf8_lossy(&answers).into_owned();
                return Err(Failure::Invalid(format!("the plain counter answered {said}")));
            }
        }
        Ok(())
    }

    fn command(&self, batch: &mut Vec<u8>, key: &str) {
        batch.extend_from_slice(b"*5\r\n");
        for part in ["EVALSHA", &self.digest, "1", key, &self.width_ms] {
            batch.extend_from_slice(format!("${}\r\n{part}\r\n", part.len()).as_bytes());
        }
    }
}
