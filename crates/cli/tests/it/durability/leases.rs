//! Leases of a node that was killed: its next life gives back what it had surely not spent, and only where its journal is
//! surely the last word. No limit is ever passed.

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use tollkeeper_testkit::{RedisServer, Tollkeeper};

use crate::fleet::{Asked, PATIENT, Tally, body, heard, one};
use crate::time::{eventually, pause};
use crate::world::{ALGORITHMS, Client, LONG_MS, copy, side_by_side, start};

const LIMIT: u64 = 1_000;

/// Two nodes on one Redis: one that is killed, and one that wants what is left.
struct Pair {
    redis: RedisServer,
    url: String,
    mortal: Tollkeeper,
    folder: TempDir,
    other: Tollkeeper,
    _other_folder: TempDir,
    /// Spent by nobody, and perhaps counted.
    unheard: Cell<u64>,
}

impl Pair {
    fn new() -> Self {
        let redis = RedisServer::start().expect("a Redis");
        let url = redis.url();
        let (folder, other_folder) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let mortal = node(folder.path(), &url);
        let other = node(other_folder.path(), &url);
        let unheard = Cell::new(0);
        Self { redis, url, mortal, folder, other, _other_folder: other_folder, unheard }
    }

    /// So many units, by the node that is to die.
    fn spend(&self, algorithm: &str, times: u64) -> u64 {
        let mut client = Client::new(self.mortal.url(), self.mortal.root_key());
        let mut tally = Tally::default();
        tally.spend(&mut client, &asked(algorithm), times);
        self.unheard.set(self.unheard.get() + tally.unheard);
        tally.got
    }

    /// Long enough after the last request that no call is under way; much shorter than any lease lives.
    fn kill(&mut self) {
        pause(Duration::from_millis(60));
        self.mortal.kill9().expect("it can be killed");
    }

    fn start_in(&mut self, folder: &Path) {
        self.mortal = node(folder, &self.url);
    }

    /// All that the other node can get.
    fn drain(&self, algorithm: &str) -> u64 {
        let mut client = Client::new(self.other.url(), self.other.root_key());
        let mut tally = Tally::default();
        eventually("there is no more to be had", || {
            let before = tally.unheard;
            while tally.ask(&mut client, &asked(algorithm)) {}
            tally.unheard == before
        });
        self.unheard.set(self.unheard.get() + tally.unheard);
        tally.got
    }

    /// Lent to anybody and not known to be spent.
    fn outstanding(&self, algorithm: &str) -> u64 {
        self.field(algorithm, "o")
    }

    /// Spent by anybody or lent.
    fn counted(&self, algorithm: &str) -> u64 {
        self.field(algorithm, "g")
    }

    fn field(&self, algorithm: &str, name: &str) -> u64 {
        let short = match algorithm {
            "fixed_window" => ":fw:",
            "sliding_window" => ":sw",
            "token_bucket" => ":tb",
            _ => ":sl",
        };
        let keys = self.redis.ask(&["KEYS", "rl:*"]);
        let key = keys.lines().find(|key| key.contains(short)).expect("a record");
        self.redis.ask(&["HGET", key, name]).parse().unwrap_or(0)
    }
}

fn node(folder: &Path, url: &str) -> Tollkeeper {
    start(folder, &[("TOLLKEEPER_REDIS_URL", url), PATIENT]).expect("the node starts")
}

fn asked(algorithm: &str) -> Asked {
    Asked { body: body("mortal", LIMIT, LONG_MS, algorithm), cost: 1 }
}

#[test]
fn what_a_killed_node_had_not_spent_comes_back_with_its_next_life() {
    const LIVES: u64 = 3;
    let mut pair = Pair::new();
    let (mut spent, mut held) = ([0; 4], [0; 4]);
    for _ in 0..LIVES {
        for (number, algorithm) in ALGORITHMS.into_iter().enumerate() {
            spent[number] += pair.spend(algorithm, 100);
        }
        pair.kill();
        for (number, algorithm) in ALGORITHMS.into_iter().enumerate() {
            held[number] += pair.outstanding(algorithm);
        }
        let folder = pair.folder.path().to_owned();
        pair.start_in(&folder);
        eventually("it gave everything back", || {
            ALGORITHMS.iter().all(|algorithm| pair.outstanding(algorithm) == 0)
        });
    }
    for (number, algorithm) in ALGORITHMS.into_iter().enumerate() {
        assert_eq!(spent[number], 100 * LIVES, "{algorithm}");
        let total = spent[number] + pair.drain(algorithm);
        assert!(total <= LIMIT, "{algorithm}: {total}");
        // An eighth of each last lease counts as spent, and none was larger than what its node had spent.
        let eighths = LIVES * 100_u64.div_ceil(8);
        let lost = eighths + pair.unheard.get();
        assert!(total + lost >= LIMIT, "{algorithm}: {total} and {lost}");
        // Else this would say nothing.
        assert!(algorithm == "sliding_log" || held[number] > eighths, "{algorithm}: {held:?}");
    }
}

#[test]
fn a_copy_of_the_data_directory_gives_nothing_back() {
    let mut pair = Pair::new();
    let spent = pair.spend("fixed_window", 300);
    pair.kill();
    let counted = pair.counted("fixed_window");
    assert!(counted > spent + 300 / 8, "too little was in hand");
    let clone = tempfile::tempdir().expect("a folder");
    copy(pair.folder.path(), clone.path());
    pair.start_in(clone.path());
    assert!(pair.mortal.stderr().contains("is a copy"), "{}", pair.mortal.stderr());
    let (before, rest) = (pair.unheard.get(), pair.drain("fixed_window"));
    let known = rest + counted..=rest + counted + pair.unheard.get() - before;
    assert!(known.contains(&LIMIT), "{known:?}");
    // The original still can, and does.
    let folder = pair.folder.path().to_owned();
    pair.start_in(&folder);
    eventually("it gave everything back", || pair.outstanding("fixed_window") == 0);
    let mut total = rest + spent;
    eventually("others can spend it", || {
        total += pair.drain("fixed_window");
        total + 300_u64.div_ceil(8) + pair.unheard.get() >= LIMIT
    });
    assert!(total <= LIMIT, "{total}");
}

#[test]
fn a_lost_data_directory_gives_nothing_back() {
    let mut pair = Pair::new();
    let spent = pair.spend("fixed_window", 300);
    pair.kill();
    let counted = pair.counted("fixed_window");
    assert!(counted > spent, "no lease was in hand");
    let empty = tempfile::tempdir().expect("a folder");
    pair.start_in(empty.path());
    let (before, rest) = (pair.unheard.get(), pair.drain("fixed_window"));
    let known = rest + counted..=rest + counted + pair.unheard.get() - before;
    assert!(known.contains(&LIMIT), "{known:?}");
}

#[test]
fn a_redis_that_is_away_is_told_when_it_is_back() {
    let mut pair = Pair::new();
    let spent = pair.spend("sliding_window", 300);
    pair.kill();
    assert!(pair.outstanding("sliding_window") > 0, "no lease was in hand");
    pair.redis.pause();
    let folder = pair.folder.path().to_owned();
    pair.start_in(&folder);
    pair.redis.resume();
    eventually("it gave everything back", || pair.outstanding("sliding_window") == 0);
    let total = spent + pair.drain("sliding_window");
    let lost = 300_u64.div_ceil(8) + pair.unheard.get();
    assert!(total <= LIMIT && total + lost >= LIMIT, "{total} and {lost}");
}

#[test]
fn an_orderly_end_gives_back_all_of_it_also_where_redis_does_not_hear_it() {
    let mut pair = Pair::new();
    let spent = pair.spend("fixed_window", 100);
    assert!(pair.mortal.terminate().expect("it ends").success());
    let all_is_known = |pair: &Pair, spent| {
        let counted = spent..=spent + pair.unheard.get();
        pair.outstanding("fixed_window") == 0 && counted.contains(&pair.counted("fixed_window"))
    };
    assert!(all_is_known(&pair, spent), "{spent}, {}", pair.counted("fixed_window"));
    let folder = pair.folder.path().to_owned();
    pair.start_in(&folder);
    let spent = spent + pair.spend("fixed_window", 100);
    pair.redis.pause();
    assert!(pair.mortal.terminate().expect("it ends").success());
    pair.redis.resume();
    pair.start_in(&folder);
    eventually("all is given back, and what was spent is known", || all_is_known(&pair, spent));
}

#[test]
fn kills_in_the_middle_of_traffic_pass_no_limit() {
    const WIDE: u64 = 20_000;
    let mut pair = Pair::new();
    let asked = Asked { body: body("busy", WIDE, LONG_MS, "fixed_window"), cost: 1 };
    let mut admitted = 0;
    for round in 0..4 {
        let (mortal, other) = (pair.mortal.url().to_owned(), pair.other.url().to_owned());
        let root_key = pair.other.root_key().to_owned();
        let pid = pair.mortal.pid();
        let seen = side_by_side(5, |thread| {
            if thread == 4 {
                pause(Duration::from_millis(200 + 33 * round));
                let killed =
                    std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
                assert!(killed.expect("a kill").success());
                return 0;
            }
            if thread == 3 {
                let mut client = Client::new(&other, &root_key);
                return (0..300).filter(|_| one(&mut client, &asked).admitted).count();
            }
            let mut client = Client::new(&mortal, &root_key);
            let mut ask = asked.body.clone();
            ask["cost"] = serde_json::json!(1);
            let mut got = 0;
            while let Ok(answer) = client.try_post("ratelimit.limit", &ask) {
                got += usize::from(answer.json["data"]["success"] == true);
            }
            got
        });
        admitted += seen.into_iter().sum::<usize>() as u64;
        let _ = pair.mortal.kill9();
        let folder = pair.folder.path().to_owned();
        pair.start_in(&folder);
    }
    let mut client = Client::new(pair.other.url(), pair.other.root_key());
    let mut wide = asked.clone();
    // In larger pieces, down to single units.
    for cost in [50, 5, 1] {
        wide.cost = cost;
        wide.body["cost"] = serde_json::json!(cost);
        admitted +=
            cost * (0..WIDE).take_while(|_| heard(&mut client, &wide).admitted).count() as u64;
    }
    assert!(admitted <= WIDE, "{admitted}");
    // What was under way at each kill is lost, and a part of each last lease.
    assert!(admitted >= WIDE * 7 / 10, "{admitted}");
}
