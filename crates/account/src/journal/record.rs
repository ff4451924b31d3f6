//! Records as bytes: a length, a checksum, a kind and a payload. Later kinds (usage) join here.

use tollkeeper_core::State;
use tollkeeper_decide::{CellKey, Change, ParkedCell};

use super::{BootId, CreditSpent, Entry, lease};
use crate::lease_left::LeaseLeft;

/// Length (4), CRC32 of kind and payload (4), kind (1).
pub(super) const HEAD: usize = 9;
/// No writer makes a longer payload; a reader that meets one has met garbage.
pub(super) const PAYLOAD_MAX: usize = 4 << 20;
/// Changes are gathered into records of about this size.
const BATCH_BYTES: usize = 256 << 10;

const CHANGES: u8 = 1;
const CLOSED: u8 = 2;
const SPENT: u8 = 3;
const LEASE: u8 = 4;

const CELL: u8 = 1;
const LEFT: u8 = 2;

#[derive(Debug)]
pub(super) struct Record {
    pub(super) kind: u8,
    pub(super) payload: Vec<u8>,
}

// === impl Record ===

impl Record {
    pub(super) fn closed() -> Self {
        Self { kind: CLOSED, payload: Vec::new() }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.kind == CLOSED
    }

    pub(super) fn spent(spent: &CreditSpent) -> Self {
        let mut payload = Vec::with_capacity(24 + spent.key_id.len());
        payload.extend(spent.boot.0);
        payload.extend(spent.total.to_le_bytes());
        payload.extend(spent.key_id.as_bytes());
        Self { kind: SPENT, payload }
    }

    pub(super) fn lease(left: &LeaseLeft) -> Self {
        Self { kind: LEASE, payload: lease::encode(left) }
    }

    /// `None` when the payload is not what a writer of this version makes.
    pub(super) fn entries(&self) -> Option<Vec<Entry>> {
        match self.kind {
            CHANGES => Some(decode(&self.payload)?.into_iter().map(Entry::Cell).collect()),
            CLOSED => Some(Vec::new()),
            SPENT => decode_spent(&self.payload).map(|spent| vec![Entry::Spent(spent)]),
            LEASE => lease::decode(&self.payload).map(|left| vec![Entry::Lease(left)]),
            _ => None,
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + self.payload.len());
        bytes.extend(u32::try_from(self.payload.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend(checksum(self.kind, &self.payload).to_le_bytes());
        bytes.push(self.kind);
        bytes.extend(&self.payload);
        bytes
    }
}

pub(super) fn checksum(kind: u8, payload: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&[kind]);
    crc.update(payload);
    crc.finalize()
}

/// The changes as records, in order, none much longer than [`BATCH_BYTES`].
pub(super) fn batches(changes: &[Change]) -> impl Iterator<Item = Record> + '_ {
    let mut rest = changes.iter();
    std::iter::from_fn(move || {
        let mut payload = Vec::new();
        while payload.len() < BATCH_BYTES {
            let Some(change) = rest.next() else { break };
            encode(change, &mut payload);
        }
        (!payload.is_empty()).then_some(Record { kind: CHANGES, payload })
    })
}

fn encode(change: &Change, out: &mut Vec<u8>) {
    match change {
        Change::Cell(cell) => {
            out.push(CELL);
            put_key(cell.key, out);
            out.extend(cell.namespace.to_le_bytes());
            out.extend(cell.idle_at_s.to_le_bytes());
            out.extend(cell.fill.to_le_bytes());
            let at = out.len();
            out.extend([0; 4]);
            cell.state.encode(out);
            let length = u32::try_from(out.len() - at - 4).unwrap_or(u32::MAX);
            out[at..at + 4].copy_from_slice(&length.to_le_bytes());
        }
        Change::Left(key) => {
            out.push(LEFT);
            put_key(*key, out);
        }
    }
}

fn put_key(key: CellKey, out: &mut Vec<u8>) {
    out.extend(key.subject.to_le_bytes());
    out.extend(key.exact.to_le_bytes());
}

fn decode(mut bytes: &[u8]) -> Option<Vec<Change>> {
    let mut changes = Vec::new();
    while let Some((tag, rest)) = bytes.split_first() {
        bytes = rest;
        let key = CellKey {
            subject: u64::from_le_bytes(take(&mut bytes)?),
            exact: u64::from_le_bytes(take(&mut bytes)?),
        };
        changes.push(match *tag {
            CELL => Change::Cell(decode_cell(key, &mut bytes)?),
            LEFT => Change::Left(key),
            _ => return None,
        });
    }
    Some(changes)
}

fn decode_spent(mut bytes: &[u8]) -> Option<CreditSpent> {
    let boot = BootId(take(&mut bytes)?);
    let total = u64::from_le_bytes(take(&mut bytes)?);
    let key_id = std::str::from_utf8(bytes).ok()?.into();
    Some(CreditSpent { boot, key_id, total })
}

fn decode_cell(key: CellKey, bytes: &mut &[u8]) -> Option<ParkedCell> {
    let namespace = u64::from_le_bytes(take(bytes)?);
    let idle_at_s = u32::from_le_bytes(take(bytes)?);
    let fill = u16::from_le_bytes(take(bytes)?);
    let length = usize::try_from(u32::from_le_bytes(take(bytes)?)).ok()?;
    let (state, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(ParkedCell { key, namespace, idle_at_s, fill, state: State::decode(state)? })
}

pub(super) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*head)
}
