//! The envelope around every answer: `meta` plus either `data` or `error`.
//! It never carries null: a field without a value is left out, because strict clients reject null for an optional field.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Names the request, so that a person can find it in logs and audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta<'a> {
    pub request_id: Cow<'a, str>,
}

/// A success. `pagination` is a sibling of `data` and present only on lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Success<'a, T> {
    pub meta: Meta<'a>,
    pub data: T,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pagination: Option<Pagination>,
}

impl<'a, T> Success<'a, T> {
    pub fn new(request_id: impl Into<Cow<'a, str>>, data: T) -> Self {
        Self { meta: Meta { request_id: request_id.into() }, data, pagination: None }
    }

    #[must_use]
    pub fn paged(mut self, pagination: Pagination) -> Self {
        self.pagination = Some(pagination);
        self
    }
}

/// A success that is `meta` and nothing else, where the contract has no `data`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done<'a> {
    pub meta: Meta<'a>,
}

impl<'a> Done<'a> {
    pub fn new(request_id: impl Into<Cow<'a, str>>) -> Self {
        Self { meta: Meta { request_id: request_id.into() } }
    }
}

/// Where a list goes on. Clients iterate while `cursor` is present, so the last page must not have one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pagination {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    has_more: bool,
}

impl Pagination {
    pub fn last_page() -> Self {
        Self { cursor: None, has_more: false }
    }

    pub fn continues_at(cursor: impl Into<String>) -> Self {
        Self { cursor: Some(cursor.into()), has_more: true }
    }

    pub fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    pub fn has_more(&self) -> bool {
        self.has_more
    }
}

/// A refusal: the problem in the same envelope as a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure<'a> {
    pub meta: Meta<'a>,
    pub error: Problem<'a>,
}

impl<'a> Failure<'a> {
    pub fn new(request_id: impl Into<Cow<'a, str>>, error: Problem<'a>) -> Self {
        Self { meta: Meta { request_id: request_id.into() }, error }
    }
}

/// What went wrong, after RFC 9457.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem<'a> {
    pub title: Cow<'a, str>,
    pub detail: Cow<'a, str>,
    pub status: u16,
    #[serde(rename = "type")]
    pub kind: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    errors: Option<Vec<FieldError>>,
}

impl<'a> Problem<'a> {
    /// A problem of the 400 class gets an empty list of field errors: clients refuse such a body without one.
    pub fn new(
        status: u16,
        kind: impl Into<Cow<'a, str>>,
        title: impl Into<Cow<'a, str>>,
        detail: impl Into<Cow<'a, str>>,
    ) -> Self {
        let errors = (400..500).contains(&status).then(Vec::new);
        Self { title: title.into(), detail: detail.into(), status, kind: kind.into(), errors }
    }

    #[must_use]
    pub fn with_errors(mut self, errors: Vec<FieldError>) -> Self {
        self.errors = Some(errors);
        self
    }

    pub fn errors(&self) -> &[FieldError] {
        self.errors.as_deref().unwrap_or_default()
    }

    pub fn into_errors(self) -> Vec<FieldError> {
        self.errors.unwrap_or_default()
    }
}

/// One thing wrong with a request: where it is, what was found, and what is expected instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldError {
    pub location: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl FieldError {
    pub fn new(
        location: impl Into<String>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { location: location.into(), message: message.into(), fix: Some(fix.into()) }
    }
}
