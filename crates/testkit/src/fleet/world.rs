//! A run from its first request to its last answer: faults first, then recovery, then silence.

use std::collections::HashMap;
use std::sync::Arc;

use tollkeeper_core::{Algorithm, Boot, Micros, Millis};
use tollkeeper_decide::Scope;

use super::check::Judge;
use super::event::{Call, Event, Queue};
use super::journal::Journal;
use super::node::{Node, Waiting};
use super::origin::Origin;
use super::requests::Request;
use super::{Dice, Faults, Findings, Plan};

/// A fixed start, a little before an edge of every width in use.
pub(super) const START_MS: u64 = 1_700_000_000_000 - 137;

const TICK_US: u64 = 50_000;
const POLL_US: u64 = 250_000;
const COPY_US: u64 = 100_000;

/// What a run found, and enough to run it again.
#[derive(Debug)]
pub struct Story {
    pub plan: Plan,
    pub found: Findings,
}

pub(super) struct World {
    pub(super) plan: Plan,
    /// Those of the plan, until they are over.
    pub(super) faults: Faults,
    pub(super) dice: Dice,
    pub(super) queue: Queue,
    pub(super) nodes: Vec<Node>,
    pub(super) origin: Origin,
    pub(super) calls: HashMap<u64, Call>,
    pub(super) waiting: HashMap<Waiting, Request>,
    /// What the dead left behind, for when they are back.
    pub(super) graves: HashMap<usize, Vec<(Boot, Journal)>>,
    pub(super) judge: Judge,
    pub(super) found: Findings,
    pub(super) now_us: u64,
    pub(super) numbers: u64,
    pub(super) names: Arc<Scope>,
}

/// Runs a plan to its end.
pub fn run(plan: Plan) -> Story {
    let mut world = World::new(plan);
    let width = world.width_us();
    let faults_end = world.plan.duration_ms * 1_000;
    let mut end = faults_end;
    world.judge.measured_from = u64::MAX;
    if world.plan.recovery_ms > 0 {
        world.judge.measured_from = faults_end + world.plan.recovery_ms * 1_000;
        end = world.judge.measured_from + width;
        if let Algorithm::SlidingLog(_) = world.plan.largest().algorithm {
            end += width / 4;
        }
    }
    // Then silence: every lease lapses, everything is told, and nothing counts any more.
    let silence = end + 3 * width + 8_000_000;
    let mut faulty = true;
    while let Some((at, event)) = world.queue.pop() {
        if at > silence {
            break;
        }
        world.now_us = at;
        if faulty && at > faults_end {
            faulty = false;
            world.recover();
        }
        if !matches!(event, Event::Request) || at <= end {
            world.happen(event);
        }
    }
    world.finish()
}

// === impl World ===

impl World {
    fn new(plan: Plan) -> Self {
        let mut dice = Dice::new(plan.seed ^ 0xf1ee7);
        let nodes = (0..plan.nodes).map(|index| Node::new(index, &plan, &mut dice)).collect();
        let mut queue = Queue::default();
        queue.push(0, Event::Request);
        let forgets = plan.faults.wipes_ppm + plan.faults.failovers_ppm > 0;
        for node in 0..plan.nodes {
            queue.push(dice.below(TICK_US), Event::Tick { node });
            if forgets {
                queue.push(dice.below(POLL_US), Event::Poll { node });
            }
        }
        if plan.faults.failovers_ppm > 0 {
            queue.push(0, Event::Copy);
        }
        Self {
            faults: plan.faults.clone(),
            plan,
            dice,
            queue,
            nodes,
            origin: Origin::default(),
            calls: HashMap::new(),
            waiting: HashMap::new(),
            graves: HashMap::new(),
            judge: Judge::default(),
            found: Findings::default(),
            now_us: 0,
            numbers: 1,
            names: Arc::new(Scope::namespace("t", "s")),
        }
    }

    fn finish(mut self) -> Story {
        self.found.waited = self.nodes.iter().map(|node| node.table.stats().waited).sum();
        self.found.cells_left = self.nodes.iter().map(|node| node.table.stats().cells).sum();
        self.found.hanging = self.waiting.len();
        self.judge.judge(&self.plan, &mut self.found);
        Story { plan: self.plan, found: self.found }
    }

    /// The origin's clock.
    pub(super) fn origin_us(&self) -> Micros {
        let us = START_MS * 1_000 + self.now_us;
        Micros(us.saturating_add_signed(self.origin.ahead_ms * 1_000))
    }

    pub(super) fn clock(&self, node: usize) -> Millis {
        self.nodes[node].clock(START_MS, self.now_us)
    }

    fn width_us(&self) -> u64 {
        use tollkeeper_core::Algorithm::{FixedWindow, SlidingLog, SlidingWindow, TokenBucket};
        let limit = self.plan.largest();
        1_000
            * match limit.algorithm {
                FixedWindow(_) => {
                    let (start, end) = limit.window_at(Millis(START_MS));
                    end.since(start)
                }
                SlidingWindow(width) | SlidingLog(width) | TokenBucket { width, .. } => {
                    width.millis()
                }
            }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Request => self.request(),
            Event::Heard { call } => self.heard(call),
            Event::Answered { call, taken } => self.answered(call, taken),
            Event::Patience { call, second } => self.patience(call, second),
            Event::Tick { node } => self.tick(node),
            Event::Recall { node, cell } => self.recall(node, cell),
            Event::Again { node, life, cell } => self.ask_again(node, life, cell),
            Event::Lost { node, cell } => self.tell_again(node, cell),
            Event::Forget { node, cell } => {
                self.nodes[node].table.forget_copy(super::requests::key_of(cell));
                self.recall(node, cell);
            }
            Event::Poll { node } => self.poll(node),
            Event::Rise { node } => self.rise(node),
            Event::Copy => {
                self.origin.keep_copy();
                self.queue.push(self.now_us + COPY_US, Event::Copy);
            }
        }
    }

    fn tick(&mut self, node: usize) {
        self.queue.push(self.now_us + TICK_US, Event::Tick { node });
        if self.nodes[node].is_still(self.now_us) {
            return;
        }
        let now = self.clock(node);
        let errands = self.nodes[node].table.tick(0, 1, now);
        self.send_all(node, errands);
    }

    fn recall(&mut self, node: usize, cell: u64) {
        if self.nodes[node].is_still(self.now_us) {
            return;
        }
        let now = self.clock(node);
        let errand = self.nodes[node].table.recall(super::requests::key_of(cell), now);
        self.send_all(node, errand);
    }

    fn ask_again(&mut self, node: usize, life: u64, cell: u64) {
        let asker = &self.nodes[node];
        if asker.life != life {
            return;
        }
        if asker.is_still(self.now_us) {
            let until = asker.paused_until;
            self.queue.push(until, Event::Again { node, life, cell });
            return;
        }
        let now = self.clock(node);
        let errand = self.nodes[node].table.ask_again(super::requests::key_of(cell), now);
        self.send_all(node, errand);
    }

    fn tell_again(&mut self, node: usize, cell: u64) {
        if self.nodes[node].is_still(self.now_us) {
            return;
        }
        let now = self.clock(node);
        let errand = self.nodes[node].table.assert_one(super::requests::key_of(cell), now);
        self.send_all(node, errand);
    }

    /// Is the origin still who it was? If not it is told everything, before anything else.
    fn poll(&mut self, node: usize) {
        self.queue.push(self.now_us + POLL_US, Event::Poll { node });
        let known = &mut self.nodes[node];
        if known.is_still(self.now_us) || known.is_cut(self.now_us) {
            return;
        }
        known.learning = self.origin.is_learning(self.now_us);
        if known.epoch != self.origin.epoch {
            known.epoch = self.origin.epoch;
            known.table.assert_all(|_| true);
            let now = self.clock(node);
            let errands = self.nodes[node].table.tick(0, 1, now);
            self.send_all(node, errands);
        }
    }
}
