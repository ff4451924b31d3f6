//! The counts on record: benches/gate.toml.

use std::collections::BTreeMap;
use std::fs;

use serde::{Deserialize, Serialize};

use super::subjects::Subject;
use crate::failure::Failure;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/gate.toml");
const NAME: &str = "benches/gate.toml";

const HEADER: &str = "\
# Instructions per iteration of the hot path, counted by callgrind. `make bench-gate` fails at 5 % more.
# Written by `cargo run --release --package tollkeeper-bench -- gate --record`.

";

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    pub(super) compiler: String,
    instructions: BTreeMap<String, f64>,
}

// === impl Record ===

impl Record {
    pub(super) fn new(compiler: String) -> Self {
        Self { compiler, instructions: BTreeMap::new() }
    }

    pub(super) fn load() -> Result<Self, Failure> {
        let text = fs::read_to_string(PATH).map_err(Failure::io(NAME))?;
        toml::from_str(&text).map_err(|error| Failure::unreadable(NAME, error.to_string()))
    }

    pub(super) fn save(&self) -> Result<(), Failure> {
        let text = toml::to_string(self)
            .map_err(|error| Failure::unreadable("the new record", error.to_string()))?;
        fs::write(PATH, format!("{HEADER}{text}")).map_err(Failure::io(NAME))
    }

    pub(super) fn put(&mut self, subject: Subject, instructions: f64) {
        let tenths = (instructions * 10.0).round() / 10.0;
        self.instructions.insert(subject.name().into(), tenths);
    }

    pub(super) fn of(&self, subject: Subject) -> Result<f64, Failure> {
        let recorded = self.instructions.get(subject.name()).copied();
        recorded.ok_or_else(|| Failure::unreadable("the record of a step", subject.name()))
    }
}
