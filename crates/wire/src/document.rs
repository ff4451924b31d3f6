//! A whole body as a JSON value, for requests that are checked against their description as a whole. A field that stands
//! twice is refused: of two values the last one would win unseen.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::envelope::FieldError;
use crate::nesting::nests_deeper;
use crate::parse::DEPTH_MAX;

/// The value in `body`, or why there is none.
pub fn document(body: &[u8]) -> Result<Value, Vec<FieldError>> {
    let refused = |message: String, fix: &str| vec![FieldError::new("body", message, fix)];
    if body.trim_ascii().is_empty() {
        return Err(refused("Is empty.".into(), "Send an object as JSON."));
    }
    if nests_deeper(body, DEPTH_MAX) {
        let message = format!("Nests deeper than {DEPTH_MAX} levels.");
        return Err(refused(message, "Send an object with fewer levels."));
    }
    let read = serde_json::from_slice::<Once>(body).map(|Once(value)| value);
    read.map_err(|error| {
        let message = format!("Is not valid JSON, or names a field twice: {error}.");
        refused(message, "Send valid JSON in UTF-8, and every field once.")
    })
}

/// A value in which no object names a field twice.
struct Once(Value);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Values).map(Self)
    }
}

struct Values;

impl<'de> Visitor<'de> for Values {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(Number::from_f64(number).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::from(text))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(Once(entry)) = list.next_element()? {
            entries.push(entry);
        }
        Ok(Value::Array(entries))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = object.next_key::<String>()? {
            if fields.contains_key(&name) {
                return Err(A::Error::custom(format_args!("the field {name:?} stands twice")));
            }
            let Once(value) = object.next_value()?;
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::document;

    #[test]
    fn a_body_is_read_as_it_is() {
        let text = r#"{"a": [1, -2, 2.5, null, true, "x"], "b": {"c": {}}}"#;
        let expected = json!({"a": [1, -2, 2.5, null, true, "x"], "b": {"c": {}}});
        assert_eq!(document(text.as_bytes()), Ok(expected));
    }

    #[test]
    fn what_is_empty_broken_too_deep_or_says_a_thing_twice_is_refused() {
        let deep = "[".repeat(100);
        for body in ["", " ", "{", "{}x", r#"{"a":1,"a":2}"#, r#"[{"b":{"a":1,"a":1}}]"#, &deep] {
            assert!(document(body.as_bytes()).is_err_and(|faults| faults.len() == 1), "{body}");
        }
        assert!(document(b"{\"a\": \"\xff\"}").is_err());
    }
}
