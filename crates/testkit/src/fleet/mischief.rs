//! What goes wrong, now and then, and how it ends.

use std::sync::Arc;

use tollkeeper_decide::Errand;

use super::Faults;
use super::event::{Asker, Event};
use super::node::Cut;
use super::requests::key_of;
use super::world::World;

// === impl World ===

impl World {
    /// Throws the dice for everything that may happen beside a request.
    pub(super) fn mischief(&mut self) {
        if self.is_calm() {
            return;
        }
        let node = self.dice.below(self.plan.nodes as u64) as usize;
        if self.dice.ppm(self.faults.stalls_ppm) {
            self.origin.stalled_until = self.now_us + 50_000;
        }
        if self.dice.ppm(self.faults.pauses_ppm) {
            self.nodes[node].paused_until = self.now_us + self.dice.below(1_000_000);
        }
        if self.dice.ppm(self.faults.kills_ppm) {
            self.kill(node);
        }
        if self.dice.ppm(self.faults.cuts_ppm) {
            self.cut(node);
        }
        if self.dice.ppm(self.faults.wipes_ppm) {
            self.origin.wipe(self.now_us);
            self.step_clock();
        }
        // Drawn only where asked for, so that older seeds stay what they were.
        if self.faults.vanishes_ppm > 0 && self.dice.ppm(self.faults.vanishes_ppm) {
            let cell = self.dice.below(self.plan.cells);
            self.origin.lose(cell);
            self.found.vanished += 1;
        }
        if self.dice.ppm(self.faults.failovers_ppm) {
            let nth = self.dice.below(10) as usize;
            self.origin.fail_over(nth, self.now_us);
            self.step_clock();
        }
        if self.dice.ppm(self.faults.resets_ppm) {
            let cell = self.dice.below(self.plan.cells);
            self.reset(cell);
        }
    }

    pub(super) fn is_calm(&self) -> bool {
        self.now_us > self.plan.duration_ms * 1_000
    }

    /// All is well from now on.
    pub(super) fn recover(&mut self) {
        self.faults = Faults { skew_ms: self.faults.skew_ms, ..Faults::default() };
        for node in &mut self.nodes {
            let now = self.now_us;
            node.cut.until = node.cut.until.min(now);
            node.cut.away_until = node.cut.away_until.min(now + 500_000);
        }
    }

    /// The process is gone; another one begins on the same machine, at once or after a while.
    fn kill(&mut self, node: usize) {
        if self.nodes[node].down_until > self.now_us {
            return;
        }
        self.found.kills += 1;
        let (dead, journal) = self.nodes[node].restart(node, &self.plan);
        self.waiting.retain(|_, request| request.node != node);
        self.graves.entry(node).or_default().push((dead, journal));
        let down = if self.dice.ppm(100_000) { 12_000_000 } else { self.dice.below(1_000_000) };
        self.nodes[node].down_until = self.now_us + down;
        self.queue.push(self.now_us + down, Event::Rise { node });
    }

    pub(super) fn rise(&mut self, node: usize) {
        let now = self.clock(node);
        self.nodes[node].epoch = self.origin.epoch;
        for (dead, journal) in self.graves.remove(&node).unwrap_or_default() {
            for (mark, take) in journal.last_words(dead, self.plan.nodes as u64, now) {
                let cell = mark.name.identifier.parse().unwrap_or(0);
                let name = Arc::clone(&mark.name);
                let errand = Errand { key: key_of(cell), name, take, detached: None };
                self.send(node, errand, Asker::Journal(mark.lapse));
            }
        }
    }

    fn cut(&mut self, node: usize) {
        let (now, number) = (self.now_us, self.nodes[node].cut.number + 1);
        if self.nodes[node].cut.away_until > now {
            return;
        }
        let until = now + self.dice.below(3_000_000);
        let away_from = now + self.dice.between(20_000, 500_000);
        let away_until = if until > away_from { until + self.dice.below(500_000) } else { 0 };
        self.nodes[node].cut = Cut { number, from: now, until, away_from, away_until };
    }

    /// The origin that took over has a clock of its own.
    fn step_clock(&mut self) {
        if self.faults.step_ms == 0 {
            return;
        }
        let reach = self.faults.step_ms;
        self.origin.ahead_ms = self.dice.below(2 * reach + 1) as i64 - reach as i64;
        self.found.steps += 1;
    }

    /// Somebody forgives what was spent; the nodes hear of it over the bus.
    fn reset(&mut self, cell: u64) {
        self.origin.reset(cell);
        self.judge.reset(cell, self.now_us);
        for node in 0..self.plan.nodes {
            let leg = self.leg();
            self.queue.push(self.now_us + 2 * leg, Event::Forget { node, cell });
        }
    }
}
