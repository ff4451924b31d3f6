//! Answers of `ratelimit.limit` and `ratelimit.multiLimit`. A denial is an answer like any other.
//! Texts are borrowed when the server writes and owned when a client reads.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::ratelimit::{IDENTIFIER, MULTI_LIMIT_MAX, NAMESPACE};
use crate::schema::{Chars, Described, Field, INTEGER_MAX, Object, Shape, Whole};

pub(crate) const COUNT: Whole = Whole { min: 0, max: INTEGER_MAX };
pub(crate) const ID: Chars = Chars { min: 3, max: 255 };

const LIMIT: Field = Field::required(
    "limit",
    Shape::Integer(COUNT),
    "The limit in force, an override's if one matched.",
);
const REMAINING: Field =
    Field::required("remaining", Shape::Integer(COUNT), "Units left, also after a denial.");
const RESET: Field =
    Field::required("reset", Shape::Integer(COUNT), "When the window ends, unix milliseconds.");
const OVERRIDE_ID: Field =
    Field::optional("overrideId", Shape::Text(ID), "The override that was in force.");
const RETRY_AFTER_MS: Field = Field::optional(
    "retryAfterMs",
    Shape::Integer(COUNT),
    "Time until this cost fits; absent when it never will.",
);
pub(crate) const DEGRADED: Field =
    Field::optional("degraded", Shape::Flag, "True when decided without the shared state.");

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}

/// Answer of `ratelimit.limit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitReply<'a> {
    pub success: bool,
    pub limit: u64,
    pub remaining: u64,
    pub reset: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub override_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub degraded: bool,
}

impl Described for LimitReply<'_> {
    const SHAPE: Shape = Shape::Object(&Object::of(&[
        Field::required("success", Shape::Flag, "Whether the cost was spent."),
        LIMIT,
        REMAINING,
        RESET,
        OVERRIDE_ID,
        RETRY_AFTER_MS,
        DEGRADED,
    ]));
}

/// Answer of `ratelimit.multiLimit`; `limits` keeps the order of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MultiLimitReply<'a> {
    pub passed: bool,
    pub limits: Vec<MultiLimitLine<'a>>,
}

impl Described for MultiLimitReply<'_> {
    const SHAPE: Shape = Shape::Object(&Object::of(&[
        Field::required(
            "passed",
            Shape::Flag,
            "Whether every limit passed and all costs were spent.",
        ),
        Field::required(
            "limits",
            Shape::List { of: &MultiLimitLine::SHAPE, min: 1, max: MULTI_LIMIT_MAX },
            "One line per entry of the request, in its order.",
        ),
    ]));
}

/// One limit of a `ratelimit.multiLimit`. `passed` tells whether this one would have let the request through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MultiLimitLine<'a> {
    pub namespace: Cow<'a, str>,
    pub identifier: Cow<'a, str>,
    pub limit: u64,
    pub remaining: u64,
    pub reset: u64,
    pub passed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub override_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub degraded: bool,
}

impl Described for MultiLimitLine<'_> {
    const SHAPE: Shape = Shape::Object(&Object::of(&[
        Field::required("namespace", Shape::Text(NAMESPACE), "As asked."),
        Field::required("identifier", Shape::Raw(IDENTIFIER), "As asked."),
        LIMIT,
        REMAINING,
        RESET,
        Field::required("passed", Shape::Flag, "Whether this limit had room for the cost."),
        OVERRIDE_ID,
        RETRY_AFTER_MS,
        DEGRADED,
    ]));
}
