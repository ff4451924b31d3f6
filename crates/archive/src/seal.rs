//! What tells whether rows are all there and as they were: how many, and SHA-256 over every value of them in order.
//! Computed from what the database gave and again from what the archive gives back.

use std::fmt;

use sha2::{Digest, Sha256};
use tollkeeper_store::PastDecision;

/// Of rows in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    pub rows: u64,
    pub sha256: [u8; 32],
}

/// Under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sealing {
    rows: u64,
    hash: Sha256,
    /// One row as bytes: a digest takes one long text far faster than twenty short ones.
    row: Vec<u8>,
}

// === impl Sealing ===

impl Sealing {
    pub(crate) fn add(&mut self, rows: &[PastDecision]) {
        for row in rows {
            self.row.clear();
            write_row(&mut self.row, row);
            self.hash.update(&self.row);
            self.rows += 1;
        }
    }

    pub(crate) fn finish(self) -> Seal {
        Seal { rows: self.rows, sha256: self.hash.finalize().into() }
    }
}

/// Every value with its length before it, so that no two rows look alike. The order is that of the columns; it is part
/// of the format and never changes.
fn write_row(to: &mut Vec<u8>, row: &PastDecision) {
    let PastDecision {
        tenant_id,
        at,
        request_id,
        decision,
        code,
        status,
        key_id,
        external_id,
        ip,
        method,
        endpoint,
        path,
        rule,
        limit_name,
        count,
        retry_after_ms,
        node,
        region,
        latency_us,
        degraded,
    } = row;
    number(to, Some(*at));
    for value in [tenant_id, request_id, decision, code] {
        text(to, Some(value));
    }
    number(to, Some(*status));
    for value in [key_id, external_id, ip, method, endpoint, path, rule, limit_name] {
        text(to, value.as_deref());
    }
    number(to, *count);
    number(to, *retry_after_ms);
    text(to, Some(node));
    text(to, region.as_deref());
    number(to, Some(*latency_us));
    number(to, Some(i64::from(*degraded)));
}

/// A length that no text has stands for no value.
const NOTHING: u32 = u32::MAX;

fn text(to: &mut Vec<u8>, value: Option<&str>) {
    let length = value.map_or(NOTHING, |text| u32::try_from(text.len()).unwrap_or(NOTHING - 1));
    to.extend_from_slice(&length.to_le_bytes());
    to.extend_from_slice(value.unwrap_or_default().as_bytes());
}

fn number(to: &mut Vec<u8>, value: Option<i64>) {
    to.push(u8::from(value.is_some()));
    to.extend_from_slice(&value.unwrap_or_default().to_le_bytes());
}

// === impl Seal ===

impl Seal {
    pub fn hex(&self) -> String {
        let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or('0');
        self.sha256.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    }

    pub(crate) fn parse(rows: &str, hex: &str) -> Option<Self> {
        let byte = |at: usize| u8::from_str_radix(hex.get(at * 2..at * 2 + 2)?, 16).ok();
        let mut sha256 = [0; 32];
        for (at, to) in sha256.iter_mut().enumerate() {
            *to = byte(at)?;
        }
        (hex.len() == 64).then_some(Self { rows: rows.parse().ok()?, sha256 })
    }
}

impl fmt::Display for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows, sha256 {}", self.rows, self.hex())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::testing::row;

    fn sealed(rows: &[PastDecision]) -> Seal {
        let mut sealing = Sealing::default();
        sealing.add(rows);
        sealing.finish()
    }

    #[test]
    fn every_value_of_every_row_counts_and_so_does_their_order() {
        let (a, b) = (row("t", 1, "a"), row("t", 1, "b"));
        let seal = sealed(&[a.clone(), b.clone()]);
        assert_ne!(seal, sealed(&[b.clone(), a.clone()]));
        assert_ne!(seal, sealed(std::slice::from_ref(&a)));
        for change in [
            |row: &mut PastDecision| row.degraded = !row.degraded,
            |row: &mut PastDecision| row.count = None,
            |row: &mut PastDecision| row.region = Some(String::new()),
            |row: &mut PastDecision| row.latency_us += 1,
            |row: &mut PastDecision| std::mem::swap(&mut row.decision, &mut row.code),
        ] {
            let mut changed = b.clone();
            change(&mut changed);
            assert_ne!(seal, sealed(&[a.clone(), changed]));
        }
        assert_eq!(Seal::parse("2", &seal.hex()), Some(seal));
        assert_eq!(Seal::parse("2", &seal.hex()[1..]), None);
    }
}
