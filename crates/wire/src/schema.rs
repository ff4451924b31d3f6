//! One description per body. It names every fault of a bad body, becomes the `OpenAPI` document, and holds the bounds
//! that the fast path checks. Descriptions are constants; this file never looks at a request.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

pub use crate::room::Room;

/// Integers above this are not exact in JavaScript, where many callers live.
pub const INTEGER_MAX: u64 = (1 << 53) - 1;

/// A body whose shape is described.
pub trait Described {
    const SHAPE: Shape;
}

/// What a JSON value may look like.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    Integer(Whole),
    /// A number with at most three decimals; the bounds are in thousandths.
    Thousandths(Whole),
    Text(Chars),
    /// A text that comes from end users and is hashed or compared, never stored: any character may be in it, [`NUL`] too.
    /// Whoever limits hostile input has to get an answer about it.
    Raw(Chars),
    /// A text of certain characters or of a certain form.
    Spelled(Chars, &'static Spelling),
    Choice(&'static [&'static str]),
    Flag,
    List {
        of: &'static Shape,
        min: usize,
        max: usize,
    },
    Object(&'static Object),
    /// An object of the caller's own making.
    Free(Room),
    /// Any value: only in answers, for it has no bounds.
    Any,
    /// The shape, or null.
    Nullable(&'static Shape),
    /// Either of two shapes that JSON itself tells apart: a text or a number, a text or a list.
    Either(&'static [Shape; 2]),
}

/// Bounds of an integer, both included.
#[derive(Debug, Clone, Copy)]
pub struct Whole {
    pub min: u64,
    pub max: u64,
}

impl Whole {
    pub const fn holds(self, number: u64) -> bool {
        self.min <= number && number <= self.max
    }
}

/// A number in thousandths, where it is a whole number of them.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "what was rounded is checked to be exactly what was given"
)]
pub fn thousandths(number: &Number) -> Option<u64> {
    if let Some(whole) = number.as_u64() {
        return whole.checked_mul(1000);
    }
    let given = number.as_f64().filter(|given| (0.0..1e12).contains(given))?;
    let rounded = (given * 1000.0).round() as u64;
    (rounded as f64 / 1000.0 == given).then_some(rounded)
}

/// In no text that may be stored or looked for: PostgreSQL cannot take it, and what SQLite took could never move there.
pub const NUL: char = '\0';

/// Bounds of a text in characters, not bytes, both included.
#[derive(Debug, Clone, Copy)]
pub struct Chars {
    pub min: usize,
    pub max: usize,
}

impl Chars {
    /// The bounds are kept, and [`NUL`] is not in it.
    pub fn holds(self, text: &str) -> bool {
        self.holds_raw(text) && !text.contains(NUL)
    }

    /// The same of a text that was read from JSON. JSON only spells NUL as an escape, and a text with escapes is never
    /// borrowed, so the usual text is not searched.
    #[allow(clippy::ptr_arg, reason = "whether it is borrowed says what may be in it")]
    pub fn holds_read(self, text: &Cow<'_, str>) -> bool {
        self.holds_raw(text) && !matches!(text, Cow::Owned(text) if text.contains(NUL))
    }

    /// The bounds are kept; see [`Shape::Raw`].
    pub fn holds_raw(self, text: &str) -> bool {
        // A text has at most as many characters as bytes, so short ones need no counting.
        let few_enough = text.len() <= self.max || text.chars().count() <= self.max;
        few_enough && (self.min == 0 || text.chars().nth(self.min - 1).is_some())
    }
}

/// How a text is spelled, beyond its length.
#[derive(Debug, Clone, Copy)]
pub struct Spelling {
    /// What it is made of, as the end of the sentence "a string of …".
    pub of: &'static str,
    /// The same as a regular expression for the `OpenAPI` document, where one can say it.
    pub pattern: Option<&'static str>,
    pub holds: fn(&str) -> bool,
    pub examples: &'static [&'static str],
}

/// The fields of an object, and the rules that span several of them.
#[derive(Debug, Clone, Copy)]
pub struct Object {
    pub fields: &'static [Field],
    pub rules: &'static [Rule],
}

impl Object {
    pub const fn of(fields: &'static [Field]) -> Self {
        Self { fields, rules: &[] }
    }

    pub const fn with_rules(fields: &'static [Field], rules: &'static [Rule]) -> Self {
        Self { fields, rules }
    }

    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Field {
    pub name: &'static str,
    pub presence: Presence,
    pub shape: Shape,
    pub about: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    Required,
    Optional,
}

impl Field {
    pub const fn required(name: &'static str, shape: Shape, about: &'static str) -> Self {
        Self { name, presence: Presence::Required, shape, about }
    }

    pub const fn optional(name: &'static str, shape: Shape, about: &'static str) -> Self {
        Self { name, presence: Presence::Optional, shape, about }
    }

    pub fn is_required(&self) -> bool {
        self.presence == Presence::Required
    }
}

/// A rule over several fields of one object. It is asked even when single fields are wrong, and then has nothing to say.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The rule in a sentence, for the `OpenAPI` document.
    pub about: &'static str,
    pub breach: fn(&Map<String, Value>) -> Option<Breach>,
}

/// How a rule was broken, blamed on one field.
#[derive(Debug, Clone)]
pub struct Breach {
    pub field: &'static str,
    pub message: String,
    pub fix: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_measured_in_characters_and_both_bounds_are_included() {
        let three = Chars { min: 1, max: 3 };
        assert!(!three.holds(""));
        assert!(three.holds("a"));
        assert!(three.holds("äöü"));
        assert!(three.holds("🦀🦀🦀"));
        assert!(!three.holds("🦀🦀🦀🦀"));
        assert!(!three.holds("abcd"));
    }

    #[test]
    fn only_a_raw_text_holds_the_character_nul() {
        let three = Chars { min: 1, max: 3 };
        assert!(three.holds_raw("a\0b"));
        assert!(!three.holds("a\0b"));
        assert!(!three.holds_read(&Cow::Owned("\0".into())));
        assert!(three.holds_read(&Cow::Owned("a\nb".into())));
    }

    #[test]
    fn thousandths_are_exact_or_none() {
        for (text, expected) in [
            ("1", Some(1000)),
            ("0.001", Some(1)),
            ("1.001", Some(1001)),
            ("123456.789", Some(123_456_789)),
            ("0.0005", None),
            ("1.0001", None),
            ("-1", None),
            ("1e300", None),
            ("18446744073709551615", None),
        ] {
            let number: Option<Number> = serde_json::from_str(text).ok();
            assert_eq!(number.as_ref().and_then(thousandths), expected, "{text}");
        }
    }

    #[test]
    fn integer_bounds_are_included() {
        let few = Whole { min: 1, max: 3 };
        assert_eq!([0, 1, 3, 4].map(|n| few.holds(n)), [false, true, true, false]);
    }
}
