//! Requests: which come in, what they wait for, and how they end.

use std::sync::Arc;

use tollkeeper_core::{Cost, Limit, Micros};
use tollkeeper_decide::{CellKey, CellName, Dealt, LeaseAsk, Link, NearLease, Stage, Units};

use super::check::{Alone, Spent};
use super::event::{Asker, Event};
use super::node::Waiting;
use super::world::World;

/// A request: what it costs and what it still waits for.
#[derive(Clone, Debug)]
pub(super) struct Request {
    cost: u64,
    limit: Limit,
    open: usize,
    refused: bool,
    parts: Vec<Part>,
    pub(super) node: usize,
    life: u64,
}

/// One cell's yes.
#[derive(Clone, Copy, Debug)]
struct Part {
    units: Units,
    /// What the origin spent at once was decided by it, then; what was lent is decided on the node, now.
    taken: Option<(u64, Micros)>,
    alone: Option<Alone>,
    /// When it was said.
    since: (u64, Micros),
}

// === impl World ===

impl World {
    pub(super) fn request(&mut self) {
        self.schedule_next();
        self.mischief();
        let traffic = &self.plan.traffic;
        let skewed = self.dice.ppm(traffic.skew_ppm);
        let node = if skewed { 0 } else { self.dice.below(self.plan.nodes as u64) as usize };
        let cell = self.dice.below(self.plan.cells);
        // After the faults there is one kind of request, so that it is clear what all of them should get.
        let calm = self.is_calm();
        let limit = if calm { self.plan.largest() } else { self.dice.pick(&self.plan.limits) };
        let cost = if calm { 1 } else { self.dice.pick(&traffic.costs) };
        let bundled = !calm && self.plan.cells > 1 && self.dice.ppm(traffic.bundles_ppm);
        let peeks = self.dice.ppm(traffic.peeks_ppm);
        if self.nodes[node].is_still(self.now_us) {
            return;
        }
        if peeks {
            self.ask(node, &[cell], limit, 0);
        } else if bundled {
            self.ask(node, &[cell, (cell + 1) % self.plan.cells], limit, cost);
        } else {
            let (us, at) = (self.now_us, self.origin_us());
            self.judge.asked(Spent { us, at, cell, cost, limit, since: (us, at), alone: None });
            self.ask(node, &[cell], limit, cost);
        }
    }

    fn ask(&mut self, node: usize, cells: &[u64], limit: Limit, cost: u64) {
        self.numbers += 1;
        let number = self.numbers;
        let life = self.nodes[node].life;
        let request = Request {
            open: cells.len(),
            cost,
            limit,
            refused: false,
            parts: Vec::new(),
            node,
            life,
        };
        self.waiting.insert(number, request);
        for cell in cells {
            let ask = LeaseAsk {
                key: key_of(*cell),
                limit,
                cost: Cost::new(cost).unwrap_or(Cost::ONE),
                consistency: self.plan.consistency,
                on_outage: self.plan.on_outage,
                bundled: cells.len() > 1,
                beside: 0,
            };
            let now = self.clock(node);
            let link = self.nodes[node].link(self.now_us);
            let names = Arc::clone(&self.names);
            let near = self.nodes[node].table.near(
                &ask,
                || CellName::new(&names, &cell.to_string()),
                |_| number,
                link,
                now,
            );
            match near {
                NearLease::Dealt(dealt, errand) => {
                    self.deal(number, dealt, None);
                    self.send_all(node, errand);
                }
                NearLease::Waits(_, Some(errand)) => {
                    let detached = errand.detached.is_some();
                    let asker = if detached { Asker::Request(number, ask) } else { Asker::Cell };
                    self.send(node, errand, asker);
                }
                NearLease::Waits(_, None) => {}
            }
        }
    }

    /// One part of a request is decided; the last one decides the request. `taken`: when the origin first heard
    /// the call that this answers.
    pub(super) fn deal(&mut self, number: Waiting, dealt: Dealt, taken: Option<(u64, Micros)>) {
        let Some(request) = self.waiting.get(&number) else { return };
        let alone = (dealt.degraded && dealt.units.is_some()).then(|| self.alone(request, &dealt));
        let now = (self.now_us, self.origin_us());
        let Some(request) = self.waiting.get_mut(&number) else { return };
        request.open -= 1;
        self.found.degraded += u64::from(dealt.degraded);
        match dealt.units {
            Some(units) if dealt.outcome.admitted() => {
                let taken = taken.filter(|_| units.stage == Stage::Taken);
                request.parts.push(Part { units, taken, alone, since: taken.unwrap_or(now) });
            }
            _ => request.refused = true,
        }
        if request.open > 0 {
            return;
        }
        let Some(request) = self.waiting.remove(&number) else { return };
        self.close(&request);
    }

    fn close(&mut self, request: &Request) {
        let node = &self.nodes[request.node];
        if node.life != request.life {
            return;
        }
        if request.refused {
            request.parts.iter().for_each(|part| node.table.release(part.units));
            return;
        }
        let all: Vec<_> = request.parts.iter().map(|part| part.units).collect();
        if !node.table.settle(&all, self.clock(request.node)) {
            return;
        }
        for part in &request.parts {
            let (us, at) = part.taken.unwrap_or((self.now_us, self.origin_us()));
            let cell = part.units.key.exact;
            let (cost, limit, alone) = (request.cost, request.limit, part.alone);
            let since = part.since;
            self.judge.admitted(Spent { us, at, cell, cost, limit, since, alone });
        }
    }

    fn alone(&self, request: &Request, dealt: &Dealt) -> Alone {
        let node = &self.nodes[request.node];
        let outage = match node.link(self.now_us) {
            Link::Away => node.cut.number,
            // Cuts and epochs are counted apart, and no run has that many cuts.
            _ => (1 << 32) + self.origin.epoch,
        };
        Alone { node: request.node, life: request.life, outage, at: dealt.at.0 }
    }

    fn schedule_next(&mut self) {
        let gap = 2_000_000 / self.plan.traffic.rate.max(1);
        let mut next = self.now_us + self.dice.below(gap + 1);
        if self.plan.traffic.bursts && !self.is_calm() {
            // A second's requests in its first 50 ms: twenty times as dense, then nothing.
            next = self.now_us + self.dice.below(gap / 20 + 1);
            if next % 1_000_000 > 50_000 {
                next = next - next % 1_000_000 + 1_000_000;
            }
        }
        self.queue.push(next, Event::Request);
    }
}

pub(super) fn key_of(cell: u64) -> CellKey {
    // One shard for all: a small table is full at once.
    CellKey { subject: 0, exact: cell }
}
