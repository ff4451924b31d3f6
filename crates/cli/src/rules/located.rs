//! A file as one JSON value, beside the line of everything in it. Whatever the format, a place is named as in a body.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Deeper than any rule; keeps hostile nesting away from code that walks a file.
pub(super) const DEPTH_MAX: usize = 32;

#[derive(Debug)]
pub(super) struct Located {
    pub(super) value: Value,
    pub(super) lines: Lines,
}

/// Lines by place, such as `body.rules[3].limits`.
#[derive(Debug, Default)]
pub(super) struct Lines(HashMap<String, usize>);

/// Why a file cannot be read at all.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) line: usize,
    pub(super) message: String,
}

/// A value where it stands.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Plain(Value),
    List(Vec<Node>),
    /// With the line of each name.
    Object(Vec<(String, usize, Node)>),
}

// === impl Node ===

impl Node {
    pub(super) fn located(self) -> Result<Located, Broken> {
        let mut lines = Lines::default();
        let value = self.spread(&mut String::from("body"), &mut lines)?;
        Ok(Located { value, lines })
    }

    fn spread(self, place: &mut String, lines: &mut Lines) -> Result<Value, Broken> {
        // The line of a field's name was noted already, and is where a person looks.
        lines.0.entry(place.clone()).or_insert(self.line);
        let outer = place.len();
        let value = match self.kind {
            Kind::Plain(value) => value,
            Kind::List(entries) => {
                let mut list = Vec::with_capacity(entries.len());
                for (at, entry) in entries.into_iter().enumerate() {
                    // Writing to a String cannot fail.
                    let _ = write!(place, "[{at}]");
                    list.push(entry.spread(place, lines)?);
                    place.truncate(outer);
                }
                Value::Array(list)
            }
            Kind::Object(fields) => {
                let mut object = Map::new();
                for (name, line, field) in fields {
                    place.push('.');
                    place.push_str(&name);
                    lines.0.insert(place.clone(), line);
                    let value = field.spread(place, lines)?;
                    place.truncate(outer);
                    if object.insert(name.clone(), value).is_some() {
                        return Err(Broken {
                            line,
                            message: format!("the field {name:?} stands here twice"),
                        });
                    }
                }
                Value::Object(object)
            }
        };
        Ok(value)
    }
}

// === impl Lines ===

impl Lines {
    /// Of the place itself or, where it is not there, of what it is missing in.
    pub(super) fn of(&self, place: &str) -> usize {
        let mut place = place;
        loop {
            if let Some(line) = self.0.get(place) {
                return *line;
            }
            match place.rfind(['.', '[']) {
                Some(end) => place = &place[..end],
                None => return 1,
            }
        }
    }
}

// === impl Broken ===

impl Broken {
    pub(super) fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

/// The line, from 1 on, that holds this byte.
pub(super) fn line_at(text: &str, byte: usize) -> usize {
    let before = text.bytes().take(byte);
    before.filter(|byte| *byte == b'\n').count() + 1
}
