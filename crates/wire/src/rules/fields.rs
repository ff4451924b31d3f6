//! The fields of a rule, each with its bounds. What fits into its field may still contradict another one.

use super::RULE_WORD;
use crate::ratelimit::{Algorithm, BURST, Consistency, OnOutage};
use crate::schema::{Chars, Described, Field, INTEGER_MAX, Object, Shape, Spelling, Whole};
use crate::spelling::{ADDRESS_RANGE, TIER};
use crate::verdict::COUNT;

pub const NAME: Chars = Chars { min: 1, max: 128 };
pub const RULE_NAME: Shape = Shape::Spelled(NAME, &RULE_WORD);
/// One second to ten years, as for all stored limits.
pub const WINDOW_MS: Whole = crate::stored_limit::STORED_DURATION_MS;
/// The calendar month in UTC.
pub const MONTH: &str = "1mo";
/// All of them are counters of every request that matches.
pub const LIMITS_MAX: usize = 10;
pub const PRIORITY_DEFAULT: u64 = 100;

pub const SCOPES: &[&str] = &["global", "tenant", "project", "user", "key", "ip", "endpoint"];
pub const ACTIONS: &[&str] = &["reject", "throttle", "log_only", "allow", "block"];

const SCOPE: Shape = Shape::Either(&[
    Shape::Choice(SCOPES),
    Shape::List { of: &Shape::Choice(SCOPES), min: 1, max: SCOPES.len() },
]);
const TIERS: Shape = Shape::List { of: &TIER, min: 0, max: 100 };
const ENDPOINTS: Shape =
    Shape::List { of: &Shape::Text(Chars { min: 1, max: 512 }), min: 0, max: 100 };
const METHODS: Shape =
    Shape::List { of: &Shape::Spelled(Chars { min: 1, max: 32 }, &METHOD), min: 0, max: 20 };
/// Ten times what a key may have: a list of blocked addresses is a rule.
const IP_RANGES: Shape = Shape::List {
    of: &Shape::Spelled(Chars { min: 2, max: 49 }, &ADDRESS_RANGE),
    min: 0,
    max: 1000,
};
const PROJECTS: Shape =
    Shape::List { of: &Shape::Text(Chars { min: 1, max: 255 }), min: 0, max: 100 };
const LIMITS: Shape = Shape::List { of: &RuleLimit::SHAPE, min: 0, max: LIMITS_MAX };
/// A thousandth of a token to a billion tokens per second.
const REFILL_RATE: Shape = Shape::Thousandths(Whole { min: 1, max: 1_000_000_000_000 });
/// Nobody's connection waits longer than a minute.
const DELAY_MS: Shape = Shape::Integer(Whole { min: 1, max: 60_000 });
const PRIORITY: Shape = Shape::Integer(Whole { min: 0, max: 1_000_000_000 });
const ADAPT: Shape = Shape::Object(&Object::of(&[Field::required(
    "floor",
    Shape::Thousandths(Whole { min: 0, max: 1000 }),
    "Which share of the limit is left under the highest pressure.",
)]));

pub(super) const RULE: [Field; 19] = [
    Field::required("name", RULE_NAME, "Its name, unique in the tenant."),
    Field::required(
        "scope",
        SCOPE,
        "Whose requests share a counter; a list counts by all of them together.",
    ),
    Field::optional("tiers", TIERS, "Tiers that it is about; none: all."),
    Field::optional(
        "endpoints",
        ENDPOINTS,
        "Patterns of paths: `/api/v1/*`, `/users/{id}`, `/**`; none: all.",
    ),
    Field::optional("methods", METHODS, "HTTP methods; none: all."),
    Field::optional("ipRanges", IP_RANGES, "Addresses and ranges of callers; none: all."),
    Field::optional("projects", PROJECTS, "Ids or slugs of projects; none: all."),
    Field::optional(
        "limits",
        LIMITS,
        "What is counted. Required unless the action is `allow` or `block`.",
    ),
    Field::optional(
        "algorithm",
        Shape::Choice(Algorithm::WORDS),
        "How it counts. Default `sliding_window`.",
    ),
    Field::optional(
        "burst",
        Shape::Integer(BURST),
        "Capacity of a token bucket. Default: the limit.",
    ),
    Field::optional(
        "refillRate",
        REFILL_RATE,
        "Tokens per second of a token bucket. Default: limit per window.",
    ),
    Field::optional("action", Shape::Choice(ACTIONS), "What happens. Default `reject`."),
    Field::optional(
        "maxDelayMs",
        DELAY_MS,
        "How long `throttle` has a request wait before it rejects.",
    ),
    Field::optional("response", RuleResponse::SHAPE, "What a refusal says instead of the usual."),
    Field::optional("adapt", ADAPT, "Not supported yet: leave it out."),
    Field::optional("consistency", Shape::Choice(Consistency::WORDS), "How closely nodes agree."),
    Field::optional(
        "onOutage",
        Shape::Choice(OnOutage::WORDS),
        "Policy while shared state is away.",
    ),
    Field::optional(
        "priority",
        PRIORITY,
        "Lower comes first; of equals, the lower name. Default 100.",
    ),
    Field::optional("enabled", Shape::Flag, "Whether it counts. Default true."),
];

/// One of a rule's limits.
struct RuleLimit;

impl Described for RuleLimit {
    const SHAPE: Shape = Shape::Object(&Object::of(&[
        Field::required(
            "limit",
            Shape::Integer(COUNT),
            "Units that fit into one window; 0 blocks.",
        ),
        Field::required(
            "window",
            Shape::Either(&[
                Shape::Spelled(Chars { min: 2, max: 20 }, &WINDOW),
                Shape::Integer(WINDOW_MS),
            ]),
            "Its length: an integer and ms, s, m, h or d; `1mo` for the calendar month; or milliseconds.",
        ),
        Field::optional("name", RULE_NAME, "Its name within the rule. Default: the window."),
    ]));
}

/// What a refusal by the rule says.
struct RuleResponse;

impl Described for RuleResponse {
    const SHAPE: Shape = Shape::Object(&Object::of(&[
        Field::optional(
            "status",
            Shape::Integer(Whole { min: 400, max: 599 }),
            "In place of 403 or 429.",
        ),
        Field::optional(
            "message",
            Shape::Text(Chars { min: 1, max: 1024 }),
            "For whoever was refused.",
        ),
        Field::optional(
            "retryAfterSeconds",
            Shape::Integer(Whole { min: 0, max: 31_536_000 }),
            "In place of the true time.",
        ),
    ]));
}

const METHOD: Spelling = Spelling {
    of: "letters, `-` and `_`",
    pattern: Some("^[a-zA-Z_-]+$"),
    holds: |text| {
        text.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-' || byte == b'_')
    },
    examples: &["GET", "POST"],
};

const WINDOW: Spelling = Spelling {
    of: "an integer and ms, s, m, h or d, from 1s to 3660d, or `1mo`",
    pattern: Some("^([0-9]+(ms|s|m|h|d)|1mo)$"),
    holds: |text| text == MONTH || window_ms(text).is_some_and(|ms| WINDOW_MS.holds(ms)),
    examples: &["1s", "1m", "1h", "1d", "1mo", "1500ms"],
};

/// A length as people write it, in milliseconds; nothing for the month, which has none.
pub fn window_ms(text: &str) -> Option<u64> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let (count, unit) = text.split_at(unit_at);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    count.parse::<u64>().ok()?.checked_mul(unit_ms).filter(|ms| *ms <= INTEGER_MAX)
}
