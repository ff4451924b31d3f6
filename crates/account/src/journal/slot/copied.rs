//! A slot that is copied while others count in it, as a backup does: word by word from its front, with anything between two
//! words. What `add` and `open` do stands here once more, in the steps that a copy can come between.

use proptest::prelude::*;

use super::*;

/// What the other side does between two words of the copy.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A thread begins to count, or goes on with what it began.
    Count { thread: usize, amounts: [u64; 4] },
    /// The slot is given to another key, step by step. Its own key was settled long ago, so nobody counts meanwhile.
    Open,
    /// The copy gets one word further.
    Copy,
}

struct Model {
    words: [u64; SLOT_WORDS],
    names: [SlotName; 2],
    /// Of each thread what it still has to do: the word, and what is added to it.
    threads: [Vec<(usize, u64)>; 3],
    amounts: [[u64; 4]; 3],
    /// Steps of opening that are left: the word, and what is stored there.
    opening: Vec<(usize, u64)>,
    opened: bool,
    begun: [u64; 4],
    answered: [u64; 4],
    copy: Vec<u64>,
}

/// What a copy may say at the least and at the most.
struct Bounds {
    answered_before: [u64; 4],
    begun_before_the_slot_changed_hands: Option<[u64; 4]>,
}

// === impl Model ===

impl Model {
    fn new() -> Self {
        let name = |key: &str| SlotName {
            minute: Minute(29_000_000),
            project_id: "api_1".into(),
            key_id: key.into(),
        };
        let mut model = Self {
            words: [0; SLOT_WORDS],
            names: [name("key_1"), name("key_2")],
            threads: Default::default(),
            amounts: Default::default(),
            opening: Vec::new(),
            opened: false,
            begun: [0; 4],
            answered: [0; 4],
            copy: Vec::new(),
        };
        for (word, value) in stores(&model.names[0]) {
            model.words[word] = value;
        }
        model
    }

    /// Returns what had been begun when the slot changes hands by this step.
    fn step(&mut self, step: Step) -> Option<[u64; 4]> {
        match step {
            Step::Count { thread, amounts } if self.opening.is_empty() => {
                self.count(thread, amounts);
            }
            Step::Count { .. } => {}
            Step::Open => return self.open(),
            Step::Copy => self.copy.extend(self.words.get(self.copy.len())),
        }
        None
    }

    fn count(&mut self, thread: usize, amounts: [u64; 4]) {
        if self.threads[thread].is_empty() {
            let counted = (0..4).filter(|at| amounts[*at] > 0);
            let moves = counted.flat_map(|at| {
                [(TOTALS + at, amounts[at]), (MIRRORS + at, amounts[at].wrapping_neg())]
            });
            self.threads[thread] = moves.collect();
            self.amounts[thread] = amounts;
            plus(&mut self.begun, amounts);
        }
        let Some((word, by)) = self.threads[thread].first().copied() else { return };
        self.threads[thread].remove(0);
        self.words[word] = self.words[word].wrapping_add(by);
        if self.threads[thread].is_empty() {
            let amounts = self.amounts[thread];
            plus(&mut self.answered, amounts);
        }
    }

    fn open(&mut self) -> Option<[u64; 4]> {
        let idle = self.threads.iter().all(Vec::is_empty);
        let mut handed_over = None;
        if self.opening.is_empty() && idle && !self.opened {
            self.opening = stores(&self.names[1]);
            self.opened = true;
            handed_over = Some(self.begun);
            (self.begun, self.answered) = ([0; 4], [0; 4]);
        }
        if !self.opening.is_empty() {
            let (word, value) = self.opening.remove(0);
            self.words[word] = value;
        }
        handed_over
    }
}

/// As `open` does it.
fn stores(name: &SlotName) -> Vec<(usize, u64)> {
    let words = name.words();
    let named = words.iter().enumerate().map(|(at, word)| (NAME + at, *word));
    let emptied = (TOTALS..NAME).map(|word| (word, 0));
    [(SEAL, 0)].into_iter().chain(emptied).chain(named).chain([(SEAL, seal_of(&words))]).collect()
}

fn plus(sum: &mut [u64; 4], amounts: [u64; 4]) {
    sum.iter_mut().zip(amounts).for_each(|(sum, amount)| *sum += amount);
}

fn usage([requests, denied, bytes, credits]: [u64; 4]) -> Usage {
    Usage { requests, denied, bytes, credits }
}

/// Runs the steps, with the copy beginning after `before` of them and going on to its end.
fn copied(before: &[Step], during: &[Step]) -> (Model, Bounds) {
    let mut model = Model::new();
    for step in before.iter().filter(|step| matches!(step, Step::Count { .. })) {
        model.step(*step);
    }
    let answered_before = model.answered;
    let mut handed_over = None;
    let rest = std::iter::repeat_n(Step::Copy, SLOT_WORDS);
    for step in during.iter().copied().chain(rest) {
        handed_over = model.step(step).or(handed_over);
        if model.copy.len() == SLOT_WORDS {
            break;
        }
    }
    (model, Bounds { answered_before, begun_before_the_slot_changed_hands: handed_over })
}

fn counting() -> impl Strategy<Value = Step> {
    let amounts = prop_oneof![
        Just([1, 0, 0, 0]),
        Just([0, 1, 0, 0]),
        [0..2_u64, 0..2_u64, 0..5_000_u64, 0..9_u64],
    ];
    (0..3_usize, amounts).prop_map(|(thread, amounts)| Step::Count { thread, amounts })
}

proptest! {
    #[test]
    fn a_copy_has_all_that_was_answered_before_it_and_nothing_that_was_not_asked(
        before in prop::collection::vec(counting(), 0..60),
        during in prop::collection::vec(prop_oneof![3 => counting(), 2 => Just(Step::Copy)], 0..200),
    ) {
        let (model, bounds) = copied(&before, &during);
        let words = model.copy.as_slice().try_into().expect("a whole slot");
        let Left::Counted(name, found) = left(words) else {
            return Err(TestCaseError::fail(format!("{:?}", left(words))));
        };
        prop_assert_eq!(&name, &model.names[0]);
        prop_assert!(found.covers(&usage(bounds.answered_before)), "{:?} of {:?}", found, bounds.answered_before);
        prop_assert!(usage(model.begun).covers(&found), "{:?} of {:?}", found, model.begun);
    }

    /// The former key's usage was in the ledger for ten minutes, and the next one's began after the copy did: nothing of
    /// either has to be in the copy, but nothing may be counted for the other.
    #[test]
    fn a_copy_of_a_slot_that_changes_hands_counts_for_nobody_what_is_anothers(
        before in prop::collection::vec(counting(), 0..60),
        during in prop::collection::vec(
            prop_oneof![2 => counting(), 6 => Just(Step::Open), 2 => Just(Step::Copy)], 0..300),
    ) {
        let (model, bounds) = copied(&before, &during);
        let words = model.copy.as_slice().try_into().expect("a whole slot");
        if let Left::Counted(name, found) = left(words) {
            let of_first = bounds.begun_before_the_slot_changed_hands.unwrap_or(model.begun);
            let most = if name == model.names[0] { of_first } else { model.begun };
            prop_assert!(usage(most).covers(&found), "{:?} {:?} of {:?}", name, found, most);
        }
    }
}
