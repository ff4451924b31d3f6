//! From bytes to a checked request. A good body is parsed once, borrowed, without looking at its description;
//! only a bad one is parsed again to name everything wrong with it. It never panics and never recurses unbounded.

use serde::Deserialize;
use serde_json::Value;

use crate::envelope::FieldError;
use crate::nesting::nests_deeper;
use crate::object_only::ObjectOnly;
use crate::schema::{Described, Shape};

/// Deeper than any body of the API by far; keeps hostile nesting away from the recursive parser.
pub const DEPTH_MAX: usize = 32;

/// A request body: typed for the fast path, described for everything else.
pub trait Request<'a>: Deserialize<'a> + Described {
    /// Whether the numbers and texts are within the description's bounds. Types and names are serde's part.
    fn within_bounds(&self) -> bool;
}

/// A large body is handed on a few times until it is where it stays.
impl<'a, T: Request<'a>> Request<'a> for Box<T> {
    fn within_bounds(&self) -> bool {
        T::within_bounds(self)
    }
}

impl<T: Described> Described for Box<T> {
    const SHAPE: Shape = T::SHAPE;
}

/// The request in `body`, or everything wrong with it; the list of faults is never empty.
pub fn parse<'a, T: Request<'a>>(body: &'a [u8]) -> Result<T, Vec<FieldError>> {
    let refused = match read::<T>(body) {
        Ok(request) if request.within_bounds() => return Ok(request),
        Ok(_) => None,
        Err(error) => Some(error),
    };
    Err(explain(&T::SHAPE, body, refused))
}

fn read<'a, T: Request<'a>>(body: &'a [u8]) -> Result<T, serde_json::Error> {
    // Checked as a whole, the text need not be checked again string by string.
    let Ok(text) = std::str::from_utf8(body) else {
        return Err(serde::de::Error::custom("it is not UTF-8"));
    };
    let mut json = serde_json::Deserializer::from_str(text);
    let request = T::deserialize(ObjectOnly(&mut json))?;
    json.end()?;
    Ok(request)
}

#[cold]
fn explain(shape: &Shape, body: &[u8], refused: Option<serde_json::Error>) -> Vec<FieldError> {
    if body.trim_ascii().is_empty() {
        return vec![at_body("Is empty.", format!("Send {} as JSON.", shape.expectation()))];
    }
    if nests_deeper(body, DEPTH_MAX) {
        return vec![at_body(
            format!("Nests deeper than {DEPTH_MAX} levels."),
            format!("Send {}.", shape.expectation()),
        )];
    }
    let value: Value = match serde_json::from_slice(body) {
        Ok(value) => value,
        // serde_json's text ends with "at line … column …".
        Err(error) => {
            return vec![at_body(
                format!("Is not valid JSON: {error}."),
                "Send valid JSON in UTF-8.",
            )];
        }
    };
    let faults = shape.faults(&value);
    if !faults.is_empty() {
        return faults;
    }
    match refused {
        // A repeated field is lost in `Value`, where the last one wins; serde's own text names it.
        Some(error) => vec![at_body(format!("Is refused: {error}."), "Send every field once.")],
        // So is padding in an object of the caller's own: the walk sees 1 where 1.000… was sent.
        None => vec![at_body("Is out of bounds.", "Send numbers and texts in their short form.")],
    }
}

fn at_body(message: impl Into<String>, fix: impl Into<String>) -> FieldError {
    FieldError::new("body", message, fix)
}
