//! A lease call on the wire: what goes into the script and what its answer says.
//! An answer of another shape, or to another call, is no answer.

use redis::Value;
use tollkeeper_core::{
    Algorithm, FixedWindow, Millis, SlidingWindow, Stand, State, Take, Taken, TokenBucket, Totals,
    first_log_moment, log_copy,
};
use tollkeeper_decide::CellName;

use crate::name::record_key;
use crate::script::Arg;

/// The stand that is told in place of most numbers.
const MADE_AND_TOOK: u64 = 3;

/// What a call says, as the script wants it.
#[derive(Debug)]
pub(crate) struct TakeCall {
    pub(crate) tag: u16,
    pub(crate) record: String,
    pub(crate) epoch: String,
    kind: &'static str,
    boot: BootWord,
    /// Those in front of the fingerprint.
    before: [u64; 5],
    print: String,
    /// Those behind it, and how many of them are said.
    behind: [u64; 9],
    said: usize,
}

/// A boot by its bytes where the call has nothing to tell of it, and else as records name it.
#[derive(Debug)]
enum BootWord {
    Bytes([u8; 8]),
    Text([u8; 11]),
}

// === impl TakeCall ===

impl TakeCall {
    pub(crate) fn new(name: &CellName, take: &Take) -> Self {
        let tag = name.tag();
        let (kind, width, capacity) = match take.limit.algorithm {
            Algorithm::FixedWindow(window) => {
                let (start, end) = window.bounds(Millis(take.win));
                ("fw", end.since(start), 0)
            }
            Algorithm::SlidingWindow(width) => ("sw", width.millis(), 0),
            // A log has no capacity: in its place is what those cost who wait behind the first.
            Algorithm::SlidingLog(width) => ("sl", width.millis(), take.more),
            Algorithm::TokenBucket { width, capacity } => ("tb", width.millis(), capacity.get()),
        };
        let Totals { plain, granted, used, returned } = take.totals;
        let record = record_key(name, &take.limit, take.win);
        let print = format!("{:x}", fingerprint(&record, take));
        let (boot, said) = if is_plain(take) {
            let said = match (take.ask == take.need, capacity, take.nodes) {
                (false, ..) => 3,
                (true, 1.., _) => 2,
                (true, 0, nodes) => usize::from(nodes != 1),
            };
            (BootWord::Bytes(take.boot.0.to_be_bytes()), said)
        } else {
            (BootWord::Text(take.boot.text()), 8 + usize::from(take.forgotten > 0))
        };
        let bundled = u64::from(take.bundled);
        Self {
            tag,
            epoch: epoch_key(tag),
            kind,
            boot,
            before: [take.seq, take.win, take.need, take.limit.quota.get(), width],
            behind: [
                take.nodes,
                capacity,
                take.ask,
                bundled,
                plain,
                granted,
                used,
                returned,
                take.forgotten,
            ],
            said,
            record,
            print,
        }
    }

    pub(crate) fn keys(&self) -> [&[u8]; 2] {
        [self.record.as_bytes(), self.epoch.as_bytes()]
    }

    pub(crate) fn args(&self) -> Vec<Arg<'_>> {
        let boot = match &self.boot {
            BootWord::Bytes(bytes) => &bytes[..],
            BootWord::Text(text) => &text[..],
        };
        let mut args = Vec::with_capacity(8 + self.said);
        args.extend([Arg::from(self.kind), Arg::from(boot)]);
        args.extend(self.before.iter().map(|number| Arg::from(*number)));
        args.push(Arg::from(self.print.as_str()));
        args.extend(self.behind[..self.said].iter().map(|number| Arg::from(*number)));
        args
    }

    /// `None` where the answer is not one to this call.
    pub(crate) fn answer(&self, take: &Take, value: &Value) -> Option<Taken> {
        let Value::Array(parts) = value else { return None };
        let (print, numbers) = parts.split_first()?;
        let same = match print {
            Value::BulkString(bytes) => bytes == self.print.as_bytes(),
            Value::SimpleString(text) => *text == self.print,
            _ => false,
        };
        let numbers: Vec<u64> = numbers.iter().map(number).collect::<Option<_>>()?;
        let numbers = if same { spelt_out(take, &numbers)? } else { return None };
        let [
            now,
            stand,
            win,
            plain,
            granted,
            used,
            returned,
            took,
            lent,
            later,
            debt,
            a,
            b,
            c,
            outstanding,
            made,
            recall,
        ] = numbers;
        let now = Millis(now);
        let stand = match stand {
            0 => Stand::Heard,
            1 => Stand::WrongWindow,
            2 => Stand::Learning,
            _ => return None,
        };
        let (later, more) = match take.limit.algorithm {
            Algorithm::SlidingLog(_) => (0, later),
            _ => (later, 0),
        };
        let win = if stand == Stand::WrongWindow { take.limit.window_at(now).0.0 } else { win };
        Some(Taken {
            now,
            stand,
            win,
            totals: Totals { plain, granted, used, returned },
            took: took == 1,
            lent,
            later,
            debt,
            more,
            state: state(take, win, [a, b, c], now),
            outstanding,
            made: made == 1,
            recall: recall == 1,
        })
    }
}

/// Nothing to tell, and no more to ask for than it needs: as the first call about an identifier is, and for most the only one.
fn is_plain(take: &Take) -> bool {
    take.totals == Totals::default()
        && take.need > 0
        && take.ask <= take.need
        && take.more == 0
        && !take.bundled
}

/// The numbers of an answer. A call that made its record and took just what it needed is told so in three, as by far the
/// most calls for new identifiers are.
fn spelt_out(take: &Take, numbers: &[u64]) -> Option<[u64; 17]> {
    let [now, stand, win] = *numbers else { return numbers.try_into().ok() };
    let need = take.need;
    let [b, c] = match take.limit.algorithm {
        Algorithm::TokenBucket { .. } => [0, now],
        Algorithm::SlidingLog(width) => {
            [first_log_moment(take.limit.quota, width, Millis(now)), need]
        }
        _ => [0, 0],
    };
    (stand == MADE_AND_TOOK)
        .then_some([now, 0, win, need, 0, 0, 0, 1, 0, 0, 0, need, b, c, 0, 1, 0])
}

fn state(take: &Take, win: u64, [a, b, c]: [u64; 3], now: Millis) -> State {
    match take.limit.algorithm {
        Algorithm::FixedWindow(_) => State::Fixed(FixedWindow { start: Millis(win), used: a }),
        Algorithm::SlidingWindow(_) => {
            State::Sliding(SlidingWindow { start: Millis(win), used: a, previous: b })
        }
        Algorithm::TokenBucket { .. } => {
            State::Bucket(TokenBucket { missing: a, fraction: b, at: Millis(c).max(now) })
        }
        Algorithm::SlidingLog(_) => {
            State::Log(Box::new(log_copy((c > 0).then_some((b, c)), a, now)))
        }
    }
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

pub(crate) fn epoch_key(tag: u16) -> String {
    format!("tk:ep:{{{tag}}}")
}

/// Of the record and the number of the call: what the script repeats.
fn fingerprint(record: &str, take: &Take) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in record.bytes().chain(take.seq.to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}
