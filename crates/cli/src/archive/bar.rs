//! How far an archive is: a bar that moves on a terminal, a line now and then everywhere else. Both go to stderr.

use std::io::{IsTerminal, Write};

use tollkeeper_archive::{Label, Progress, Step};

use crate::output;

const BAR_CELLS: u64 = 24;

/// Off a terminal: a line at the start of a step, and at each tenth of it.
const LINES_PER_STEP: u64 = 10;

#[derive(Debug, Default)]
pub(crate) struct Bar {
    last: Option<(Label, Step, u64)>,
    drawn: bool,
}

impl Bar {
    pub(crate) fn show(&mut self, told: Progress) {
        if std::io::stderr().is_terminal() {
            output::progress(&drawing(told));
            self.drawn = true;
            return;
        }
        let tenth = (told.rows * LINES_PER_STEP).checked_div(told.of).unwrap_or_default();
        let now = Some((told.month, told.step, tenth));
        if self.last != now {
            self.last = now;
            let Progress { month, step, rows, of } = told;
            // Who closed stderr does not watch.
            let _ = writeln!(std::io::stderr(), "{month} {step} {rows} of {of} rows");
        }
    }

    /// Leaves the line free for what comes next.
    pub(crate) fn end(&self) {
        if self.drawn {
            output::progress("");
        }
    }
}

fn drawing(told: Progress) -> String {
    let share = |of: u64| (told.rows * of).checked_div(told.of).unwrap_or(of).min(of);
    let full = share(BAR_CELLS);
    let cells: String = (0..BAR_CELLS).map(|cell| if cell < full { '█' } else { '░' }).collect();
    let Progress { month, step, rows, of } = told;
    format!("{month} {step:<8} {cells} {:>3} %  {rows} of {of} rows", share(100))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_as_full_as_the_step_is_done() {
        let month = "2026-05".parse().unwrap();
        let told = |rows, of| drawing(Progress { month, step: Step::Writing, rows, of });
        assert!(told(0, 10).contains(&"░".repeat(24)));
        let half = format!("{}{}  50 %", "█".repeat(12), "░".repeat(12));
        assert!(told(5, 10).contains(&half), "{}", told(5, 10));
        // Rows may come while they are counted.
        assert!(told(11, 10).contains("100 %"));
        assert!(told(0, 0).contains("100 %"));
    }
}
