//! Whatever gets late, lost or repeated between nodes and bank, and whichever nodes die: credits are neither
//! lost nor doubled.

use proptest::prelude::*;

use crate::bank::{Fate, pause};
use crate::purse_world::{End, KEYS, World};

const NODES: usize = 3;
const CASES: u32 = 3_000;

#[derive(Clone, Debug)]
enum Step {
    Ask { node: usize, key: usize, cost: u64, dawdle: u8, end: End },
    Foretell(usize, Vec<Fate>),
    Pause(u8),
    Advance(u64),
    Add(usize, u64),
    GiveBack(usize, usize),
    Report(usize),
    Tidy(usize),
    Kill(usize),
    Close(usize),
    Recover(Vec<Fate>),
}

fn fate() -> impl Strategy<Value = Fate> {
    let times = prop_oneof![4 => Just(1_u8), 2 => Just(2), 1 => Just(0)];
    (0..6_u8, times, prop::bool::weighted(0.6)).prop_map(|(late, times, answered)| Fate {
        late,
        times,
        answered,
    })
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    prop::collection::vec(fate(), 0..5)
}

fn ask() -> impl Strategy<Value = Step> {
    let cost = prop_oneof![1 => Just(0_u64), 8 => 1..4_u64, 2 => 4..40_u64];
    let end = prop_oneof![
        16 => Just(End::Spend),
        3 => Just(End::Denied),
        1 => Just(End::DieUnrecorded)
    ];
    (0..NODES, 0..KEYS.len(), cost, prop_oneof![3 => Just(0_u8), 1 => 1..9_u8], end)
        .prop_map(|(node, key, cost, dawdle, end)| Step::Ask { node, key, cost, dawdle, end })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let node = || 0..NODES;
    let step = prop_oneof![
        30 => ask(),
        8 => (node(), fates()).prop_map(|(node, fates)| Step::Foretell(node, fates)),
        14 => (1..12_u8).prop_map(Step::Pause),
        4 => prop_oneof![1..900_u64, 1_000..70_000_u64].prop_map(Step::Advance),
        2 => (0..KEYS.len(), 1..60_u64).prop_map(|(key, amount)| Step::Add(key, amount)),
        3 => (node(), 0..KEYS.len()).prop_map(|(node, key)| Step::GiveBack(node, key)),
        3 => node().prop_map(Step::Report),
        3 => node().prop_map(Step::Tidy),
        2 => node().prop_map(Step::Kill),
        1 => node().prop_map(Step::Close),
        3 => fates().prop_map(Step::Recover),
    ];
    prop::collection::vec(step, 20..120)
}

async fn run(balances: [u64; 2], steps: Vec<Step>) {
    let mut world = World::new(NODES, balances);
    for step in steps {
        match step {
            Step::Ask { node, key, cost, dawdle, end } => {
                world.ask(node, KEYS[key], cost, dawdle, end);
            }
            Step::Foretell(node, fates) => world.foretell(node, &fates),
            Step::Pause(turns) => pause(turns).await,
            Step::Advance(ms) => world.advance(ms),
            Step::Add(key, amount) => world.add(KEYS[key], amount),
            Step::GiveBack(node, key) => world.give_back(node, KEYS[key]),
            Step::Report(node) => world.report(node),
            Step::Tidy(node) => world.tidy(node),
            Step::Kill(node) => world.kill(node),
            Step::Close(node) => world.close(node).await,
            Step::Recover(fates) => world.recover(&fates).await,
        }
        world.bury();
        world.check();
    }
    world.end().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn credits_are_neither_lost_nor_doubled_whatever_gets_lost_and_whoever_dies(
        balances in [0..400_u64, 0..40_u64], steps in steps(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(run(balances, steps));
    }
}
