//! Whether Redis is the trouble: counters of one node, read once a second, judged over a minute. Pure: no clock, no
//! store, and no memory but the two minutes that it compares.

use std::collections::VecDeque;

/// A minute, in readings.
pub const MINUTE: usize = 60;

/// The minute is cut into so many parts, and an indicator must be beyond its bound in each: a hiccup of a second is
/// enough to spoil the mean of a minute, but it is not a minute of trouble. Two parts more are looked at, because trouble
/// begins and ends in the middle of one: what is in all of them has lasted for the minute.
const PARTS: usize = 12;

/// Of requests that met an error of Redis.
const REDIS_ERRORS_PERCENT: u64 = 1;

/// More than half as many again as in the minute before, and of all requests at least so many: the second failure in a
/// million answers is twice as many as the first, and means nothing.
const SERVER_ERRORS_PERCENT: u64 = 1;

const SLOWER_NS: u64 = 200_000_000;

const MEMORY_PERCENT: u64 = 80;

/// What a node has counted since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub requests: u64,
    /// Answers of 500 and above.
    pub server_errors: u64,
    /// Requests whose time was taken, and how long they took together.
    pub timed: u64,
    pub took_ns: u64,
    /// Requests decided without Redis.
    pub fallbacks: u64,
    /// Calls that Redis did not answer, not in time, or with an error.
    pub failed_calls: u64,
    /// Of the fullest server that has a bound; none has, or none answers: nothing.
    pub memory: Option<Memory>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub used: u64,
    pub max: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    RedisErrors,
    ServerErrors,
    SlowResponses,
    RedisMemory,
}

#[derive(Debug)]
pub struct Watch {
    minute: usize,
    /// The minute that is judged, the one before it, and the reading before both; the newest last.
    readings: VecDeque<Totals>,
}

// === impl Watch ===

impl Watch {
    /// `minute` is [`MINUTE`], but for tests, which have less time.
    pub fn new(minute: usize) -> Self {
        let minute = minute.max(PARTS) / PARTS * PARTS;
        Self { minute, readings: VecDeque::with_capacity(2 * minute + 2 * (minute / PARTS) + 1) }
    }

    /// The minute begins anew.
    pub fn clear(&mut self) {
        self.readings.clear();
    }

    /// Takes the next reading; says why Redis should be left alone, if it should.
    pub fn feed(&mut self, totals: Totals) -> Option<Reason> {
        if self.readings.len() > self.judged() + self.minute {
            self.readings.pop_front();
        }
        self.readings.push_back(totals);
        let redis = |part: &Span| beyond(part.redis_errors(), REDIS_ERRORS_PERCENT, part.requests);
        if self.throughout(redis) {
            return Some(Reason::RedisErrors);
        }
        if self.is_short_of_memory() {
            return Some(Reason::RedisMemory);
        }
        let before = self.before()?;
        if self.throughout(|part| part.fails_more_than(&before)) {
            return Some(Reason::ServerErrors);
        }
        self.throughout(|part| part.is_slower_than(&before)).then_some(Reason::SlowResponses)
    }

    fn judged(&self) -> usize {
        self.minute + 2 * (self.minute / PARTS)
    }

    /// Whether it holds in every part of the last minute in which somebody asked. Fewer than one request a second say
    /// nothing about anything.
    fn throughout(&self, holds: impl Fn(&Span) -> bool) -> bool {
        let Some(whole) = self.span(self.judged(), 0) else { return false };
        if whole.requests < self.judged() as u64 {
            return false;
        }
        let long = self.minute / PARTS;
        let mut parts = (0..PARTS + 2).filter_map(|part| self.span((part + 1) * long, part * long));
        parts.all(|part| part.requests == 0 || holds(&part))
    }

    fn is_short_of_memory(&self) -> bool {
        let last = self.readings.iter().rev().take(self.minute);
        last.len() == self.minute
            && last.into_iter().all(|one| one.memory.is_some_and(Memory::is_short))
    }

    /// The minute before the last one, if it saw enough to be compared with.
    fn before(&self) -> Option<Span> {
        let before = self.span(self.judged() + self.minute, self.judged())?;
        (before.requests >= self.minute as u64).then_some(before)
    }

    /// From so many readings ago to so many.
    fn span(&self, from: usize, to: usize) -> Option<Span> {
        let newest = self.readings.len().checked_sub(1)?;
        let (old, new) = (newest.checked_sub(from)?, newest.checked_sub(to)?);
        Some(Span::between(self.readings.get(old)?, self.readings.get(new)?))
    }
}

// === impl Memory ===

impl Memory {
    fn is_short(self) -> bool {
        beyond(self.used, MEMORY_PERCENT, self.max)
    }
}

// === impl Reason ===

impl Reason {
    pub const ALL: [Self; 4] =
        [Self::RedisErrors, Self::ServerErrors, Self::SlowResponses, Self::RedisMemory];

    pub fn word(self) -> &'static str {
        match self {
            Self::RedisErrors => "redis_errors",
            Self::ServerErrors => "server_errors",
            Self::SlowResponses => "slow_responses",
            Self::RedisMemory => "redis_memory",
        }
    }

    /// For people.
    pub fn told(self) -> &'static str {
        match self {
            Self::RedisErrors => "for a minute more than 1 % of requests met an error of Redis",
            Self::ServerErrors => {
                "for a minute the share of 5xx answers was more than 50 % above the minute before"
            }
            Self::SlowResponses => {
                "for a minute answers took more than 200 ms longer than in the minute before"
            }
            Self::RedisMemory => "for a minute Redis used more than 80 % of its memory",
        }
    }
}

/// What was counted between two readings.
#[derive(Clone, Copy, Debug)]
struct Span {
    requests: u64,
    server_errors: u64,
    timed: u64,
    took_ns: u64,
    fallbacks: u64,
    failed_calls: u64,
}

// === impl Span ===

impl Span {
    fn between(old: &Totals, new: &Totals) -> Self {
        Self {
            requests: new.requests.saturating_sub(old.requests),
            server_errors: new.server_errors.saturating_sub(old.server_errors),
            timed: new.timed.saturating_sub(old.timed),
            took_ns: new.took_ns.saturating_sub(old.took_ns),
            fallbacks: new.fallbacks.saturating_sub(old.fallbacks),
            failed_calls: new.failed_calls.saturating_sub(old.failed_calls),
        }
    }

    /// A request that was decided without Redis may stand behind a failed call, or behind none while nobody calls any
    /// more: the larger of the two counts no trouble twice.
    fn redis_errors(&self) -> u64 {
        self.fallbacks.max(self.failed_calls)
    }

    fn fails_more_than(&self, before: &Self) -> bool {
        let share =
            |part: &Self, of: &Self| u128::from(part.server_errors) * u128::from(of.requests);
        beyond(self.server_errors, SERVER_ERRORS_PERCENT, self.requests)
            && 2 * share(self, before) > 3 * share(before, self)
    }

    fn is_slower_than(&self, before: &Self) -> bool {
        let mean = |span: &Self| span.took_ns.checked_div(span.timed);
        let (Some(now), Some(then)) = (mean(self), mean(before)) else { return false };
        now > then.saturating_add(SLOWER_NS)
    }
}

fn beyond(part: u64, percent: u64, whole: u64) -> bool {
    u128::from(part) * 100 > u128::from(whole) * u128::from(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: usize = 24;
    /// Trouble that is in every reading must fill what is looked at.
    const WHOLE: usize = SHORT + 2 * (SHORT / PARTS);

    /// A node with a thousand requests a second, each of a millisecond.
    struct Node {
        watch: Watch,
        totals: Totals,
    }

    impl Node {
        fn well() -> Self {
            let mut node = Self { watch: Watch::new(SHORT), totals: Totals::default() };
            assert_eq!(node.run(3 * SHORT, |_| {}), None);
            node
        }

        /// The first reason within so many seconds.
        fn run(&mut self, seconds: usize, each: impl Fn(&mut Totals)) -> Option<(usize, Reason)> {
            (1..=seconds).find_map(|second| {
                self.totals.requests += 1_000;
                self.totals.timed += 1_000;
                self.totals.took_ns += 1_000 * 1_000_000;
                each(&mut self.totals);
                self.watch.feed(self.totals).map(|reason| (second, reason))
            })
        }
    }

    #[test]
    fn redis_errors_of_more_than_one_percent_for_a_minute_are_a_reason_and_not_sooner() {
        let failing = |totals: &mut Totals| totals.failed_calls += 11;
        assert_eq!(Node::well().run(100, failing), Some((WHOLE, Reason::RedisErrors)));
        let alone = |totals: &mut Totals| totals.fallbacks += 1_000;
        assert_eq!(Node::well().run(100, alone), Some((WHOLE - 1, Reason::RedisErrors)));
    }

    #[test]
    fn one_percent_is_not_more_than_one_percent() {
        let bearable = |totals: &mut Totals| {
            totals.failed_calls += 10;
            totals.fallbacks += 10;
        };
        assert_eq!(Node::well().run(100, bearable), None);
    }

    #[test]
    fn an_outage_shorter_than_the_minute_is_none() {
        let mut node = Node::well();
        assert_eq!(node.run(SHORT, |totals| totals.fallbacks += 1_000), None);
        assert_eq!(node.run(100, |_| {}), None);
    }

    #[test]
    fn server_errors_count_against_the_share_of_the_minute_before() {
        let mut node = Node::well();
        assert_eq!(node.run(3 * SHORT, |totals| totals.server_errors += 9), None, "below 1 %");
        let mut node = Node::well();
        let first = node.run(100, |totals| totals.server_errors += 20);
        assert_eq!(first, Some((WHOLE, Reason::ServerErrors)));
        // From here on it is what the node was used to.
        for _ in 0..3 * SHORT {
            node.run(1, |totals| totals.server_errors += 20);
        }
        assert_eq!(
            node.run(3 * SHORT, |totals| totals.server_errors += 30),
            None,
            "half as many again"
        );
        let more = node.run(100, |totals| totals.server_errors += 46);
        assert_eq!(more, Some((WHOLE, Reason::ServerErrors)));
    }

    #[test]
    fn answers_that_take_200_ms_longer_for_a_minute_are_a_reason() {
        let slow = |totals: &mut Totals| totals.took_ns += 1_000 * 200_000_000;
        assert_eq!(Node::well().run(100, slow), None, "200 ms are not more than 200 ms");
        let slower = |totals: &mut Totals| totals.took_ns += 1_000 * 200_000_001;
        assert_eq!(Node::well().run(100, slower), Some((WHOLE, Reason::SlowResponses)));
        let mut node = Node::well();
        assert_eq!(node.run(1, |totals| totals.took_ns += 1_000 * 60_000_000_000), None);
        assert_eq!(node.run(100, |_| {}), None, "one bad second is not a minute");
    }

    #[test]
    fn memory_beyond_80_percent_for_a_minute_is_a_reason_also_without_requests() {
        let full = Memory { used: 81, max: 100 };
        let mut watch = Watch::new(SHORT);
        let idle = Totals { memory: Some(full), ..Totals::default() };
        let first = (1..=100).find_map(|second| watch.feed(idle).map(|reason| (second, reason)));
        assert_eq!(first, Some((SHORT, Reason::RedisMemory)));
        let mut watch = Watch::new(SHORT);
        for second in 0..100 {
            let memory = (second % 5 != 0).then_some(full);
            assert_eq!(watch.feed(Totals { memory, ..Totals::default() }), None, "not throughout");
        }
        let roomy = Totals { memory: Some(Memory { used: 80, max: 100 }), ..Totals::default() };
        assert!((0..100).all(|_| watch.feed(roomy).is_none()));
    }

    #[test]
    fn a_node_that_hardly_anybody_asks_judges_nothing() {
        let mut watch = Watch::new(SHORT);
        let mut totals = Totals::default();
        for second in 0..100_u64 {
            totals.requests += u64::from(second.is_multiple_of(2));
            totals.fallbacks = totals.requests;
            assert_eq!(watch.feed(totals), None);
        }
    }

    #[test]
    fn what_was_before_a_clearing_is_not_held_against_redis() {
        let mut node = Node::well();
        assert_eq!(node.run(SHORT, |totals| totals.failed_calls += 500), None);
        node.watch.clear();
        let again = node.run(100, |totals| totals.failed_calls += 500);
        assert_eq!(again, Some((WHOLE + 1, Reason::RedisErrors)));
    }

    #[test]
    fn it_remembers_two_minutes_and_no_more() {
        let mut node = Node::well();
        node.run(1_000, |_| {});
        assert_eq!(node.watch.readings.len(), SHORT + WHOLE + 1);
    }
}
