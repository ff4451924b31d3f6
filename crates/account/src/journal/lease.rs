//! A lease as bytes: whose it is, which cell it is of, and how far it may have been spent. Numbers take as many bytes as
//! they need, because a hot cell writes one of these for every eighth of a lease.

use std::sync::Arc;

use tollkeeper_core::{Algorithm, Limit, Millis, Quota, Totals, Width, Window};
use tollkeeper_decide::{CellName, LeaseMark, Scope};

use super::BootId;
use crate::lease_left::LeaseLeft;

const ALIGNED: u8 = 1;
const DAY: u8 = 2;
const MONTH: u8 = 3;
const SLIDING: u8 = 4;
const LOG: u8 = 5;
const BUCKET: u8 = 6;

const NAMESPACE: u8 = 0;
const OWNER: u8 = 1;

pub(super) fn encode(left: &LeaseLeft) -> Vec<u8> {
    let LeaseLeft { boot, mark } = left;
    let LeaseMark { name, limit, win, totals, ceiling, lapse } = mark;
    let scope = &name.scope;
    let texts = [&*scope.tenant, &*scope.space, &*name.identifier];
    let mut out = Vec::with_capacity(80 + texts.iter().map(|text| text.len()).sum::<usize>());
    out.extend(boot.0);
    encode_limit(limit, &mut out);
    let Totals { plain, granted, used, returned } = *totals;
    for number in [*win, plain, granted, used, returned, *ceiling, lapse.0] {
        put(number, &mut out);
    }
    out.push(if scope.of_owner { OWNER } else { NAMESPACE });
    for text in texts {
        put(text.len() as u64, &mut out);
        out.extend(text.as_bytes());
    }
    out
}

fn encode_limit(limit: &Limit, out: &mut Vec<u8>) {
    let (kind, width, capacity) = match limit.algorithm {
        Algorithm::FixedWindow(Window::Aligned(width)) => (ALIGNED, Some(width), None),
        Algorithm::FixedWindow(Window::Day) => (DAY, None, None),
        Algorithm::FixedWindow(Window::Month) => (MONTH, None, None),
        Algorithm::SlidingWindow(width) => (SLIDING, Some(width), None),
        Algorithm::SlidingLog(width) => (LOG, Some(width), None),
        Algorithm::TokenBucket { width, capacity } => (BUCKET, Some(width), Some(capacity)),
    };
    out.push(kind);
    put(limit.quota.get(), out);
    let numbers = [width.map(Width::millis), capacity.map(Quota::get)];
    for number in numbers.into_iter().flatten() {
        put(number, out);
    }
}

/// `None` when the bytes are not what [`encode`] makes.
pub(super) fn decode(mut bytes: &[u8]) -> Option<LeaseLeft> {
    let bytes = &mut bytes;
    let boot = BootId(super::record::take(bytes)?);
    let limit = decode_limit(bytes)?;
    let win = get(bytes)?;
    let [plain, granted, used, returned, ceiling] = amounts(bytes)?;
    let totals = Totals { plain, granted, used, returned };
    let lapse = Millis(get(bytes)?);
    let [of_owner] = super::record::take(bytes)?;
    let of_owner = match of_owner {
        NAMESPACE => false,
        OWNER => true,
        _ => return None,
    };
    let (tenant, space) = (text(bytes)?.into(), text(bytes)?.into());
    let scope = Arc::new(Scope { tenant, space, of_owner });
    let name = Arc::new(CellName { scope, identifier: text(bytes)?.into() });
    let mark = LeaseMark { name, limit, win, totals, ceiling, lapse };
    bytes.is_empty().then_some(LeaseLeft { boot, mark })
}

fn decode_limit(bytes: &mut &[u8]) -> Option<Limit> {
    let [kind] = super::record::take(bytes)?;
    let quota = Quota::new(get(bytes)?)?;
    let mut width = || Width::from_millis(get(bytes)?);
    let algorithm = match kind {
        ALIGNED => Algorithm::FixedWindow(Window::Aligned(width()?)),
        DAY => Algorithm::FixedWindow(Window::Day),
        MONTH => Algorithm::FixedWindow(Window::Month),
        SLIDING => Algorithm::SlidingWindow(width()?),
        LOG => return Limit::sliding_log(quota, width()?),
        BUCKET => {
            let width = width()?;
            Algorithm::TokenBucket { width, capacity: Quota::new(get(bytes)?)? }
        }
        _ => return None,
    };
    Some(Limit { quota, algorithm })
}

/// Numbers of units: none is larger than a limit can be.
fn amounts<const N: usize>(bytes: &mut &[u8]) -> Option<[u64; N]> {
    let mut amounts = [0; N];
    for amount in &mut amounts {
        *amount = Quota::new(get(bytes)?)?.get();
    }
    Some(amounts)
}

fn text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let length = usize::try_from(get(bytes)?).ok()?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    std::str::from_utf8(text).ok()
}

/// Seven bits at a time, the lowest first; the highest bit of a byte says that more follow.
fn put(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

fn get(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let [byte] = super::record::take(bytes)?;
        let part = u64::from(byte & 0x7f);
        if (part << shift) >> shift != part {
            return None;
        }
        number |= part << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn left() -> LeaseLeft {
        let scope = Arc::new(Scope::owner("acme", "key_1"));
        let limit = Limit::token_bucket(
            Quota::new(1_000).unwrap(),
            Width::from_millis(60_000).unwrap(),
            Quota::new(5_000),
        );
        let mark = LeaseMark {
            name: Arc::new(CellName::new(&scope, "requests")),
            limit,
            win: 1_700_000_000_000,
            totals: Totals { plain: 1, granted: 300, used: 200, returned: 50 },
            ceiling: 220,
            lapse: Millis(123_456_789),
        };
        LeaseLeft { boot: BootId([9; 16]), mark }
    }

    #[test]
    fn bytes_that_are_cut_off_or_go_on_are_no_lease() {
        let bytes = encode(&left());
        assert!(bytes.len() < 80, "{}", bytes.len());
        assert_eq!(decode(&bytes), Some(left()));
        for end in 0..bytes.len() {
            assert_eq!(decode(&bytes[..end]), None, "{end}");
        }
        assert_eq!(decode(&[bytes, vec![0]].concat()), None);
    }

    #[test]
    fn no_byte_can_be_changed_into_something_that_is_not_checked() {
        let bytes = encode(&left());
        for at in 0..bytes.len() {
            for byte in 0..=u8::MAX {
                let mut changed = bytes.clone();
                changed[at] = byte;
                let Some(read) = decode(&changed) else { continue };
                // Whatever is taken for a lease can be written again.
                assert_eq!(decode(&encode(&read)), Some(read), "{at}: {byte}");
            }
        }
    }
}
