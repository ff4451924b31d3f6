//! A value on its way into a statement: the few types that both databases store alike.

use tollkeeper_core::Millis;
use tollkeeper_decide::KeyHash;

/// `None` is NULL of that type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bind<'a> {
    Text(Option<&'a str>),
    Int(Option<i64>),
    Bytes(Option<&'a [u8]>),
    Flag(bool),
}

macro_rules! binds {
    ($($value:expr),* $(,)?) => { &[$($crate::Bind::from($value)),*] };
}

pub(crate) use binds;

// === impl Bind ===

impl<'a> From<&'a str> for Bind<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Some(text))
    }
}

impl<'a> From<&'a String> for Bind<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(Some(text))
    }
}

impl<'a> From<Option<&'a str>> for Bind<'a> {
    fn from(text: Option<&'a str>) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a Option<String>> for Bind<'a> {
    fn from(text: &'a Option<String>) -> Self {
        Self::Text(text.as_deref())
    }
}

impl From<i64> for Bind<'_> {
    fn from(number: i64) -> Self {
        Self::Int(Some(number))
    }
}

impl From<Option<i64>> for Bind<'_> {
    fn from(number: Option<i64>) -> Self {
        Self::Int(number)
    }
}

impl From<Millis> for Bind<'_> {
    fn from(at: Millis) -> Self {
        Self::Int(Some(signed(at.0)))
    }
}

impl From<Option<Millis>> for Bind<'_> {
    fn from(at: Option<Millis>) -> Self {
        Self::Int(at.map(|at| signed(at.0)))
    }
}

impl<'a> From<&'a [u8]> for Bind<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(Some(bytes))
    }
}

impl<'a> From<&'a Vec<u8>> for Bind<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::Bytes(Some(bytes))
    }
}

impl<'a> From<Option<&'a [u8]>> for Bind<'a> {
    fn from(bytes: Option<&'a [u8]>) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<&'a KeyHash> for Bind<'a> {
    fn from(hash: &'a KeyHash) -> Self {
        Self::Bytes(Some(&hash.0))
    }
}

impl From<bool> for Bind<'_> {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

/// SQL has no unsigned numbers; what does not fit is as good as the largest that does.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Nothing we store is below zero but a debt of credits, which counts as none.
pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

pub(crate) fn moment(number: Option<i64>) -> Option<Millis> {
    number.map(|number| Millis(unsigned(number)))
}
