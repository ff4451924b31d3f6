//! `rules.*`: which requests are limited how. A rule is described here and nowhere read by type: a set of them is checked
//! as a whole against its description, so that everything wrong with it is told at once.

mod cases;
mod contradictions;
mod fields;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::choice::choice;
use crate::page::{CURSOR_ABOUT, LIMIT_ABOUT, PAGE_LIMIT, RULE_CURSOR};
use crate::part::Text;
use crate::reply::reply;
use crate::request::request;
use crate::schema::{Chars, Described, Field, Object, Shape, Spelling, Whole};
use crate::verdict::COUNT;

pub use cases::{RuleTestFile, pause_ms};
pub use fields::{
    ACTIONS, LIMITS_MAX, MONTH, NAME, PRIORITY_DEFAULT, RULE_NAME, SCOPES, WINDOW_MS, window_ms,
};

/// A tenant's rules in all, and so in one request.
pub const RULES_MAX: usize = 10_000;
/// Of one `rules.apply`.
pub const RULES_BYTES_MAX: usize = 16 << 20;

const NAME_ABOUT: &str = "Its name, unique in the tenant.";
const VERSION: Shape = Shape::Integer(Whole { min: 1, max: crate::schema::INTEGER_MAX });
const DRY_RUN_ABOUT: &str = "Whether only to say what would change.";
const ROOT_KEY: Shape = Shape::Text(Chars { min: 0, max: 255 });

/// One rule as it is written: in a body, in a file, and as `rules.list` shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rule(pub Map<String, Value>);

impl Described for Rule {
    const SHAPE: Shape =
        Shape::Object(&Object::with_rules(&fields::RULE, &contradictions::CONTRADICTIONS));
}

const RULES: Field = Field::required(
    "rules",
    Shape::List { of: &Rule::SHAPE, min: 0, max: RULES_MAX },
    "The rules; those of a name that is there already replace it.",
);

/// Body of `rules.apply`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApplyRulesRequest {
    pub rules: Vec<Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub prune: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

impl Described for ApplyRulesRequest {
    const SHAPE: Shape = Shape::Object(&Object::of(&[
        RULES,
        Field::optional(
            "prune",
            Shape::Flag,
            "Whether rules that are not in the list are deleted.",
        ),
        Field::optional("dryRun", Shape::Flag, DRY_RUN_ABOUT),
    ]));
}

/// A file of rules, in YAML, TOML or JSON, and of what they are expected to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleFile;

impl Described for RuleFile {
    const SHAPE: Shape = Shape::Object(&Object::of(&[RULES, cases::OPTIONAL_TESTS]));
}

choice! {
    /// What happens to a rule.
    RuleTurn { Created = "created", Updated = "updated", Deleted = "deleted" }
}

/// A field of a rule that is not what it was; absent where it was not, or is not any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FieldDiff {
    pub field: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

impl Described for FieldDiff {
    const SHAPE: Shape = Shape::Object(&Object::of(&[
        Field::required("field", Shape::Text(Chars { min: 1, max: 64 }), "Its name."),
        Field::optional("before", Shape::Any, "What it was: any value."),
        Field::optional("after", Shape::Any, "What it is: any value."),
    ]));
}

/// A rule that is not what it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuleDiff {
    pub rule: String,
    pub change: RuleTurn,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldDiff>,
}

impl Described for RuleDiff {
    const SHAPE: Shape = Shape::Object(&Object::of(&[
        Field::required("rule", RULE_NAME, "Name of the rule."),
        Field::required("change", Shape::Choice(RuleTurn::WORDS), "What happens to it."),
        Field::optional(
            "fields",
            Shape::List { of: &FieldDiff::SHAPE, min: 0, max: 32 },
            "What changes in it; of the first thousand updated rules.",
        ),
    ]));
}

/// Answer of `rules.apply` and `rules.rollback`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApplyRulesReply {
    pub version: u64,
    pub created: u64,
    pub updated: u64,
    pub deleted: u64,
    pub unchanged: u64,
    pub diff: Vec<RuleDiff>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Described for ApplyRulesReply {
    const SHAPE: Shape = Shape::Object(&Object::of(&[
        Field::required("version", Shape::Integer(COUNT), "The version in force."),
        Field::required("created", Shape::Integer(COUNT), "Rules that are new."),
        Field::required("updated", Shape::Integer(COUNT), "Rules that changed."),
        Field::required("deleted", Shape::Integer(COUNT), "Rules that are gone."),
        Field::required("unchanged", Shape::Integer(COUNT), "Rules that were there already."),
        Field::required(
            "diff",
            Shape::List { of: &RuleDiff::SHAPE, min: 0, max: 2 * RULES_MAX },
            "Every rule that is not what it was, by name.",
        ),
        Field::optional(
            "notes",
            Shape::List { of: &Shape::Text(Chars { min: 1, max: 1024 }), min: 0, max: 100 },
            "What is allowed but may not be what was meant.",
        ),
    ]));
}

request! {
    /// Body of `rules.list`.
    ListRulesRequest<'a> {
        optional limit "limit": u64 = PAGE_LIMIT, LIMIT_ABOUT;
        optional cursor "cursor": Text<'a> = RULE_CURSOR, CURSOR_ABOUT;
    }
}

request! {
    /// Body of `rules.get` and `rules.delete`, which ask alike.
    GetRuleRequest<'a> {
        required name "name": Text<'a> = RULE_NAME, NAME_ABOUT;
    }
}

pub type DeleteRuleRequest<'a> = GetRuleRequest<'a>;

reply! {
    /// Answer of `rules.delete`.
    DeleteRuleReply {
        required version "version": u64 = VERSION, "The version without it.";
    }
}

request! {
    /// Body of `rules.rollback`.
    RollbackRulesRequest {
        required version "version": u64 = VERSION, "The version to go back to; it becomes a new one.";
    }
}

/// Answer of `rules.get`: the rule, and what the server knows of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleReply {
    #[serde(flatten)]
    pub rule: Map<String, Value>,
    pub key_pattern: String,
    pub rule_id: String,
    pub version: u64,
    pub created_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<u64>,
    pub created_by: String,
}

const KNOWN: [Field; 6] = [
    Field::required(
        "keyPattern",
        Shape::Text(Chars { min: 1, max: 64 }),
        "Its scopes, joined by `+`.",
    ),
    Field::required("ruleId", crate::spelling::ID, "Its id."),
    Field::required("version", VERSION, "The version that made it what it is."),
    Field::required("createdAt", Shape::Integer(COUNT), "Unix milliseconds."),
    Field::optional("updatedAt", Shape::Integer(COUNT), "Unix milliseconds of its last change."),
    Field::required("createdBy", ROOT_KEY, "Id of the root key that made it."),
];

const SHOWN: [Field; fields::RULE.len() + KNOWN.len()] = {
    let mut all = [fields::RULE[0]; fields::RULE.len() + KNOWN.len()];
    let (mut at, rules) = (0, fields::RULE.len());
    while at < all.len() {
        all[at] = if at < rules { fields::RULE[at] } else { KNOWN[at - rules] };
        at += 1;
    }
    all
};

impl Described for RuleReply {
    const SHAPE: Shape = Shape::Object(&Object::of(&SHOWN));
}

/// Names of rules and of their limits.
pub const RULE_WORD: Spelling = Spelling {
    of: "letters, digits, `_`, `.`, `:` and `-`",
    pattern: Some("^[a-zA-Z0-9_.:-]+$"),
    holds: |text| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte)),
    examples: &["free-per-minute", "login:burst"],
};
