//! `ratelimit.*Override` and `ratelimit.deleteNamespace`: limits set by an operator over the ones that callers send.
//! Cold requests, yet read and bounded exactly like the hot ones.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::object_only::present;
use crate::page::{OVERRIDE_CURSOR, PAGE};
use crate::parse::Request;
use crate::part::Part;
use crate::ratelimit::{IDENTIFIER, NAMESPACE};
use crate::schema::{Described, Field, INTEGER_MAX, Object, Shape, Whole};
use crate::stored_limit::STORED_DURATION_MS;
use crate::verdict::ID;

/// 0 is legal here and blocks the identifier.
pub const OVERRIDE_LIMIT: Whole = Whole { min: 0, max: INTEGER_MAX };
const PAGE_DEFAULT: u64 = 10;

const NAMESPACE_FIELD: Field =
    Field::required("namespace", Shape::Text(NAMESPACE), "Name or id of an existing namespace.");
const IDENTIFIER_FIELD: Field =
    Field::required("identifier", Shape::Text(IDENTIFIER), "The override's identifier.");

/// Body of `ratelimit.setOverride`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetOverrideRequest<'a> {
    #[serde(borrow)]
    pub namespace: Cow<'a, str>,
    #[serde(borrow)]
    pub identifier: Cow<'a, str>,
    pub limit: u64,
    /// In milliseconds.
    pub duration: u64,
}

impl Described for SetOverrideRequest<'_> {
    const SHAPE: Shape = Shape::Object(&Object::of(&[
        NAMESPACE_FIELD,
        Field::required(
            "identifier",
            Shape::Text(IDENTIFIER),
            "Whom it applies to; `*` stands for any run of characters.",
        ),
        Field::required(
            "limit",
            Shape::Integer(OVERRIDE_LIMIT),
            "Units that fit into one duration; 0 blocks. Above 10,000 a `sliding_log` is counted as a sliding window.",
        ),
        Field::required(
            "duration",
            Shape::Integer(STORED_DURATION_MS),
            "Length of the window in milliseconds.",
        ),
    ]));
}

impl<'a> Request<'a> for SetOverrideRequest<'a> {
    fn within_bounds(&self) -> bool {
        NAMESPACE.holds(&self.namespace)
            && IDENTIFIER.holds(&self.identifier)
            && OVERRIDE_LIMIT.holds(self.limit)
            && STORED_DURATION_MS.holds(self.duration)
    }
}

/// Answer of `ratelimit.setOverride`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetOverrideReply<'a> {
    pub override_id: Cow<'a, str>,
}

impl Described for SetOverrideReply<'_> {
    const SHAPE: Shape = Shape::Object(&Object::of(&[Field::required(
        "overrideId",
        Shape::Text(ID),
        "Id of the override, new or replaced.",
    )]));
}

/// Body of `ratelimit.getOverride` and `ratelimit.deleteOverride`, which ask alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetOverrideRequest<'a> {
    #[serde(borrow)]
    pub namespace: Cow<'a, str>,
    #[serde(borrow)]
    pub identifier: Cow<'a, str>,
}

pub type DeleteOverrideRequest<'a> = GetOverrideRequest<'a>;

impl Described for GetOverrideRequest<'_> {
    const SHAPE: Shape = Shape::Object(&Object::of(&[NAMESPACE_FIELD, IDENTIFIER_FIELD]));
}

impl<'a> Request<'a> for GetOverrideRequest<'a> {
    fn within_bounds(&self) -> bool {
        NAMESPACE.holds(&self.namespace) && IDENTIFIER.holds(&self.identifier)
    }
}

/// Answer of `ratelimit.getOverride`, and one row of `ratelimit.listOverrides`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OverrideReply<'a> {
    pub override_id: Cow<'a, str>,
    pub identifier: Cow<'a, str>,
    pub limit: u64,
    /// In milliseconds.
    pub duration: u64,
}

impl Described for OverrideReply<'_> {
    const SHAPE: Shape = Shape::Object(&Object::of(&[
        Field::required("overrideId", Shape::Text(ID), "Id of the override."),
        Field::required(
            "identifier",
            Shape::Text(IDENTIFIER),
            "Whom it applies to, wildcards included.",
        ),
        Field::required(
            "limit",
            Shape::Integer(OVERRIDE_LIMIT),
            "Units that fit into one duration.",
        ),
        Field::required(
            "duration",
            Shape::Integer(STORED_DURATION_MS),
            "Length of the window in milliseconds.",
        ),
    ]));
}

/// Body of `ratelimit.listOverrides`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListOverridesRequest<'a> {
    #[serde(borrow)]
    pub namespace: Cow<'a, str>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cow<'a, str>>,
    #[serde(default = "page_default")]
    pub limit: u64,
}

const fn page_default() -> u64 {
    PAGE_DEFAULT
}

impl<'a> ListOverridesRequest<'a> {
    /// The first page in the default size.
    pub fn new(namespace: impl Into<Cow<'a, str>>) -> Self {
        Self { namespace: namespace.into(), cursor: None, limit: PAGE_DEFAULT }
    }
}

impl Described for ListOverridesRequest<'_> {
    const SHAPE: Shape = Shape::Object(&Object::of(&[
        NAMESPACE_FIELD,
        Field::optional("cursor", OVERRIDE_CURSOR, "Where to go on, from the page before."),
        Field::optional("limit", Shape::Integer(PAGE), "Rows on a page. Default 10."),
    ]));
}

impl<'a> Request<'a> for ListOverridesRequest<'a> {
    fn within_bounds(&self) -> bool {
        NAMESPACE.holds(&self.namespace)
            && self.cursor.as_ref().is_none_or(|cursor| Part::fits(cursor, &OVERRIDE_CURSOR))
            && PAGE.holds(self.limit)
    }
}

/// Body of `ratelimit.deleteNamespace`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeleteNamespaceRequest<'a> {
    #[serde(borrow)]
    pub namespace: Cow<'a, str>,
}

impl Described for DeleteNamespaceRequest<'_> {
    const SHAPE: Shape = Shape::Object(&Object::of(&[NAMESPACE_FIELD]));
}

impl<'a> Request<'a> for DeleteNamespaceRequest<'a> {
    fn within_bounds(&self) -> bool {
        NAMESPACE.holds(&self.namespace)
    }
}

/// `{}`: the answer of a call that has nothing to say. Clients refuse an absent `data`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Empty {}

impl Described for Empty {
    const SHAPE: Shape = Shape::Object(&Object::of(&[]));
}
