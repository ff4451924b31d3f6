//! Plans drawn from a seed: any algorithm, any size, and any mix of faults that a promise must survive.

use tollkeeper_core::{Algorithm, Limit, Quota, Width, Window};
use tollkeeper_decide::{Consistency, OnOutage};

use super::{Dice, Faults, Plan, Traffic};

// === impl Plan ===

impl Plan {
    /// The plan of a number. Half of them are about a whole history and a fleet of strangers to each other; the
    /// others about history lost, nodes cut off, `fast`, and an origin whose clock steps.
    pub fn drawn(seed: u64) -> Self {
        let mut plan = Self::faulty(seed);
        let mut dice = Dice::new(seed ^ 0xd2a3);
        match seed % 8 {
            4 => plan.lose_history(&mut dice),
            5 => plan.cut_nodes(&mut dice),
            6 => plan.go_fast(&mut dice),
            7 => plan.step_clock(&mut dice),
            _ => {}
        }
        plan
    }

    /// Exact, with all that exactness survives.
    fn faulty(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let width = dice.pick(&[1_000, 1_000, 1_000, 1_000, 2_000, 2_000, 10_000]);
        let quota = dice.pick(&[1, 3, 10, 100, 100, 1_000, 10_000]);
        let first = limit(&mut dice, quota, width);
        let mut limits = vec![first];
        if dice.ppm(200_000) {
            limits.push(with_quota(&first, (quota / 2).max(1)));
        }
        let load = dice.pick(&[900, 1_000, 1_500, 2_000, 20_000]);
        let rate = (quota * load / width).clamp(2, 2_000);
        let costs = match dice.below(3) {
            0 => vec![1],
            1 => vec![3],
            _ => vec![1, 1, 1, (quota / 8).max(1)],
        };
        let often = |dice: &mut Dice, share| if dice.ppm(500_000) { share } else { 0 };
        // Things that befall nodes come a few times in a run, however many requests it has.
        let requests = rate * width * 5 / 1_000;
        let some = |dice: &mut Dice| often(dice, 3_000_000 / requests.max(1));
        let faults = Faults {
            lost_ppm: often(&mut dice, 50_000),
            repeated_ppm: often(&mut dice, 50_000),
            slow_ppm: often(&mut dice, 20_000),
            stalls_ppm: often(&mut dice, 300),
            kills_ppm: some(&mut dice),
            journal: dice.ppm(500_000),
            pauses_ppm: some(&mut dice),
            resets_ppm: some(&mut dice) / 2,
            skew_ms: often(&mut dice, 3_600_000),
            ..Faults::default()
        };
        // What a dead boot holds of a bucket is lent until it is written off.
        let dead = matches!(first.algorithm, Algorithm::TokenBucket { .. }) && faults.kills_ppm > 0;
        Self {
            seed,
            nodes: dice.pick(&[1, 2, 3, 5, 9]),
            cells: dice.pick(&[1, 1, 2, 8]),
            limits,
            consistency: Consistency::Exact,
            on_outage: OnOutage::Share,
            traffic: Traffic {
                rate,
                costs,
                skew_ppm: dice.pick(&[0, 0, 900_000]),
                bursts: dice.ppm(250_000),
                bundles_ppm: dice.pick(&[0, 0, 200_000]),
                peeks_ppm: dice.pick(&[0, 100_000]),
            },
            faults,
            duration_ms: (width * 7).min(20_000),
            recovery_ms: 2 * width + if dead { 12_000 } else { 2_000 },
            table: dice.pick(&[1_000, 1_000, 1]),
        }
    }

    /// All that have a history live and can be reached: else what they know is lost with it. So also one that
    /// has no room to remember.
    fn lose_history(&mut self, dice: &mut Dice) {
        let few = self.few(2);
        self.on_outage = dice.pick(&[OnOutage::Deny, OnOutage::Share]);
        self.table = 1_000;
        self.faults = Faults { kills_ppm: 0, pauses_ppm: 0, resets_ppm: 0, ..self.faults.clone() };
        (self.faults.wipes_ppm, self.faults.failovers_ppm) = dice.pick(&[(few, 0), (0, few)]);
    }

    fn cut_nodes(&mut self, dice: &mut Dice) {
        self.on_outage = dice.pick(&[OnOutage::Deny, OnOutage::Share, OnOutage::Allow]);
        self.faults.resets_ppm = 0;
        self.faults.cuts_ppm = self.few(4);
    }

    /// One limit and single cells: the bound is about one of them.
    fn go_fast(&mut self, dice: &mut Dice) {
        self.consistency = Consistency::Fast;
        self.limits.truncate(1);
        self.traffic.bundles_ppm = 0;
        self.table = 1_000;
        let kills_ppm = dice.pick(&[0, self.few(2)]);
        self.faults =
            Faults { kills_ppm, skew_ms: 0, resets_ppm: 0, journal: false, ..self.faults.clone() };
    }

    fn step_clock(&mut self, dice: &mut Dice) {
        self.lose_history(dice);
        self.on_outage = OnOutage::Deny;
        self.faults.step_ms = 2_000;
    }

    /// So many in the run, about.
    fn few(&self, number: u64) -> u64 {
        number * 1_000_000_000 / (self.traffic.rate * self.duration_ms).max(1)
    }
}

fn limit(dice: &mut Dice, quota: u64, width: u64) -> Limit {
    let (Some(quota), Some(width)) = (Quota::new(quota), Width::from_millis(width)) else {
        unreachable!("drawn from valid numbers")
    };
    let log = Limit::sliding_log(quota, width);
    match dice.below(4) {
        0 => Limit::fixed_window(quota, Window::Aligned(width)),
        1 => Limit::token_bucket(quota, width, None),
        2 => log.unwrap_or_else(|| Limit::sliding_window(quota, width)),
        _ => Limit::sliding_window(quota, width),
    }
}

fn with_quota(limit: &Limit, quota: u64) -> Limit {
    let Some(quota) = Quota::new(quota) else { return *limit };
    match limit.algorithm {
        Algorithm::TokenBucket { width, .. } => Limit::token_bucket(quota, width, None),
        _ => Limit { quota, ..*limit },
    }
}
