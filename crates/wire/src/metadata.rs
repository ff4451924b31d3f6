//! An object of the caller's own making, kept as the text it was sent as: numbers, order and spelling survive.
//! Only white space is dropped. What is inside is checked to be JSON that every client can read, and never looked at.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::parse::DEPTH_MAX;
use crate::part::Part;
use crate::room::Room;
use crate::schema::Shape;

/// The deepest place for metadata is a migrated key: in the body, in a list, in an entry.
const LEVELS_ABOVE_MAX: usize = 3;

pub const METADATA_ROOM: Room =
    Room { properties_max: 100, bytes_max: 64 << 10, depth_max: DEPTH_MAX - LEVELS_ABOVE_MAX };

pub(crate) const METADATA: Shape = Shape::Free(METADATA_ROOM);

/// The JSON text of an object. Borrowed while a server reads or writes, owned when a client reads.
#[derive(Clone)]
pub struct Metadata<'a>(Cow<'a, RawValue>);

impl<'a> Metadata<'a> {
    /// From a text that was checked when it was stored; nothing if it is no JSON.
    pub fn stored(text: &'a str) -> Option<Self> {
        serde_json::from_str::<&RawValue>(text).ok().map(|raw| Self(Cow::Borrowed(raw)))
    }

    /// From a person's text; nothing unless a request could carry it.
    pub fn from_text(text: &'a str) -> Option<Self> {
        let mut json = serde_json::Deserializer::from_str(text);
        let read = Self::read(&mut json).ok()?;
        (json.end().is_ok() && read.fits(&METADATA)).then_some(read)
    }

    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    pub fn into_owned(self) -> Metadata<'static> {
        Metadata(Cow::Owned(self.0.into_owned()))
    }

    fn is_within(&self, room: Room) -> bool {
        // The raw reader skips what it keeps: lone surrogates and numbers beyond any range would pass it.
        serde_json::from_str::<Map<String, Value>>(self.as_str())
            .is_ok_and(|object| room.excess(object.len(), self.as_str()).is_none())
    }
}

impl fmt::Debug for Metadata<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl PartialEq for Metadata<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Metadata<'_> {}

impl Serialize for Metadata<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(out)
    }
}

/// As a client reads it from an answer; a request goes through `Part`.
impl<'de> Deserialize<'de> for Metadata<'_> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(from).map(|raw| Self(Cow::Owned(raw)))
    }
}

impl<'de: 'a, 'a> Part<'de> for Metadata<'a> {
    fn read<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(from)?;
        match compact(raw.get()) {
            None => Ok(Self(Cow::Borrowed(raw))),
            Some(text) => RawValue::from_string(text)
                .map(|raw| Self(Cow::Owned(raw)))
                .map_err(serde::de::Error::custom),
        }
    }

    fn fits(&self, shape: &Shape) -> bool {
        matches!(shape, Shape::Free(room) if self.is_within(*room))
    }
}

/// The text without white space outside of strings, or nothing when there is none to drop.
fn compact(text: &str) -> Option<String> {
    let mut kept = String::new();
    let mut kept_until = 0;
    let (mut in_string, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else if byte == b'"' {
            in_string = true;
        } else if byte.is_ascii_whitespace() {
            kept.push_str(&text[kept_until..at]);
            kept_until = at + 1;
        }
    }
    (kept_until > 0).then(|| kept + &text[kept_until..])
}

#[cfg(test)]
mod tests {
    use super::{Metadata, compact};

    #[test]
    fn only_white_space_outside_of_strings_is_dropped() {
        let padded = "{ \"a b\" :\t[ 1.50,\n\"\\\" \\\\\" , {} ] , \"ü \": 1E2 }";
        let tight = r#"{"a b":[1.50,"\" \\",{}],"ü ":1E2}"#;
        assert_eq!(compact(padded).as_deref(), Some(tight));
        assert_eq!(compact(tight), None);
    }

    #[test]
    fn only_what_a_request_could_carry_becomes_metadata() {
        let carried = Metadata::from_text(" { \"a\" : 1 } ").map(|it| it.as_str().to_owned());
        assert_eq!(carried.as_deref(), Some(r#"{"a":1}"#));
        for refused in ["", "[]", "1", "{} {}", r#"{"a":1e999}"#] {
            assert_eq!(Metadata::from_text(refused), None, "{refused}");
        }
    }
}
