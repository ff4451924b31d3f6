//! `ratelimit.limit` and `ratelimit.multiLimit`: the hot requests, borrowed from the body so that reading one allocates nothing.
//! The words for algorithm, consistency and outage policy are wire words; the server gives them meaning.

use std::borrow::Cow;
use std::marker::PhantomData;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::choice::choice;
use crate::object_only::{ObjectList, present};
use crate::parse::Request;
use crate::schema::{Breach, Chars, Described, Field, INTEGER_MAX, Object, Rule, Shape, Whole};

pub const NAMESPACE: Chars = Chars { min: 1, max: 512 };
pub const IDENTIFIER: Chars = Chars { min: 1, max: 512 };
pub const LIMIT: Whole = Whole { min: 1, max: INTEGER_MAX };
/// One second to thirty days, in milliseconds.
pub const DURATION_MS: Whole = Whole { min: 1_000, max: 2_592_000_000 };
pub const COST: Whole = Whole { min: 0, max: INTEGER_MAX };
pub const BURST: Whole = Whole { min: 1, max: INTEGER_MAX };
/// A sliding log stores every admission; beyond this a counter is the right tool.
pub const SLIDING_LOG_LIMIT_MAX: u64 = 10_000;
pub const MULTI_LIMIT_MAX: usize = 100;

choice! {
    /// How a limit counts.
    Algorithm {
        SlidingWindow = "sliding_window",
        FixedWindow = "fixed_window",
        TokenBucket = "token_bucket",
        SlidingLog = "sliding_log",
    }
}

impl Algorithm {
    pub const DEFAULT: Self = Self::SlidingWindow;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
    fn is_default(&self) -> bool {
        *self == Self::DEFAULT
    }
}

impl Default for Algorithm {
    fn default() -> Self {
        Self::DEFAULT
    }
}

choice! {
    /// How closely the nodes of a fleet agree on a limit.
    Consistency { Exact = "exact", Fast = "fast", Local = "local" }
}

choice! {
    /// What to do with an ask while the shared state cannot be reached.
    OnOutage { Share = "share", Allow = "allow", Deny = "deny" }
}

pub(crate) const SLIDING_LOG_RULE: Rule = Rule {
    about: "With the algorithm `sliding_log`, `limit` is at most 10000.",
    breach: sliding_log_breach,
};

fn sliding_log_breach(given: &Map<String, Value>) -> Option<Breach> {
    let logs = given.get("algorithm")?.as_str()? == Algorithm::SlidingLog.as_str();
    let limit = given.get("limit")?.as_u64()?;
    // Beyond the field's own bound the field is already reported; one error per mistake.
    (logs && LIMIT.holds(limit) && !sliding_log_fits(Algorithm::SlidingLog, limit)).then(|| {
        Breach {
            field: "limit",
            message: format!("{limit} is too large for the algorithm `sliding_log`."),
            fix: format!("Send at most {SLIDING_LOG_LIMIT_MAX}, or another algorithm."),
        }
    })
}

pub(crate) fn sliding_log_fits(algorithm: Algorithm, limit: u64) -> bool {
    algorithm != Algorithm::SlidingLog || limit <= SLIDING_LOG_LIMIT_MAX
}

pub(crate) const BURST_RULE: Rule =
    Rule { about: "`burst` belongs to the algorithm `token_bucket`.", breach: burst_breach };

fn burst_breach(given: &Map<String, Value>) -> Option<Breach> {
    let burst = given.get("burst")?.as_u64()?;
    let algorithm = match given.get("algorithm") {
        Some(word) => Algorithm::from_word(word.as_str()?)?,
        None => Algorithm::DEFAULT,
    };
    // Beyond its own bounds it is already reported.
    (BURST.holds(burst) && !burst_fits(algorithm, Some(burst))).then(|| Breach {
        field: "burst",
        message: String::from("Only a token bucket has a capacity of its own."),
        fix: String::from("Leave it out, or make the algorithm `token_bucket`."),
    })
}

pub(crate) fn burst_fits(algorithm: Algorithm, burst: Option<u64>) -> bool {
    burst.is_none() || algorithm == Algorithm::TokenBucket
}

/// Body of `ratelimit.limit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LimitRequest<'a> {
    #[serde(borrow)]
    pub namespace: Cow<'a, str>,
    #[serde(borrow)]
    pub identifier: Cow<'a, str>,
    pub limit: u64,
    /// In milliseconds.
    pub duration: u64,
    #[serde(default = "one")]
    pub cost: u64,
    #[serde(default, skip_serializing_if = "Algorithm::is_default")]
    pub algorithm: Algorithm,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub consistency: Option<Consistency>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub on_outage: Option<OnOutage>,
}

const fn one() -> u64 {
    1
}

impl<'a> LimitRequest<'a> {
    /// An ask of cost 1 with every default.
    pub fn new(
        namespace: impl Into<Cow<'a, str>>,
        identifier: impl Into<Cow<'a, str>>,
        limit: u64,
        duration_ms: u64,
    ) -> Self {
        Self {
            namespace: namespace.into(),
            identifier: identifier.into(),
            limit,
            duration: duration_ms,
            cost: one(),
            algorithm: Algorithm::DEFAULT,
            burst: None,
            consistency: None,
            on_outage: None,
        }
    }
}

impl Described for LimitRequest<'_> {
    const SHAPE: Shape = Shape::Object(&Object::with_rules(
        &[
            Field::required(
                "namespace",
                Shape::Text(NAMESPACE),
                "Name or id of the namespace; made on first use.",
            ),
            Field::required(
                "identifier",
                Shape::Raw(IDENTIFIER),
                "Whom or what is limited: a user, an address.",
            ),
            Field::required("limit", Shape::Integer(LIMIT), "Units that fit into one duration."),
            Field::required(
                "duration",
                Shape::Integer(DURATION_MS),
                "Length of the window in milliseconds.",
            ),
            Field::optional(
                "cost",
                Shape::Integer(COST),
                "Units this ask spends; 0 only looks. Default 1.",
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
            Field::optional(
                "consistency",
                Shape::Choice(Consistency::WORDS),
                "How closely nodes agree.",
            ),
            Field::optional(
                "onOutage",
                Shape::Choice(OnOutage::WORDS),
                "Policy while shared state is away.",
            ),
        ],
        &[SLIDING_LOG_RULE, BURST_RULE],
    ));
}

impl<'a> Request<'a> for LimitRequest<'a> {
    fn within_bounds(&self) -> bool {
        NAMESPACE.holds_read(&self.namespace)
            && IDENTIFIER.holds_raw(&self.identifier)
            && LIMIT.holds(self.limit)
            && DURATION_MS.holds(self.duration)
            && COST.holds(self.cost)
            && self.burst.is_none_or(|burst| BURST.holds(burst))
            && sliding_log_fits(self.algorithm, self.limit)
            && burst_fits(self.algorithm, self.burst)
    }
}

/// Body of `ratelimit.multiLimit`: a bare array, all or nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct MultiLimitRequest<'a>(pub Vec<LimitRequest<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for MultiLimitRequest<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(ObjectList { max: MULTI_LIMIT_MAX, of: PhantomData }).map(Self)
    }
}

impl Described for MultiLimitRequest<'_> {
    const SHAPE: Shape = Shape::List { of: &LimitRequest::SHAPE, min: 1, max: MULTI_LIMIT_MAX };
}

impl<'a> Request<'a> for MultiLimitRequest<'a> {
    fn within_bounds(&self) -> bool {
        (1..=MULTI_LIMIT_MAX).contains(&self.0.len()) && self.0.iter().all(Request::within_bounds)
    }
}
