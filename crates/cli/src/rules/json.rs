//! JSON with lines: the reader that feeds the parser counts them, byte by byte.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Read};
use std::rc::Rc;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

use super::located::{Broken, Kind, Located, Node};

pub(super) fn read(text: &str) -> Result<Located, Broken> {
    let line = Rc::new(Cell::new(1));
    let counted = Counted { rest: text.as_bytes(), line: Rc::clone(&line) };
    let mut json = serde_json::Deserializer::from_reader(counted);
    let read = Nodes(&line).deserialize(&mut json);
    let node = read.and_then(|node| json.end().map(|()| node));
    node.map_err(|error| Broken::new(error.line().max(1), format!("is not JSON: {error}")))?
        .located()
}

/// One byte at a time, so that the line is always that of what the parser looks at.
struct Counted<'t> {
    rest: &'t [u8],
    line: Rc<Cell<usize>>,
}

impl Read for Counted<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (Some((first, rest)), Some(place)) = (self.rest.split_first(), into.first_mut()) else {
            return Ok(0);
        };
        *place = *first;
        self.rest = rest;
        self.line.set(self.line.get() + usize::from(*first == b'\n'));
        Ok(1)
    }
}

#[derive(Clone, Copy)]
struct Nodes<'l>(&'l Rc<Cell<usize>>);

impl Nodes<'_> {
    fn plain(self, value: impl Into<Value>) -> Node {
        Node { line: self.0.get(), kind: Kind::Plain(value.into()) }
    }
}

impl<'de> DeserializeSeed<'de> for Nodes<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Node, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Nodes<'_> {
    type Value = Node;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(self.plain(Value::Null))
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Node, E> {
        Ok(self.plain(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Node, E> {
        Ok(self.plain(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Node, E> {
        Ok(self.plain(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Node, E> {
        Ok(self.plain(Number::from_f64(number).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Node, E> {
        Ok(self.plain(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let line = self.0.get();
        let mut entries = Vec::new();
        while let Some(entry) = list.next_element_seed(self)? {
            entries.push(entry);
        }
        Ok(Node { line, kind: Kind::List(entries) })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Node, A::Error> {
        let line = self.0.get();
        let mut fields = Vec::new();
        while let Some(name) = object.next_key::<String>()? {
            let at = self.0.get();
            fields.push((name, at, object.next_value_seed(self)?));
        }
        Ok(Node { line, kind: Kind::Object(fields) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::read;

    #[test]
    fn a_file_is_read_as_it_is_and_knows_its_lines() {
        let text = "{\n\t\"rules\": [\n\t\t{\"name\": \"a\",\n\t\t \"limit\": 5,\n\t\t \"more\": [1.5, \"\\uD83D\\uDE00\"]},\n\t\t{\n\t\t\t\"name\": \"b\"}\n\t]\n}\n";
        let Ok(located) = read(text) else { return assert_eq!(text, "readable") };
        let expected =
            json!({"rules": [{"name": "a", "limit": 5, "more": [1.5, "😀"]}, {"name": "b"}]});
        assert_eq!(located.value, expected);
        for (place, line) in [
            ("body.rules", 2),
            ("body.rules[0]", 3),
            ("body.rules[0].limit", 4),
            ("body.rules[0].more[1]", 5),
            ("body.rules[1].name", 7),
        ] {
            assert_eq!(located.lines.of(place), line, "{place}");
        }
    }

    #[test]
    fn what_is_broken_is_told_with_its_line() {
        for (text, line) in [("{\n\"a\": 1,\n\"a\": 2}", 3), ("{\n\"a\": }", 2), ("{}\n{}", 2)] {
            assert_eq!(read(text).err().map(|broken| broken.line), Some(line), "{text}");
        }
        assert!(read(&"[".repeat(100_000)).is_err());
    }
}
