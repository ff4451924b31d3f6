//! Bundles that ask one cell several times say the truth of what remains, also where the cell is shared.

use super::*;

/// Whether all of it passed, and what each entry says is left.
async fn ask_all(node: &Node, asks: &[(&str, Limit, u64)]) -> (bool, Vec<u64>) {
    let warm = node.warm_all(asks).await;
    let limited = node.decider.limit(warm, node.shared.now()).open();
    settle_down().await;
    (limited.passed, limited.limits.iter().map(|one| one.outcome.remaining).collect())
}

#[tokio::test]
async fn what_remains_is_said_after_all_that_the_bundle_takes_in_every_mode() {
    for mode in [Mode::Memory, Mode::Shadow, Mode::Redis] {
        for kind in 0..4 {
            for (asks, left) in [
                ([(10, 5), (2, 0)], [5, 0]),
                ([(2, 0), (10, 5)], [0, 5]),
                ([(3, 1), (5, 2)], [0, 2]),
                ([(500, 100), (500, 100)], [300, 300]),
            ] {
                let [node] = nodes(mode);
                let asked = asks.map(|(quota, cost)| ("ann", limits(quota)[kind], cost));
                let answer = ask_all(&node, &asked).await;
                assert_eq!(answer, (true, left.to_vec()), "{mode:?} {kind} {asks:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_bundle_that_does_not_pass_says_what_is_left_unspent_in_every_mode() {
    for mode in [Mode::Memory, Mode::Shadow, Mode::Redis] {
        for limit in limits(QUOTA) {
            let [node] = nodes(mode);
            assert_eq!(node.spend("ann", limit, 30).await, 30);
            let asks = [("ann", limit, 20), ("ann", limit, 20), ("ann", limit, 40)];
            let answer = ask_all(&node, &asks).await;
            assert_eq!(answer, (false, vec![70; 3]), "{mode:?} {limit:?}");
        }
    }
}

#[tokio::test]
async fn what_a_remembered_refusal_left_untouched_is_not_said_to_have_come_back() {
    for mode in [Mode::Memory, Mode::Shadow, Mode::Redis] {
        for limit in limits(QUOTA) {
            let [node] = nodes(mode);
            assert_eq!(node.spend("ann", limit, 30).await, 30);
            assert_eq!(node.spend("bob", limit, QUOTA + 1).await, QUOTA);
            let answer = ask_all(&node, &[("ann", limit, 20), ("bob", limit, 1)]).await;
            assert_eq!(answer, (false, vec![70, 0]), "{mode:?} {limit:?}");
        }
    }
}
