//! One line of the doctor's report: what was looked at, how it stands, and what to do about it.
//! It never looks at anything itself.

use serde::Serialize;

use crate::output::{self, Tone};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Grade {
    Ok,
    Warn,
    Fail,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    check: &'static str,
    pub(super) grade: Grade,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, grade: Grade::Ok, found: found.into(), next: None }
    }

    pub(super) fn warn(
        check: &'static str,
        found: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self { check, grade: Grade::Warn, found: found.into(), next: Some(next.into()) }
    }

    pub(super) fn fail(
        check: &'static str,
        found: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self { check, grade: Grade::Fail, found: found.into(), next: Some(next.into()) }
    }

    pub(super) fn shown(&self) -> String {
        let (tone, word) = match self.grade {
            Grade::Ok => (Tone::Good, "ok  "),
            Grade::Warn => (Tone::Doubtful, "warn"),
            Grade::Fail => (Tone::Bad, "fail"),
        };
        let next = self.next.as_ref().map(|next| format!("; next: {next}")).unwrap_or_default();
        let line = format!("{:<10} {}{next}", self.check, self.found);
        format!("{} {}", output::toned(tone, word), output::printable(&line))
    }
}
