//! Answers remembered for a second try: the first counts, for a while, for one caller and one route.

use tollkeeper_core::Millis;
use tollkeeper_store::{CallName, Remembered};

use crate::{Fresh, NOW};

on_both! {
    the_first_answer_is_remembered_until_it_is_too_old,
    one_callers_answers_are_nobody_elses,
}

const CALL: CallName<'_> = CallName { root_key_id: "rk_1", route: "keys.createKey", key: "k" };

fn answer(byte: u8, at: Millis) -> Remembered {
    Remembered { body_hash: [byte; 32], answer: vec![byte, 0, 255], at }
}

async fn the_first_answer_is_remembered_until_it_is_too_old(fresh: Fresh) {
    let store = &fresh.store;
    assert_eq!(store.remembered(CALL, Millis(0)).await.unwrap(), None);
    assert!(store.remember(CALL, &answer(1, NOW), Millis(0)).await.unwrap());
    assert!(!store.remember(CALL, &answer(2, NOW), Millis(0)).await.unwrap());
    assert_eq!(store.remembered(CALL, NOW).await.unwrap(), Some(answer(1, NOW)));
    let later = Millis(NOW.0 + 1);
    assert_eq!(store.remembered(CALL, later).await.unwrap(), None);
    assert!(store.remember(CALL, &answer(3, later), later).await.unwrap());
    assert_eq!(store.remembered(CALL, NOW).await.unwrap(), Some(answer(3, later)));
    assert_eq!(store.forget_answers(later).await.unwrap(), 0);
    assert_eq!(store.forget_answers(Millis(later.0 + 1)).await.unwrap(), 1);
    assert_eq!(store.remembered(CALL, Millis(0)).await.unwrap(), None);
}

async fn one_callers_answers_are_nobody_elses(fresh: Fresh) {
    fresh.store.remember(CALL, &answer(1, NOW), Millis(0)).await.unwrap();
    for other in [
        CallName { root_key_id: "rk_2", ..CALL },
        CallName { route: "keys.deleteKey", ..CALL },
        CallName { key: "K", ..CALL },
    ] {
        assert_eq!(fresh.store.remembered(other, Millis(0)).await.unwrap(), None);
        assert!(fresh.store.remember(other, &answer(2, NOW), Millis(0)).await.unwrap());
    }
}
