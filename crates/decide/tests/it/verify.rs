//! Verification of a key: whose it is, whether it is good, and that nothing is spent on the way to a denial.

use std::sync::Arc;

use tollkeeper_core::{CreditTerms, KeyRecord, Millis, PermissionQuery, Use, Verdict};
use tollkeeper_decide::{CacheName, Filled, Freshness, KeyText, Verified, VerifyAsk, WarmError};

use crate::keys::{
    NOW, Node, ask, ask_naming, auto, identity, imported, importer, key, limits_of, named, node,
    ours, text,
};
use crate::memory::root_key;

fn is_not_found_and_nothing_else(verified: &Verified) -> bool {
    let Verified { verdict, key, named, limits, credits, credits_spent, rule, .. } = verified;
    *verdict == Verdict::NotFound
        && key.is_none()
        && named.is_none()
        && rule.is_none()
        && limits.is_empty()
        && credits.is_none()
        && *credits_spent == 0
}

/// A key with credits and a limit, of which nothing may be gone in the end.
fn node_with_a_rich_key(change: impl FnOnce(&mut KeyRecord)) -> Node {
    let node = node();
    node.add_paid(1, 100, |record| {
        record.limits = vec![auto("requests", 10)];
        change(record);
    });
    node
}

#[tokio::test]
async fn a_key_that_is_not_the_callers_to_verify_is_not_found_and_spends_nothing() {
    let foreign = node_with_a_rich_key(|record| record.tenant_id = "ws_2".into());
    assert!(is_not_found_and_nothing_else(&foreign.verify(&ask(1)).await));
    let node = node_with_a_rich_key(|_| ());
    let callers = [
        root_key(&[]),
        root_key(&["api.api_2.verify_key"]),
        root_key(&["api.*.read_key"]),
        root_key(&["ratelimit.*.verify_key"]),
    ];
    for caller in callers {
        let verified = node.verify(&VerifyAsk { caller, ..ask(1) }).await;
        assert!(is_not_found_and_nothing_else(&verified));
    }
    let elsewhere = VerifyAsk { projects: ["api_2", "api_3"].into_iter().collect(), ..ask(1) };
    assert!(is_not_found_and_nothing_else(&node.verify(&elsewhere).await));
    assert!(is_not_found_and_nothing_else(&node.verify(&ask(2)).await));
    assert_eq!((foreign.bank.leases(), node.bank.leases()), (0, 0));
    assert_eq!(node.decider.cells().stats().live, 0);

    let caller = root_key(&["api.api_1.verify_key"]);
    let here = VerifyAsk { caller, projects: ["api_2", "api_1"].into_iter().collect(), ..ask(1) };
    assert_eq!(node.verify(&here).await.verdict, Verdict::Valid);
}

#[tokio::test]
async fn not_even_a_key_that_would_be_refused_anyway_is_told_from_an_unknown_one() {
    let node = node_with_a_rich_key(|record| {
        record.tenant_id = "ws_2".into();
        record.enabled = false;
    });
    // A limit that does not exist is only ever told of a key that does.
    assert!(is_not_found_and_nothing_else(&node.verify(&ask_naming(1, &[named("x", 1)])).await));
}

#[tokio::test]
async fn each_check_comes_before_the_next_and_a_failed_one_spends_nothing() {
    type Repair = fn(&mut KeyRecord);
    let flaws: [(Verdict, Repair); 6] = [
        (Verdict::Forbidden, |record| record.tenant_enabled = false),
        (Verdict::Disabled, |record| record.enabled = false),
        (Verdict::Revoked { at: Millis(5) }, |record| record.revoked_at = Some(Millis(5))),
        (Verdict::Expired, |record| record.expires = Some(NOW)),
        (Verdict::Forbidden, |record| record.ip_allowlist = vec!["10.0.0.0/8".parse().unwrap()]),
        (Verdict::InsufficientPermissions, |_| ()),
    ];
    for first in 0..flaws.len() {
        // All flaws from this one on: the first of them decides.
        let node = node_with_a_rich_key(|record| {
            record.permissions = vec!["a".into()];
            flaws[first..].iter().for_each(|(_, spoil)| spoil(record));
        });
        let permissions = Some(PermissionQuery::parse("a AND b").unwrap());
        let wanted = Use { permissions, ..Use::default() };
        let limits = [named("no such limit", 1)].into_iter().collect();
        let verified = node.verify(&VerifyAsk { wanted, limits, ..ask(1) }).await;
        assert_eq!(verified.verdict, flaws[first].0);
        assert_eq!(&*verified.key.unwrap().record.id, "key_1");
        assert!(verified.limits.is_empty() && verified.credits_spent == 0);
        assert_eq!((node.bank.leases(), node.decider.cells().stats().live), (0, 0));
    }
}

#[tokio::test]
async fn a_revoked_key_is_found_and_revoked() {
    let node = node();
    node.add(1, |record| record.revoked_at = Some(Millis(77)));
    let verified = node.verify(&ask(1)).await;
    assert_eq!(verified.verdict, Verdict::Revoked { at: Millis(77) });
    assert!(verified.key.is_some());
}

#[tokio::test]
async fn a_rate_limit_that_denies_spends_no_credits_and_no_other_limit() {
    let node = node();
    node.add_paid(1, 100, |record| record.limits = vec![auto("narrow", 2), auto("wide", 50)]);
    for _ in 0..2 {
        assert_eq!(node.verify(&ask(1)).await.verdict, Verdict::Valid);
    }
    for _ in 0..3 {
        let denied = node.verify(&ask(1)).await;
        assert_eq!(denied.verdict, Verdict::RateLimited);
        assert_eq!(limits_of(&denied), [("narrow", 2, 0, false), ("wide", 50, 48, true)]);
        assert_eq!((denied.credits_spent, denied.credits.unwrap().balance), (0, 98));
    }
    assert_eq!(node.balance("key_1"), 98);
}

#[tokio::test]
async fn credits_that_run_out_spend_no_limit() {
    let node = node();
    node.add_paid(1, 2, |record| record.limits = vec![auto("requests", 50)]);
    for left in [1, 0] {
        let verified = node.verify(&ask(1)).await;
        assert_eq!((verified.verdict, verified.credits_spent), (Verdict::Valid, 1));
        assert_eq!(verified.credits.unwrap().balance, left);
    }
    for _ in 0..3 {
        let denied = node.verify(&ask(1)).await;
        assert_eq!(denied.verdict, Verdict::UsageExceeded);
        assert_eq!(limits_of(&denied), [("requests", 50, 48, true)]);
        assert_eq!((denied.credits_spent, denied.credits.unwrap().balance), (0, 0));
    }
}

#[tokio::test]
async fn a_limit_without_room_is_told_before_credits_that_are_short() {
    let node = node();
    node.add_paid(1, 0, |record| record.limits = vec![auto("requests", 0)]);
    assert_eq!(node.verify(&ask(1)).await.verdict, Verdict::RateLimited);
}

#[tokio::test]
async fn a_cost_of_no_credits_passes_an_empty_key_and_shows_the_balance() {
    let node = node();
    node.add_paid(1, 0, |_| ());
    node.add_paid(2, 9, |_| ());
    for (number, balance) in [(1, 0), (2, 9)] {
        let verified = node.verify(&VerifyAsk { credits: 0, ..ask(number) }).await;
        assert_eq!((verified.verdict, verified.credits_spent), (Verdict::Valid, 0));
        assert_eq!(verified.credits.unwrap().balance, balance);
    }
}

#[tokio::test]
async fn a_key_without_a_limit_on_credits_never_asks_the_bank() {
    let node = node();
    node.add(1, |_| ());
    let verified = node.verify(&VerifyAsk { credits: 1_000_000, ..ask(1) }).await;
    assert_eq!(verified.verdict, Verdict::Valid);
    assert!(verified.credits.is_none() && verified.credits_spent == 0);
    assert_eq!(node.bank.leases(), 0);
}

#[tokio::test]
async fn credits_set_aside_for_a_request_that_was_dropped_or_failed_are_free_again() {
    let node = node();
    node.add_paid(1, 1, |record| record.limits = vec![auto("requests", 10)]);
    drop(node.warm(&ask(1)).await.unwrap());
    assert_eq!(node.verify(&ask(1)).await.verdict, Verdict::Valid);
    assert_eq!(node.verify(&ask(1)).await.verdict, Verdict::UsageExceeded);
}

#[tokio::test]
async fn without_the_bank_a_key_lives_on_what_it_has_in_hand_and_then_fails_without_spending() {
    let node = node();
    node.add_paid(1, 100, |record| record.limits = vec![auto("requests", 50)]);
    let three = VerifyAsk { credits: 3, ..ask(1) };
    assert_eq!(node.verify(&three).await.verdict, Verdict::Valid);
    // Asks for more: nine are in hand now, and two of them are spent.
    assert_eq!(node.verify(&VerifyAsk { credits: 2, ..ask(1) }).await.verdict, Verdict::Valid);
    node.bank.fail(true);
    for _ in 0..7 {
        assert_eq!(node.verify(&ask(1)).await.verdict, Verdict::Valid);
    }
    let failed = node.warm(&ask(1)).await.unwrap_err();
    assert!(matches!(failed, WarmError::Origin(_)), "{failed}");
    node.bank.fail(false);
    let verified = node.verify(&ask(1)).await;
    assert_eq!(limits_of(&verified), [("requests", 50, 40, true)]);
}

#[tokio::test]
async fn a_text_whose_checksum_does_not_fit_is_not_looked_up() {
    let node = node();
    node.add(1, |_| ());
    let broken = KeyText { intact: false, ..text(1) };
    let mut seen = 0;
    let ask = VerifyAsk { key: Some(broken), ..ask(1) };
    let warm = node.decider.warm_key(&ask, NOW, &mut |_, _| seen += 1).await.unwrap();
    assert!(is_not_found_and_nothing_else(&node.decider.verify(warm, NOW).open()));
    assert_eq!((node.directory.loads(), seen), (0, 0));
}

#[tokio::test]
async fn an_imported_key_is_found_whatever_its_text_looks_like_where_there_are_imports() {
    let node = node();
    node.directory.add_key(imported(1), key(1));
    let foreign = KeyText { intact: false, ..text(1) };
    assert_eq!(
        node.verify(&VerifyAsk { key: Some(foreign), ..ask(1) }).await.verdict,
        Verdict::NotFound
    );
    let found = VerifyAsk { key: Some(foreign), caller: importer(), ..ask(1) };
    assert_eq!(node.verify(&found).await.verdict, Verdict::Valid);
    assert_eq!(node.directory.loads(), 1);
    let by_chance = VerifyAsk { caller: importer(), ..ask(1) };
    assert_eq!(node.verify(&by_chance).await.verdict, Verdict::Valid);
}

#[tokio::test]
async fn somebody_elses_key_of_the_same_text_does_not_hide_an_imported_one() {
    let node = node();
    node.add(1, |record| record.tenant_id = "ws_2".into());
    node.directory.add_key(imported(1), key(2));
    let verified = node.verify(&VerifyAsk { caller: importer(), ..ask(1) }).await;
    assert_eq!(verified.verdict, Verdict::Valid);
    assert_eq!(&*verified.key.unwrap().record.id, "key_2");
}

#[tokio::test]
async fn a_key_is_loaded_once_and_again_when_it_was_forgotten() {
    let node = node();
    node.add(1, |_| ());
    let mut seen = Vec::new();
    for _ in 0..2 {
        let see = &mut |name, fresh| seen.push((name, fresh));
        drop(node.decider.warm_key(&ask(1), NOW, see).await.unwrap());
    }
    assert_eq!(seen, [(CacheName::Key, Freshness::Miss), (CacheName::Key, Freshness::Fresh)]);
    node.add(1, |record| record.enabled = false);
    node.decider.forget_key(ours(1));
    assert_eq!(node.verify(&ask(1)).await.verdict, Verdict::Disabled);
    assert_eq!((node.directory.loads(), node.decider.keys_cached()), (2, 1));
}

#[tokio::test]
async fn a_directory_that_does_not_answer_is_not_a_key_that_is_not_there() {
    let node = node();
    node.add(1, |_| ());
    node.directory.fail(true);
    assert!(matches!(node.warm(&ask(1)).await.unwrap_err(), WarmError::Origin(_)));
    node.directory.fail(false);
    assert_eq!(node.verify(&ask(1)).await.verdict, Verdict::Valid);
}

#[tokio::test]
async fn a_bank_that_knows_no_limit_any_more_lets_a_key_pass_that_was_loaded_before() {
    let node = node();
    node.add(1, |record| record.credits = Some(CreditTerms { refill: None }));
    let verified = node.verify(&ask(1)).await;
    assert_eq!((verified.verdict, verified.credits_spent), (Verdict::Valid, 0));
    assert!(verified.credits.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_threads_spend_limits_and_credits_together_and_exactly() {
    let node = Arc::new(node());
    node.add_paid(1, 700, |record| {
        record.limits = vec![auto("own", 1_000)];
        record.identity = Some(identity(vec![auto("shared", 900)]));
    });
    node.add_paid(2, 10_000, |record| record.identity = Some(identity(vec![auto("shared", 900)])));
    let run = |number: u8| {
        let node = Arc::clone(&node);
        tokio::spawn(async move {
            let mut passed = 0_u64;
            for _ in 0..250 {
                passed += u64::from(node.verify(&ask(number)).await.verdict == Verdict::Valid);
            }
            passed
        })
    };
    let tasks: Vec<_> = (0..8).map(|at| run(1 + at % 2)).collect();
    let mut passed = [0, 0];
    for (at, task) in tasks.into_iter().enumerate() {
        passed[at % 2] += task.await.unwrap();
    }
    assert_eq!(passed[0] + passed[1], 900);
    assert!(passed[0] <= 700);
    assert_eq!(node.balance("key_1"), 700 - passed[0]);
    assert_eq!(node.balance("key_2"), 10_000 - passed[1]);
    let filled = node.decider.purse().fill(&"key_2".into(), 10_000 - passed[1], NOW).await;
    assert!(matches!(filled.unwrap(), Filled::Held(_)));
}
