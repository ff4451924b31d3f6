//! Replies as JSON text without a serializer between: for those that a node writes most often. What is
//! written is what serde writes of the same value, byte for byte.

use std::borrow::Cow;

use crate::envelope::Success;
use crate::metadata::Metadata;

pub trait Json {
    /// Appends it.
    fn write(&self, out: &mut Vec<u8>);

    /// Appends it as a field, behind a comma and its name.
    #[inline]
    fn write_field(&self, name: FieldName, out: &mut Vec<u8>) {
        out.extend_from_slice(name.bare.as_bytes());
        self.write(out);
    }
}

/// What stands before a value. Each piece that is appended is measured against the room that is left: so the signs around a name
/// are part of it.
#[derive(Clone, Copy, Debug)]
pub struct FieldName {
    /// `,"name":`
    pub bare: &'static str,
    /// `,"name":"`
    pub of_text: &'static str,
}

/// Writes one field behind a comma, unless it is of a kind that is left out when it says nothing.
macro_rules! json_field {
    (optional $out:ident $wire:literal $value:expr) => {
        if let Some(value) = $value {
            $crate::json::json_field!(required $out $wire value);
        }
    };
    (flagged $out:ident $wire:literal $value:expr) => {
        if *$value {
            $out.extend_from_slice(concat!(",\"", $wire, "\":true").as_bytes());
        }
    };
    (listed $out:ident $wire:literal $value:expr) => {
        if !$value.is_empty() {
            $crate::json::json_field!(required $out $wire $value);
        }
    };
    (required $out:ident $wire:literal $value:expr) => {
        let name = $crate::json::FieldName {
            bare: concat!(",\"", $wire, "\":"),
            of_text: concat!(",\"", $wire, "\":\""),
        };
        $crate::json::Json::write_field($value, name, $out);
    };
}

pub(crate) use json_field;

/// Encloses what was written since `start`: parts with a comma before each, or nothing.
#[inline]
pub(crate) fn enclose(out: &mut Vec<u8>, start: usize, [open, end]: [u8; 2]) {
    match out.get_mut(start) {
        Some(comma) => *comma = open,
        None => out.push(open),
    }
    out.push(end);
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

    #[inline]
    fn write_field(&self, name: FieldName, out: &mut Vec<u8>) {
        if !is_plain(self.as_bytes()) {
            out.extend_from_slice(name.bare.as_bytes());
            return escape(self, out);
        }
        out.extend_from_slice(name.of_text.as_bytes());
        out.extend_from_slice(self.as_bytes());
        out.push(b'"');
    }
}

impl Json for Cow<'_, str> {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        (**self).write(out);
    }

    #[inline]
    fn write_field(&self, name: FieldName, out: &mut Vec<u8>) {
        (**self).write_field(name, out);
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
        let start = out.len();
        for one in self {
            out.push(b',');
            one.write(out);
        }
        enclose(out, start, *b"[]");
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

/// Whether a text stands in JSON as it is. Eight bytes at a time: nearly all do, and a look at each takes longer than all
/// the rest. What is left behind whole words is looked at once more together with what stands before it. Never inlined, so that
/// what calls it is, and the lengths of names are known where they are appended.
#[inline(never)]
fn is_plain(text: &[u8]) -> bool {
    let odd = |word: &[u8; 8]| odd_bytes(u64::from_le_bytes(*word));
    if let Some(last) = text.last_chunk() {
        let (words, _) = text.as_chunks::<8>();
        return words.iter().fold(odd(last), |found, word| found | odd(word)) == 0;
    }
    if let (Some([a, b, c, d]), Some([e, f, g, h])) = (text.first_chunk(), text.last_chunk()) {
        return odd(&[*a, *b, *c, *d, *e, *f, *g, *h]) == 0;
    }
    text.iter().all(|byte| *byte >= b' ' && *byte != b'"' && *byte != b'\\')
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
    fn every_byte_that_needs_it_is_escaped_wherever_it_stands_in_texts_of_any_length() {
        for odd in (0..=255_u8).map(char::from) {
            for (before, behind) in (0..18).flat_map(|all| (0..=all).map(move |at| (at, all - at)))
            {
                let text = format!("{}{odd}{}", "a".repeat(before), "z".repeat(behind));
                assert_eq!(written(text.as_str()), serde_json::json!(text).to_string());
            }
        }
        assert_eq!(written(""), r#""""#);
    }

    #[test]
    fn a_field_has_its_name_before_it_whether_or_not_its_text_is_escaped() {
        let name = FieldName { bare: r#","name":"#, of_text: r#","name":""# };
        for text in ["", "plain", "\"quoted\"", "a\nlong one that has a line break"] {
            let mut out = Vec::new();
            Cow::Borrowed(text).write_field(name, &mut out);
            let expected = format!(r#","name":{}"#, serde_json::json!(text));
            assert_eq!(String::from_utf8(out).unwrap_or_default(), expected);
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
