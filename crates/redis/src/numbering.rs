//! Numbers of messages: each is one above the last, and how many there were is kept beside the channel. Who compares the
//! two knows of a message that got lost on a connection that did not.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value};
use tokio::time::timeout;

use crate::error::CallError;
use crate::script::Arg;
use crate::tags::HOME;
use crate::trouble::Trouble;

/// Publishes and counts in one step.
pub(crate) const PUBLISH: &str = include_str!("scripts/publish.lua");

/// A channel that is silent for longer is counted from a new beginning.
const COUNT_MS: u64 = 7 * 24 * 3_600_000;

/// The number of the last message that one connection brought; 0 before the first look at the count.
#[derive(Debug, Default)]
pub(crate) struct Numbers(AtomicU64);

// === impl Numbers ===

impl Numbers {
    /// The message without its number. `false`: one before it is missing. Without a number it is of an earlier version, or
    /// of a server that could not count.
    pub(crate) fn hear(&self, message: Vec<u8>) -> (Vec<u8>, bool) {
        let Some((number, from)) = number_of(&message) else { return (message, true) };
        let last = self.0.swap(number, AcqRel);
        (message[from..].to_vec(), last + 1 == number)
    }

    /// Compares with the count, read over the connection that brings the messages: its server says what was published
    /// before it says how many that were, so none is under way. `false`: one is missing, or the count began anew.
    pub(crate) async fn agree(
        &self,
        connection: &mut MultiplexedConnection,
        channel: &str,
        patience: Duration,
    ) -> Result<bool, Trouble> {
        let before = self.0.load(Acquire);
        let asked = timeout(patience, counted(connection, channel)).await;
        let counted = asked.map_err(|_| Trouble::Silent(patience.as_millis()))??;
        Ok(counted.is_none_or(|counted| self.compare(before, counted)))
    }

    fn compare(&self, before: u64, counted: u64) -> bool {
        loop {
            let heard = self.0.load(Acquire);
            // Above the count is what came behind it; but a count below what was heard before it was asked for is a new one.
            let whole = heard >= counted && (heard != before || counted >= before);
            if whole {
                return true;
            }
            if self.0.compare_exchange(heard, counted, AcqRel, Acquire).is_ok() {
                return false;
            }
        }
    }
}

/// Where the messages of a channel are counted.
pub(crate) fn count_key(channel: &str) -> String {
    format!("{channel}:{HOME}")
}

/// What the script is given besides its key.
pub(crate) fn publish_args<'a>(channel: &'a str, message: &'a [u8]) -> [Arg<'a>; 4] {
    [Arg::from(channel), Arg::from(message), Arg::from(beginning()), Arg::from(COUNT_MS)]
}

/// A random one, so that a count that was lost and begun anew is not taken for the old one.
fn beginning() -> u64 {
    getrandom::u32().map_or(1, |bits| u64::from(bits) + 1)
}

/// `None` where the server could not begin to count.
async fn counted(
    connection: &mut MultiplexedConnection,
    channel: &str,
) -> Result<Option<u64>, Trouble> {
    let (key, beginning) = (count_key(channel), beginning());
    let mut get = redis::cmd("GET");
    get.arg(&key);
    if let Some(count) = count(&ask(connection, &get).await?)? {
        return Ok(Some(count));
    }
    // From here on the first message has a number that can be missed.
    let mut begin = redis::cmd("SET");
    begin.arg(&key).arg(beginning).arg("NX").arg("GET").arg("PX").arg(COUNT_MS);
    let Ok(kept) = ask(connection, &begin).await else { return Ok(None) };
    Ok(Some(count(&kept)?.unwrap_or(beginning)))
}

async fn ask(connection: &mut MultiplexedConnection, command: &Cmd) -> Result<Value, Trouble> {
    match connection.send_packed_command(command).await? {
        Value::ServerError(error) => Err(CallError::from(&error).into()),
        value => Ok(value),
    }
}

fn count(value: &Value) -> Result<Option<u64>, Trouble> {
    match value {
        Value::Nil => Ok(None),
        Value::BulkString(digits) if parsed(digits).is_some() => Ok(parsed(digits)),
        _ => Err(Trouble::Strange(format!("{value:?} for a count"))),
    }
}

/// The number in front of a message, and where the message begins.
fn number_of(message: &[u8]) -> Option<(u64, usize)> {
    let end = message.iter().position(|byte| *byte == b'\n')?;
    Some((parsed(&message[..end])?, end + 1))
}

fn parsed(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(numbers: &Numbers, number: u64) -> bool {
        let (message, whole) = numbers.hear(format!("{number}\n7\nx").into_bytes());
        assert_eq!(message, b"7\nx");
        whole
    }

    #[test]
    fn a_number_that_is_not_the_next_one_tells_of_a_message_that_is_missing() {
        let numbers = Numbers::default();
        assert!(!numbers.compare(0, 40), "nothing is known before the first look");
        assert!(hear(&numbers, 41) && hear(&numbers, 42));
        assert!(!hear(&numbers, 44) && hear(&numbers, 45));
        assert!(!hear(&numbers, 3), "counted anew");
        assert!(hear(&numbers, 4));
    }

    #[test]
    fn the_count_tells_of_a_last_message_that_is_missing_and_of_nothing_else() {
        let numbers = Numbers::default();
        numbers.compare(0, 40);
        assert!(hear(&numbers, 41) && numbers.compare(41, 41));
        assert!(hear(&numbers, 42) && numbers.compare(41, 41), "42 came behind the answer");
        assert!(!numbers.compare(42, 43), "43 did not come");
        assert!(numbers.compare(43, 43), "and is missed once");
        assert!(!numbers.compare(43, 2), "counted anew");
        assert!(hear(&numbers, 3));
    }

    #[test]
    fn a_message_without_a_number_is_heard_as_it_is() {
        let numbers = Numbers::default();
        for text in ["changed", "reset\nt\n0\nn", "", "\n", "x1\ny"] {
            assert_eq!(numbers.hear(text.into()), (text.into(), true));
        }
    }
}
