//! YAML 1.2, as far as it says what JSON says. Aliases and tags of one's own are refused: a file of rules is read by people
//! first, and a few lines of aliases can stand for gigabytes.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use serde_json::{Number, Value};

use super::located::{Broken, DEPTH_MAX, Kind, Located, Node};

pub(super) fn read(text: &str) -> Result<Located, Broken> {
    let mut reader = Reader { events: Parser::new_from_str(text) };
    let mut whole = None;
    while let Some((event, span)) = reader.next()? {
        match event {
            Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
            Event::StreamEnd => break,
            _ if whole.is_some() => {
                return Err(Broken::new(
                    line(span),
                    "a second document begins: write one list of rules",
                ));
            }
            event => whole = Some(reader.node(event, span, 0)?),
        }
    }
    whole.ok_or_else(|| Broken::new(1, "the file is empty: write `rules:` and a list"))?.located()
}

struct Reader<'t> {
    events: Parser<'t, StrInput<'t>>,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<Option<(Event<'t>, Span)>, Broken> {
        self.events.next_event().transpose().map_err(|error: ScanError| {
            Broken::new(error.marker().line(), format!("is not YAML: {}", error.info()))
        })
    }

    fn inside(&mut self, from: Span) -> Result<(Event<'t>, Span), Broken> {
        self.next()?.ok_or_else(|| Broken::new(line(from), "the file ends in the middle of this"))
    }

    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Node, Broken> {
        let here = line(span);
        if depth > DEPTH_MAX {
            return Err(Broken::new(here, format!("nests deeper than {DEPTH_MAX} levels")));
        }
        let kind = match event {
            Event::Scalar(text, style, _, tag) => {
                Kind::Plain(scalar(&text, style, tag.as_deref(), here)?)
            }
            Event::SequenceStart(..) => {
                let mut entries = Vec::new();
                loop {
                    let (event, at) = self.inside(span)?;
                    if event == Event::SequenceEnd {
                        break Kind::List(entries);
                    }
                    entries.push(self.node(event, at, depth + 1)?);
                }
            }
            Event::MappingStart(..) => {
                let mut fields = Vec::new();
                loop {
                    let (event, at) = self.inside(span)?;
                    let name = match event {
                        Event::MappingEnd => break Kind::Object(fields),
                        Event::Scalar(name, ..) => name.into_owned(),
                        _ => {
                            return Err(Broken::new(
                                line(at),
                                "the name of a field must be plain text",
                            ));
                        }
                    };
                    let (event, value_at) = self.inside(span)?;
                    let value = self.node(event, value_at, depth + 1)?;
                    fields.push((name, line(at), value));
                }
            }
            Event::Alias(_) => {
                return Err(Broken::new(here, "aliases are not supported: write the value out"));
            }
            _ => return Err(Broken::new(here, "the file ends in the middle of this")),
        };
        Ok(Node { line: here, kind })
    }
}

fn line(span: Span) -> usize {
    span.start.line()
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>, line: usize) -> Result<Value, Broken> {
    match tag {
        Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => {
            return Ok(Value::from(text));
        }
        Some(tag) if !tag.is_yaml_core_schema() => {
            return Err(Broken::new(line, format!("the tag {tag} is not supported: leave it out")));
        }
        _ => {}
    }
    Ok(if style == ScalarStyle::Plain { plain(text) } else { Value::from(text) })
}

/// What a text without quotes means in the core schema: `yes` and `on` are texts, as in every YAML since 2009.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    // Rust would also read `inf`, `nan` and the like as numbers.
    let numeric = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte))
        && text.bytes().any(|byte| byte.is_ascii_digit());
    let digits = text.strip_prefix('+').unwrap_or(text);
    if !numeric {
        return Value::from(text);
    }
    if let Ok(whole) = digits.parse::<u64>() {
        return Value::from(whole);
    }
    if let Ok(whole) = digits.parse::<i64>() {
        return Value::from(whole);
    }
    let number = digits.parse::<f64>().ok().and_then(Number::from_f64);
    number.map_or_else(|| Value::from(text), Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::read;

    #[test]
    fn a_file_says_what_the_same_json_says_and_knows_its_lines() {
        let text = "# mine\nrules:\n  - name: \"a\"\n    window: 1m\n    limit: 5\n    rate: 1.5\n    on: true\n    \
                    note: 'it''s'\n    none: ~\n    list: [yes, 007, -3]\n  - {name: b}\n";
        let expected = json!({"rules": [
            {"name": "a", "window": "1m", "limit": 5, "rate": 1.5, "on": true, "note": "it's", "none": null,
             "list": ["yes", 7, -3]},
            {"name": "b"},
        ]});
        let Ok(located) = read(text) else { return assert_eq!(text, "readable") };
        assert_eq!(located.value, expected);
        for (place, line) in [
            ("body.rules", 2),
            ("body.rules[0]", 3),
            ("body.rules[0].limit", 5),
            ("body.rules[0].list[2]", 10),
            ("body.rules[1].name", 11),
            ("body.rules[1].missing", 11),
            ("body.rules[0].limit.deeper[3]", 5),
        ] {
            assert_eq!(located.lines.of(place), line, "{place}");
        }
    }

    #[test]
    fn what_is_broken_is_told_with_its_line() {
        let deep = format!("rules: {}", "[".repeat(100));
        for (text, line) in [
            ("", 1),
            ("rules:\n  - name: a\n    name: b\n", 3),
            ("rules: &all []\nmore: *all\n", 2),
            ("rules: []\n---\nrules: []\n", 3),
            ("rules:\n  - a: [1, 2\n", 3),
            ("rules:\n  - !mine a\n", 2),
            (deep.as_str(), 1),
        ] {
            let broken = read(text).err().map(|broken| broken.line);
            assert_eq!(broken, Some(line), "{text}");
        }
    }
}
