//! `limits.*`: look at what a limit has counted, forget it, or ask how often it was met.
//! Whether a peek without limit and duration has an override to fall back on is the server's question.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::choice::choice;
use crate::object_only::present;
use crate::parse::Request;
use crate::part::Text;
use crate::ratelimit::{
    Algorithm, BURST, BURST_RULE, DURATION_MS, IDENTIFIER, LIMIT, NAMESPACE, SLIDING_LOG_RULE,
    burst_fits, sliding_log_fits,
};
use crate::reply::reply;
use crate::request::request;
use crate::rules::RULE_NAME;
use crate::schema::{Breach, Described, Field, Object, Rule, Shape, Whole};
use crate::span::{ENDS_AFTER_IT_BEGINS, ends_after_it_begins};
use crate::spelling::{EXTERNAL_ID, ID};
use crate::verdict::{COUNT, DEGRADED, is_false};

const NAMESPACE_FIELD: Field =
    Field::required("namespace", Shape::Text(NAMESPACE), "Name or id of the namespace.");

/// Body of `limits.peek`. Spends nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PeekRequest<'a> {
    #[serde(borrow)]
    pub namespace: Cow<'a, str>,
    #[serde(borrow)]
    pub identifier: Cow<'a, str>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// In milliseconds.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub duration: Option<u64>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Algorithm>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
}

impl<'a> PeekRequest<'a> {
    /// A peek at the override's limit.
    pub fn new(namespace: impl Into<Cow<'a, str>>, identifier: impl Into<Cow<'a, str>>) -> Self {
        Self {
            namespace: namespace.into(),
            identifier: identifier.into(),
            limit: None,
            duration: None,
            algorithm: None,
            burst: None,
        }
    }
}

impl Described for PeekRequest<'_> {
    const SHAPE: Shape = Shape::Object(&Object::with_rules(
        &[
            NAMESPACE_FIELD,
            Field::required("identifier", Shape::Raw(IDENTIFIER), "Whom or what is limited."),
            Field::optional("limit", Shape::Integer(LIMIT), "Default: the matching override's."),
            Field::optional(
                "duration",
                Shape::Integer(DURATION_MS),
                "Default: the matching override's.",
            ),
            Field::optional(
                "algorithm",
                Shape::Choice(Algorithm::WORDS),
                "Default `sliding_window`.",
            ),
            Field::optional(
                "burst",
                Shape::Integer(BURST),
                "Capacity of a token bucket. Default: the limit.",
            ),
        ],
        &[SLIDING_LOG_RULE, BURST_RULE],
    ));
}

impl<'a> Request<'a> for PeekRequest<'a> {
    fn within_bounds(&self) -> bool {
        let algorithm = self.algorithm.unwrap_or_default();
        NAMESPACE.holds(&self.namespace)
            && IDENTIFIER.holds_raw(&self.identifier)
            && self
                .limit
                .is_none_or(|limit| LIMIT.holds(limit) && sliding_log_fits(algorithm, limit))
            && self.duration.is_none_or(|duration| DURATION_MS.holds(duration))
            && self.burst.is_none_or(|burst| BURST.holds(burst))
            && burst_fits(algorithm, self.burst)
    }
}

/// Answer of `limits.peek`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeekReply {
    pub limit: u64,
    pub used: u64,
    pub remaining: u64,
    pub reset: u64,
    #[serde(default, skip_serializing_if = "is_false")]
    pub degraded: bool,
}

impl Described for PeekReply {
    const SHAPE: Shape = Shape::Object(&Object::of(&[
        Field::required("limit", Shape::Integer(COUNT), "The limit in force."),
        Field::required("used", Shape::Integer(COUNT), "Units that count against it now."),
        Field::required("remaining", Shape::Integer(COUNT), "Units left."),
        Field::required("reset", Shape::Integer(COUNT), "When the window ends, unix milliseconds."),
        DEGRADED,
    ]));
}

const ONE_OWNER: Rule = Rule {
    about: "Exactly one of `namespace`, `keyId` and `externalId`; `identifier` only beside a namespace.",
    breach: |given| {
        let has = |field: &&str| given.contains_key(*field);
        let owners: Vec<_> = ["namespace", "keyId", "externalId"].into_iter().filter(has).collect();
        let fix =
            || String::from("Name one namespace, key or identity whose counters to set back.");
        match owners[..] {
            [] => Some(Breach {
                field: "namespace",
                message: String::from("Is missing."),
                fix: fix(),
            }),
            [_, second, ..] => Some(Breach {
                field: second,
                message: String::from("Is one owner too many."),
                fix: fix(),
            }),
            ["namespace"] => None,
            _ => has(&"identifier").then(|| Breach {
                field: "identifier",
                message: String::from("Belongs to a namespace, and none is given."),
                fix: String::from("Leave it out, or name a namespace instead."),
            }),
        }
    },
};

request! {
    /// Body of `limits.reset`: one identifier of a namespace or all of it, or all limits of a key or an identity.
    ResetRequest<'a> {
        optional namespace "namespace": Text<'a> = Shape::Text(NAMESPACE), "Name or id of a namespace.";
        optional identifier "identifier": Text<'a> = Shape::Raw(IDENTIFIER), "Default: every identifier of the namespace.";
        optional key_id "keyId": Text<'a> = ID, "A key: all limits that are counted for it alone, also those of rules by key.";
        optional external_id "externalId": Text<'a> = EXTERNAL_ID, "An identity: all limits that its keys share, its quota, and those of rules by user.";
    }
    rules {
        ONE_OWNER => |it| {
            let owners = [it.namespace.is_some(), it.key_id.is_some(), it.external_id.is_some()];
            owners.into_iter().filter(|given| *given).count() == 1
                && (it.identifier.is_none() || it.namespace.is_some())
        };
    }
}

/// Answer of `limits.reset`: how many counters were forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResetReply {
    pub cells: u64,
}

impl Described for ResetReply {
    const SHAPE: Shape = Shape::Object(&Object::of(&[Field::required(
        "cells",
        Shape::Integer(COUNT),
        "Counters that were forgotten.",
    )]));
}

choice! {
    /// Whose counts they are.
    StatKind { Namespace = "namespace", Rule = "rule", Key = "key" }
}

const MOMENT: Shape = Shape::Integer(Whole { min: 0, max: crate::schema::INTEGER_MAX });

const ONE_SUBJECT: Rule = Rule {
    about: "At most one of `namespace`, `rule` and `keyId`.",
    breach: |given| {
        let named =
            ["namespace", "rule", "keyId"].into_iter().filter(|one| given.contains_key(*one));
        named.into_iter().nth(1).map(|field| Breach {
            field,
            message: String::from("Is one subject too many."),
            fix: String::from(
                "Ask for one namespace, rule or key at a time, or for none to see all.",
            ),
        })
    },
};

request! {
    /// Body of `limits.stats`: one namespace, rule or key by its limits, or all namespaces and rules.
    StatsRequest<'a> {
        optional namespace "namespace": Text<'a> = Shape::Text(NAMESPACE), "Name of a namespace.";
        optional rule "rule": Text<'a> = RULE_NAME, "Name of a rule.";
        optional key_id "keyId": Text<'a> = ID, "Id of a key.";
        required from "from": u64 = MOMENT, "First moment, unix milliseconds; whole minutes are counted.";
        required to "to": u64 = MOMENT, "The moment after the last.";
    }
    rules {
        ONE_SUBJECT => |it| {
            let named = [it.namespace.is_some(), it.rule.is_some(), it.key_id.is_some()];
            named.into_iter().filter(|named| *named).count() <= 1
        };
        ENDS_AFTER_IT_BEGINS => |it| ends_after_it_begins(Some(it.from), Some(it.to));
    }
}

reply! {
    /// One row of `limits.stats`.
    StatsReply<'a> {
        required name "name": Cow<'a, str> = Shape::Text(NAMESPACE),
            "The limit's name; the namespace's or rule's own where all are asked for, and of a rule without limits.";
        required kind "kind": StatKind = Shape::Choice(StatKind::WORDS), "Whose counts they are.";
        required hits "hits": u64 = Shape::Integer(COUNT), "How often it was asked.";
        required denied "denied": u64 = Shape::Integer(COUNT), "How often it said no.";
        required shadow "shadow": u64 = Shape::Integer(COUNT), "How often a limit that only logs would have said no.";
    }
}

impl StatsReply<'_> {
    /// Answer of `limits.stats`: as many names as a tenant has rules, at most.
    pub const LIST: Shape = Shape::List { of: &Self::SHAPE, min: 0, max: crate::rules::RULES_MAX };
}
