//! Requests of keys with a signing secret: a signature counts once, and what is refused for it charges nothing.

use tollkeeper_core::{
    Millis, SIGNATURE_MEMORY_MS, SealedSecret, Signature, Unsigned, Use, Verdict,
};
use tollkeeper_decide::{Purpose, VerifyAsk};

use crate::keys::{NOW, Node, ask, auto, limits_of, node};

#[derive(Debug)]
struct Signed {
    made_at: Millis,
    value: &'static str,
}

impl Signature for Signed {
    fn made_at(&self) -> Millis {
        self.made_at
    }

    fn fits(&self, _: &str, secret: &SealedSecret) -> bool {
        secret.bytes() == b"secret" && self.value != "wrong"
    }

    fn value(&self) -> &str {
        self.value
    }
}

const FIRST: Signed = Signed { made_at: NOW, value: "first" };
const SECOND: Signed = Signed { made_at: NOW, value: "second" };
const WRONG: Signed = Signed { made_at: NOW, value: "wrong" };

fn signed(signature: &Signed) -> VerifyAsk<'_> {
    VerifyAsk { wanted: Use { signature: Some(signature), ..Use::default() }, ..ask(1) }
}

fn node_with_a_signing_key() -> Node {
    let node = node();
    node.add_paid(1, 100, |record| {
        record.limits = vec![auto("requests", 3)];
        record.signing = Some(SealedSecret::new(*b"secret"));
    });
    node
}

#[tokio::test]
async fn a_signature_counts_once_and_its_repetition_charges_nothing() {
    let node = node_with_a_signing_key();
    let first = node.verify(&signed(&FIRST)).await;
    assert_eq!(first.verdict, Verdict::Valid);
    assert_eq!(limits_of(&first), [("requests", 3, 2, true)]);
    for _ in 0..3 {
        let again = node.verify(&signed(&FIRST)).await;
        assert_eq!(again.verdict, Verdict::Unsigned(Unsigned::Repeated));
        assert!(again.limits.is_empty() && again.rule.is_none());
        assert_eq!((again.credits_spent, again.retry_after_ms(NOW)), (0, None));
    }
    let second = node.verify(&signed(&SECOND)).await;
    assert_eq!(limits_of(&second), [("requests", 3, 1, true)]);
    assert_eq!(second.credits.unwrap().balance, 98);
}

#[tokio::test]
async fn a_request_without_a_good_signature_leaves_no_counter_behind() {
    let node = node_with_a_signing_key();
    let stale = Signed { made_at: Millis(NOW.0 - SIGNATURE_MEMORY_MS), value: "first" };
    for (asked, why) in [
        (ask(1), Unsigned::Absent),
        (signed(&WRONG), Unsigned::Wrong),
        (signed(&stale), Unsigned::OutOfTime),
    ] {
        assert_eq!(node.verify(&asked).await.verdict, Verdict::Unsigned(why));
    }
    assert_eq!((node.bank.leases(), node.decider.cells().stats().live), (0, 0));
}

#[tokio::test]
async fn a_signature_is_not_used_up_by_a_look_or_by_a_request_that_a_limit_refuses() {
    let node = node_with_a_signing_key();
    let look = || VerifyAsk { purpose: Purpose::Look, ..signed(&FIRST) };
    assert_eq!(node.verify(&look()).await.verdict, Verdict::Valid);
    assert_eq!(node.verify(&signed(&FIRST)).await.verdict, Verdict::Valid);
    let seen = node.verify(&look()).await;
    assert_eq!(seen.verdict, Verdict::Unsigned(Unsigned::Repeated));
    for value in ["a", "b"] {
        let one = Signed { made_at: NOW, value };
        assert_eq!(node.verify(&signed(&one)).await.verdict, Verdict::Valid);
    }
    for _ in 0..2 {
        assert_eq!(node.verify(&signed(&SECOND)).await.verdict, Verdict::RateLimited);
    }
}

#[tokio::test]
async fn a_key_without_a_secret_counts_no_signatures() {
    let node = node();
    node.add(1, |_| ());
    for signature in [&FIRST, &FIRST, &WRONG] {
        assert_eq!(node.verify(&signed(signature)).await.verdict, Verdict::Valid);
    }
    assert_eq!(node.decider.cells().stats().live, 0);
}
