//! What is left of a limit is in the lease of another node, and somebody asks for all of it in one piece.

use super::{Asked, Fleet, PATIENT, body, one};
use crate::time::eventually;
use crate::world::LONG_MS;

#[test]
fn all_that_is_left_is_had_in_one_piece_wherever_it_is() {
    const LIMIT: u64 = 200;
    let fleet = Fleet::with(2, &[PATIENT]);
    let mut clients = fleet.clients();
    let mut first_tries = 0;
    for algorithm in ["fixed_window", "sliding_window"] {
        for spent in [30, 37, 44, 51, 58] {
            let name = format!("{algorithm} {spent}");
            let small = Asked { body: body(&name, LIMIT, LONG_MS, algorithm), cost: 1 };
            for _ in 0..spent {
                assert!(one(&mut clients[0], &small).admitted);
            }
            let rest = Asked { cost: LIMIT - spent, ..small.clone() };
            // The holder has three milliseconds to give back. Where a busy machine does not let it, it is there a moment later.
            let mut tries = 0;
            eventually(&name, || {
                tries += 1;
                let seen = one(&mut clients[1], &rest);
                seen.admitted && !seen.degraded
            });
            first_tries += u32::from(tries == 1);
            assert!(!one(&mut clients[0], &small).admitted, "{name}: and nothing is left");
        }
    }
    assert!(first_tries >= 5, "{first_tries} of ten were had at once");
}
