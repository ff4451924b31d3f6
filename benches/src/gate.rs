//! The gate: instructions of the hot path, counted by callgrind, against those on record.
//! Counts do not drift with the machine's mood, so a change of a few per cent is a change of the code.

mod callgrind;
mod record;
mod subjects;

use crate::failure::Failure;
use crate::report::{self, Table};

use record::Record;
use subjects::Subject;

/// Beyond this a count fails. Another compiler patch moves counts by one or two per cent.
const TOLERANCE: f64 = 0.05;

/// Counts, compares, and fails when something got slower.
pub(crate) fn check() -> Result<(), Failure> {
    let record = Record::load()?;
    let table = Table::new(
        "Instructions of the hot path",
        "gate",
        &["step", "instructions", "on record", "change", "at most +5 %"],
    );
    let mut slower = 0;
    for subject in Subject::ALL {
        let counted = callgrind::instructions(subject)?;
        let recorded = record.of(subject)?;
        let change = counted / recorded - 1.0;
        let failed = change > TOLERANCE;
        slower += usize::from(failed);
        table.row(&[
            subject.about().into(),
            format!("{counted:.1}"),
            format!("{recorded:.1}"),
            format!("{:+.1} %", change * 100.0),
            if failed { "**too many**" } else { "met" }.into(),
        ]);
    }
    let compiler = callgrind::compiler()?;
    if compiler != record.compiler {
        report::note(&format!("Recorded with {}, counted with {compiler}.", record.compiler));
    }
    if slower > 0 { Err(Failure::Slower(slower)) } else { Ok(()) }
}

/// Counts and puts the counts on record.
pub(crate) fn record() -> Result<(), Failure> {
    let mut record = Record::new(callgrind::compiler()?);
    for subject in Subject::ALL {
        record.put(subject, callgrind::instructions(subject)?);
    }
    record.save()
}

/// In the process that callgrind watches: does one subject's work.
pub(crate) fn count(subject: &str) -> Result<(), Failure> {
    let found = Subject::ALL.into_iter().find(|known| known.name() == subject);
    found.ok_or_else(|| Failure::unreadable("a step's name", subject))?.run()
}
