//! `kill -9` while credits are spent: what was answered is spent, what was not may be, and nothing else is lost.

use std::thread;
use std::time::Duration;

use serde_json::json;

use super::{api, code, create, get};
use crate::time::pause;
use crate::world::{Client, World};

const INITIAL: u64 = 100_000;
const CALLERS: usize = 4;

/// Verifies until the server is gone; hands back how many were answered.
fn spend_to_the_end(mut client: Client, key: &str) -> u64 {
    let body = json!({"key": key});
    let mut answered = 0;
    while let Ok(answer) = client.try_post("keys.verifyKey", &body) {
        assert_eq!(answer.json["data"]["code"], "VALID", "{}", answer.json);
        answered += 1;
    }
    answered
}

#[test]
fn a_kill_in_the_middle_of_spending_loses_no_credit_and_makes_none() {
    let mut world = World::new();
    let api = api(&mut world.client());
    let key = create(&mut world.client(), &api, json!({"credits": {"remaining": INITIAL}}));
    let mut before = INITIAL;
    for round in 0..5 {
        let answered: u64 = thread::scope(|scope| {
            let callers: Vec<_> = (0..CALLERS)
                .map(|_| {
                    let (client, key) = (world.client(), &key.text);
                    scope.spawn(move || spend_to_the_end(client, key))
                })
                .collect();
            pause(Duration::from_millis(150 + 37 * round));
            world.server.kill9().expect("it can be killed");
            callers.into_iter().map(|caller| caller.join().expect("it ends well")).sum()
        });
        world.start_again();
        let left = get(&mut world.client(), &key.id)["credits"]["remaining"].as_u64().unwrap();
        let spent = before - left;
        let unanswered = CALLERS as u64;
        assert!(answered > 0, "nothing happened in round {round}");
        assert!(
            (answered..=answered + unanswered).contains(&spent),
            "round {round}: {answered} answered, {spent} spent, {left} left"
        );
        before = left;
    }
    let body = json!({"keyId": key.id, "operation": "decrement", "value": before - 3});
    world.client().data("keys.updateCredits", &body);
    let mut client = world.client();
    let valid = (0..5).filter(|_| code(&mut client, &key.text) == "VALID").count();
    assert_eq!(valid, 3, "what is shown as left can be spent, and no more");
}
