//! A span of time that a request asks about: it may be empty, but does not end before it begins.

use crate::schema::{Breach, Rule};

pub(crate) const ENDS_AFTER_IT_BEGINS: Rule = Rule {
    about: "`to` is not before `from`.",
    breach: |given| {
        let (from, to) = (given.get("from")?.as_u64()?, given.get("to")?.as_u64()?);
        (!ends_after_it_begins(Some(from), Some(to))).then(|| Breach {
            field: "to",
            message: String::from("Is before `from`."),
            fix: String::from("Send the earlier moment as `from` and the later one as `to`."),
        })
    },
};

/// What is left out bounds nothing.
pub(crate) fn ends_after_it_begins(from: Option<u64>, to: Option<u64>) -> bool {
    from.zip(to).is_none_or(|(from, to)| from <= to)
}
