//! What edges say of a decision once its answer is made, and how that gets into the audit behind the requests.
//! Every edge says it in one call. The text of a key ends here: it is only used to be struck out.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tollkeeper_account::{Audit, AuditCounts, CacheSight, Rollups, Sample, Sight, Whose};
use tollkeeper_core::{AuditRow, Decision, Millis, Window, key_is_intact};
use tollkeeper_store::{Store, StoreError};
use tollkeeper_wire::Code;

use crate::clock::{Clock, Stamp};
use crate::ids::RequestId;
use crate::settings::Settings;
use crate::upkeep::{every, report};

/// Few rows wait for others, a quarter of a second at most: what was decided can be searched for almost at once, and a batch is
/// worth its transaction.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS_MAX: u32 = 5;
/// So many need not wait. Written a few at a time they keep the database from its other work for a millisecond or two, where a
/// flood of refusals in one piece would hold up requests on the same machine.
const ENOUGH: usize = 64;
/// So many rows are written at a time.
const BATCH: usize = 4_000;
/// How often what was counted is added to its minutes.
const ADD: Duration = Duration::from_secs(10);
/// Hours and days are made of minutes once a minute.
const ROLL_UP_ROUNDS: u32 = 6;
/// How often months are made ahead and old ones forgotten.
const TIDY: Duration = Duration::from_hours(1);
const DAY_MS: u64 = 86_400_000;
/// How much longer than asked for a month stays where no server archives.
const ARCHIVE_GRACE_MS: u64 = 7 * DAY_MS;

/// Longer paths and names are cut: a row is for searching, and a hostile caller must not fill the disk with it.
const TEXT_CHARS_MAX: usize = 512;

/// Sixteen random bytes and a checksum: no key of ours is shorter.
const KEY_CHARS_MIN: usize = 22;
/// In the place of a key.
const STRUCK: &str = "[key]";

/// All that an edge knows of one decision, borrowed: most are never made a row of.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    pub tenant_id: &'a Arc<str>,
    pub decision: Decision,
    pub code: &'static str,
    /// What a proxy sends its client for this code.
    pub status: u16,
    pub key_id: Option<&'a Arc<str>>,
    pub whose: Option<Whose<'a>>,
    /// The key as it came; never kept.
    pub key_text: Option<&'a str>,
    pub ip: Option<IpAddr>,
    pub method: Option<&'a str>,
    pub path: Option<&'a str>,
    /// The pattern that the path matched.
    pub endpoint: Option<&'a Arc<str>>,
    pub rule: Option<&'a Arc<str>>,
    pub limit: Option<LimitFacts<'a>>,
    /// Whether the key was near.
    pub cache: Option<CacheSight>,
    pub degraded: bool,
}

/// The limit that decided, or else the one that leaves least.
#[derive(Clone, Copy, Debug)]
pub struct LimitFacts<'a> {
    pub name: &'a str,
    pub count: u64,
    pub retry_after_ms: Option<u64>,
}

/// When and where it happened.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub request_id: RequestId,
    pub now: Millis,
    pub start: Stamp,
}

/// A handle for one thread, like the ledger's.
#[derive(Clone, Debug)]
pub struct Auditor {
    audit: Audit,
    rollups: Rollups,
    node: Arc<str>,
    region: Option<Arc<str>>,
    /// Held by whoever writes, so that who searches waits for rows that are on their way.
    writing: Arc<Mutex<()>>,
}

/// How long decisions are kept.
#[derive(Clone, Copy, Debug)]
enum Retention {
    Days(u64),
    /// Until an archive has them: `tollkeeper archive` takes them away.
    UntilArchived,
}

/// An auditor, and all that goes on behind it.
pub fn start(
    settings: &Settings,
    threads: usize,
    store: &Store,
    clock: &Clock,
    backstage: &Handle,
) -> Auditor {
    let region = settings.region.as_deref().map(Into::into);
    let node = settings.node.as_str().into();
    let auditor = Auditor::new(threads, settings.audit_sample, node, region);
    backstage.spawn(auditor.clone().write_behind(store.clone()));
    backstage.spawn(auditor.clone().add_behind(store.clone(), clock.clone()));
    let retention = match &settings.archive_url {
        Some(_) => Retention::UntilArchived,
        None => Retention::Days(settings.audit_days),
    };
    backstage.spawn(keep_months(store.clone(), clock.clone(), retention));
    auditor
}

// === impl Auditor ===

impl Auditor {
    pub fn new(pages: usize, share: f64, node: Arc<str>, region: Option<Arc<str>>) -> Self {
        let audit = Audit::new(pages, Sample::share(share));
        let rollups = Rollups::new(pages, region.as_deref());
        Self { audit, rollups, node, region, writing: Arc::default() }
    }

    #[must_use]
    pub fn at_page(&self, page: usize) -> Self {
        let (audit, rollups) = (self.audit.at_page(page), self.rollups.at_page(page));
        Self { audit, rollups, ..self.clone() }
    }

    pub fn note(&self, moment: Moment, facts: &Facts<'_>) {
        let latency_ns = Stamp::now().nanos_since(moment.start);
        self.rollups.note(&Sight {
            at: moment.now,
            tenant_id: facts.tenant_id,
            endpoint: facts.endpoint,
            whose: facts.whose,
            decision: facts.decision,
            cache: facts.cache,
            latency_ns,
        });
        if self.keeps(facts.decision, moment.request_id) {
            self.audit.note(self.row(moment, facts, latency_ns));
        }
    }

    /// Whether [`Self::keep`] is to follow. For who would have to gather what a row needs, and notes no sums.
    pub fn keeps(&self, decision: Decision, request_id: RequestId) -> bool {
        self.audit.keeps(decision, request_id.as_str())
    }

    /// A row that [`Self::keeps`] asked for.
    pub fn keep(&self, moment: Moment, facts: &Facts<'_>) {
        let latency_ns = Stamp::now().nanos_since(moment.start);
        self.audit.note(self.row(moment, facts, latency_ns));
    }

    /// Decisions that are in no sum.
    pub fn sums_dropped(&self) -> u64 {
        self.rollups.dropped()
    }

    pub fn counts(&self) -> AuditCounts {
        self.audit.counts()
    }

    fn row(&self, moment: Moment, facts: &Facts<'_>, latency_ns: u64) -> AuditRow {
        let limit = facts.limit;
        let clean = |text: &str| cleaned(text, facts.key_text);
        AuditRow {
            at: moment.now,
            tenant_id: Arc::clone(facts.tenant_id),
            request_id: moment.request_id.as_str().into(),
            decision: facts.decision,
            code: facts.code.into(),
            status: facts.status,
            key_id: facts.key_id.cloned(),
            external_id: facts.whose.map(|whose| whose.name()),
            ip: facts.ip.map(|ip| ip.to_string().into()),
            method: facts.method.map(clean),
            endpoint: facts.endpoint.cloned(),
            path: facts.path.map(|path| clean(without_query(path))),
            rule: facts.rule.cloned(),
            limit: limit.map(|limit| clean(limit.name)),
            count: limit.map(|limit| limit.count),
            retry_after_ms: limit.and_then(|limit| limit.retry_after_ms),
            node: Arc::clone(&self.node),
            region: self.region.clone(),
            latency_us: latency_ns / 1_000,
            degraded: facts.degraded,
        }
    }

    /// Writes all that waits by now; what comes meanwhile is for the next time, or a flood would keep it at work for ever.
    /// What cannot be written now waits on; what never could be is given up and counted.
    pub async fn write_out(&self, store: &Store) -> Result<(), StoreError> {
        let _turn = self.writing.lock().await;
        let mut due = self.counts().waiting;
        loop {
            let rows = self.audit.take(BATCH);
            if rows.is_empty() {
                return Ok(());
            }
            match store.write_decisions(&rows).await {
                Ok(_) => {
                    self.audit.wrote(rows.len());
                    due = due.saturating_sub(rows.len());
                    if due == 0 {
                        return Ok(());
                    }
                }
                Err(error) => {
                    store.note_failure(&error);
                    if error.is_of_the_rows() {
                        self.audit.gave_up(rows.len());
                    } else {
                        self.audit.give_back(rows);
                    }
                    return Err(error);
                }
            }
        }
    }

    /// When nothing follows any more.
    pub async fn close(&self, store: &Store) {
        if let Err(error) = self.write_out(store).await {
            let lost = self.counts().waiting;
            tracing::warn!("{lost} decisions could not be written to the audit: {error}");
        }
        if let Err(error) = self.add_up(store).await {
            tracing::warn!("the last decisions could not be added up: {error}");
        }
    }

    /// Adds what was counted to its minutes. Sums are for looking at: should an
    /// answer of the database be lost, what it was about may be in them twice. Bills are made of usage.
    pub async fn add_up(&self, store: &Store) -> Result<(), StoreError> {
        let _turn = self.writing.lock().await;
        let sums = self.rollups.take();
        let added = store.add_minutes(&sums).await;
        if added.is_err() {
            self.rollups.give_back(sums);
        }
        added
    }

    /// Runs until dropped.
    async fn add_behind(self, store: Store, clock: Clock) {
        let mut beats = every(ADD);
        let (mut failing, mut unrolled) = (false, false);
        for round in (0..ROLL_UP_ROUNDS).cycle() {
            beats.tick().await;
            let outcome = self.add_up(&store).await;
            report("decisions could not be added up", &outcome, &mut failing);
            if round == 0 {
                let outcome = store.roll_up(clock.now()).await;
                report("hours and days could not be made of minutes", &outcome, &mut unrolled);
            }
        }
    }

    /// Runs until dropped.
    async fn write_behind(self, store: Store) {
        let mut beats = every(LOOK);
        let mut failing = false;
        for look in (1..=LOOKS_MAX).cycle() {
            beats.tick().await;
            if look < LOOKS_MAX && self.counts().waiting < ENOUGH {
                continue;
            }
            let outcome = self.write_out(&store).await;
            report("decisions could not be written to the audit", &outcome, &mut failing);
        }
    }
}

/// Keeps room for the months to come and forgets what is old. Runs until dropped.
async fn keep_months(store: Store, clock: Clock, retention: Retention) {
    let mut beats = every(TIDY);
    let (mut roomless, mut failing, mut sums_failing) = (false, false, false);
    loop {
        beats.tick().await;
        let outcome = store.prepare_months(clock.now()).await;
        report("room for months to come could not be made", &outcome, &mut roomless);
        if let Retention::Days(days) = retention {
            let outcome = store.prune_decisions(forgotten_before(clock.now(), days)).await;
            report("old decisions could not be forgotten", &outcome, &mut failing);
        }
        let outcome = store.prune_rollups(clock.now()).await;
        report("old sums could not be forgotten", &outcome, &mut sums_failing);
    }
}

/// Whole months, and each a week later than it may go: whoever archives by hand, or by a line in cron, finds it whole.
fn forgotten_before(now: Millis, days: u64) -> Millis {
    let kept_ms = days.saturating_mul(DAY_MS).saturating_add(ARCHIVE_GRACE_MS);
    Window::Month.bounds(Millis(now.0.saturating_sub(kept_ms))).0
}

/// What a verdict is in the three words of the audit, and what a proxy sends its client for it.
pub fn ending(code: Code) -> (Decision, u16) {
    match code {
        Code::Valid => (Decision::Allowed, 200),
        Code::NotFound | Code::Expired | Code::Revoked => (Decision::Blocked, 401),
        Code::Disabled | Code::Forbidden | Code::InsufficientPermissions | Code::Blocked => {
            (Decision::Blocked, 403)
        }
        Code::RateLimited | Code::UsageExceeded => (Decision::Throttled, 429),
        Code::Unavailable => (Decision::Throttled, 503),
    }
}

fn without_query(path: &str) -> &str {
    path.split(['?', '#']).next().unwrap_or_default()
}

/// Without the key, should somebody have put it there, without what no database stores, and not too long.
pub fn cleaned(text: &str, key_text: Option<&str>) -> Box<str> {
    let mut struck = match key_text.filter(|key| !key.is_empty() && text.contains(*key)) {
        Some(key) => text.replace(key, STRUCK),
        None => text.to_owned(),
    };
    // Another key of ours, which its checksum gives away.
    let words = struck.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
    let keys = words.filter(|word| word.len() >= KEY_CHARS_MIN && key_is_intact(word));
    for key in keys.map(str::to_owned).collect::<Vec<_>>() {
        struck = struck.replace(&key, STRUCK);
    }
    struck.chars().filter(|sign| *sign != '\0').take(TEXT_CHARS_MAX).collect::<String>().into()
}

#[cfg(test)]
mod tests;
