//! Processor time that others took while something was measured: how far a figure can be trusted.

use std::fs;

use crate::clock::Stopwatch;
use crate::failure::Failure;
use crate::proc::{cpu_ticks, ticks_per_second};

/// From the making of it. No child may be running at either end: only ended ones are counted as ours.
#[derive(Debug)]
pub(crate) struct Bystanders {
    watch: Stopwatch,
    busy: u64,
    own: u64,
}

// === impl Bystanders ===

impl Bystanders {
    pub(crate) fn watch() -> Result<Self, Failure> {
        Ok(Self { watch: Stopwatch::start(), busy: busy_ticks()?, own: own_ticks()? })
    }

    /// What others took, in per cent of one core.
    pub(crate) fn percent(&self) -> Result<f64, Failure> {
        let busy = busy_ticks()?.saturating_sub(self.busy);
        let own = own_ticks()?.saturating_sub(self.own);
        let seconds = busy.saturating_sub(own) as f64 / f64::from(ticks_per_second());
        Ok(100.0 * seconds / self.watch.elapsed().as_secs_f64())
    }
}

/// This process and its ended children: fields 14 to 17.
fn own_ticks() -> Result<u64, Failure> {
    cpu_ticks(std::process::id(), 4)
}

/// All but idle and waiting time of all cores. Interrupts are in: a process is charged for those it is hit by.
fn busy_ticks() -> Result<u64, Failure> {
    let text = fs::read_to_string("/proc/stat").map_err(Failure::io("/proc/stat"))?;
    let line = text.lines().next().and_then(|line| line.strip_prefix("cpu "));
    let fields: Option<Result<Vec<u64>, _>> =
        line.map(|line| line.split_whitespace().map(str::parse).collect());
    match fields.and_then(Result::ok).as_deref() {
        Some([user, nice, system, _idle, _wait, irq, softirq, stolen, ..]) => {
            Ok(user + nice + system + irq + softirq + stolen)
        }
        _ => Err(Failure::unreadable("/proc/stat", text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_process_does_is_not_counted_as_others() -> Result<(), Failure> {
        let bystanders = Bystanders::watch()?;
        assert!(bystanders.own <= bystanders.busy);
        assert!(bystanders.percent()? >= 0.0);
        Ok(())
    }
}
