//! Tests of rules, as they are written beside them or in a file of their own: requests, and what is expected of the answer.
//! They are described like bodies, so that everything wrong with them is told at once; no server ever reads them.

use serde_json::{Map, Value};

use super::RULE_NAME;
use super::fields::window_ms;
use crate::keys::{METHOD, PATH};
use crate::ratelimit::COST;
use crate::schema::{
    Breach, Chars, Described, Field, INTEGER_MAX, Object, Rule, Shape, Spelling, Whole,
};
use crate::spelling::{EXTERNAL_ID, ID, IP, TIER};
use crate::verdict::COUNT;

/// As many as a person would ever write; each may be a long story.
const TESTS_MAX: usize = 1_000;
const STEPS_MAX: usize = 100;
/// What is sent again and again ends within a second or so.
const TIMES: Whole = Whole { min: 1, max: 100_000 };
/// The verdicts that rules can lead to.
const CODES: &[&str] = &["VALID", "RATE_LIMITED", "BLOCKED"];
/// Ten years, as the longest window.
const PAUSE_MS: Whole = Whole { min: 0, max: super::WINDOW_MS.max };

const NAME: Shape = Shape::Text(Chars { min: 1, max: 256 });
const LIMIT_NAME: Shape = Shape::Text(Chars { min: 1, max: 512 });
const PAUSE: Shape =
    Shape::Either(&[Shape::Spelled(Chars { min: 2, max: 20 }, &SPAN), Shape::Integer(PAUSE_MS)]);

const SPAN: Spelling = Spelling {
    of: "an integer and ms, s, m, h or d",
    pattern: Some("^[0-9]+(ms|s|m|h|d)$"),
    holds: |text| window_ms(text).is_some_and(|ms| PAUSE_MS.holds(ms)),
    examples: &["100ms", "30s", "1h"],
};

const REQUEST: Shape = Shape::Object(&Object::of(&[
    Field::optional("externalId", EXTERNAL_ID, "Whose request it is: what `user` counts by."),
    Field::optional("keyId", ID, "Id of its key: what `key` counts by."),
    Field::optional("tier", TIER, "Tier of its key or owner. Default `free`."),
    Field::optional(
        "project",
        Shape::Text(Chars { min: 1, max: 255 }),
        "Project of its key, by the id or slug that rules name.",
    ),
    Field::optional("ip", IP, "Address of the end user."),
    Field::optional("method", METHOD, "Its method."),
    Field::optional("path", PATH, "Its path, as it came."),
    Field::optional("cost", Shape::Integer(COST), "Units that it spends. Default 1."),
]));

const MET: Shape = Shape::Either(&[
    LIMIT_NAME,
    Shape::Object(&Object::of(&[
        Field::required("name", LIMIT_NAME, "The rule's name, `/` and the limit's own."),
        Field::optional("limit", Shape::Integer(COUNT), "Units that fit at once."),
        Field::optional("remaining", Shape::Integer(COUNT), "Units left."),
        Field::optional("exceeded", Shape::Flag, "Whether it had no room."),
        Field::optional("shadow", Shape::Flag, "Whether it only watches."),
    ])),
]);

const EXPECT: Shape = Shape::Object(&Object::with_rules(
    &[
        Field::optional("allowed", Shape::Flag, "Whether it passes."),
        Field::optional("code", Shape::Choice(CODES), "Why, or why not."),
        Field::optional(
            "status",
            Shape::Integer(Whole { min: 100, max: 599 }),
            "The status that a proxy sends.",
        ),
        Field::optional(
            "rule",
            Shape::Nullable(&RULE_NAME),
            "The rule that decides; null: none does.",
        ),
        Field::optional(
            "message",
            Shape::Nullable(&Shape::Text(Chars { min: 1, max: 1024 })),
            "What its rule has to say.",
        ),
        Field::optional(
            "delayMs",
            Shape::Integer(COUNT),
            "How long it has to wait; 0: not at all.",
        ),
        Field::optional(
            "retryAfterMs",
            Shape::Nullable(&Shape::Integer(COUNT)),
            "When it would fit; null: never, or now.",
        ),
        Field::optional(
            "rules",
            Shape::List { of: &RULE_NAME, min: 0, max: super::RULES_MAX },
            "Exactly the rules that match, in their order.",
        ),
        Field::optional(
            "limits",
            Shape::List { of: &MET, min: 0, max: super::RULES_MAX },
            "Exactly the limits that are met, by name, or with what is left of them.",
        ),
        Field::optional(
            "exceeded",
            Shape::List { of: &LIMIT_NAME, min: 0, max: super::RULES_MAX },
            "Exactly the limits that have no room.",
        ),
        Field::optional("admitted", Shape::Integer(COUNT), "How many of all `times` pass."),
    ],
    &[Rule {
        about: "Something has to be expected.",
        breach: |given| {
            given.is_empty().then(|| Breach {
                field: "allowed",
                message: "Nothing is expected, so nothing could ever fail.".into(),
                fix: "Say at least whether the request is `allowed`.".into(),
            })
        },
    }],
));

const AGAIN: [Field; 4] = [
    Field::optional("request", REQUEST, "What is asked about."),
    Field::optional("times", Shape::Integer(TIMES), "How often it is sent. Default 1."),
    Field::optional("every", PAUSE, "Time between two of them. Default none."),
    Field::optional("expect", EXPECT, "What is expected of the last one."),
];

const STEP: Shape = Shape::Object(&Object::of(&[
    AGAIN[0],
    Field::optional("after", PAUSE, "Time since the step before. Default none."),
    AGAIN[1],
    AGAIN[2],
    AGAIN[3],
]));

const CASE: Shape = Shape::Object(&Object::with_rules(
    &[
        Field::required("name", NAME, "What it shows, in a few words."),
        Field::optional(
            "at",
            Shape::Integer(Whole { min: 0, max: INTEGER_MAX }),
            "When it begins, unix milliseconds. Default: the first of January 2026, midnight in UTC.",
        ),
        AGAIN[0],
        AGAIN[1],
        AGAIN[2],
        AGAIN[3],
        Field::optional(
            "steps",
            Shape::List { of: &STEP, min: 1, max: STEPS_MAX },
            "Several requests, one after the other; each changes what it names of `request`.",
        ),
    ],
    &[
        Rule {
            about: "A test has either `expect` or `steps`.",
            breach: |given| {
                let (one, many) = (given.contains_key("expect"), given.contains_key("steps"));
                match (one, many) {
                    (true, true) => {
                        Some(breach("expect", "Belongs into a step, where there are steps."))
                    }
                    (false, false) => {
                        Some(breach("expect", "Is missing, and so are steps that have it."))
                    }
                    _ => None,
                }
            },
        },
        Rule {
            about: "`times` and `every` belong into steps, where there are any.",
            breach: |given| {
                let idle = ["times", "every"].into_iter().find(|field| given.contains_key(*field));
                let idle = idle.filter(|_| given.contains_key("steps"));
                idle.map(|field| breach(field, "Belongs into a step, where there are steps."))
            },
        },
        Rule {
            about: "One of the steps has to expect something.",
            breach: |given| {
                let steps = given.get("steps")?.as_array()?;
                let idle = steps.iter().all(|step| step.get("expect").is_none());
                idle.then(|| {
                    breach("steps", "None of them expects anything, so nothing could ever fail.")
                })
            },
        },
    ],
));

fn breach(field: &'static str, message: &str) -> Breach {
    let fix = "Write `expect` beside `request`, or into each step that should be looked at.";
    Breach { field, message: message.into(), fix: fix.into() }
}

const TESTS: Shape = Shape::List { of: &CASE, min: 0, max: TESTS_MAX };

pub(super) const OPTIONAL_TESTS: Field = Field::optional(
    "tests",
    TESTS,
    "What the rules are expected to do; read by `rules test` only.",
);

/// A file of tests without rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleTestFile;

impl Described for RuleTestFile {
    const SHAPE: Shape = Shape::Object(&Object::of(&[Field::required(
        "tests",
        TESTS,
        "What the rules are expected to do.",
    )]));
}

/// A span of time as it is written in a test, in milliseconds.
pub fn pause_ms(given: &Map<String, Value>, field: &str) -> u64 {
    match given.get(field) {
        Some(Value::String(text)) => window_ms(text).unwrap_or(0),
        Some(Value::Number(ms)) => ms.as_u64().unwrap_or(0),
        _ => 0,
    }
}
