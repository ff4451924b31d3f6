//! A field of an update: absent keeps what is stored, null clears it, a value replaces it.

use serde::Deserializer;

use crate::part::Part;
use crate::schema::Shape;

/// What an update does to one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Patch<T> {
    #[default]
    Keep,
    Clear,
    Set(T),
}

impl<T> Patch<T> {
    /// The value to be set, if any.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Keep | Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }

    pub fn is_keep(&self) -> bool {
        matches!(self, Self::Keep)
    }

    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Patch<U> {
        match self {
            Self::Keep => Patch::Keep,
            Self::Clear => Patch::Clear,
            Self::Set(value) => Patch::Set(change(value)),
        }
    }

    /// What stands after the update, where `stored` stood before.
    pub fn apply(self, stored: Option<T>) -> Option<T> {
        match self {
            Self::Keep => stored,
            Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }
}

/// Reads what is there; a field that is not there is never read, and stays `Keep`.
impl<'de, T: Part<'de>> Part<'de> for Patch<T> {
    fn read<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Option::<T>::read(from).map(|found| found.map_or(Self::Clear, Self::Set))
    }

    fn fits(&self, shape: &Shape) -> bool {
        let Shape::Nullable(of) = shape else { return false };
        self.value().is_none_or(|value| value.fits(of))
    }
}

#[cfg(test)]
mod tests {
    use super::Patch;

    #[test]
    fn absent_keeps_null_clears_and_a_value_replaces() {
        let after = [Patch::Keep, Patch::Clear, Patch::Set(2)].map(|patch| patch.apply(Some(1)));
        assert_eq!(after, [Some(1), None, Some(2)]);
    }
}
