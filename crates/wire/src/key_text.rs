//! The text of a key on its way through a body. It is never shown, not even by `Debug`.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use crate::part::{Part, Text};
use crate::schema::{Chars, Shape};

pub const KEY_TEXT: Chars = Chars { min: 1, max: 512 };
pub(crate) const KEY: Shape = Shape::Raw(KEY_TEXT);

/// A key in the clear.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyText<'a>(Cow<'a, str>);

impl<'a> KeyText<'a> {
    pub fn new(text: impl Into<Cow<'a, str>>) -> Self {
        Self(text.into())
    }

    /// The key itself. Whoever asks keeps it out of logs.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for KeyText<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("[redacted]")
    }
}

impl<'de: 'a, 'a> Part<'de> for KeyText<'a> {
    fn read<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Text::read(from).map(Self)
    }

    fn fits(&self, shape: &Shape) -> bool {
        self.0.fits(shape)
    }
}

#[cfg(test)]
mod tests {
    use super::KeyText;

    #[test]
    fn a_key_is_never_shown() {
        assert_eq!(format!("{:?}", KeyText::new("prod_secret")), "[redacted]");
    }
}
