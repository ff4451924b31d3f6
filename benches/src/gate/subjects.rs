//! The steps of the hot path that are counted. Each has a function of its own that is never inlined: callgrind
//! counts from its entry to its end. Only plain loops there, because a closure's name would match as well.

use std::hint::black_box;

use tollkeeper_core::{Cost, Limit, Millis, RuleSet};
use tollkeeper_decide::{CellAsk, CellHasher, CellKey, Cells, NamespaceTag};
use tollkeeper_wire::{LimitRequest, parse};

use crate::failure::Failure;
use crate::identifiers::identifier;
use crate::limits;
use crate::rules::{self, Mix, Request};

pub(super) const ITERATIONS: usize = 10_000;
/// Ten spends per cell: every tenth also tells the journal.
const CELLS: usize = ITERATIONS / 10;
const BUNDLE: usize = 5;
const RULES: usize = 1_000;
const NOW: Millis = Millis(1_700_000_000_000);
/// Some windows and tokens have moved on since the warm-up.
const LATER: Millis = Millis(NOW.0 + 12_345);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    SlidingWindow,
    TokenBucket,
    Denied,
    CellKey,
    Parse,
    Bundle,
    Rules,
}

// === impl Subject ===

impl Subject {
    pub(super) const ALL: [Self; 7] = [
        Self::SlidingWindow,
        Self::TokenBucket,
        Self::Denied,
        Self::CellKey,
        Self::Parse,
        Self::Bundle,
        Self::Rules,
    ];

    /// As in the record, and in the name of its function behind `gate_`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::SlidingWindow => "spend_sliding_window",
            Self::TokenBucket => "spend_token_bucket",
            Self::Denied => "spend_denied",
            Self::CellKey => "cell_key",
            Self::Parse => "parse_limit",
            Self::Bundle => "spend_bundle",
            Self::Rules => "match_rules",
        }
    }

    pub(super) fn about(self) -> &'static str {
        match self {
            Self::SlidingWindow => "spend, sliding_window, admitted",
            Self::TokenBucket => "spend, token_bucket, admitted",
            Self::Denied => "spend, sliding_window, denied",
            Self::CellKey => "cell key of a 40-byte identifier",
            Self::Parse => "parse the body of `ratelimit.limit`",
            Self::Bundle => "spend a bundle of 5 cells",
            Self::Rules => "meet 5 of 1,000 rules",
        }
    }

    pub(super) fn run(self) -> Result<(), Failure> {
        let right = match self {
            Self::SlidingWindow => {
                let (cells, asks) = warm(limits::sliding_window()?, 1);
                gate_spend_sliding_window(&cells, &asks) == ITERATIONS
            }
            Self::TokenBucket => {
                let (cells, asks) = warm(limits::token_bucket()?, 1);
                gate_spend_token_bucket(&cells, &asks) == ITERATIONS
            }
            Self::Denied => {
                let (cells, asks) = warm(limits::once()?, 1);
                gate_spend_denied(&cells, &asks) == 0
            }
            Self::CellKey => {
                let identifiers: Vec<String> = (0..CELLS as u64).map(identifier).collect();
                gate_cell_key(&tag(), &identifiers, &limits::sliding_window()?).exact != 0
            }
            Self::Parse => {
                let body = format!(
                    r#"{{"namespace":"demo","identifier":"{}","limit":1000000000,"duration":60000,"cost":1,"algorithm":"sliding_window"}}"#,
                    identifier(0)
                );
                gate_parse_limit(body.as_bytes()) == ITERATIONS
            }
            Self::Bundle => {
                let (cells, asks) = warm(limits::sliding_window()?, BUNDLE);
                gate_spend_bundle(&cells, &asks) == ITERATIONS
            }
            Self::Rules => {
                let set = Mix::Mixed.compiled(RULES)?;
                gate_match_rules(&set, &rules::requests()) == ITERATIONS * rules::MET
            }
        };
        if right { Ok(()) } else { Err(Failure::Invalid(format!("{self:?} gave a wrong answer"))) }
    }
}

/// Cells that were each spent from once, with the journal up to date.
fn warm(limit: Limit, bundle: usize) -> (Cells, Vec<CellAsk>) {
    let (cells, tag) = (Cells::new(1_000_000), tag());
    let ask = |n: u64| CellAsk {
        key: tag.cell(&identifier(n), &limit),
        namespace: tag.tag,
        limit,
        cost: Cost::ONE,
    };
    let asks: Vec<CellAsk> = (0..(CELLS * bundle) as u64).map(ask).collect();
    for ask in &asks {
        cells.spend(ask, Vec::new(), NOW);
    }
    cells.drain_changes(|_| {});
    (cells, asks)
}

/// A fixed key, so that every run meets the same shards and buckets.
fn tag() -> NamespaceTag {
    CellHasher::new(*b"a fixed 16 bytes").namespace("tenant", "requests")
}

#[inline(never)]
fn gate_spend_sliding_window(cells: &Cells, asks: &[CellAsk]) -> usize {
    let mut admitted = 0;
    for n in 0..ITERATIONS {
        let outcome = cells.spend(&asks[n % CELLS], Vec::new(), LATER);
        admitted += usize::from(outcome.admitted());
    }
    admitted
}

#[inline(never)]
fn gate_spend_token_bucket(cells: &Cells, asks: &[CellAsk]) -> usize {
    let mut admitted = 0;
    for n in 0..ITERATIONS {
        let outcome = cells.spend(&asks[n % CELLS], Vec::new(), LATER);
        admitted += usize::from(outcome.admitted());
    }
    // Makes this function differ from the one above, or the two would be folded into one.
    black_box(admitted)
}

#[inline(never)]
fn gate_spend_denied(cells: &Cells, asks: &[CellAsk]) -> usize {
    let mut denied = 0;
    for n in 0..ITERATIONS {
        let outcome = cells.spend(&asks[n % CELLS], Vec::new(), LATER);
        denied += usize::from(!outcome.admitted());
    }
    ITERATIONS - denied
}

#[inline(never)]
fn gate_cell_key(tag: &NamespaceTag, identifiers: &[String], limit: &Limit) -> CellKey {
    let mut last = CellKey { subject: 0, exact: 0 };
    for n in 0..ITERATIONS {
        last = black_box(tag.cell(&identifiers[n % CELLS], limit));
    }
    last
}

#[inline(never)]
fn gate_parse_limit(body: &[u8]) -> usize {
    let mut parsed = 0;
    for _ in 0..ITERATIONS {
        let request = black_box(parse::<LimitRequest<'_>>(black_box(body)));
        parsed += usize::from(request.is_ok());
    }
    parsed
}

#[inline(never)]
fn gate_spend_bundle(cells: &Cells, asks: &[CellAsk]) -> usize {
    let mut passed = 0;
    for n in 0..ITERATIONS {
        let from = n % CELLS * BUNDLE;
        let settled = cells.spend_all(&asks[from..from + BUNDLE], Vec::new(), LATER);
        passed += usize::from(settled.passed);
    }
    passed
}

#[inline(never)]
fn gate_match_rules(set: &RuleSet, requests: &[Request]) -> usize {
    let mut matched = Vec::new();
    let mut met = 0;
    for n in 0..ITERATIONS {
        requests[n % requests.len()].walk(set, &mut matched);
        met += matched.len();
    }
    met
}
