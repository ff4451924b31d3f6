//! `tollkeeper rules test`: what rules do to requests, tried without a server, by the matcher and the arithmetic that
//! servers use. For an editor's second window, and for the pipeline in front of `rules apply`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use tollkeeper_core::RuleSet;

use super::cases::{self, Case};
use super::file;
use super::trial::{self, Failed, Mismatch, Tried};
use super::{Source, shown};
use crate::exit::Exit;
use crate::explain;
use crate::failure::Failure;
use crate::output::{self, Tone, printable};

const HELP: &str = "\
Tests stand in the file beside the rules, or in a second one (--tests):
  rules:
    - name: free
      scope: user
      tiers: [free]
      limits: [{limit: 60, window: 1m}]

  tests:
    - name: the 61st request of a minute is refused
      request: {externalId: ann, tier: free, path: /v1/users}
      times: 61
      every: 500ms
      expect: {allowed: false, status: 429, rule: free, admitted: 60}

    - name: users do not share, and a minute later all is well
      request: {externalId: ann}
      steps:
        - {times: 60}
        - {expect: {exceeded: [free/1m]}}
        - {request: {externalId: ben}, expect: {allowed: true}}
        - {after: 2m, expect: {limits: [{name: free/1m, remaining: 59}]}}

A request has externalId, keyId, tier, project, ip, method, path and cost; expected may be allowed, code, status, rule,
message, delayMs, retryAfterMs, rules, limits, exceeded and admitted, of the last of all `times`. Every test begins with
empty counters. Keys, credits and quotas of single users have no part in it.

Examples:
  tollkeeper rules test rules.yaml
  tollkeeper rules test rules.yaml --tests expected.yaml --json
  tollkeeper rules test rules.yaml && tollkeeper rules apply rules.yaml --prune

Exit codes:
  0  every test passed
  1  a test failed
  2  wrong arguments, a file with faults, or no tests at all";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Test {
    #[command(flatten)]
    source: Source,

    /// File of more tests, by its name YAML, TOML or JSON
    #[arg(long, value_name = "FILE")]
    tests: Option<PathBuf>,

    /// Print one object per test as JSON
    #[arg(long)]
    json: bool,
}

impl Test {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let read = self.source.read()?;
        let mut cases = cases::read(&read.tests);
        if let Some(path) = &self.tests {
            cases.extend(cases::read(&file::read_tests(path, &read.checked)?));
        }
        if cases.is_empty() {
            let what = "there are no tests, and none of them could fail";
            return Err(Failure::new(Exit::Settings, what).with_next(
                "write `tests:` into the file; `tollkeeper rules test --help` shows how",
            ));
        }
        let rules = read.checked.into_iter().map(|checked| Arc::new(checked.rule)).collect();
        let set = RuleSet::compile(rules);
        let tried: Vec<Tried> = cases.iter().map(|case: &Case| trial::run(case, &set)).collect();
        if self.json {
            tried.iter().try_for_each(output::json)?;
        } else {
            show(&tried)?;
        }
        let passed = tried.iter().all(|one| one.passed);
        Ok(if passed { Exit::Done } else { Exit::Denied })
    }
}

/// One table for all tests, then what every rule said to those that failed, then how many there were.
fn show(tried: &[Tried]) -> Result<(), Failure> {
    let rows: Vec<_> = tried.iter().flat_map(results).collect();
    output::records(&rows)?;
    for one in tried {
        for failed in &one.failures {
            why(one, failed)?;
        }
    }
    let passed = tried.iter().filter(|one| one.passed).count();
    output::record(&[
        ("tests", tried.len().to_string()),
        ("passed", passed.to_string()),
        ("failed", (tried.len() - passed).to_string()),
    ])
}

/// A line for a test that passed, and one for each expectation that was not met.
fn results(tried: &Tried) -> Vec<Vec<(&'static str, String)>> {
    let row = |failed: Option<(&Failed, &Mismatch)>| {
        let step = failed.and_then(|(failed, _)| failed.step);
        let side = |value: Option<&serde_json::Value>| value.map(shown::word).unwrap_or_default();
        let mismatch = failed.map(|(_, mismatch)| mismatch);
        vec![
            ("result", if failed.is_none() { "pass" } else { "FAIL" }.to_owned()),
            ("test", printable(&tried.test)),
            ("requests", tried.requests.to_string()),
            ("step", step.map(|step| step.to_string()).unwrap_or_default()),
            ("field", mismatch.map(|one| printable(&one.field)).unwrap_or_default()),
            ("expected", side(mismatch.map(|one| &one.expected))),
            ("came", side(mismatch.map(|one| &one.came))),
        ]
    };
    if tried.passed {
        return vec![row(None)];
    }
    let failures = tried.failures.iter();
    failures
        .flat_map(|failed| failed.fields.iter().map(move |mismatch| row(Some((failed, mismatch)))))
        .collect()
}

fn why(tried: &Tried, failed: &Failed) -> Result<(), Failure> {
    let step = failed.step.map(|step| format!(", step {step}")).unwrap_or_default();
    if output::is_terminal() {
        let head = format!("\nWhat the rules said to {:?}{step}:", printable(&tried.test));
        output::line(output::toned(Tone::Heading, &head))?;
    }
    let mut rows = explain::rows(&failed.matched, &failed.unmatched);
    if !output::is_terminal() {
        for row in &mut rows {
            row.insert(0, ("why", printable(&tried.test)));
            row.insert(1, ("step", failed.step.map(|step| step.to_string()).unwrap_or_default()));
        }
    }
    output::records(&rows)
}
