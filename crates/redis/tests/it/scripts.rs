//! The scripts on a real server, held reply by reply against the pure functions that they mirror.
//! Time is given to them: what is decided here never depends on how fast this machine is.

mod dice;
mod epoch;
mod fake_time;
mod members;
mod record;
mod twin;
mod world;

const TAKE: &str = concat!(
    include_str!("../../src/scripts/unfold.lua"),
    include_str!("../../src/scripts/take.lua")
);
const RESET: &str = concat!(
    include_str!("../../src/scripts/unfold.lua"),
    include_str!("../../src/scripts/reset.lua")
);
const EPOCH: &str = include_str!("../../src/scripts/epoch.lua");
const MEMBERS: &str = include_str!("../../src/scripts/members.lua");

/// What the loader puts in front: the life of the server process that the text belongs to.
const RUN: &str = "0123456789abcdef0123456789abcdef01234567";
