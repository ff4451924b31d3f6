//! Throughput with every key in memory and one limit each, beside a bare hyper server, round by round.

use std::path::Path;

use super::admin::Admin;
use crate::failure::Failure;
use crate::http::requests::{ROOT_KEY, Requests};
use crate::http::server::Server;
use crate::http::{APART, Contest, TOGETHER, cores, scratch};
use crate::report::{self, Target};

/// Enough that no cell is asked twice in a row, few enough to be made in a moment.
pub(super) const KEYS: usize = 1_000;

pub(super) fn run(tollkeeper: &Path) -> Result<(), Failure> {
    let scratch = scratch()?;
    let places = if cores() > 1 { APART } else { TOGETHER };
    let ours = Server::tollkeeper(tollkeeper, &scratch, places.server)?;
    let requests = Requests::verifications(&scratch, &keys(&ours)?)?;
    let contest = Contest {
        title: "`keys.verifyKey`, server on one core and load on the other",
        command: "verify throughput",
        bare: "bare-hyper-verify",
        threads: 1,
        places,
        target: Target::AtLeast(0.75),
    };
    contest.hold(&scratch, &ours, &requests)?;
    let bytes = requests.body_bytes;
    report::note(&format!("Bodies have {bytes} bytes, over {KEYS} keys with one limit each."));
    Ok(())
}

/// The texts of keys that this server has just made.
pub(super) fn keys(ours: &Server) -> Result<Vec<String>, Failure> {
    let mut admin = Admin::open(ours.address(), ROOT_KEY)?;
    let api = admin.api()?;
    Ok(admin.keys(&api, KEYS)?.into_iter().map(|key| key.text).collect())
}
