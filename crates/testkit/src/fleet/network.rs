//! The way to the origin and back: calls are lost, repeated, late, and sent again.

use std::sync::Arc;

use tollkeeper_core::{Micros, Millis, Take, Taken};
use tollkeeper_decide::{Errand, LeaseMark, Link, Missed, Turn};

use super::event::{Asker, Call, Event};
use super::node::Waiting;
use super::world::{START_MS, World};

/// Patience with one call, before it is sent again, in microseconds; twice that, and the ask is refused.
const PATIENCE_US: u64 = 5_000;

// === impl World ===

impl World {
    pub(super) fn send_all(&mut self, node: usize, errands: impl IntoIterator<Item = Errand>) {
        for errand in errands {
            self.send(node, errand, Asker::Cell);
        }
    }

    pub(super) fn send(&mut self, node: usize, errand: Errand, asker: Asker) {
        self.numbers += 1;
        let call = self.numbers;
        let cell = errand.name.identifier.parse().unwrap_or(0);
        let under_way = Call {
            node,
            life: self.nodes[node].life,
            cell,
            errand,
            sent_at: self.now_us,
            first_heard: None,
            over: false,
            asker,
        };
        self.calls.insert(call, under_way);
        if self.nodes[node].link(self.now_us) == Link::Away {
            // The breaker is open: nobody waits for what is not sent.
            let again = if matches!(asker, Asker::Journal(_)) { 100_000 } else { 0 };
            self.queue.push(self.now_us + again, Event::Patience { call, second: true });
            return;
        }
        self.queue.push(self.now_us + PATIENCE_US, Event::Patience { call, second: false });
        self.deliver(call, node);
    }

    /// One delivery of a call, if the network wants; or two.
    fn deliver(&mut self, call: u64, node: usize) {
        self.found.calls += 1;
        let leg = self.leg();
        if self.nodes[node].is_cut(self.now_us) {
            return;
        }
        let mut at = self.now_us + leg;
        if self.is_calm() {
            // A connection keeps the order of what is sent over it.
            at = at.max(self.nodes[node].heard_until);
            self.nodes[node].heard_until = at;
        }
        if !self.dice.ppm(self.faults.lost_ppm) {
            self.queue.push(at, Event::Heard { call });
        }
        if self.dice.ppm(self.faults.repeated_ppm) {
            let late = self.dice.below(3_000_000);
            self.queue.push(self.now_us + leg + late, Event::Heard { call });
        }
    }

    pub(super) fn leg(&mut self) -> u64 {
        let slow = self.dice.ppm(self.faults.slow_ppm);
        let usual = self.dice.between(100, 400);
        if slow { usual + self.dice.between(1_000, 40_000) } else { usual }
    }

    pub(super) fn heard(&mut self, call: u64) {
        if self.origin.stalled_until > self.now_us {
            self.queue.push(self.origin.stalled_until, Event::Heard { call });
            return;
        }
        let at = self.origin_us();
        let Some(under_way) = self.calls.get_mut(&call) else { return };
        under_way.first_heard.get_or_insert((self.now_us, at));
        self.found.heard_at.push(at.millis().0);
        let node = under_way.node;
        let taken = self.origin.take(under_way.cell, &under_way.errand.take, at, self.now_us);
        let lost = self.dice.ppm(self.faults.lost_ppm) || self.nodes[node].is_cut(self.now_us);
        if !lost {
            let leg = self.leg();
            let event = Event::Answered { call, taken: Box::new(taken) };
            self.queue.push(self.now_us + leg, event);
        }
    }

    pub(super) fn answered(&mut self, call: u64, taken: Box<Taken>) {
        let Some((node, life)) = self.wanted(call) else { return };
        if self.nodes[node].life != life {
            return;
        }
        if self.nodes[node].is_still(self.now_us) {
            let until = self.nodes[node].paused_until;
            self.queue.push(until, Event::Answered { call, taken });
            return;
        }
        let Some(under_way) = self.calls.get_mut(&call) else { return };
        under_way.over = true;
        let heard_first = under_way.first_heard;
        let heard = self.nodes[node].clock(START_MS, self.now_us);
        match under_way.asker {
            Asker::Journal(lapse) => {
                let mut errand = under_way.errand.clone();
                if heard < lapse && hear_last_words(&mut errand, &taken, lapse) {
                    self.send(node, errand, Asker::Journal(lapse));
                }
            }
            Asker::Request(number, ask) => {
                let dealt = self.nodes[node].table.deal_detached(&ask, Ok(&taken), heard);
                self.deal(number, dealt, heard_first);
            }
            Asker::Cell => {
                let sent = self.nodes[node].clock(START_MS, under_way.sent_at);
                let cell = under_way.cell;
                let table = &self.nodes[node].table;
                let turn = table.absorb(&under_way.errand, Ok(&taken), sent, heard);
                self.follow(node, cell, turn, heard_first);
            }
        }
    }

    /// Who made a call, as long as its answer is of interest.
    fn wanted(&self, call: u64) -> Option<(usize, u64)> {
        let under_way = self.calls.get(&call)?;
        (!under_way.over).then_some((under_way.node, under_way.life))
    }

    fn follow(
        &mut self,
        node: usize,
        cell: u64,
        turn: Turn<Waiting>,
        heard: Option<(u64, Micros)>,
    ) {
        for (number, dealt) in turn.dealt {
            self.deal(number, dealt, heard);
        }
        if turn.recall {
            for other in (0..self.plan.nodes).filter(|other| *other != node) {
                let leg = self.leg();
                self.queue.push(self.now_us + 2 * leg, Event::Recall { node: other, cell });
            }
        }
        if let Some(ms) = turn.again_in {
            let life = self.nodes[node].life;
            self.queue.push(self.now_us + ms * 1_000, Event::Again { node, life, cell });
        }
        if turn.lost {
            self.found.missed += 1;
            for node in 0..self.plan.nodes {
                let leg = self.leg();
                self.queue.push(self.now_us + 2 * leg, Event::Lost { node, cell });
            }
        }
        self.send_all(node, turn.next);
    }

    pub(super) fn patience(&mut self, call: u64, second: bool) {
        let Some((node, life)) = self.wanted(call) else { return };
        if self.nodes[node].life != life {
            return;
        }
        if self.nodes[node].is_still(self.now_us) {
            let event = Event::Patience { call, second };
            self.queue.push(self.nodes[node].paused_until, event);
            return;
        }
        if !second {
            self.queue.push(self.now_us + PATIENCE_US, Event::Patience { call, second: true });
            self.deliver(call, node);
            return;
        }
        let Some(under_way) = self.calls.get_mut(&call) else { return };
        under_way.over = true;
        let errand = under_way.errand.clone();
        let heard = self.nodes[node].clock(START_MS, self.now_us);
        match under_way.asker {
            // Until it is heard, or too late: then the origin has written the lease off.
            Asker::Journal(lapse) if heard < lapse => {
                self.send(node, errand, Asker::Journal(lapse));
            }
            Asker::Journal(_) => {}
            Asker::Request(number, ask) => {
                let dealt = self.nodes[node].table.deal_detached(&ask, Err(Missed::Silent), heard);
                self.deal(number, dealt, None);
            }
            Asker::Cell => {
                let sent = self.nodes[node].clock(START_MS, under_way.sent_at);
                let table = &self.nodes[node].table;
                let turn = table.absorb(&errand, Err(Missed::Silent), sent, heard);
                self.follow(node, 0, turn, None);
            }
        }
    }
}

/// Is there more to say for a dead boot, by what was answered to its last words?
fn hear_last_words(errand: &mut Errand, taken: &Taken, lapse: Millis) -> bool {
    let Take { boot, win, totals, nodes, limit, .. } = errand.take;
    let (name, ceiling) = (Arc::clone(&errand.name), totals.used);
    let mut mark = LeaseMark { name, limit, win, totals, ceiling, lapse };
    let more = mark.hear(taken);
    errand.take = mark.last_words(boot, nodes);
    more
}
