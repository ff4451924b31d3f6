//! A full table is no different from one without bounds: whatever is evicted, shelved, brought back,
//! swept, reset or replayed, every outcome is the one of a table that keeps everything.

use proptest::prelude::*;

use crate::memory::Hold;
use crate::world::{Asked, SHAPES, World};

const IDENTIFIERS: u8 = 24;
const CASES: u32 = 2_000;

#[derive(Clone, Debug)]
enum Step {
    Ask(Vec<Asked>),
    /// Warmed now, decided after some other steps.
    AskLater(Vec<Asked>),
    Decide,
    Advance(u64),
    BeginRound(Hold),
    EndRound,
    FailRound,
    /// So many rounds that what has left is nowhere but on the shelf.
    Rounds,
    Reset(u8, Option<u8>),
    Tidy,
    Sweep(usize),
    Beat,
    BeginCheckpoint,
    /// With a table of this size.
    Restart(usize),
}

fn asked() -> impl Strategy<Value = Asked> {
    (0..2_u8, 0..IDENTIFIERS, 0..SHAPES, 1..8_u64, prop_oneof![1 => Just(0_u64), 6 => 1..4_u64])
        .prop_map(|(namespace, identifier, shape, quota, cost)| Asked {
            namespace,
            identifier,
            shape,
            quota,
            cost,
        })
}

fn bundle() -> impl Strategy<Value = Vec<Asked>> {
    let distinct = prop::collection::vec(asked(), 1..=4);
    let doubled = asked().prop_map(|one| vec![one, Asked { cost: one.cost + 1, ..one }]);
    prop_oneof![3 => asked().prop_map(|one| vec![one]), 2 => distinct, 1 => doubled]
}

fn sizes() -> impl Strategy<Value = usize> {
    prop_oneof![16..=64_usize, 128..=200_usize]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let hold = prop_oneof![Just(Hold::BeforeWriting), Just(Hold::BeforeAnswering)];
    let step = prop_oneof![
        40 => bundle().prop_map(Step::Ask),
        8 => bundle().prop_map(Step::AskLater),
        6 => Just(Step::Decide),
        8 => prop_oneof![0..300_u64, 300..3000_u64].prop_map(Step::Advance),
        6 => hold.prop_map(Step::BeginRound),
        6 => Just(Step::EndRound),
        2 => Just(Step::FailRound),
        4 => Just(Step::Rounds),
        4 => (0..2_u8, 0..IDENTIFIERS).prop_map(|(ns, id)| Step::Reset(ns, Some(id))),
        1 => (0..2_u8).prop_map(|ns| Step::Reset(ns, None)),
        2 => Just(Step::Tidy),
        4 => (0..2_usize).prop_map(Step::Sweep),
        8 => Just(Step::Beat),
        2 => Just(Step::BeginCheckpoint),
        1 => sizes().prop_map(Step::Restart),
    ];
    prop::collection::vec(step, 30..120)
}

async fn run(cells_max: usize, steps: Vec<Step>) {
    let mut world = World::new(cells_max);
    let mut touched = Vec::new();
    for step in steps {
        match step {
            Step::Ask(asked) => {
                touched.extend(asked.clone());
                world.ask(asked, false).await;
            }
            Step::AskLater(asked) => {
                touched.extend(asked.clone());
                world.ask(asked, true).await;
            }
            Step::Decide => world.decide_held(),
            Step::Advance(ms) => world.now = world.now + ms,
            Step::BeginRound(hold) => world.begin_round(hold).await,
            Step::EndRound => world.end_round().await,
            Step::FailRound => world.fail_round().await,
            Step::Rounds => {
                for _ in 0..3 {
                    world.begin_round(Hold::BeforeWriting).await;
                    world.end_round().await;
                }
            }
            Step::Reset(namespace, identifier) => world.reset(namespace, identifier).await,
            Step::Tidy => world.tidy().await,
            Step::Sweep(part) => world.sweep(part),
            Step::Beat => world.beat(),
            Step::BeginCheckpoint => world.begin_checkpoint(),
            Step::Restart(cells_max) => world.restart(cells_max).await,
        }
    }
    world.restart(cells_max).await;
    world.ask_all(touched.into_iter()).await;
}

fn on_a_runtime(work: impl Future<Output = ()>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(work);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn eviction_never_resets_a_counter_that_still_matters((cells_max, steps) in (sizes(), steps())) {
        on_a_runtime(run(cells_max, steps));
    }
}
