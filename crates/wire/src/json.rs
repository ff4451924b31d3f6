//! Replies as JSON text without a serializer between: for those that a node writes most often. What is
//! written is what serde writes of the same value, byte for byte.

use std::borrow::Cow;

use crate::envelope::Success;
use crate::metadata::Metadata;

pub trait Json {
    /// Appends it.
    fn write(&self, out: &mut Vec<u8>);
}

/// Writes one field with a comma behind it, unless it is of a kind that is left out when it says nothing.
macro_rules! json_field {
    (optional $out:ident $wire:literal $value:expr) => {
        if let Some(value) = $value {
            $crate::json::json_field!(required $out $wire value);
        }
    };
    (flagged $out:ident $wire:literal $value:expr) => {
        if *$value {
            $out.extend_from_slice(concat!("\"", $wire, "\":true,").as_bytes());
        }
    };
    (listed $out:ident $wire:literal $value:expr) => {
        if !$value.is_empty() {
            $crate::json::json_field!(required $out $wire $value);
        }
    };
    (required $out:ident $wire:literal $value:expr) => {
        $out.extend_from_slice(concat!("\"", $wire, "\":").as_bytes());
        $crate::json::Json::write($value, $out);
        $out.push(b',');
    };
}

pub(crate) use json_field;

/// Ends what was written with a comma behind every part, or nothing.
pub(crate) fn close(out: &mut Vec<u8>, end: u8) {
    match out.last_mut() {
        Some(comma @ b',') => *comma = end,
        _ => out.push(end),
    }
}

// === impl Json ===

impl Json for str {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        if !is_plain(self.as_bytes()) {
            return escape(self, out);
        }
        out.reserve(self.len() + 2);
        out.push(b'"');
        out.extend_from_slice(self.as_bytes());
        out.push(b'"');
    }
}

impl Json for Cow<'_, str> {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        (**self).write(out);
    }
}

impl Json for u64 {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(itoa::Buffer::new().format(*self).as_bytes());
    }
}

impl Json for bool {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true".as_slice() } else { b"false" });
    }
}

impl Json for Metadata<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_str().as_bytes());
    }
}

impl<T: Json> Json for [T] {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for one in self {
            one.write(out);
            out.push(b',');
        }
        close(out, b']');
    }
}

impl<T: Json> Json for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.as_slice().write(out);
    }
}

impl<T: Json + Clone> Json for Cow<'_, [T]> {
    fn write(&self, out: &mut Vec<u8>) {
        (**self).write(out);
    }
}

impl<T: Json> Json for Success<'_, T> {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"meta":{"requestId":"#);
        self.meta.request_id.write(out);
        out.extend_from_slice(br#"},"data":"#);
        self.data.write(out);
        if let Some(pagination) = &self.pagination {
            out.extend_from_slice(br#","pagination":"#);
            // Writing our own types into memory cannot fail.
            let _ = serde_json::to_writer(&mut *out, pagination);
        }
        out.push(b'}');
    }
}

/// Whether a text stands in JSON as it is. Eight bytes at a time: nearly all are, and a look at each takes longer than all
/// the rest.
fn is_plain(text: &[u8]) -> bool {
    let (words, rest) = text.as_chunks::<8>();
    let odd = words.iter().fold(0, |odd, word| odd | odd_bytes(u64::from_le_bytes(*word)));
    odd == 0 && rest.iter().all(|byte| *byte >= b' ' && *byte != b'"' && *byte != b'\\')
}

/// Not zero if one of the bytes is a control character, a quote or a backslash.
fn odd_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES << 7;
    let below = |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word & HIGHS;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    below(word, b' ') | is(b'"') | is(b'\\')
}

#[cold]
fn escape(text: &str, out: &mut Vec<u8>) {
    // Writing a text into memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(value: &(impl Json + ?Sized)) -> String {
        let mut out = Vec::new();
        value.write(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    #[test]
    fn every_byte_that_needs_it_is_escaped_wherever_it_stands() {
        for odd in (0..=255_u8).map(char::from) {
            for before in 0..12 {
                let text = format!("{}{odd}ü{}", "a".repeat(before), "z".repeat(11 - before));
                assert_eq!(written(text.as_str()), serde_json::json!(text).to_string());
            }
        }
    }

    #[test]
    fn lists_of_any_length_are_as_serde_writes_them() {
        for list in [vec![], vec![1_u64], vec![0, u64::MAX]] {
            assert_eq!(written(&list), serde_json::json!(list).to_string());
        }
        assert_eq!(written(&vec![vec![true], vec![]]), "[[true],[]]");
    }

    proptest! {
        #[test]
        fn any_text_is_as_serde_writes_it(text in "\\PC{0,40}|[\\x00-\\x7f]{0,40}") {
            prop_assert_eq!(written(text.as_str()), serde_json::json!(text).to_string());
        }
    }
}
