//! A value inside a request: how it is read strictly and borrowed, and how it is measured against its shape.
//! serde's own readers are laxer than the contract and copy every text that stands in an option or a list.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, SeqAccess, Visitor};

use crate::schema::Shape;

/// A text of a request. Borrowed from the body unless it holds escapes.
pub type Text<'a> = Cow<'a, str>;

pub trait Part<'de>: Sized {
    /// Takes the JSON kind that the shape names, and no other.
    fn read<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error>;

    /// Whether the value is within the bounds of `shape`; its kind was checked by `read`.
    fn fits(&self, shape: &Shape) -> bool;
}

/// Reads a part where serde wants a seed.
pub(crate) struct Reading<T>(PhantomData<T>);

impl<T> Reading<T> {
    pub(crate) const PART: Self = Self(PhantomData);
}

impl<'de, T: Part<'de>> DeserializeSeed<'de> for Reading<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<T, D::Error> {
        T::read(from)
    }
}

impl<'de: 'a, 'a> Part<'de> for Text<'a> {
    fn read<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(Characters)
    }

    fn fits(&self, shape: &Shape) -> bool {
        match shape {
            Shape::Text(bounds) => bounds.holds_read(self),
            Shape::Raw(bounds) => bounds.holds_raw(self),
            Shape::Spelled(bounds, spelling) => bounds.holds_read(self) && (spelling.holds)(self),
            _ => false,
        }
    }
}

struct Characters;

impl<'de> Visitor<'de> for Characters {
    type Value = Text<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

impl<'de> Part<'de> for u64 {
    fn read<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::deserialize(from)
    }

    fn fits(&self, shape: &Shape) -> bool {
        matches!(shape, Shape::Integer(bounds) if bounds.holds(*self))
    }
}

impl<'de> Part<'de> for bool {
    fn read<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::deserialize(from)
    }

    fn fits(&self, shape: &Shape) -> bool {
        matches!(shape, Shape::Flag)
    }
}

/// What few bodies have takes no room in the others.
impl<'de, T: Part<'de>> Part<'de> for Box<T> {
    fn read<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        T::read(from).map(Self::new)
    }

    fn fits(&self, shape: &Shape) -> bool {
        T::fits(self, shape)
    }
}

impl<'de, T: Part<'de>> Part<'de> for Vec<T> {
    fn read<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(Entries(PhantomData))
    }

    fn fits(&self, shape: &Shape) -> bool {
        let Shape::List { of, min, max } = shape else { return false };
        (*min..=*max).contains(&self.len()) && self.iter().all(|entry| entry.fits(of))
    }
}

struct Entries<T>(PhantomData<T>);

impl<'de, T: Part<'de>> Visitor<'de> for Entries<T> {
    type Value = Vec<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = list.next_element_seed(Reading::<T>::PART)? {
            entries.push(entry);
        }
        Ok(entries)
    }
}

/// A value or null.
impl<'de, T: Part<'de>> Part<'de> for Option<T> {
    fn read<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_option(OrNull(PhantomData))
    }

    fn fits(&self, shape: &Shape) -> bool {
        let Shape::Nullable(of) = shape else { return false };
        self.as_ref().is_none_or(|value| value.fits(of))
    }
}

struct OrNull<T>(PhantomData<T>);

impl<'de, T: Part<'de>> Visitor<'de> for OrNull<T> {
    type Value = Option<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value or null")
    }

    fn visit_unit<E: Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_none<E: Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Option<T>, D::Error> {
        T::read(from).map(Some)
    }
}
