//! A parked cell as a row: keys as bytes, tags as the bits of signed numbers, states as the core writes them.

use tollkeeper_core::State;
use tollkeeper_decide::{CellKey, ParkedCell};

use crate::Fault;

/// SQL has no unsigned numbers: a tag is stored as the signed number of the same 64 bits.
/// Only equality is ever asked of it, so the order it loses is not missed.
#[derive(sqlx::FromRow)]
pub(crate) struct ParkedRow {
    pub(crate) key: Vec<u8>,
    pub(crate) namespace: i64,
    pub(crate) idle_at_s: i64,
    pub(crate) fill: i64,
    pub(crate) state: Vec<u8>,
}

/// Subject first: the cells of one identifier are neighbours in the tree.
pub(crate) fn key_bytes(key: CellKey) -> Vec<u8> {
    [key.subject.to_le_bytes(), key.exact.to_le_bytes()].concat()
}

pub(crate) fn key_of(bytes: &[u8]) -> Result<CellKey, Fault> {
    match bytes.as_chunks::<8>() {
        ([subject, exact], []) => {
            Ok(CellKey { subject: u64::from_le_bytes(*subject), exact: u64::from_le_bytes(*exact) })
        }
        _ => Err(Fault::Unreadable("cell key")),
    }
}

// === impl ParkedRow ===

impl From<&ParkedCell> for ParkedRow {
    fn from(cell: &ParkedCell) -> Self {
        let mut state = Vec::new();
        cell.state.encode(&mut state);
        Self {
            key: key_bytes(cell.key),
            namespace: cell.namespace.cast_signed(),
            idle_at_s: cell.idle_at_s.into(),
            fill: cell.fill.into(),
            state,
        }
    }
}

impl TryFrom<ParkedRow> for ParkedCell {
    type Error = Fault;

    /// A row that is not what was written is an error, not a fresh cell: that would give the
    /// whole limit away again.
    fn try_from(row: ParkedRow) -> Result<Self, Fault> {
        let unreadable = || Fault::Unreadable("cell");
        Ok(Self {
            key: key_of(&row.key)?,
            namespace: row.namespace.cast_unsigned(),
            idle_at_s: u32::try_from(row.idle_at_s).map_err(|_| unreadable())?,
            fill: u16::try_from(row.fill).map_err(|_| unreadable())?,
            state: State::decode(&row.state).ok_or_else(unreadable)?,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use tollkeeper_core::{FixedWindow, Millis};

    use super::*;

    fn cell() -> ParkedCell {
        ParkedCell {
            key: CellKey { subject: u64::MAX, exact: 1 },
            namespace: u64::MAX - 1,
            idle_at_s: u32::MAX,
            fill: u16::MAX,
            state: State::Fixed(FixedWindow { start: Millis(1), used: u64::MAX }),
        }
    }

    #[test]
    fn a_cell_comes_back_from_its_row_bit_for_bit() {
        assert_eq!(ParkedCell::try_from(ParkedRow::from(&cell())).unwrap(), cell());
    }

    #[test]
    fn a_row_that_was_not_written_here_is_refused_and_never_read_as_fresh() {
        let broken: [fn(&mut ParkedRow); 5] = [
            |row| row.key.truncate(15),
            |row| row.key.push(0),
            |row| row.state.clear(),
            |row| row.idle_at_s = -1,
            |row| row.fill = 65_536,
        ];
        for breaks in broken {
            let mut row = ParkedRow::from(&cell());
            breaks(&mut row);
            assert!(matches!(ParkedCell::try_from(row), Err(Fault::Unreadable(_))));
        }
    }
}
