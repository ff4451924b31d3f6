//! One cell and the nodes that share it, by chance: what they say, in which order it arrives, and what Redis loses.
//! Every operation is done to the pure record first; what Redis must answer comes with it.

use std::collections::BTreeMap;

use redis::{Cmd, Value, cmd};
use tollkeeper_core::{
    AHEAD_MS, AMOUNT_MAX, Algorithm, Boot, FixedWindow, Limit, Micros, Millis, Quota, Record,
    SlidingWindow, Stand, State, Take, Taken, TokenBucket, Totals, WIDTH_MS_MAX, Width, Window,
    first_log_moment, log_copy,
};

use super::RUN;
use super::dice::Dice;
use super::fake_time::{Digest, number};

/// As far as the clock goes: microseconds are below 2^53 until the year 2255, and the widest window ends before that.
const LATEST: u64 = 8_000_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Fixed,
    Sliding,
    Bucket,
    Log,
}

/// What is compared with the answer of Redis.
#[derive(Debug)]
pub(super) enum Expected {
    Taken { call: Take, taken: Box<Taken> },
    Number(i64),
    Anything,
}

#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) take: Digest,
    pub(super) reset: Digest,
}

#[derive(Debug)]
pub(super) struct World<'a> {
    scripts: &'a Scripts,
    name: String,
    dice: Dice,
    kind: Kind,
    limits: Vec<Limit>,
    fleet: Vec<u64>,
    nodes: Vec<Node>,
    now: u64,
    /// The microseconds of that.
    part_us: u64,
    /// One record; of a fixed window, one per window.
    records: BTreeMap<u64, Option<Record>>,
    /// Until when it learns; none when the key is gone or of another process.
    epoch: Option<u64>,
    /// The most that a need or an ask is about.
    coin: u64,
    /// Spent at once by the first node in every window, so that limits near 2^53 run out too.
    bulk: u64,
    loses: bool,
    /// Time passes in small steps: windows run out before they end.
    slow: bool,
}

#[derive(Debug)]
struct Node {
    boot: Boot,
    seq: u64,
    win: u64,
    totals: Totals,
    sent: Vec<Take>,
}

// === impl Kind ===

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Fixed => "fw",
            Self::Sliding => "sw",
            Self::Bucket => "tb",
            Self::Log => "sl",
        }
    }
}

// === impl World ===

impl<'a> World<'a> {
    pub(super) fn new(scripts: &'a Scripts, kind: Kind, seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let big = kind != Kind::Log && dice.percent(12);
        let widths = [1, 2, 7, 999, 1_000, 1_999, 60_000, 86_400_000, WIDTH_MS_MAX];
        let width =
            if dice.percent(70) { dice.of(&widths) } else { 1 + dice.magnitude(WIDTH_MS_MAX - 1) };
        let quotas = match (kind, big) {
            (_, true) => vec![AMOUNT_MAX - (1 << 34) - dice.magnitude(1 << 30)],
            (Kind::Log, _) => vec![0, 1, 3, 20, 400, 10_000],
            _ => vec![0, 1, 3, 20, 100, 1_000, 100_000, 1 << 31, 1 << 40],
        };
        let quota = dice.of(&quotas);
        let mut limits = vec![limit(&mut dice, kind, quota, width)];
        if dice.percent(30) {
            let other = if dice.percent(50) { dice.of(&quotas) } else { dice.up_to(quota) };
            // Of a bucket with a burst of its own.
            limits.push(if kind == Kind::Bucket && dice.percent(50) {
                limit(&mut dice, kind, other, width)
            } else {
                Limit { quota: Quota::new(other).unwrap(), ..limits[0] }
            });
        }
        // A folded boot is counted again when it calls: that would leave 2^53.
        let crowded = !big && dice.percent(10);
        let count = if crowded { 100 } else { 1 + dice.up_to(5) };
        let fleet = if crowded { vec![1, 2, 5] } else { vec![1, 2, 3, 10, 64, 1_000] };
        let fleet = if dice.percent(60) { vec![dice.of(&fleet)] } else { fleet };
        Self {
            scripts,
            name: format!("{kind:?}{seed}"),
            kind,
            limits,
            fleet,
            nodes: boots(&mut dice, count, crowded),
            now: 1_700_000_000_000 + dice.magnitude(1 << 40),
            part_us: 0,
            records: BTreeMap::new(),
            epoch: None,
            coin: if big { 1 << 24 } else { quota + 1 },
            bulk: if big { quota - dice.magnitude(1 << 26) } else { 0 },
            loses: !big || dice.percent(50),
            slow: dice.percent(40),
            dice,
        }
    }

    /// The next operation, and what must come of it.
    pub(super) fn step(&mut self) -> (Cmd, Expected) {
        self.pass_time();
        match self.dice.up_to(999) {
            0..=4 if self.loses => self.forget_record(),
            5..=12 if self.loses => self.reset(),
            13..=17 => self.lose_epoch(),
            18..=117 => self.say_again(),
            _ => self.say_new(),
        }
    }

    fn pass_time(&mut self) {
        let before = self.now;
        self.pass_millis();
        // Within a millisecond it goes on; into another it comes at any part of it, often at its first or its last.
        let least = if self.now == before { self.part_us } else { 0 };
        self.part_us = match self.dice.up_to(9) {
            0..=2 => least,
            3..=5 => (least + self.dice.up_to(3)).min(999),
            6 => 999,
            _ => least + self.dice.up_to(999 - least),
        };
    }

    fn pass_millis(&mut self) {
        let now = self.now;
        if let Some(until) = self.epoch.filter(|until| *until > now)
            && self.dice.percent(8)
        {
            self.now = until;
            return;
        }
        let (start, end) = self.limits[0].window_at(Millis(now));
        let width = width_of(&self.limits[0], now);
        let edge = if end.0 == u64::MAX { now + width } else { end.0 };
        let (dice, far) = (&mut self.dice, self.bulk == 0);
        let at = match dice.up_to(99) {
            0..=89 if self.slow => now + dice.up_to(width / 100),
            0..=44 => now + dice.up_to(3),
            45..=64 => now + dice.magnitude(width),
            65..=69 => now + dice.magnitude(width / 16),
            70..=74 => (edge + dice.up_to(2)).saturating_sub(1),
            75..=77 => edge.saturating_sub(45 + dice.up_to(10)),
            78 => edge + width + dice.up_to(2) - 1,
            79 => now + 2 * width + dice.up_to(2) - 1,
            80 => now + dice.magnitude(5 * width),
            81..=82 => now + 10_058 + dice.up_to(3),
            83..=84 => now + dice.up_to(1_100),
            // Far ahead, and far back. What was counted there would leave 2^53 here, where it is that much.
            85 if far => now + width * (1 + dice.up_to(5)) + dice.magnitude(width),
            86 if far => now.saturating_sub(width * (1 + dice.up_to(5)) + dice.magnitude(width)),
            85..=87 => now.saturating_sub(dice.up_to(5)),
            88..=89 => now.saturating_sub(dice.magnitude(width).min(1 << 27)),
            90 => start.0.saturating_sub(1).max(now.saturating_sub(100_000)),
            91..=93 => now + 50 + dice.up_to(2) - 1,
            _ => now,
        };
        // For the same reason not back into a window that is over, where counts of ahead are kept.
        let kept = !far && self.kind == Kind::Sliding;
        let at = if kept { at.max(start.0) } else { at };
        self.now = at.clamp(1_600_000_000_000, LATEST);
    }

    fn forget_record(&mut self) -> (Cmd, Expected) {
        let at = self.any_record();
        self.records.remove(&at);
        let key = self.key(at);
        let mut forget = cmd("DEL");
        forget.arg(&key).arg(format!("x:{key}"));
        (forget, Expected::Anything)
    }

    fn reset(&mut self) -> (Cmd, Expected) {
        let at = self.any_record();
        let known = self.records.get_mut(&at).and_then(Option::as_mut);
        let found = known.map(Record::reset).is_some();
        let call = self.scripts.reset.call(&[&self.key(at)]);
        (call, Expected::Number(i64::from(found)))
    }

    fn lose_epoch(&mut self) -> (Cmd, Expected) {
        self.epoch = None;
        let key = self.epoch_key();
        let mut lose = cmd("SET");
        lose.arg(key).arg(self.dice.of(&["", "another|99999999999999", "broken"]));
        (lose, Expected::Anything)
    }

    fn say_again(&mut self) -> (Cmd, Expected) {
        let node = self.any_node();
        let sent = &self.nodes[node].sent;
        let Some(last) = sent.len().checked_sub(1) else { return self.say_new() };
        // Mostly the last call, as a retry is; else one that was on its way for long.
        let back = if self.dice.percent(60) { 0 } else { self.dice.up_to(30) };
        let call = self.nodes[node].sent[last.saturating_sub(usize::try_from(back).unwrap())];
        self.deliver(node, call)
    }

    fn say_new(&mut self) -> (Cmd, Expected) {
        let node = self.any_node();
        let call = self.new_call(node);
        self.nodes[node].sent.push(call);
        self.deliver(node, call)
    }

    fn new_call(&mut self, at: usize) -> Take {
        let limit = self.dice.of(&self.limits);
        let win = self.window_said(&limit, at);
        let (dice, node) = (&mut self.dice, &mut self.nodes[at]);
        if win != node.win {
            (node.win, node.totals) = (win, Totals::default());
            if at == 0 {
                node.totals.plain = self.bulk;
            }
        }
        node.spend(dice, self.coin.min(limit.quota.get()));
        node.seq += 1;
        let small = self.coin.min(3);
        let early = win > self.now && matches!(self.kind, Kind::Fixed) && dice.percent(70);
        let need = match dice.up_to(9) {
            _ if early => 0,
            0..=1 => 0,
            2..=5 => dice.up_to(small),
            _ => dice.magnitude(self.coin),
        };
        let ask = match dice.up_to(9) {
            0..=1 => 0,
            2..=3 => need,
            4 => (need * 3).min(self.coin),
            5..=6 => self.coin,
            _ => dice.magnitude(self.coin),
        };
        let more = match self.kind {
            Kind::Log if dice.percent(40) => dice.magnitude(self.coin),
            _ => 0,
        };
        let Totals { plain, granted, .. } = node.totals;
        let forgotten = match self.kind {
            Kind::Log if dice.percent(40) => dice.magnitude(plain + granted),
            _ => 0,
        };
        Take {
            boot: node.boot,
            seq: node.seq,
            win,
            totals: node.totals,
            need,
            more,
            forgotten,
            ask,
            bundled: dice.percent(30),
            nodes: dice.of(&self.fleet),
            limit,
        }
    }

    /// Mostly the window that it is; else one that it was, or one that a wrong clock shows.
    fn window_said(&mut self, limit: &Limit, node: usize) -> u64 {
        if matches!(self.kind, Kind::Bucket | Kind::Log) {
            return 0;
        }
        let (start, end) = limit.window_at(Millis(self.now));
        let known = self.nodes[node].win;
        let soon = end.0 - self.now <= AHEAD_MS + 1;
        match self.dice.up_to(99) {
            0..=24 if self.kind == Kind::Fixed && soon => end.0,
            0..=79 if self.kind == Kind::Sliding && known <= end.0 => known.max(start.0),
            80..=93 => known,
            94 => end.0,
            // Who invents a window is forgotten in this one and counted twice, which would leave 2^53.
            95 if self.kind == Kind::Sliding && self.bulk == 0 => end.0 + end.since(start),
            96 => limit.window_at(Millis(start.0.saturating_sub(1))).0.0,
            _ => start.0,
        }
    }

    fn deliver(&mut self, node: usize, call: Take) -> (Cmd, Expected) {
        let now = Millis(self.now);
        let of = if self.kind == Kind::Fixed { call.win } else { 0 };
        let command = self.command(&call, of);
        let mut record = self.records.remove(&of).flatten();
        let learning = call.is_timely(now) && self.learns(record.as_ref(), &call);
        let at = Micros(self.now * 1_000 + self.part_us);
        let taken = Record::take(&mut record, &call, learning, at);
        self.records.insert(of, record);
        // Some answers never arrive.
        if taken.stand != Stand::WrongWindow && !self.dice.percent(10) {
            self.nodes[node].hear(&call, &taken);
        }
        (command, Expected::Taken { call, taken: Box::new(taken) })
    }

    /// The rule of the epoch, and what this call does to it.
    fn learns(&mut self, record: Option<&Record>, call: &Take) -> bool {
        // One from before the clock stepped back begins anew.
        self.epoch = self.epoch.filter(|until| *until <= self.now + 1_000);
        let until = *self.epoch.get_or_insert(self.now + 1_000);
        let learning = self.now < until;
        let news = Record::hears_news(record, call, Millis(self.now));
        if learning && news && until < self.now + 500 {
            self.epoch = Some(self.now + 500);
        }
        learning
    }

    fn command(&self, call: &Take, at: u64) -> Cmd {
        let keys = [self.key(at), self.epoch_key()];
        let now_us = self.now * 1_000 + self.part_us;
        let mut command = self.scripts.take.call_at(&keys.each_ref().map(String::as_str), now_us);
        let Totals { plain, granted, used, returned } = call.totals;
        // A month is as long as the one that is meant, not the one that it is.
        let about = if self.kind == Kind::Fixed { call.win } else { self.now };
        let capacity = match call.limit.algorithm {
            Algorithm::TokenBucket { capacity, .. } => capacity.get(),
            _ => call.more,
        };
        let short = call.totals == Totals::default()
            && (call.need > 0 && call.ask <= call.need && call.more == 0 && !call.bundled);
        command.arg(self.kind.word());
        if short {
            command.arg(&call.boot.0.to_be_bytes()[..]);
        } else {
            command.arg(&call.boot.text()[..]);
        }
        command.arg(call.seq).arg(call.win).arg(call.need).arg(call.limit.quota.get());
        command.arg(width_of(&call.limit, about)).arg("print");
        let bundled = u64::from(call.bundled);
        let rest = [call.nodes, capacity, call.ask, bundled, plain, granted, used, returned];
        let said = match (short, capacity, call.nodes) {
            (false, ..) => 8,
            _ if call.ask < call.need => 3,
            (true, 1.., _) => 2,
            (true, 0, nodes) => usize::from(nodes != 1),
        };
        command.arg(&rest[..said]);
        if call.forgotten > 0 {
            command.arg(call.forgotten);
        }
        command
    }

    /// The record of the moment; of a fixed window now and then the next one, which may be there already.
    fn any_record(&mut self) -> u64 {
        let (start, end) = self.limits[0].window_at(Millis(self.now));
        match self.kind {
            Kind::Fixed if self.dice.percent(30) => end.0,
            Kind::Fixed => start.0,
            _ => 0,
        }
    }

    fn any_node(&mut self) -> usize {
        let last = u64::try_from(self.nodes.len() - 1).unwrap();
        usize::try_from(self.dice.up_to(last)).unwrap()
    }

    fn key(&self, at: u64) -> String {
        let (name, word) = (&self.name, self.kind.word());
        match self.kind {
            Kind::Fixed => format!("rl:{{1}}:t/{name}/any:i:{word}:{at}"),
            _ => format!("rl:{{1}}:t/{name}/{}:i:{word}", width_of(&self.limits[0], 0)),
        }
    }

    fn epoch_key(&self) -> String {
        format!("tk:ep:{{1}}:{}", self.name)
    }

    pub(super) fn told(&self) -> String {
        format!("{} limits {:?} epoch {:?} run {RUN}", self.name, self.limits, self.epoch)
    }
}

/// Those of a crowd differ in the last characters of their names only: the order in which they are folded matters.
fn boots(dice: &mut Dice, count: u64, crowded: bool) -> Vec<Node> {
    let first = dice.next() >> 1;
    (0..count)
        .map(|more| Node::new(Boot(if crowded { first + more } else { dice.next() })))
        .collect()
}

fn limit(dice: &mut Dice, kind: Kind, amount: u64, width: u64) -> Limit {
    let quota = Quota::new(amount).unwrap();
    let width = Width::from_millis(width).unwrap();
    match kind {
        Kind::Fixed => {
            let aligned = Window::Aligned(width);
            let window = dice.of(&[aligned, aligned, aligned, Window::Day, Window::Month]);
            Limit::fixed_window(quota, window)
        }
        Kind::Sliding => Limit::sliding_window(quota, width),
        Kind::Log => Limit::sliding_log(quota, width).unwrap(),
        Kind::Bucket => {
            let burst = match dice.up_to(3) {
                0 => Some(dice.magnitude(amount)),
                1 => Some((amount * 3).min(AMOUNT_MAX - (1 << 34))),
                _ => None,
            };
            Limit::token_bucket(quota, width, burst.and_then(Quota::new))
        }
    }
}

fn width_of(limit: &Limit, now: u64) -> u64 {
    match limit.algorithm {
        Algorithm::FixedWindow(window) => {
            let (start, end) = window.bounds(Millis(now));
            end.since(start)
        }
        Algorithm::SlidingWindow(width)
        | Algorithm::SlidingLog(width)
        | Algorithm::TokenBucket { width, .. } => width.millis(),
    }
}

// === impl Node ===

impl Node {
    fn new(boot: Boot) -> Self {
        Self { boot, seq: 0, win: 0, totals: Totals::default(), sent: Vec::new() }
    }

    /// What it did since the last call: spent, gave back, and now and then admitted without asking.
    fn spend(&mut self, dice: &mut Dice, coin: u64) {
        let totals = &mut self.totals;
        totals.used += dice.up_to(totals.held());
        if dice.percent(30) {
            totals.returned += dice.up_to(totals.held());
        }
        if dice.percent(3) {
            totals.plain += dice.magnitude(coin);
        }
        if dice.percent(2) {
            totals.granted += dice.magnitude(coin);
        }
        if dice.percent(1) {
            totals.used += dice.magnitude(coin);
        }
    }

    fn hear(&mut self, call: &Take, taken: &Taken) {
        if taken.win == self.win {
            self.totals = self.totals.merged(taken.totals);
        } else if call.seq == self.seq {
            (self.win, self.totals) = (taken.win, taken.totals);
        }
    }
}

/// The answer of Redis as the pure function would give it.
pub(super) fn heard(reply: &Value, call: &Take) -> Taken {
    let Value::Array(parts) = reply else { panic!("{reply:?} is no answer") };
    assert_eq!(parts[0], Value::BulkString(b"print".to_vec()));
    let mut numbers: Vec<u64> =
        parts[1..].iter().map(|part| u64::try_from(number(part)).unwrap()).collect();
    if let &[now, 3, win] = numbers.as_slice() {
        let need = call.need;
        let (b, c) = match call.limit.algorithm {
            Algorithm::TokenBucket { .. } => (0, now),
            Algorithm::SlidingLog(width) => {
                (first_log_moment(call.limit.quota, width, Millis(now)), need)
            }
            _ => (0, 0),
        };
        numbers = vec![now, 0, win, need, 0, 0, 0, 1, 0, 0, 0, need, b, c, 0, 1, 0];
    }
    let &[
        now,
        stand,
        win,
        plain,
        granted,
        used,
        returned,
        took,
        lent,
        later,
        debt,
        a,
        b,
        c,
        outstanding,
        made,
        recall,
    ] = numbers.as_slice()
    else {
        panic!("{reply:?} has another length")
    };
    let (later, more) = match call.limit.algorithm {
        Algorithm::SlidingLog(_) => (0, later),
        _ => (later, 0),
    };
    let now = Millis(now);
    let stand =
        [Stand::Heard, Stand::WrongWindow, Stand::Learning][usize::try_from(stand).unwrap()];
    let elsewhere = stand == Stand::WrongWindow;
    let state = match call.limit.algorithm {
        _ if elsewhere => State::fresh(&call.limit),
        Algorithm::FixedWindow(_) => State::Fixed(FixedWindow { start: Millis(win), used: a }),
        Algorithm::SlidingWindow(_) => {
            State::Sliding(SlidingWindow { start: Millis(win), used: a, previous: b })
        }
        Algorithm::TokenBucket { .. } => {
            State::Bucket(TokenBucket { missing: a, fraction: b, at: Millis(c) })
        }
        Algorithm::SlidingLog(_) => {
            State::Log(Box::new(log_copy((a > 0).then_some((b, c)), a, now)))
        }
    };
    Taken {
        now,
        stand,
        // The script is told the window and cannot name another: that is the caller's calendar.
        win: if elsewhere { call.limit.window_at(now).0.0 } else { win },
        totals: Totals { plain, granted, used, returned },
        took: took == 1,
        lent,
        later,
        debt,
        more,
        state,
        outstanding,
        made: made == 1,
        recall: recall == 1,
    }
}
