//! Walks a parsed body beside its description and collects everything wrong with it at once.
//! Caller text is quoted shortened and escaped; the walk is bounded by the description, never by the body.

use serde_json::{Map, Number, Value};

use crate::envelope::FieldError;
use crate::schema::{Chars, NUL, Object, Room, Shape, Whole, thousandths};

/// A caller who made more mistakes than this reads the first ones and tries again; a reply stays small.
pub(crate) const FAULTS_MAX: usize = 100;

/// Enough of a caller's own text to recognise it.
const QUOTE_CHARS_MAX: usize = 64;

/// Distance up to which an unknown name is taken for a slip of a known one.
const SLIP_MAX: usize = 3;

impl Shape {
    /// Everything wrong with `value`, at most a hundred things; empty means that the value fits.
    pub fn faults(&self, value: &Value) -> Vec<FieldError> {
        let mut walk = Walk { at: String::from("body"), found: Vec::new() };
        walk.visit(self, value);
        walk.found
    }

    /// What is expected here, as the end of the sentence "expected …".
    pub fn expectation(&self) -> String {
        match self {
            Self::Integer(Whole { min, max }) => format!("an integer from {min} to {max}"),
            Self::Thousandths(Whole { min, max }) => format!(
                "a number from {} to {} with at most three decimals",
                in_thousandths(*min),
                in_thousandths(*max)
            ),
            Self::Text(Chars { min, max }) | Self::Raw(Chars { min, max }) => {
                format!("a string of {min} to {max} characters")
            }
            Self::Choice(words) => format!("one of {}", quoted_list(words)),
            Self::Flag => String::from("true or false"),
            Self::List { min, max, .. } => format!("a list of {min} to {max} entries"),
            Self::Object(object) => {
                let required: Vec<_> =
                    object.fields.iter().filter(|f| f.is_required()).map(|f| f.name).collect();
                match required.as_slice() {
                    [] => String::from("an object"),
                    names => format!("an object with the fields {}", quoted_list(names)),
                }
            }
            Self::Spelled(Chars { min, max }, spelling) => {
                format!("a string of {min} to {max} characters: {}", spelling.of)
            }
            Self::Free(Room { properties_max, bytes_max, depth_max }) => format!(
                "an object of at most {properties_max} properties, {bytes_max} bytes and {depth_max} levels"
            ),
            Self::Any => String::from("any value"),
            Self::Nullable(shape) => format!("{}, or null", shape.expectation()),
            Self::Either([one, other]) => {
                format!("{}, or {}", one.expectation(), other.expectation())
            }
        }
    }
}

impl Shape {
    /// Whether JSON has the same kind of value for both, whatever its bounds.
    pub(crate) fn is_of(&self, value: &Value) -> bool {
        match self {
            Self::Integer(_) | Self::Thousandths(_) => value.is_number(),
            Self::Text(_) | Self::Raw(_) | Self::Spelled(..) | Self::Choice(_) => value.is_string(),
            Self::Flag => value.is_boolean(),
            Self::List { .. } => value.is_array(),
            Self::Object(_) | Self::Free(_) => value.is_object(),
            Self::Any => true,
            Self::Nullable(of) => value.is_null() || of.is_of(value),
            Self::Either(both) => both.iter().any(|one| one.is_of(value)),
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
fn in_thousandths(number: u64) -> f64 {
    number as f64 / 1000.0
}

struct Walk {
    at: String,
    found: Vec<FieldError>,
}

impl Walk {
    fn is_full(&self) -> bool {
        self.found.len() >= FAULTS_MAX
    }

    fn fault(&mut self, message: impl Into<String>, fix: impl Into<String>) {
        if !self.is_full() {
            self.found.push(FieldError::new(self.at.as_str(), message, fix));
        }
    }

    fn expected(&mut self, shape: &Shape, message: impl Into<String>) {
        self.fault(message, format!("Send {}.", shape.expectation()));
    }

    fn inside(&mut self, step: &str, look: impl FnOnce(&mut Self)) {
        let outer = self.at.len();
        self.at.push_str(step);
        look(self);
        self.at.truncate(outer);
    }

    fn visit(&mut self, shape: &Shape, value: &Value) {
        match (shape, value) {
            (Shape::Integer(bounds), Value::Number(number)) => {
                self.visit_number(shape, *bounds, number);
            }
            (Shape::Thousandths(bounds), Value::Number(number)) => {
                if !thousandths(number).is_some_and(|number| bounds.holds(number)) {
                    self.expected(shape, format!("{number} is out of range or too fine."));
                }
            }
            (Shape::Text(bounds), Value::String(text)) => {
                self.visit_text(shape, *bounds, text);
            }
            (Shape::Raw(bounds), Value::String(text)) => self.visit_raw(shape, *bounds, text),
            (Shape::Spelled(bounds, spelling), Value::String(text)) => {
                if !bounds.holds(text) {
                    self.visit_text(shape, *bounds, text);
                } else if !(spelling.holds)(text) {
                    self.expected(shape, format!("Is not {}.", spelling.of));
                }
            }
            (Shape::Choice(words), Value::String(word)) => {
                if !words.contains(&word.as_str()) {
                    self.expected(shape, format!("{} is not a known value.", quote(word)));
                }
            }
            (Shape::Flag, Value::Bool(_)) | (Shape::Nullable(_), Value::Null) | (Shape::Any, _) => {
            }
            (Shape::List { of, min, max }, Value::Array(entries)) => {
                if entries.len() < *min || entries.len() > *max {
                    self.expected(shape, format!("Has {} entries.", entries.len()));
                }
                self.visit_entries(of, entries.iter().take(*max));
            }
            (Shape::Object(object), Value::Object(given)) => self.visit_object(object, given),
            (Shape::Free(room), Value::Object(given)) => self.visit_free(shape, *room, given),
            (Shape::Nullable(inner), _) => self.visit(inner, value),
            (Shape::Either(both), _) => match both.iter().find(|one| one.is_of(value)) {
                Some(one) => self.visit(one, value),
                None => self.expected(shape, format!("Is {}.", kind_of(value))),
            },
            _ => self.expected(shape, format!("Is {}.", kind_of(value))),
        }
    }

    fn visit_raw(&mut self, shape: &Shape, bounds: Chars, text: &str) {
        if !bounds.holds_raw(text) {
            self.expected(shape, format!("Has {} characters.", text.chars().count()));
        }
    }

    fn visit_text(&mut self, shape: &Shape, bounds: Chars, text: &str) {
        self.visit_raw(shape, bounds, text);
        if text.contains(NUL) {
            self.fault("Holds the character U+0000, which cannot be stored.", "Leave it out.");
        }
    }

    fn visit_number(&mut self, shape: &Shape, bounds: Whole, number: &Number) {
        match number.as_u64() {
            Some(whole) if bounds.holds(whole) => {}
            Some(_) => self.expected(shape, format!("{number} is out of range.")),
            None if number.as_i64().is_some() => {
                self.expected(shape, format!("{number} is negative."));
            }
            None => self.expected(shape, format!("{number} is not an exact integer.")),
        }
    }

    fn visit_entries<'v>(&mut self, of: &Shape, entries: impl Iterator<Item = &'v Value>) {
        for (position, entry) in entries.enumerate() {
            if self.is_full() {
                return;
            }
            self.inside(&format!("[{position}]"), |walk| walk.visit(of, entry));
        }
    }

    fn visit_free(&mut self, shape: &Shape, room: Room, given: &Map<String, Value>) {
        // The walk has only parsed values, so it measures the text that a caller without padding would have sent.
        let text = serde_json::to_string(given).unwrap_or_default();
        if let Some(excess) = room.excess(given.len(), &text) {
            self.expected(shape, excess);
        }
    }

    fn visit_object(&mut self, object: &Object, given: &Map<String, Value>) {
        for field in object.fields {
            self.inside(&format!(".{}", field.name), |walk| match given.get(field.name) {
                Some(value) => walk.visit(&field.shape, value),
                None if field.is_required() => {
                    walk.expected(&field.shape, "Is required and missing.");
                }
                None => {}
            });
        }
        for name in given.keys().filter(|name| object.field(name).is_none()) {
            if self.is_full() {
                return;
            }
            self.inside(&unknown_step(name), |walk| walk.unknown(object, name));
        }
        for breach in object.rules.iter().filter_map(|rule| (rule.breach)(given)) {
            self.inside(&format!(".{}", breach.field), |walk| {
                walk.fault(breach.message, breach.fix);
            });
        }
    }

    fn unknown(&mut self, object: &Object, name: &str) {
        let message = format!("{} is not a known field.", quote(name));
        if let Some(known) = nearest(object, name) {
            self.fault(message, format!("Did you mean `{known}`? Rename or remove it."));
        } else {
            let known: Vec<_> = object.fields.iter().map(|field| field.name).collect();
            self.fault(message, format!("Remove it. Known fields: {}.", quoted_list(&known)));
        }
    }
}

fn nearest(object: &Object, name: &str) -> Option<&'static str> {
    if name.len() > QUOTE_CHARS_MAX {
        return None;
    }
    let distance = |known: &str| strsim::osa_distance(&name.to_lowercase(), &known.to_lowercase());
    object
        .fields
        .iter()
        .map(|field| (distance(field.name), field.name))
        // A slip leaves at least half of the name standing: `x` is not a slip of `limit`.
        .filter(|(slips, known)| *slips <= SLIP_MAX && slips * 2 <= known.len())
        .min()
        .map(|(_, known)| known)
}

fn unknown_step(name: &str) -> String {
    let plain = name.len() <= QUOTE_CHARS_MAX
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if plain && !name.is_empty() { format!(".{name}") } else { format!("[{}]", quote(name)) }
}

/// The start of a caller's text, with control and invisible characters escaped so that no log or terminal obeys them.
pub(crate) fn quote(text: &str) -> String {
    match text.char_indices().nth(QUOTE_CHARS_MAX) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

fn quoted_list(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
