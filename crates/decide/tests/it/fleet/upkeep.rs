//! A node of a fleet over time: what it does unasked, and what it makes of a window that ends meanwhile.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Handle;
use tollkeeper_core::{Boot, Millis, Record, Take, Taken};
use tollkeeper_decide::{
    Asking, CellName, Fleet, History, LeaseAsk, LeaseTable, Link, Missed, Mode, News, Origin,
    Patience, Scope, SharedAsk,
};

use super::rules::{SECOND, START, ask, fixed};

/// By cell and window.
type Records = HashMap<(Box<str>, u64), Option<Record>>;

/// Records in memory, behind calls that take a moment.
#[derive(Default)]
pub(super) struct Memory {
    records: Mutex<Records>,
    /// What is lent of each, as its last call heard.
    pub(super) lent: Mutex<HashMap<Box<str>, u64>>,
    now: AtomicU64,
    /// Calls take so many milliseconds more.
    pub(super) slow_ms: AtomicU64,
    under_way: AtomicUsize,
    calls: AtomicUsize,
    /// The most calls that were under way at once.
    pub(super) crowd: AtomicUsize,
    members: AtomicUsize,
    /// So many beside this node are counted.
    others: AtomicU64,
    /// Servers beside the first, which all are out of reach, or none.
    more_servers: AtomicUsize,
    away: AtomicBool,
    numbering: AtomicU64,
    /// The count of members fails once as no origin may.
    broken: AtomicBool,
    /// Nobody counts them.
    uncounted: AtomicBool,
    /// Calls for this identifier end after the window.
    late: Mutex<Option<&'static str>>,
    /// Which process it is, and when that one began to learn and what time it is there, while it does.
    life: AtomicU64,
    learning: Mutex<Option<(Millis, Millis)>>,
    /// Probes end so, after so many milliseconds.
    unheard: Mutex<Option<(Missed, u64)>>,
}

struct Shelf(Arc<Memory>);

// === impl Memory ===

impl Memory {
    fn now(&self) -> Millis {
        Millis(self.now.load(Ordering::Relaxed))
    }

    /// Time passes for the node, and for what it waits for.
    async fn pass(&self, ms: u64) {
        for _ in 0..ms / 50 {
            self.now.fetch_add(50, Ordering::Relaxed);
            wait(50).await;
        }
    }

    pub(super) fn set_back(&self) {
        self.records.lock().unwrap().values_mut().flatten().for_each(Record::reset);
    }

    pub(super) fn lent(&self) -> u64 {
        self.lent.lock().unwrap().values().sum()
    }

    fn take(&self, name: &CellName, take: &Take) -> Taken {
        let taken = {
            let mut records = self.records.lock().unwrap();
            let record = records.entry((name.identifier.clone(), take.win)).or_default();
            Record::take(record, take, false, self.now())
        };
        self.lent.lock().unwrap().insert(name.identifier.clone(), taken.outstanding);
        if self.late.lock().unwrap().take_if(|late| **late == *name.identifier).is_some() {
            let (_, end) = take.limit.window_at(self.now());
            self.now.store(end.0 + 1, Ordering::Relaxed);
        }
        taken
    }
}

// === impl Shelf ===

impl Origin for Shelf {
    fn take(&self, name: &Arc<CellName>, take: &Take, _: Duration) -> Asking<Taken> {
        let (memory, name, take) = (Arc::clone(&self.0), Arc::clone(name), *take);
        Box::pin(async move {
            memory.calls.fetch_add(1, Ordering::Relaxed);
            let here = memory.under_way.fetch_add(1, Ordering::Relaxed) + 1;
            memory.crowd.fetch_max(here, Ordering::Relaxed);
            tokio::task::yield_now().await;
            let slow_ms = memory.slow_ms.load(Ordering::Relaxed);
            if slow_ms > 0 {
                wait(slow_ms).await;
            }
            let taken = memory.take(&name, &take);
            memory.under_way.fetch_sub(1, Ordering::Relaxed);
            Ok(taken)
        })
    }

    fn server(&self, _: &CellName) -> usize {
        0
    }

    fn servers(&self) -> usize {
        1 + self.0.more_servers.load(Ordering::Relaxed)
    }

    fn life(&self, _: usize) -> u64 {
        self.0.life.load(Ordering::Relaxed)
    }

    fn numbering(&self) -> u64 {
        self.0.numbering.load(Ordering::Relaxed)
    }

    fn is_connected(&self, server: usize) -> bool {
        server == 0 || !self.0.away.load(Ordering::Relaxed)
    }

    fn probe(&self, _: usize) -> Asking<History> {
        if let Some((missed, ms)) = *self.0.unheard.lock().unwrap() {
            return Box::pin(async move {
                wait(ms).await;
                Err(missed)
            });
        }
        let learning = *self.0.learning.lock().unwrap();
        let history =
            learning.map_or(History::Whole, |(began, now)| History::Learning { began, now });
        Box::pin(async move { Ok(history) })
    }

    fn members(&self) -> Asking<u64> {
        assert!(!self.0.broken.swap(false, Ordering::Relaxed), "meant to fail");
        if self.0.uncounted.load(Ordering::Relaxed) {
            return Box::pin(async { Err(Missed::Away) });
        }
        self.0.members.fetch_add(1, Ordering::Relaxed);
        let nodes = 1 + self.0.others.load(Ordering::Relaxed);
        Box::pin(async move { Ok(nodes) })
    }

    fn leave(&self) -> Asking<()> {
        Box::pin(async { Ok(()) })
    }

    fn announce(&self, _: &News) {}

    fn reset(&self, _: &Arc<Scope>, _: Option<&str>) -> Asking<u64> {
        self.0.set_back();
        Box::pin(async { Ok(0) })
    }
}

pub(super) fn fleet() -> (Arc<Memory>, Arc<Fleet>) {
    let memory = Arc::new(Memory::default());
    memory.now.store(START.0, Ordering::Relaxed);
    let clock = Arc::clone(&memory);
    let table = LeaseTable::new(64 * 1024, Boot(7));
    let origin = Arc::new(Shelf(Arc::clone(&memory)));
    let clock = Arc::new(move || clock.now());
    let patience = Patience::USUAL;
    let fleet = Fleet::new(table, origin, Mode::Redis, clock, patience, Handle::current());
    (memory, fleet)
}

/// By a clock that a test may wind.
pub(super) async fn wait(ms: u64) {
    let _ = tokio::time::timeout(Duration::from_millis(ms), std::future::pending::<()>()).await;
}

pub(super) fn asked<'a>(
    ask: LeaseAsk,
    scope: &'a Arc<Scope>,
    identifier: &'a str,
) -> SharedAsk<'a> {
    SharedAsk { ask, scope, identifier }
}

#[tokio::test]
async fn a_window_that_ends_while_one_of_two_limits_is_asked_for_refuses_nobody() {
    let (memory, fleet) = fleet();
    let scope = Arc::new(Scope::namespace("t", "s"));
    let bundled = |key| LeaseAsk { bundled: true, ..ask(key, fixed(1000, SECOND)) };
    let asks = [asked(bundled(1), &scope, "first"), asked(bundled(2), &scope, "second")];
    *memory.late.lock().unwrap() = Some("second");
    let gathered = fleet.obtain(&asks).await;
    assert!(memory.late.lock().unwrap().is_none(), "the window did not end meanwhile");
    assert!(gathered.passed);
    assert!(gathered.spend(fleet.now()), "what was set aside ended with the window");
}

#[tokio::test(start_paused = true)]
async fn another_process_is_told_everything_however_soon_it_is_there_and_whatever_its_clock_says() {
    let (memory, fleet) = fleet();
    let keeping = tokio::spawn(Arc::clone(&fleet).keep());
    let scope = Arc::new(Scope::namespace("t", "s"));
    let gathered = fleet.obtain(&[asked(ask(1, fixed(1000, SECOND)), &scope, "idle")]).await;
    assert!(gathered.passed && gathered.spend(fleet.now()));
    let wait = async |ms| {
        let time = Duration::from_millis(ms);
        tokio::time::timeout(time, std::future::pending::<()>()).await.unwrap_err();
    };
    let is_told_after = async |ms| {
        wait(2_000).await;
        memory.lent.lock().unwrap().clear();
        wait(ms).await;
        memory.lent.lock().unwrap().contains_key("idle")
    };
    let turn = || {
        memory.records.lock().unwrap().clear();
        memory.life.fetch_add(1, Ordering::Relaxed);
    };
    assert!(!is_told_after(5_000).await, "what is known is not told again");
    // Its history is whole by its own epochs, and it was never out of sight.
    turn();
    memory.lent.lock().unwrap().clear();
    wait(1_000).await;
    assert!(memory.lent.lock().unwrap().contains_key("idle"), "nobody told it");
    *memory.learning.lock().unwrap() = Some((Millis(9_000_000), Millis(9_000_010)));
    wait(1_000).await;
    assert!(!is_told_after(1_000).await, "it was told all of it when it began to learn");
    // By its clock this one began to learn hours before the last one was told.
    *memory.learning.lock().unwrap() = Some((Millis(5_000), Millis(5_010)));
    turn();
    memory.lent.lock().unwrap().clear();
    wait(1_000).await;
    assert!(memory.lent.lock().unwrap().contains_key("idle"), "nobody told it");
    keeping.abort();
}

#[tokio::test(start_paused = true)]
async fn upkeep_that_fails_begins_anew() {
    let (memory, fleet) = fleet();
    memory.broken.store(true, Ordering::Relaxed);
    let keeping = tokio::spawn(Arc::clone(&fleet).keep());
    wait(5_000).await;
    keeping.abort();
    assert!(memory.members.load(Ordering::Relaxed) > 2, "nobody counts members any more");
}

#[tokio::test(start_paused = true)]
async fn upkeep_that_fails_after_a_while_begins_anew_after_a_second_too() {
    let (memory, fleet) = fleet();
    let keeping = tokio::spawn(Arc::clone(&fleet).keep());
    let members = || memory.members.load(Ordering::Relaxed);
    wait(3_250).await;
    let before = members();
    memory.broken.store(true, Ordering::Relaxed);
    // It fails a quarter of a second from here on.
    wait(1_150).await;
    assert!(!memory.broken.load(Ordering::Relaxed), "it did not fail");
    assert_eq!(members(), before, "it began anew at once");
    wait(200).await;
    assert!(members() > before, "it did not begin anew");
    keeping.abort();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_lost_its_history_makes_nobody_think_it_is_alone() {
    let (memory, fleet) = fleet();
    memory.others.store(4, Ordering::Relaxed);
    let keeping = tokio::spawn(Arc::clone(&fleet).keep());
    memory.pass(600).await;
    assert_eq!(fleet.table().nodes(), 5);
    // The others have not said again that they live.
    memory.others.store(0, Ordering::Relaxed);
    memory.pass(600).await;
    assert_eq!(fleet.table().nodes(), 5);
    memory.others.store(3, Ordering::Relaxed);
    memory.pass(3_000).await;
    assert_eq!(fleet.table().nodes(), 5);
    memory.pass(2_500).await;
    assert_eq!(fleet.table().nodes(), 4, "one of them is gone");
    memory.others.store(6, Ordering::Relaxed);
    memory.pass(600).await;
    assert_eq!(fleet.table().nodes(), 7, "who joins counts at once");
    keeping.abort();
}

#[tokio::test(start_paused = true)]
async fn an_outage_makes_nobody_think_it_is_alone_when_it_is_over() {
    for away_ms in [3_000, 6_000, 60_000] {
        let (memory, fleet) = fleet();
        memory.others.store(4, Ordering::Relaxed);
        let keeping = tokio::spawn(Arc::clone(&fleet).keep());
        memory.pass(600).await;
        memory.uncounted.store(true, Ordering::Relaxed);
        memory.pass(away_ms).await;
        assert_eq!(fleet.table().nodes(), 5);
        // Whoever was silent for so long has been forgotten, and this node is the first to say that it lives.
        memory.others.store(0, Ordering::Relaxed);
        memory.uncounted.store(false, Ordering::Relaxed);
        memory.pass(2_400).await;
        assert_eq!(fleet.table().nodes(), 5, "after {away_ms} ms");
        memory.others.store(2, Ordering::Relaxed);
        memory.pass(6_000).await;
        assert_eq!(fleet.table().nodes(), 3, "two of them are gone");
        keeping.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn who_knows_of_others_when_it_starts_gives_them_time_to_be_counted() {
    let (memory, fleet) = fleet();
    fleet.table().set_nodes(5);
    memory.uncounted.store(true, Ordering::Relaxed);
    let keeping = tokio::spawn(Arc::clone(&fleet).keep());
    memory.pass(60_000).await;
    memory.uncounted.store(false, Ordering::Relaxed);
    memory.pass(2_400).await;
    assert_eq!(fleet.table().nodes(), 5);
    memory.pass(4_000).await;
    assert_eq!(fleet.table().nodes(), 1, "nobody came");
    keeping.abort();
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_fails_opens_no_breaker_unless_it_was_waited_for_or_the_next_ones_fail_too() {
    let (memory, fleet) = fleet();
    let keeping = tokio::spawn(Arc::clone(&fleet).keep());
    let link = || fleet.links()[0].link;
    let unheard = |how| *memory.unheard.lock().unwrap() = how;
    memory.pass(500).await;
    // It was vetted anew, had no room for one more call, or lost its connection: whatever the reason, it is there.
    for how in [Missed::Away, Missed::Silent] {
        unheard(Some((how, 0)));
        memory.pass(150).await;
        assert_eq!(link(), Link::Up, "one or two probes failed");
        unheard(None);
        memory.pass(300).await;
        unheard(Some((how, 0)));
        memory.pass(150).await;
        assert_eq!(link(), Link::Up, "others were answered between them");
        memory.pass(250).await;
        assert_eq!(link(), Link::Away, "none was answered for a quarter of a second");
        unheard(None);
        memory.pass(200).await;
        assert_eq!(link(), Link::Up);
    }
    unheard(Some((Missed::Silent, 300)));
    memory.pass(450).await;
    assert_eq!(link(), Link::Away, "it hangs");
    keeping.abort();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_joins_is_not_taken_for_the_one_that_left_its_place() {
    let (memory, fleet) = fleet();
    let keeping = tokio::spawn(Arc::clone(&fleet).keep());
    let servers = |more: usize| {
        memory.more_servers.store(more, Ordering::Relaxed);
        memory.numbering.fetch_add(1, Ordering::Relaxed);
    };
    let links = || fleet.links().iter().map(|view| view.link).collect::<Vec<_>>();
    memory.away.store(true, Ordering::Relaxed);
    servers(1);
    memory.pass(1_000).await;
    assert_eq!(links(), [Link::Up, Link::Away]);
    servers(0);
    memory.pass(300).await;
    memory.away.store(false, Ordering::Relaxed);
    servers(1);
    // Nobody has looked after the new one yet.
    assert_eq!(links(), [Link::Up, Link::Up]);
    keeping.abort();
}

#[tokio::test(start_paused = true)]
async fn a_node_that_ends_gives_back_what_calls_under_way_bring() {
    let (memory, fleet) = fleet();
    let scope = Arc::new(Scope::namespace("t", "s"));
    let one = ask(1, fixed(100_000, SECOND));
    for _ in 0..2 {
        let gathered = fleet.obtain(&[asked(one, &scope, "busy")]).await;
        assert!(gathered.passed && gathered.spend(fleet.now()));
    }
    assert_eq!(memory.lent(), 0, "the third call is the first to borrow");
    memory.slow_ms.store(100, Ordering::Relaxed);
    let asking = {
        let (fleet, scope) = (Arc::clone(&fleet), Arc::clone(&scope));
        tokio::spawn(async move { drop(fleet.obtain(&[asked(one, &scope, "busy")]).await) })
    };
    wait(1).await;
    fleet.close().await;
    asking.await.unwrap();
    assert!(memory.calls.load(Ordering::Relaxed) > 3, "nobody came back to it");
    assert_eq!(memory.lent(), 0, "what the call brought stayed lent");
}
