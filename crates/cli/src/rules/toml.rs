//! TOML: `[[rules]]`, with the lines that its own parser knows. A date is no value of a rule.

use serde_json::{Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::located::{Broken, Kind, Located, Node, line_at};

pub(super) fn read(text: &str) -> Result<Located, Broken> {
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_at(text, span.start));
        Broken::new(line, format!("is not TOML: {}", error.message()))
    })?;
    let lines = Newlines::of(text);
    let kind = object(table.get_ref(), &lines)?;
    Node { line: 1, kind }.located()
}

/// Where lines end, so that finding the line of a place takes no second walk over the file.
struct Newlines(Vec<usize>);

impl Newlines {
    fn of(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(at, _)| at).collect())
    }

    fn line(&self, byte: usize) -> usize {
        self.0.partition_point(|end| *end < byte) + 1
    }
}

fn object(table: &DeTable<'_>, lines: &Newlines) -> Result<Kind, Broken> {
    let field = |(name, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let text: &std::borrow::Cow<'_, str> = name.get_ref();
        Ok((text.to_string(), lines.line(name.span().start), node(value, lines)?))
    };
    table.iter().map(field).collect::<Result<_, _>>().map(Kind::Object)
}

/// As deep as the parser lets it be, which has a bound of its own.
fn node(value: &Spanned<DeValue<'_>>, lines: &Newlines) -> Result<Node, Broken> {
    let line = lines.line(value.span().start);
    let kind = match value.get_ref() {
        DeValue::String(text) => Kind::Plain(Value::from(&**text)),
        DeValue::Boolean(flag) => Kind::Plain(Value::Bool(*flag)),
        DeValue::Integer(number) => {
            let read = i64::from_str_radix(number.as_str(), number.radix());
            Kind::Plain(
                read.map(Value::from).map_err(|_| Broken::new(line, "the number is too large"))?,
            )
        }
        DeValue::Float(number) => {
            let read = number.as_str().parse().ok().and_then(Number::from_f64);
            Kind::Plain(
                read.map(Value::Number)
                    .ok_or_else(|| Broken::new(line, "is not a number that counts"))?,
            )
        }
        DeValue::Datetime(date) => Kind::Plain(Value::from(date.to_string())),
        DeValue::Array(entries) => {
            Kind::List(entries.iter().map(|entry| node(entry, lines)).collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => object(table, lines)?,
    };
    Ok(Node { line, kind })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::read;

    #[test]
    fn a_file_says_what_the_same_json_says_and_knows_its_lines() {
        let text = "# mine\n[[rules]]\nname = \"a\"\nrate = 1.5\nlimits = [\n  { limit = 1_000, window = \"1m\" },\n]\n\n\
                    [[rules]]\nname = \"b\"\n[rules.response]\nstatus = 402\n";
        let expected = json!({"rules": [
            {"name": "a", "rate": 1.5, "limits": [{"limit": 1000, "window": "1m"}]},
            {"name": "b", "response": {"status": 402}},
        ]});
        let Ok(located) = read(text) else { return assert_eq!(text, "readable") };
        assert_eq!(located.value, expected);
        for (place, line) in [
            ("body.rules[0].name", 3),
            ("body.rules[0].limits[0].window", 6),
            ("body.rules[1].name", 10),
            ("body.rules[1].response.status", 12),
        ] {
            assert_eq!(located.lines.of(place), line, "{place}");
        }
    }

    #[test]
    fn what_is_broken_is_told_with_its_line() {
        for (text, line) in [
            ("[[rules]]\nname = \"a\"\nname = \"b\"\n", 3),
            ("[[rules]]\nname = a\n", 2),
            ("a = 99999999999999999999\n", 1),
        ] {
            assert_eq!(read(text).err().map(|broken| broken.line), Some(line), "{text}");
        }
    }
}
