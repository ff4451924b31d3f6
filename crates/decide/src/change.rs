//! What happens to the table, as the journal keeps it and as a start replays it.

use crate::CellKey;
use crate::ports::ParkedCell;

/// Whole states, not differences: replaying one twice, or an old one before a newer one, does no harm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The cell has this state now.
    Cell(ParkedCell),
    /// The cell is not in the table any more: the shelf has it, or it was reset.
    Left(CellKey),
}
