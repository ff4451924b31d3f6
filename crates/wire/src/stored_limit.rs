//! Limits that are stored with a key, an identity or a project, as they are sent and as they are shown.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::faults::quote;
use crate::part::Text;
use crate::ratelimit::{
    Algorithm, BURST, BURST_RULE, Consistency, LIMIT, OnOutage, SLIDING_LOG_RULE, burst_fits,
    sliding_log_fits,
};
use crate::reply::reply;
use crate::request::request;
use crate::schema::{Breach, Chars, Described, Rule, Shape, Whole};
use crate::spelling::ID;
use crate::verdict::COUNT;

pub const LIMIT_NAME: Chars = Chars { min: 3, max: 128 };
/// One second to ten years: the widest window that the limiter counts exactly.
pub const STORED_DURATION_MS: Whole = Whole { min: 1_000, max: 10 * 366 * 86_400_000 };
pub const STORED_LIMITS_MAX: usize = 50;

pub(crate) const NAME: Shape = Shape::Text(LIMIT_NAME);
pub(crate) const DURATION: Shape = Shape::Integer(STORED_DURATION_MS);
pub(crate) const LIMITS: Shape =
    Shape::List { of: &RatelimitRequest::SHAPE, min: 0, max: STORED_LIMITS_MAX };
pub(crate) const LIMIT_REPLIES: Shape =
    Shape::List { of: &RatelimitReply::SHAPE, min: 0, max: STORED_LIMITS_MAX };
pub(crate) const DEFAULT_LIMITS: Shape =
    Shape::List { of: &DefaultLimit::SHAPE, min: 0, max: STORED_LIMITS_MAX };

const ALGORITHM_ABOUT: &str = "How it counts. Default `sliding_window`.";
const BURST_ABOUT: &str = "Capacity of a token bucket. Default: the limit.";
const CONSISTENCY_ABOUT: &str = "How closely nodes agree.";
const ON_OUTAGE_ABOUT: &str = "Policy while shared state is away.";

request! {
    /// A limit to be stored with a key or an identity.
    RatelimitRequest<'a> {
        required name "name": Text<'a> = NAME, "Its name, by which a verification asks for it.";
        required limit "limit": u64 = Shape::Integer(LIMIT), "Units that fit into one duration.";
        required duration "duration": u64 = DURATION, "Length of the window in milliseconds.";
        flagged auto_apply "autoApply": bool = Shape::Flag,
            "Whether it counts in every verification, or only where it is asked for. Default false.";
        optional algorithm "algorithm": Algorithm = Shape::Choice(Algorithm::WORDS), ALGORITHM_ABOUT;
        optional burst "burst": u64 = Shape::Integer(BURST), BURST_ABOUT;
        optional consistency "consistency": Consistency = Shape::Choice(Consistency::WORDS), CONSISTENCY_ABOUT;
        optional on_outage "onOutage": OnOutage = Shape::Choice(OnOutage::WORDS), ON_OUTAGE_ABOUT;
    }
    rules {
        SLIDING_LOG_RULE => |it| sliding_log_fits(it.algorithm.unwrap_or_default(), it.limit);
        BURST_RULE => |it| burst_fits(it.algorithm.unwrap_or_default(), it.burst);
    }
}

reply! {
    /// A limit that is stored with a key or an identity.
    written RatelimitReply<'a> {
        required id "id": Cow<'a, str> = ID, "Its id.";
        required name "name": Cow<'a, str> = NAME, "Its name.";
        required limit "limit": u64 = Shape::Integer(COUNT), "Units that fit into one duration.";
        required duration "duration": u64 = DURATION, "Length of the window in milliseconds.";
        required auto_apply "autoApply": bool = Shape::Flag, "Whether it counts in every verification.";
        optional algorithm "algorithm": Algorithm = Shape::Choice(Algorithm::WORDS), ALGORITHM_ABOUT;
        optional burst "burst": u64 = Shape::Integer(BURST), BURST_ABOUT;
        optional consistency "consistency": Consistency = Shape::Choice(Consistency::WORDS), CONSISTENCY_ABOUT;
        optional on_outage "onOutage": OnOutage = Shape::Choice(OnOutage::WORDS), ON_OUTAGE_ABOUT;
    }
}

request! {
    /// A limit of a project, for keys to which no other stored limit applies by itself.
    DefaultLimit<'a> {
        required name "name": Text<'a> = NAME, "Its name, shown with every verification.";
        required limit "limit": u64 = Shape::Integer(LIMIT), "Units that fit into one duration.";
        required duration "duration": u64 = DURATION, "Length of the window in milliseconds.";
    }
}

reply! {
    /// A limit of a project, as it is shown.
    DefaultLimitReply<'a> {
        required name "name": Cow<'a, str> = NAME, "Its name.";
        required limit "limit": u64 = Shape::Integer(LIMIT), "Units that fit into one duration.";
        required duration "duration": u64 = DURATION, "Length of the window in milliseconds.";
    }
}

pub(crate) const NAMES_DIFFER: Rule = Rule {
    about: "No two of `ratelimits` have the same name.",
    breach: |given| repeated_name(given, "ratelimits"),
};

pub(crate) const DEFAULT_NAMES_DIFFER: Rule = Rule {
    about: "No two of `defaultLimits` have the same name.",
    breach: |given| repeated_name(given, "defaultLimits"),
};

fn repeated_name(given: &Map<String, Value>, field: &'static str) -> Option<Breach> {
    let mut seen = HashSet::new();
    // A longer list is refused for its length.
    let limits = given.get(field)?.as_array()?.iter().take(STORED_LIMITS_MAX);
    let names = limits.filter_map(|limit| limit.get("name")?.as_str());
    names.into_iter().find(|name| !seen.insert(*name)).map(|name| Breach {
        field,
        message: format!("Has two limits named {}.", quote(name)),
        fix: String::from("Give every limit its own name."),
    })
}

pub(crate) fn names_differ<'a>(names: impl Iterator<Item = &'a Text<'a>>) -> bool {
    let mut seen = HashSet::new();
    names.into_iter().all(|name| seen.insert(name))
}

pub(crate) fn limit_names_differ(limits: Option<&Vec<RatelimitRequest<'_>>>) -> bool {
    limits.is_none_or(|limits| names_differ(limits.iter().map(|limit| &limit.name)))
}

pub(crate) fn default_names_differ(limits: Option<&Vec<DefaultLimit<'_>>>) -> bool {
    limits.is_none_or(|limits| names_differ(limits.iter().map(|limit| &limit.name)))
}
