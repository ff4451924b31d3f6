//! What happens, and when: a queue in the order of true time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use tollkeeper_decide::{Errand, LeaseAsk};

#[derive(Clone, Debug)]
pub(super) enum Event {
    /// The next request, of whatever kind the plan says.
    Request,
    /// A call reaches the origin.
    Heard {
        call: u64,
    },
    /// Its answer reaches the node.
    Answered {
        call: u64,
        taken: Box<tollkeeper_core::Taken>,
    },
    /// The node has waited long enough for the first, or for the second time.
    Patience {
        call: u64,
        second: bool,
    },
    Tick {
        node: usize,
    },
    /// Somebody lacks what others hold.
    Recall {
        node: usize,
        cell: u64,
    },
    /// What was called in has had its time: those that wait for it ask again.
    Again {
        node: usize,
        life: u64,
        cell: u64,
    },
    /// The record of a cell was lost: a node says what it knows of it.
    Lost {
        node: usize,
        cell: u64,
    },
    /// Somebody reset it: what a node knows of it is void.
    Forget {
        node: usize,
        cell: u64,
    },
    /// A node looks whether the origin still is who it was.
    Poll {
        node: usize,
    },
    /// The dead come back.
    Rise {
        node: usize,
    },
    /// The origin's replica catches up.
    Copy,
}

/// A call under way.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) node: usize,
    /// The life of the node that made it.
    pub(super) life: u64,
    pub(super) cell: u64,
    pub(super) errand: Errand,
    pub(super) sent_at: u64,
    /// When the origin first heard it: what it took was taken then.
    pub(super) first_heard: Option<(u64, tollkeeper_core::Micros)>,
    pub(super) over: bool,
    pub(super) asker: Asker,
}

/// Who wants the answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asker {
    /// The cell.
    Cell,
    /// One request, where the table has no place for the cell.
    Request(u64, LeaseAsk),
    /// Nobody but who repeats it until it is heard, or until then: it is of the dead.
    Journal(tollkeeper_core::Millis),
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Due>,
    next: u64,
}

#[derive(Debug)]
struct Due {
    at: u64,
    number: u64,
    event: Event,
}

// === impl Queue ===

impl Queue {
    pub(super) fn push(&mut self, at: u64, event: Event) {
        self.next += 1;
        self.heap.push(Due { at, number: self.next, event });
    }

    pub(super) fn pop(&mut self) -> Option<(u64, Event)> {
        self.heap.pop().map(|due| (due.at, due.event))
    }
}

// === impl Due ===

impl Due {
    fn order(&self) -> (u64, u64) {
        (self.at, self.number)
    }
}

impl Ord for Due {
    /// The earliest is the greatest: the heap gives that first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.order().cmp(&self.order())
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Due {}
