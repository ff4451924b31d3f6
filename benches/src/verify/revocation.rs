//! How long a revoked key goes on being valid somewhere: three nodes on one PostgreSQL, with its notifications and
//! without them.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;
use tollkeeper_testkit::{Database, Postgres, Tollkeeper};

use super::admin::{self, Admin, Key};
use crate::clock::{Stopwatch, pause};
use crate::failure::Failure;
use crate::identifiers::Walk;
use crate::report::{Table, Target};

const NODES: usize = 3;
const TRIALS: usize = 200;
/// Between two asks about the key on one node.
const BEAT: Duration = Duration::from_millis(1);
/// Nodes look for changes once a second; the revocation must not always come at the same moment of it.
const STAGGER_MS: u64 = 1_000;
/// Once refused, a key stays refused: so many more asks must agree.
const ASSURED: usize = 3;
const COLUMNS: [&str; 7] = [
    "notifications",
    "key on the nodes",
    "trials",
    "from the answer: p50 / p99 / max ms",
    "from the request: p50 / p99 / max ms",
    "p99",
    "max",
];

struct Fleet {
    postgres: Postgres,
    database: Database,
    nodes: Vec<(Tollkeeper, TempDir)>,
}

/// Moments since the trial began.
#[derive(Debug, Default)]
struct Revoked {
    asked: OnceLock<Duration>,
    answered: OnceLock<Duration>,
    failed: AtomicBool,
}

/// What the nodes did with the key while it was revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Verified on every node all the time.
    Hot,
    /// In every node's memory, and asked for again only after the revocation was answered.
    Idle,
}

pub(super) fn run(tollkeeper: &Path) -> Result<(), Failure> {
    let fleet = Fleet::start(tollkeeper)?;
    let title = format!("Revocation over {NODES} nodes on one PostgreSQL");
    let table = Table::new(&title, "verify revocation", &COLUMNS);
    let (first, second) = (fleet.keys()?, fleet.keys()?);
    let heard = fleet.trials(&first)?;
    row(&table, "heard", &heard, (Target::AtMost(1_000.0), Target::None));
    let stopped = fleet.cut()?;
    let unheard = fleet.trials(&second)?;
    // A process that is stopped could not be ended in order.
    for listener in stopped {
        let _ = kill_process(listener, Signal::CONT);
    }
    row(&table, "cut", &unheard, (Target::None, Target::AtMost(2_000.0)));
    Ok(())
}

/// Hot and idle apart, each trial with its two durations.
type Trials = Vec<(Use, Duration, Duration)>;

fn row(table: &Table, notifications: &str, trials: &Trials, targets: (Target, Target)) {
    for used in [Use::Hot, Use::Idle] {
        let of = |pick: fn(&(Use, Duration, Duration)) -> Duration| {
            let mut all: Vec<f64> = trials
                .iter()
                .filter(|trial| trial.0 == used)
                .map(|trial| pick(trial).as_secs_f64() * 1e3)
                .collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let (answer, request) = (of(|trial| trial.1), of(|trial| trial.2));
        let (p99, max) = (at(&answer, 0.99), at(&answer, 1.0));
        table.row(&[
            notifications.into(),
            if used == Use::Hot { "hot" } else { "idle" }.into(),
            answer.len().to_string(),
            shown(&answer),
            shown(&request),
            targets.0.verdict(p99),
            targets.1.verdict(max),
        ]);
    }
}

fn shown(sorted: &[f64]) -> String {
    format!("{:.0} / {:.0} / {:.0}", at(sorted, 0.5), at(sorted, 0.99), at(sorted, 1.0))
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank among a few hundred"
)]
fn at(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

// === impl Fleet ===

impl Fleet {
    fn start(tollkeeper: &Path) -> Result<Self, Failure> {
        let postgres = Postgres::start().map_err(admin::postgres)?;
        let database = postgres.database().map_err(admin::postgres)?;
        let nodes = (0..NODES).map(|_| node(tollkeeper, &database));
        Ok(Self { nodes: nodes.collect::<Result<_, _>>()?, postgres, database })
    }

    fn admin(&self, node: usize) -> Result<Admin, Failure> {
        let (node, _) = &self.nodes[node % NODES];
        Admin::open(node.url(), node.root_key())
    }

    /// No node hears of a change any more, and none notices that it does not: the processes that would tell them stand
    /// still. Ending them would be milder, because whoever listens anew also looks.
    fn cut(&self) -> Result<Vec<Pid>, Failure> {
        const LISTENERS: &str = "SELECT pid FROM pg_stat_activity
            WHERE datname = current_database() AND query ILIKE 'LISTEN %'";
        let said = self.postgres.ask(&self.database.name, LISTENERS).map_err(admin::postgres)?;
        let pids = said.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?));
        let pids: Vec<Pid> = pids.collect();
        if pids.len() != NODES {
            return Err(Failure::unreadable("the list of listeners", said));
        }
        for pid in &pids {
            let stopped = kill_process(*pid, Signal::STOP);
            stopped.map_err(|error| Failure::io("a listener")(error.into()))?;
        }
        Ok(pids)
    }

    /// Made beforehand: without notifications each would take up to a second.
    fn keys(&self) -> Result<Vec<Key>, Failure> {
        let mut admin = self.admin(0)?;
        let api = admin.api()?;
        admin.keys(&api, TRIALS)
    }

    fn trials(&self, keys: &[Key]) -> Result<Trials, Failure> {
        let walk = Walk::from(7).map(|number| Duration::from_millis(number % STAGGER_MS));
        let mut trials = Trials::new();
        for ((trial, key), stagger) in keys.iter().enumerate().zip(walk) {
            let used = if trial % 2 == 0 { Use::Hot } else { Use::Idle };
            pause(stagger);
            trials.push(self.trial(trial, used, key)?);
        }
        Ok(trials)
    }

    fn trial(
        &self,
        trial: usize,
        used: Use,
        key: &Key,
    ) -> Result<(Use, Duration, Duration), Failure> {
        let (watch, revoked) = (Stopwatch::start(), Revoked::default());
        for node in 0..NODES {
            let code = self.admin(node)?.code(&key.text)?;
            if code != "VALID" {
                return Err(Failure::Invalid(format!("a new key is {code}")));
            }
        }
        let refused = thread::scope(|scope| {
            let (revoked, text) = (&revoked, key.text.as_str());
            let watching: Vec<_> = (0..NODES)
                .map(|node| scope.spawn(move || self.refused_at(node, used, text, revoked, watch)))
                .collect();
            // The watchers are under way.
            pause(20 * BEAT);
            let _ = revoked.asked.set(watch.elapsed());
            let done = self.revoke(trial, key);
            // Set in any case: a watcher that is not told would wait for ever.
            let _ = revoked.answered.set(watch.elapsed());
            if done.is_err() {
                revoked.failed.store(true, Ordering::Relaxed);
            }
            done?;
            let mut last = Duration::ZERO;
            for one in watching {
                let ended = || Failure::Invalid("a watcher ended early".into());
                last = last.max(one.join().map_err(|_| ended())??);
            }
            Ok::<_, Failure>(last)
        })?;
        let since = |moment: &OnceLock<Duration>| {
            refused.saturating_sub(moment.get().copied().unwrap_or_default())
        };
        Ok((used, since(&revoked.answered), since(&revoked.asked)))
    }

    fn revoke(&self, trial: usize, key: &Key) -> Result<(), Failure> {
        let done = self.admin(trial)?.data("keys.revoke", &json!({"keyId": key.id}));
        done.map(drop).map_err(|failure| {
            let (node, _) = &self.nodes[trial % NODES];
            Failure::Child { what: failure.to_string(), said: node.stderr() }
        })
    }

    /// When this node first refused the key.
    fn refused_at(
        &self,
        node: usize,
        used: Use,
        key: &str,
        revoked: &Revoked,
        watch: Stopwatch,
    ) -> Result<Duration, Failure> {
        let mut admin = self.admin(node)?;
        while used == Use::Idle && revoked.answered.get().is_none() {
            pause(BEAT);
        }
        while admin.code(key)? == "VALID" && !revoked.failed.load(Ordering::Relaxed) {
            pause(BEAT);
        }
        let refused = watch.elapsed();
        for _ in 0..ASSURED {
            if admin.code(key)? != "REVOKED" {
                return Err(Failure::Invalid("a revoked key came back".into()));
            }
        }
        Ok(refused)
    }
}

/// One node of its own folder on a shared database.
pub(super) fn node(
    tollkeeper: &Path,
    database: &Database,
) -> Result<(Tollkeeper, TempDir), Failure> {
    let folder = tempfile::tempdir().map_err(Failure::io("a folder"))?;
    Ok((start(tollkeeper, database, folder.path())?, folder))
}

pub(super) fn start(
    tollkeeper: &Path,
    database: &Database,
    folder: &Path,
) -> Result<Tollkeeper, Failure> {
    let env = [
        ("TOLLKEEPER_DATABASE_URL", database.url.as_str()),
        ("TOLLKEEPER_SECRET", "one secret for all nodes of a database"),
        ("TOLLKEEPER_ADMIN_WRITES_PER_SECOND", "1000000"),
        ("TOLLKEEPER_LOG", "error"),
    ];
    Tollkeeper::start(&tollkeeper.to_string_lossy(), folder, &env).map_err(admin::unstarted)
}
