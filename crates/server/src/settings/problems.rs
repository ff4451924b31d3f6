//! Everything that is wrong with the settings, as a list a person can act on.
//! It never holds a given value of a secret; callers hand in what may be shown.

use std::fmt;

use super::table::SETTINGS;

/// One wrong setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The name as the person wrote it, or the setting's key.
    pub name: String,
    /// Where the value came from: a flag, a variable, a place in the file.
    pub origin: String,
    pub found: String,
    pub expected: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, origin, found, expected } = self;
        write!(f, "{name} ({origin}): found {found}; expected {expected}")
    }
}

/// All problems of one start, so that a person corrects them in one go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    pub(super) fn append(&mut self, later: Self) {
        self.0.extend(later.0);
    }

    /// A name that is no setting; `style` turns a key into the way names are written there.
    pub(super) fn add_unknown(
        &mut self,
        name: &str,
        origin: String,
        style: impl Fn(&str) -> String,
    ) {
        let expected = nearest(name, &style).map_or_else(
            || "a name that `tollkeeper serve --help` lists".to_owned(),
            |near| format!("a known name; did you mean {near}?"),
        );
        let found = "an unknown setting".to_owned();
        self.add(Problem { name: name.to_owned(), origin, found, expected });
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            1 => write!(f, "1 setting is wrong:")?,
            many => write!(f, "{many} settings are wrong:")?,
        }
        self.0.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

impl std::error::Error for Problems {}

/// The known name that a misspelt one was probably meant to be.
fn nearest(name: &str, style: impl Fn(&str) -> String) -> Option<String> {
    // A third of the name wrong is still a slip of the hand; beyond that a guess would mislead.
    let distance_max = (name.len() / 3).min(6);
    SETTINGS
        .iter()
        .map(|setting| style(setting.key))
        .map(|known| (edits(&known, name), known))
        .min()
        .filter(|(distance, _)| *distance <= distance_max)
        .map(|(_, known)| known)
}

/// Levenshtein's distance, without regard to case.
fn edits(left: &str, right: &str) -> usize {
    let right: Vec<u8> = right.bytes().collect();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (row, from) in left.bytes().enumerate() {
        let mut diagonal = row;
        let mut before = row + 1;
        for (column, to) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(!from.eq_ignore_ascii_case(to));
            diagonal = above[column + 1];
            above[column] = before;
            before = replaced.min(diagonal + 1).min(before + 1);
        }
        above[right.len()] = before;
    }
    above[right.len()]
}

#[cfg(test)]
mod tests {
    use super::{Problem, Problems, edits, nearest};

    #[test]
    fn the_distance_counts_single_slips() {
        assert_eq!(edits("mode", "mode"), 0);
        assert_eq!(edits("mode", "MODE"), 0);
        assert_eq!(edits("max_cells", "max_cell"), 1);
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("abc", ""), 3);
    }

    #[test]
    fn a_slip_is_suggested_and_nonsense_is_not() {
        assert_eq!(nearest("http-listen", str::to_owned).as_deref(), Some("http_listen"));
        assert_eq!(nearest("databse_url", str::to_owned).as_deref(), Some("database_url"));
        assert_eq!(nearest("frobnicate", str::to_owned), None);
    }

    #[test]
    fn the_list_has_one_line_per_problem() {
        let mut problems = Problems::default();
        for name in ["a", "b"] {
            problems.add(Problem {
                name: name.into(),
                origin: "flag --x".into(),
                found: "1".into(),
                expected: "2".into(),
            });
        }
        let printed = problems.to_string();
        assert_eq!(printed.lines().count(), 3, "{printed}");
        assert_eq!(printed.lines().nth(1), Some("  a (flag --x): found 1; expected 2"));
    }
}
