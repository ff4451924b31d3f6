//! CSV with a heading line, each row turned into the JSON that the API takes. Quoted fields may hold commas, quotes
//! and line breaks (RFC 4180). An empty field is a field that is left out.

use serde_json::{Map, Value, json};

use super::lines::Line;

const COLUMNS: &[&str] = &[
    "hash",
    "name",
    "externalId",
    "permissions",
    "roles",
    "ipAllowlist",
    "expires",
    "enabled",
    "credits",
    "tier",
    "signing",
    "meta",
];

pub(super) fn lines(text: &str) -> Result<Vec<Line>, Vec<String>> {
    let mut rows = rows(text).map_err(|fault| vec![fault])?.into_iter();
    let (_, heads) = rows.next().ok_or_else(|| vec!["it is empty".to_owned()])?;
    let unknown: Vec<_> = heads.iter().filter(|head| !COLUMNS.contains(&head.as_str())).collect();
    if !unknown.is_empty() || !heads.iter().any(|head| head == "hash") {
        let fault = format!(
            "line 1: expected the names of columns, hash and any of {}, found {}",
            COLUMNS[1..].join(", "),
            heads.join(", ")
        );
        return Err(vec![fault]);
    }
    let lines = rows.map(|(number, fields)| {
        if fields.len() != heads.len() {
            let (found, expected) = (fields.len(), heads.len());
            return Err(vec![format!("line {number}: has {found} fields, expected {expected}")]);
        }
        let given = heads.iter().zip(&fields).filter(|(_, field)| !field.is_empty());
        let object: Map<_, _> =
            given.map(|(head, field)| (head.clone(), value(head, field))).collect();
        Ok(Line { number, json: Value::Object(object).to_string() })
    });
    lines.collect()
}

/// What cannot be read as its column's type stays a text, which the check of the line then names.
fn value(column: &str, field: &str) -> Value {
    match column {
        "permissions" | "roles" | "ipAllowlist" => field.split_whitespace().collect(),
        "expires" => field.parse::<u64>().map_or_else(|_| field.into(), Value::from),
        "enabled" => field.parse::<bool>().map_or_else(|_| field.into(), Value::from),
        "credits" => {
            field.parse::<u64>().map_or_else(|_| field.into(), |left| json!({"remaining": left}))
        }
        "meta" => serde_json::from_str(field).unwrap_or_else(|_| field.into()),
        _ => field.into(),
    }
}

/// Rows with the number of the line that each begins on.
fn rows(text: &str) -> Result<Vec<(usize, Vec<String>)>, String> {
    let (mut rows, mut fields, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut number, mut begun_at, mut in_quotes, mut was_quoted) = (1, 1, false, false);
    let mut characters = text.trim_start_matches('\u{feff}').chars().peekable();
    while let Some(character) = characters.next() {
        number += usize::from(character == '\n');
        match character {
            '"' if in_quotes && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' if in_quotes || (field.is_empty() && !was_quoted) => {
                in_quotes = !in_quotes;
                was_quoted = true;
            }
            ',' if !in_quotes => {
                fields.push(std::mem::take(&mut field));
                was_quoted = false;
            }
            '\r' if !in_quotes && characters.peek() == Some(&'\n') => {}
            '\n' if !in_quotes => {
                fields.push(std::mem::take(&mut field));
                close(&mut rows, begun_at, &mut fields);
                (begun_at, was_quoted) = (number, false);
            }
            other => field.push(other),
        }
    }
    if in_quotes {
        return Err(format!("line {begun_at}: a quote is opened and never closed"));
    }
    fields.push(field);
    close(&mut rows, begun_at, &mut fields);
    Ok(rows)
}

/// An empty line is no row.
fn close(rows: &mut Vec<(usize, Vec<String>)>, begun_at: usize, fields: &mut Vec<String>) {
    let row = std::mem::take(fields);
    if row.iter().any(|field| !field.is_empty()) {
        rows.push((begun_at, row));
    }
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn a_row_becomes_the_json_that_the_api_takes() {
        let text = "hash,name,permissions,expires,enabled,credits,meta\r\n\
                    abc,\"Ann, \"\"the\"\"\nboss\",a b,1700000000000,false,5,\"{\"\"plan\"\":\"\"pro\"\"}\"\r\n\r\n\
                    def,,,,,,\n";
        let lines = lines(text).unwrap_or_default();
        let json: Vec<_> = lines.iter().map(|line| (line.number, line.json.as_str())).collect();
        let first = r#"{"credits":{"remaining":5},"enabled":false,"expires":1700000000000,"hash":"abc","meta":{"plan":"pro"},"name":"Ann, \"the\"\nboss","permissions":["a","b"]}"#;
        assert_eq!(json, [(2, first), (5, r#"{"hash":"def"}"#)]);
    }

    #[test]
    fn what_is_no_table_of_keys_is_refused_with_its_line() {
        for (text, said) in [
            ("", "empty"),
            ("name\nann\n", "line 1"),
            ("hash,colour\nabc,red\n", "colour"),
            ("hash,name\nabc\n", "line 2: has 1"),
            ("hash\n\"abc\n", "line 2: a quote"),
        ] {
            let faults = lines(text).err().unwrap_or_default().join(" ");
            assert!(faults.contains(said), "{text:?}: {faults}");
        }
    }
}
