//! Lines of JSON, one key each, checked against the API's own description before anything is sent.

use tollkeeper_client::wire::{MigratingKey, parse};

/// Whoever made more mistakes reads these first.
const FAULTS_MAX: usize = 10;

/// One key of the file, as JSON, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) number: usize,
    pub(super) json: String,
}

impl Line {
    pub(super) fn len(&self) -> usize {
        self.json.len()
    }

    /// The key, or what is wrong with the line.
    pub(super) fn key(&self) -> Result<MigratingKey<'_>, String> {
        parse::<MigratingKey<'_>>(self.json.as_bytes()).map_err(|faults| {
            let faults: Vec<_> = faults
                .iter()
                .map(|fault| format!("{} {}", fault.location, fault.message))
                .collect();
            format!("line {}: {}", self.number, faults.join("; "))
        })
    }
}

/// Empty lines are nobody's key.
pub(super) fn of_json(text: &str) -> Vec<Line> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(at, line)| Line { number: at + 1, json: line.to_owned() }).collect()
}

/// The same lines, once all of them are good.
pub(super) fn checked(lines: Vec<Line>) -> Result<Vec<Line>, Vec<String>> {
    if lines.is_empty() {
        return Err(vec!["it holds no keys".to_owned()]);
    }
    let faults: Vec<_> =
        lines.iter().filter_map(|line| line.key().err()).take(FAULTS_MAX).collect();
    if faults.is_empty() { Ok(lines) } else { Err(faults) }
}

#[cfg(test)]
mod tests {
    use super::{checked, of_json};

    const HASH: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

    #[test]
    fn a_bad_line_is_named_with_its_number_and_place() {
        let text = format!("{{\"hash\":\"{HASH}\"}}\n\n{{\"hash\":\"x\",\"nane\":1}}\n");
        let faults = checked(of_json(&text)).err().unwrap_or_default();
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].starts_with("line 3: ") && faults[0].contains("nane"), "{faults:?}");
        let good = checked(of_json(&text.replace("{\"hash\":\"x\",\"nane\":1}", "")));
        assert_eq!(good.map(|lines| lines.len()), Ok(1));
    }
}
