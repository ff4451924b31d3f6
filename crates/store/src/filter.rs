//! A search put together from the conditions that were given: an index serves only what the statement says plainly.
//! Conditions are our own texts; what somebody looks for is always a bound value.

use sqlx::AssertSqlSafe;

use crate::Bind;

#[derive(Debug)]
pub(crate) struct Filter<'a> {
    sql: String,
    binds: Vec<Bind<'a>>,
}

// === impl Filter ===

impl<'a> Filter<'a> {
    /// `select` ends in its first condition, whose value is `$1`: the tenant.
    pub(crate) fn new(select: impl Into<String>, tenant_id: &'a str) -> Self {
        Self { sql: select.into(), binds: vec![Bind::from(tenant_id)] }
    }

    /// `column =` or the like, if there is a value to compare with.
    pub(crate) fn and(&mut self, condition: &'static str, value: Option<Bind<'a>>) {
        if let Some(value) = value {
            let place = self.bind(value);
            self.say(&[" AND ", condition, " ", &place]);
        }
    }

    /// A condition with this value in place of every `{}`.
    pub(crate) fn and_with(&mut self, template: &'static str, value: Option<Bind<'a>>) {
        if let Some(value) = value {
            let place = self.bind(value);
            self.say(&[" AND (", &template.replace("{}", &place), ")"]);
        }
    }

    /// A condition with two values, in place of `{1}` and `{2}`.
    pub(crate) fn and_pair(&mut self, template: &'static str, pair: Option<[Bind<'a>; 2]>) {
        if let Some([first, second]) = pair {
            let (first, second) = (self.bind(first), self.bind(second));
            let condition = template.replace("{1}", &first).replace("{2}", &second);
            self.say(&[" AND ", &condition]);
        }
    }

    /// What rows are added up by.
    pub(crate) fn grouped(&mut self, by: &'static str) {
        self.say(&[" GROUP BY ", by]);
    }

    /// One row more than a page has: it says whether there is a next.
    pub(crate) fn ordered(
        mut self,
        order: &'static str,
        limit: u32,
    ) -> (AssertSqlSafe<String>, Vec<Bind<'a>>) {
        let place = self.bind(Bind::from(i64::from(limit) + 1));
        self.say(&[" ORDER BY ", order, " LIMIT ", &place]);
        (AssertSqlSafe(self.sql), self.binds)
    }

    fn say(&mut self, words: &[&str]) {
        self.sql.extend(words.iter().copied());
    }

    fn bind(&mut self, value: Bind<'a>) -> String {
        self.binds.push(value);
        format!("${}", self.binds.len())
    }
}
