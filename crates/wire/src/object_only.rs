//! Readers that are stricter than serde's derived ones, so that the fast path takes exactly what the schema describes.
//! A derived struct also reads from an array, and a derived option also reads null; neither is part of the contract.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

/// Reads a struct from a JSON object and from nothing else.
pub(crate) struct ObjectOnly<D>(pub(crate) D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for ObjectOnly<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct Element<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for Element<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<T, D::Error> {
        T::deserialize(ObjectOnly(from))
    }
}

/// Reads a bare array of objects. It stops early once there are more than any list may hold: the rest would be read
/// only to be refused.
pub(crate) struct ObjectList<T> {
    pub(crate) max: usize,
    pub(crate) of: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectList<T> {
    type Value = Vec<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "a list of at most {} objects", self.max)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut read = Vec::with_capacity(list.size_hint().unwrap_or(4).min(self.max));
        while let Some(next) = list.next_element_seed(Element(PhantomData))? {
            if read.len() == self.max {
                return Err(serde::de::Error::invalid_length(self.max + 1, &self));
            }
            read.push(next);
        }
        Ok(read)
    }
}

/// For optional fields: absent is `None` (by `serde(default)`), present must hold a value.
pub(crate) fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}
