//! One limit check in process: Tollkeeper's cell table against governor's keyed limiter.

mod contest;
mod floor_side;
mod governor_side;
mod tollkeeper_side;

use std::time::Duration;

use crate::bystanders::Bystanders;
use crate::failure::Failure;
use crate::identifiers::{self, stream};
use crate::limits;
use crate::report::{self, Table, Target, whole};
use crate::rounds::{Spread, interleaved};

use contest::{Limiter, Share, contest};
use floor_side::Floor;
use governor_side::Governor;
pub(crate) use tollkeeper_side::CELLS_MAX;
use tollkeeper_side::{Time, Tollkeeper};

const ROUNDS: usize = 7;
/// Per thread and round: about a second of governor's time.
const REQUESTS: usize = 2_000_000;

/// Not a limiter: what the machine leaves to be won.
const FLOOR: &str = "(hash, and one line of memory)";

/// What is asked of every limiter in a row.
struct Scene {
    name: &'static str,
    threads: usize,
    streams: Vec<Vec<String>>,
    admitted: Share,
    target: Target,
}

pub(crate) fn run() -> Result<(), Failure> {
    let table = Table::new(
        "One limit check in process, 1,000,000 identifiers of 40 bytes",
        "decide",
        &[
            "requests",
            "threads",
            "limiter",
            "ns/check/thread",
            "governor ns",
            "× governor",
            "target",
        ],
    );
    let random = |threads: usize| (0..threads as u64).map(|seed| stream(seed, REQUESTS)).collect();
    let hot = |threads: usize| vec![vec![identifiers::identifier(1); REQUESTS]; threads];

    let bystanders = Bystanders::watch()?;
    let ample = Ample::warmed()?;
    let scenes = [
        Scene {
            name: "uniform",
            threads: 1,
            streams: random(1),
            admitted: Share::All,
            target: Target::AtLeast(2.0),
        },
        Scene {
            name: "uniform",
            threads: 2,
            streams: random(2),
            admitted: Share::All,
            target: Target::AtLeast(2.0),
        },
        Scene {
            name: "one hot key",
            threads: 2,
            streams: hot(2),
            admitted: Share::All,
            target: Target::AtLeast(1.0),
        },
    ];
    let mut drained = 0;
    for scene in &scenes {
        drained = ample.play(scene, &table)?;
    }
    drop(ample);
    let denied = Scene {
        name: "uniform, all denied",
        threads: 1,
        streams: random(1),
        admitted: Share::None,
        target: Target::AtLeast(2.0),
    };
    play_denied(&denied, &table)?;
    report::note(&format!(
        "Changed cells were taken from the table every 20 ms all the while, {drained} in all."
    ));
    report::note_bystanders(&bystanders)
}

/// Limiters that deny nothing, each holding all identifiers.
struct Ample {
    governor: Governor,
    sliding_window: Tollkeeper,
    token_bucket: Tollkeeper,
    clocked: Tollkeeper,
    floor: Floor,
}

// === impl Ample ===

impl Ample {
    fn warmed() -> Result<Self, Failure> {
        let ample = Self {
            governor: Governor::ample()?,
            sliding_window: Tollkeeper::new(limits::sliding_window()?, Time::HandedIn),
            token_bucket: Tollkeeper::new(limits::token_bucket()?, Time::HandedIn),
            clocked: Tollkeeper::new(limits::sliding_window()?, Time::Read),
            floor: Floor::new(limits::sliding_window()?),
        };
        let all = [identifiers::all()];
        for (_, side) in ample.sides() {
            contest(side, &all, Share::All)?;
        }
        Ok(ample)
    }

    fn sides(&self) -> [(&'static str, &dyn Limiter); 5] {
        [
            ("governor", &self.governor),
            ("sliding_window", &self.sliding_window),
            ("token_bucket", &self.token_bucket),
            ("sliding_window, clock read per check", &self.clocked),
            (FLOOR, &self.floor),
        ]
    }

    /// Returns how many changes the journal's side has taken so far.
    fn play(&self, scene: &Scene, table: &Table) -> Result<u64, Failure> {
        play(&self.sides(), scene, table)?;
        Ok([&self.sliding_window, &self.token_bucket, &self.clocked]
            .map(Tollkeeper::drained)
            .iter()
            .sum())
    }
}

fn play_denied(scene: &Scene, table: &Table) -> Result<(), Failure> {
    let governor = Governor::once()?;
    let ours = Tollkeeper::new(limits::once()?, Time::HandedIn);
    let sides: [(&str, &dyn Limiter); 2] = [("governor", &governor), ("sliding_window", &ours)];
    let all = [identifiers::all()];
    for (_, side) in sides {
        contest(side, &all, Share::All)?;
    }
    play(&sides, scene, table)
}

/// The first side is what the others are compared with.
fn play(sides: &[(&str, &dyn Limiter)], scene: &Scene, table: &Table) -> Result<(), Failure> {
    let per_check = |took: Duration| took.as_secs_f64() * 1e9 / REQUESTS as f64;
    let figures = interleaved(ROUNDS, sides, |(_, side)| {
        contest(*side, &scene.streams, scene.admitted).map(per_check)
    })?;
    let Some((theirs, ours)) = figures.split_first() else { return Ok(()) };
    for ((name, _), figures) in sides.iter().skip(1).zip(ours) {
        let times = Spread::of_ratios(theirs, figures);
        table.row(&[
            scene.name.into(),
            scene.threads.to_string(),
            (*name).into(),
            whole(Spread::of(figures.iter().copied())),
            whole(Spread::of(theirs.iter().copied())),
            report::ratio(times),
            if *name == FLOOR { Target::None } else { scene.target }.verdict(times.median),
        ]);
    }
    Ok(())
}
