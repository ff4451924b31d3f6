//! What the counters of a request are called, one behind the other in one text: most requests that meet a rule meet several,
//! and all their names together take one piece of memory.

#[derive(Debug, Default)]
pub struct Names(String);

/// Which part of the text a name is. It means something only to the names that gave it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    start: u32,
    end: u32,
}

// === impl Names ===

impl Names {
    /// With room for those of most requests; more of them grow.
    pub(super) fn roomy() -> Self {
        const BYTES: usize = 128;
        Self(String::with_capacity(BYTES))
    }

    /// Puts down one more, as `write` appends it.
    pub(super) fn put(&mut self, write: impl FnOnce(&mut String)) -> Name {
        let start = self.0.len();
        write(&mut self.0);
        // A request and what it meets are bounded: together they never come near the end of these.
        let at = |place| u32::try_from(place).unwrap_or(u32::MAX);
        Name { start: at(start), end: at(self.0.len()) }
    }

    pub(super) fn put_text(&mut self, text: &str) -> Name {
        self.put(|names| names.push_str(text))
    }

    pub fn of(&self, name: Name) -> &str {
        self.0.get(name.start as usize..name.end as usize).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_as_it_was_put_down() {
        let mut names = Names::roomy();
        let texts = ["*", "", "user_1|/things/{id}", "ü"];
        let put = texts.map(|text| names.put_text(text));
        assert_eq!(put.map(|name| names.of(name)), texts);
        assert_eq!(Names::default().of(put[2]), "", "another request's name is none here");
    }
}
