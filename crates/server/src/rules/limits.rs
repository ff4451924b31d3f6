//! A rule's limits as the engine counts them: one algorithm for all of them, each with its quota, its window and a name.

use serde_json::Value;
use tollkeeper_core::{Limit, Quota, RuleLimit, Width, WindowText, Written};
use tollkeeper_wire::schema::thousandths;

use super::reading::Reading;

const NAME_FIX: &str = "Give every limit of the rule its own name or window.";

/// How a rule counts.
pub(super) struct Counting {
    pub(super) algorithm: Option<&'static str>,
    pub(super) burst: Option<u64>,
    /// In thousandths of a token per second.
    pub(super) refill: Option<u64>,
    pub(super) each: Vec<One>,
}

pub(super) struct One {
    pub(super) quota: u64,
    pub(super) window: WindowText,
    pub(super) name: String,
    limit: Limit,
}

// === impl Counting ===

impl Counting {
    pub(super) fn read(reading: &mut Reading<'_>) -> Option<Self> {
        let algorithm = match reading.text("algorithm").unwrap_or("sliding_window") {
            // Whatever its algorithm says: waiting is what a bucket's refill is for.
            _ if reading.is_throttle() => "token_bucket",
            "sliding_window" => "sliding_window",
            "fixed_window" => "fixed_window",
            "token_bucket" => "token_bucket",
            "sliding_log" => "sliding_log",
            _ => return None,
        };
        let given = reading.list("limits");
        let mut counting = Self {
            algorithm: (!given.is_empty() && !reading.is_throttle()).then_some(algorithm),
            burst: reading.number("burst"),
            refill: reading
                .given
                .get("refillRate")
                .and_then(Value::as_number)
                .and_then(thousandths),
            each: Vec::with_capacity(given.len()),
        };
        let mut complete = true;
        for (at, value) in given.iter().enumerate() {
            let Some(one) = counting.one(algorithm, value) else {
                complete = false;
                continue;
            };
            if counting.each.iter().any(|other| other.name == one.name) {
                let message = format!("Another limit of the rule is named {:?} too.", one.name);
                reading.fault(&format!(".limits[{at}]"), message, NAME_FIX);
            }
            one.note(reading);
            counting.each.push(one);
        }
        complete.then_some(counting)
    }

    pub(super) fn limits(&self) -> Vec<RuleLimit> {
        let limit = |one: &One| RuleLimit {
            written: self.written(one),
            ..RuleLimit::new(one.name.as_str(), one.limit)
        };
        self.each.iter().map(limit).collect()
    }

    /// Where the refill has a rate of its own, limit and window are not what is counted by, and still what the rule says.
    fn written(&self, one: &One) -> Option<Written> {
        self.refill.filter(|_| one.quota > 0)?;
        Some(Written { quota: Quota::new(one.quota)?, width: one.window.width()? })
    }

    fn one(&self, algorithm: &str, given: &Value) -> Option<One> {
        let quota = given.get("limit")?.as_u64()?;
        let window = match given.get("window")? {
            Value::String(text) => text.parse().ok()?,
            Value::Number(ms) => WindowText::Width(Width::from_millis(ms.as_u64()?)?),
            _ => return None,
        };
        let limit = self.limit(algorithm, Quota::new(quota)?, window)?;
        let name = match given.get("name") {
            Some(name) => name.as_str()?.to_owned(),
            None => window.to_string(),
        };
        Some(One { quota, window, name, limit })
    }

    fn limit(&self, algorithm: &str, quota: Quota, window: WindowText) -> Option<Limit> {
        Some(match algorithm {
            "fixed_window" => Limit::fixed_window(quota, window.window()),
            "sliding_log" => Limit::sliding_log(quota, window.width()?)?,
            // A quota of zero blocks, whatever flows back.
            "token_bucket" if quota.get() == 0 => Limit::token_bucket(quota, window.width()?, None),
            "token_bucket" => {
                let capacity = self.burst.map_or(Some(quota), Quota::new)?;
                let (tokens, width) = match self.refill {
                    Some(rate) => refill(rate)?,
                    None => (quota, window.width()?),
                };
                Limit::token_bucket(tokens, width, Some(capacity))
            }
            _ => Limit::sliding_window(quota, window.width()?),
        })
    }
}

// === impl One ===

impl One {
    /// Says what a limit of nothing does.
    fn note(&self, reading: &mut Reading<'_>) {
        if self.quota > 0 {
            return;
        }
        let effect = match reading.text("action") {
            Some("log_only") => "every request that matches is reported as over it",
            _ => "it blocks every request that matches, as the action `block` would",
        };
        let (rule, name) = (reading.text("name").unwrap_or_default(), &self.name);
        reading
            .notes
            .push(format!("Rule {rule:?}: limit {name:?} is 0 and admits nothing: {effect}."));
    }
}

/// Whole tokens over whole milliseconds, in lowest terms.
fn refill(thousandths_per_second: u64) -> Option<(Quota, Width)> {
    let shared = gcd(thousandths_per_second, 1000);
    let tokens = Quota::new(thousandths_per_second / shared)?;
    Some((tokens, Width::from_millis(1000 / shared * 1000)?))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
