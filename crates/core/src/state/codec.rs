//! A cell's state as bytes, for the journal and the store. Little-endian words behind one tag;
//! a reader that meets anything else gets `None`, never a panic and never a guess.

use super::State;
use crate::{FixedWindow, LOG_QUOTA_MAX, Millis, SlidingLog, SlidingWindow, TokenBucket};

const FIXED: u8 = 1;
const SLIDING: u8 = 2;
const BUCKET: u8 = 3;
const LOG: u8 = 4;

impl State {
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Fixed(state) => put(out, FIXED, [state.start.0, state.used]),
            Self::Sliding(state) => put(out, SLIDING, [state.start.0, state.used, state.previous]),
            Self::Bucket(state) => put(out, BUCKET, [state.missing, state.fraction, state.at.0]),
            Self::Log(log) => {
                let entries = log.entries().flat_map(|(at, cost)| [at.0, cost]);
                put(out, LOG, std::iter::once(log.newest().0).chain(entries));
            }
        }
    }

    /// `None` when the bytes are not what [`State::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (tag, rest) = bytes.split_first()?;
        let (words, odd) = rest.as_chunks::<8>();
        if !odd.is_empty() {
            return None;
        }
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let state = match *tag {
            FIXED => Self::Fixed(FixedWindow { start: Millis(words.next()?), used: words.next()? }),
            SLIDING => Self::Sliding(SlidingWindow {
                start: Millis(words.next()?),
                used: words.next()?,
                previous: words.next()?,
            }),
            BUCKET => Self::Bucket(TokenBucket {
                missing: words.next()?,
                fraction: words.next()?,
                at: Millis(words.next()?),
            }),
            LOG => Self::Log(Box::new(decode_log(&mut words)?)),
            _ => return None,
        };
        words.next().is_none().then_some(state)
    }
}

fn put(out: &mut Vec<u8>, tag: u8, words: impl IntoIterator<Item = u64>) {
    out.push(tag);
    out.extend(words.into_iter().flat_map(u64::to_le_bytes));
}

fn decode_log(words: &mut impl Iterator<Item = u64>) -> Option<SlidingLog> {
    let newest = Millis(words.next()?);
    let mut entries = Vec::new();
    while let Some(at) = words.next() {
        entries.push((Millis(at), words.next()?));
    }
    let bounded = u64::try_from(entries.len()).is_ok_and(|len| len <= LOG_QUOTA_MAX);
    if bounded { SlidingLog::from_parts(newest, entries) } else { None }
}
