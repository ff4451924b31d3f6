//! `take.lua` and `reset.lua` against `Record`: over all algorithms, whatever happens, both answer the same.

use super::fake_time::{FakeTime, number, replaced};
use super::world::{Expected, Kind, Scripts, World, heard};
use super::{RESET, TAKE};

/// Operations of one world: enough for windows, leases and whole fleets to come and go.
const STEPS: usize = 400;
const BATCH: usize = 200;

/// Worlds per algorithm. 4 · 65 · 400 are above 100,000 operations. More come with `TOLLKEEPER_WORLDS`.
const WORLDS: u64 = 65;

#[test]
fn fixed_windows_are_taken_from_in_redis_as_in_the_pure_record() {
    hold_against_each_other(Kind::Fixed);
}

#[test]
fn sliding_windows_are_taken_from_in_redis_as_in_the_pure_record() {
    hold_against_each_other(Kind::Sliding);
}

#[test]
fn buckets_are_taken_from_in_redis_as_in_the_pure_record() {
    hold_against_each_other(Kind::Bucket);
}

#[test]
fn logs_are_taken_from_in_redis_as_in_the_pure_record() {
    hold_against_each_other(Kind::Log);
}

#[test]
fn logs_that_have_an_index_from_the_first_moments_on_are_taken_from_alike() {
    const INDEX: &str = "local INDEX_MIN, SPAN_MAX = 64, 256";
    for least in ["1, 256", "3, 256", "6, 20"] {
        let take = replaced(TAKE, INDEX, &format!("local INDEX_MIN, SPAN_MAX = {least}"));
        hold_script_against_record(&take, Kind::Log);
    }
}

fn hold_against_each_other(kind: Kind) {
    hold_script_against_record(TAKE, kind);
}

fn hold_script_against_record(take: &str, kind: Kind) {
    let mut redis = FakeTime::start();
    let scripts = Scripts { take: redis.load_expiring(take), reset: redis.load_ending(RESET) };
    let mut seen = Seen::default();
    for seed in seeds() {
        let mut world = World::new(&scripts, kind, seed);
        for batch in 0..STEPS / BATCH {
            let (commands, expected): (Vec<_>, Vec<_>) = (0..BATCH).map(|_| world.step()).unzip();
            let replies = redis.ask_all(&commands);
            for (at, (reply, expected)) in replies.iter().zip(&expected).enumerate() {
                let step = batch * BATCH + at;
                match expected {
                    Expected::Taken { call, taken } => {
                        let said = heard(reply, call);
                        seen.note(taken);
                        assert!(
                            said == **taken,
                            "seed {seed} step {step}: {call:?}\nRedis {said:?}\n pure {taken:?}\n{}",
                            world.told()
                        );
                    }
                    Expected::Number(expected) => {
                        assert_eq!(number(reply), *expected, "seed {seed} step {step}");
                    }
                    Expected::Anything => {}
                }
            }
        }
    }
    seen.assert_varied(kind);
}

/// One seed, or many: a failure is brought back by `TOLLKEEPER_SEED`.
fn seeds() -> impl Iterator<Item = u64> {
    #[allow(clippy::disallowed_methods, reason = "how a failure is brought back, not a setting")]
    let set = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    let worlds = set("TOLLKEEPER_WORLDS").unwrap_or(WORLDS);
    let first = set("TOLLKEEPER_SEED");
    let (first, count) = first.map_or((0, worlds), |seed| (seed, 1));
    first..first + count
}

/// That the sequences reached what they are about.
#[derive(Debug, Default)]
struct Seen {
    calls: u64,
    took: u64,
    lent: u64,
    later: u64,
    more: u64,
    learning: u64,
    elsewhere: u64,
    recall: u64,
    made: u64,
    ahead: u64,
}

// === impl Seen ===

impl Seen {
    fn note(&mut self, taken: &tollkeeper_core::Taken) {
        use tollkeeper_core::Stand;
        self.calls += 1;
        self.took += u64::from(taken.took);
        self.lent += u64::from(taken.lent > 0);
        self.later += u64::from(taken.later > 0);
        self.more += u64::from(taken.more > 0);
        self.learning += u64::from(taken.stand == Stand::Learning);
        self.elsewhere += u64::from(taken.stand == Stand::WrongWindow);
        self.recall += u64::from(taken.recall);
        self.made += u64::from(taken.made);
        self.ahead += u64::from(taken.lent > 0 && taken.now.0 < taken.win);
    }

    fn assert_varied(&self, kind: Kind) {
        if self.calls < 10_000 {
            return;
        }
        eprintln!("{kind:?}: {self:?}");
        let flows = matches!(kind, Kind::Sliding | Kind::Bucket);
        let each = [self.took, self.lent, self.learning, self.recall, self.made];
        assert!(each.iter().all(|times| *times > self.calls / 200), "{kind:?}: {self:?}");
        assert!(!flows || self.later > self.calls / 200, "{kind:?}: {self:?}");
        assert!(kind != Kind::Log || self.more > self.calls / 200, "{kind:?}: {self:?}");
        assert!(kind != Kind::Fixed || self.ahead > self.calls / 200, "{kind:?}: {self:?}");
        assert!(kind != Kind::Fixed || self.elsewhere > self.calls / 50, "{kind:?}: {self:?}");
    }
}
