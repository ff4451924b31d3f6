//! A server whose scripts are told the time, and forget by that time.

use redis::{Cmd, Connection, ToRedisArgs, Value, cmd};
use tollkeeper_testkit::RedisServer;

use super::RUN;

/// How every script asks for the time.
const CLOCK: &str = "local time = redis.call('TIME')\n";
const READING: &str = "tonumber(time[1]) * 1000 + math.floor(time[2] / 1000)";

/// The last of KEYS is the time.
const TOLD: &str = "local told = tonumber(KEYS[#KEYS])\n";

/// The same for `take.lua`, which reads microseconds. A record whose time is over is removed before the script sees it.
const READING_US: &str = "tonumber(time[1]) * 1000000 + tonumber(time[2])";
const TOLD_US: &str = "local told_us = tonumber(KEYS[#KEYS])
local told = math.floor(told_us / 1000)
local over = redis.call('GET', 'x:' .. KEYS[1])
if over and tonumber(over) <= told then redis.call('DEL', KEYS[1], 'x:' .. KEYS[1]) end
";

/// How `take.lua` calls Redis: an expiry is noted beside the record instead, by the time that was told.
const CALL: &str = "local call, record, kind, boot, print = redis.call,";
const NOTING: &str = "local told = math.floor(tonumber(KEYS[#KEYS]) / 1000)
local function noting(name, key, ...)
  local ends
  if name == 'SET' and key == KEYS[1] then
    if not redis.call('SET', key, (...), 'NX') then return false end
    ends = select(3, ...)
  elseif name == 'PEXPIRE' then
    ends = told + ...
  else
    return redis.call(name, key, ...)
  end
  return redis.call('SET', 'x:' .. key, string.format('%.0f', ends))
end
local call, record, kind, boot, print = noting,";

/// How a folded record is asked for its moment, and where that is noted.
const ENDS: &str = "redis.call('PEXPIRETIME', record)";
const NOTED: &str = "tonumber(redis.call('GET', 'x:' .. record))";

pub(super) struct FakeTime {
    server: RedisServer,
    connection: Connection,
}

/// A script as it is loaded, found by its digest.
#[derive(Clone, Debug)]
pub(super) struct Digest(String);

// === impl FakeTime ===

impl FakeTime {
    pub(super) fn start() -> Self {
        let server = RedisServer::start().unwrap();
        let connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
        Self { server, connection }
    }

    pub(super) fn port(&self) -> u16 {
        self.server.port()
    }

    /// The script as it is, behind the line of the loader.
    pub(super) fn load(&mut self, text: &str) -> Digest {
        let bound = format!("local RUN = '{RUN}'\n{text}");
        Digest(cmd("SCRIPT").arg("LOAD").arg(bound).query(&mut self.connection).unwrap())
    }

    /// The script with the time as a further key.
    pub(super) fn load_timed(&mut self, text: &str) -> Digest {
        let text = replaced(&replaced(text, CLOCK, TOLD), READING, "told");
        self.load(&text)
    }

    /// `take.lua` with the time in microseconds as a further key, and its expiry by that time.
    pub(super) fn load_expiring(&mut self, text: &str) -> Digest {
        let text = replaced(&replaced(text, CALL, NOTING), ENDS, NOTED);
        let text = replaced(&replaced(&text, CLOCK, TOLD_US), READING_US, "told_us");
        self.load(&text)
    }

    /// A script that asks only when a record ends.
    pub(super) fn load_ending(&mut self, text: &str) -> Digest {
        self.load(&replaced(text, ENDS, NOTED))
    }

    pub(super) fn ask(&mut self, command: &Cmd) -> Value {
        command.query(&mut self.connection).unwrap()
    }

    /// All in one write; the answers in order.
    pub(super) fn ask_all(&mut self, commands: &[Cmd]) -> Vec<Value> {
        let mut pipe = redis::pipe();
        for command in commands {
            pipe.add_command(command.clone());
        }
        pipe.query(&mut self.connection).unwrap()
    }
}

/// A text that holds the part more than once, or not at all, is not the one that was meant.
pub(super) fn replaced(text: &str, part: &str, by: &str) -> String {
    assert_eq!(text.matches(part).count(), 1, "`{part}` is there exactly once");
    text.replace(part, by)
}

// === impl Digest ===

impl Digest {
    pub(super) fn call(&self, keys: &[&str]) -> Cmd {
        let mut call = cmd("EVALSHA");
        call.arg(&self.0).arg(keys.len()).arg(keys);
        call
    }

    /// Of a script that is told the time.
    pub(super) fn call_at(&self, keys: &[&str], now: impl ToRedisArgs) -> Cmd {
        let mut call = cmd("EVALSHA");
        call.arg(&self.0).arg(keys.len() + 1).arg(keys).arg(now);
        call
    }
}

pub(super) fn numbers(value: &Value) -> Vec<i64> {
    let Value::Array(parts) = value else { panic!("{value:?} is no list") };
    parts.iter().map(number).collect()
}

pub(super) fn number(value: &Value) -> i64 {
    let Value::Int(number) = value else { panic!("{value:?} is no number") };
    *number
}
