//! `/metrics`: what was counted, read from the ledger's pages and the parts' own gauges when somebody asks.
//! Labels come from closed lists; no key, identifier or tenant is ever one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use http::StatusCode;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet, text,
};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Registry;
use tollkeeper_account::{AuditCounts, BOUNDS_US, Code, Health, HistogramReading, Kind, Ledger};
use tollkeeper_decide::{Agreement, Decider, Mode};

use super::body;
use super::idempotency::Idempotency;
use super::reply::{Reply, plain};
use super::route::METRICS_TYPE;
use crate::app::App;
use crate::fleet::Shared;
use crate::forward_auth::ForwardAuth;
use crate::net::Gauges;
use crate::rollback::Rollback;
use crate::rule_books::RuleKeeper;
use crate::shared_cache::SharedCache;
use crate::skew::Skew;
use crate::usage::UsageReading;

pub fn metrics(app: &App) -> Reply {
    let mut registry = Registry::with_prefix("tollkeeper");
    registry.register_collector(Box::new(Readings {
        ledger: app.ledger.clone(),
        audit: app.auditor.counts(),
        sums_dropped: app.auditor.sums_dropped(),
        usage: app.usage.reading(),
        decider: Arc::clone(&app.decider),
        journal: Arc::clone(&app.journal),
        gauges: Arc::clone(&app.gauges),
        forward_auth: Arc::clone(&app.forward_auth),
        idempotency: Arc::clone(&app.idempotency),
        shared: app.shared.clone(),
        cache: app.cache.clone(),
        rollback: Arc::clone(&app.rollback),
        rules: app.rules.clone(),
        degraded: app.is_degraded(app.clock.now()),
        node: Arc::clone(&app.node),
    }));
    let mut out = String::new();
    match text::encode(&mut out, &registry) {
        Ok(()) => plain(StatusCode::OK, METRICS_TYPE, out),
        Err(_) => {
            plain(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", "metrics could not be written\n")
        }
    }
}

#[derive(Debug)]
struct Readings {
    ledger: Ledger,
    audit: AuditCounts,
    sums_dropped: u64,
    usage: UsageReading,
    decider: Arc<Decider>,
    journal: Arc<Health>,
    gauges: Arc<Gauges>,
    forward_auth: Arc<ForwardAuth>,
    idempotency: Arc<Idempotency>,
    shared: Option<Shared>,
    cache: Option<SharedCache>,
    rollback: Arc<Rollback>,
    rules: RuleKeeper,
    degraded: bool,
    node: Arc<str>,
}

/// By the index that `CacheName` and `Freshness` have.
const CACHES: [&str; 4] = ["root_key", "namespace", "key", "identity"];
const FRESHNESS: [&str; 3] = ["fresh", "stale", "miss"];

/// In the order in which the ledger counts them.
const FALLBACKS: [&str; 2] = ["admitted_without_redis", "refused_without_redis"];

// === impl Readings ===

impl Collector for Readings {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let reading = self.ledger.read();
        let mut sheet = Page(&mut encoder);
        sheet.counters("checks", "Decisions by kind and outcome.", ["kind", "outcome"], || {
            let each = |kind: Kind| Code::ALL.map(move |code| (kind, code));
            let all = Kind::ALL.into_iter().flat_map(each);
            all.map(|(kind, code)| {
                ([kind.label(), code.label()], reading.checks[kind as usize][code as usize])
            })
        })?;
        sheet.responses(&reading.responses)?;
        sheet.counters("cache_reads", "Reads of a record cache.", ["cache", "status"], || {
            let rows = CACHES.into_iter().zip(reading.cache_reads);
            rows.flat_map(|(cache, row)| {
                FRESHNESS.into_iter().zip(row).map(move |(status, count)| ([cache, status], count))
            })
        })?;
        if let Some(cache) = &self.cache {
            let help = "Reads of the cache that nodes share.";
            sheet.counters("shared_cache_reads", help, ["cache", "status"], || cache.reads())?;
        }
        sheet.histogram(
            "decision_seconds",
            "From the whole request to the reply.",
            &Seconds::of_decisions(&reading.decisions),
        )?;
        sheet.counters("fallback", "Decisions made without Redis.", ["reason"], || {
            FALLBACKS.into_iter().zip(reading.fallbacks).map(|(reason, count)| ([reason], count))
        })?;
        if let Some(shared) = &self.shared {
            fleet(&mut sheet, shared)?;
            redis(&mut sheet, shared)?;
        }
        sheet.counters("rollbacks", "Returns to memory by itself.", ["reason"], || {
            self.rollback.counts().map(|(reason, count)| ([reason.word()], count))
        })?;
        sheet.gauge(
            "rules",
            "Rules in force, of all tenants.",
            self.decider.rules().len() as u64,
        )?;
        let help = "Sets of rules that could not be loaded; the ones before stay in force.";
        sheet.counter("rule_load_failures", help, self.rules.failures())?;
        self.loads(&mut sheet)?;
        self.table(&mut sheet)?;
        self.network(&mut sheet)?;
        self.audited(&mut sheet)?;
        used(&mut sheet, &self.usage)?;
        self.durability(&mut sheet)
    }
}

impl Readings {
    fn loads(&self, sheet: &mut Page<'_, '_>) -> fmt::Result {
        let both = [("root_key", self.decider.root_key_loads()), ("key", self.decider.key_loads())];
        sheet.counters("cache_loads", "Records asked of the database.", ["cache"], || {
            both.into_iter().map(|(cache, loads)| ([cache], loads.asked))
        })?;
        let help = "Asks turned away because too many keys were unknown.";
        sheet.counters("cache_loads_refused", help, ["cache"], || {
            both.into_iter().map(|(cache, loads)| ([cache], loads.refused))
        })
    }

    fn audited(&self, sheet: &mut Page<'_, '_>) -> fmt::Result {
        sheet.counter("audit_rows", "Decisions written to the audit.", self.audit.written)?;
        let help = "Decisions that the audit lacks, for want of room or because the database refused them.";
        sheet.counter("audit_dropped", help, self.audit.dropped)?;
        let help = "Decisions that wait to be written to the audit.";
        sheet.gauge("audit_waiting", help, self.audit.waiting as u64)?;
        let help = "Decisions that stats lack, because too many kinds came at once.";
        sheet.counter("stats_dropped", help, self.sums_dropped)
    }

    fn table(&self, sheet: &mut Page<'_, '_>) -> fmt::Result {
        let cells = self.decider.cells().stats();
        sheet.gauge("cells", "Live cells in the table.", cells.live as u64)?;
        sheet.counter(
            "cells_evicted",
            "Cells that left a full table for the store.",
            cells.evicted,
        )?;
        sheet.counter(
            "cells_lost",
            "Counters given up because the store fell behind.",
            cells.lost,
        )?;
        sheet.counter("cells_swept", "Idle cells forgotten.", cells.swept)
    }

    fn network(&self, sheet: &mut Page<'_, '_>) -> fmt::Result {
        sheet.gauge("connections", "Open connections.", self.gauges.open())?;
        sheet.gauge("held", "Answers to proxies held back.", self.forward_auth.held())?;
        sheet.counter("connections_refused", "Connections over the cap.", self.gauges.refused())?;
        sheet.counter(
            "connections_timed_out",
            "Closed for being slow or idle.",
            self.gauges.timed_out(),
        )?;
        let help = "Bodies refused because large ones of others took all the room.";
        sheet.counter("bodies_crowded_out", help, body::crowded_out())
    }

    fn durability(&self, sheet: &mut Page<'_, '_>) -> fmt::Result {
        sheet.counter(
            "idempotency_forgotten",
            "Answers that left before their minute was over.",
            self.idempotency.forgotten(),
        )?;
        sheet.counter(
            "journal_failures",
            "Writes to the journal that failed.",
            self.journal.failures(),
        )?;
        sheet.gauge("journal_bytes", "Size of the current journal file.", self.journal.bytes())?;
        sheet.gauge(
            "degraded",
            "1 while Redis is out of reach, or counters would not survive a restart.",
            u64::from(self.degraded),
        )?;
        let labels = [("version", env!("CARGO_PKG_VERSION")), ("node", &*self.node)];
        sheet.info("build_info", "This server.", &labels)
    }
}

/// The shared limits: how they are counted, how often somebody waited, what Redis would have said.
fn fleet(sheet: &mut Page<'_, '_>, shared: &Shared) -> fmt::Result {
    let fleet = &shared.fleet;
    let mode = fleet.modes.of_fleet();
    sheet.gauges("mode", "1 for the mode of the fleet.", "mode", || {
        let all = [Mode::Memory, Mode::Shadow, Mode::Redis].into_iter();
        all.map(move |one| (one.word(), u64::from(one == mode)))
    })?;
    sheet.gauge("nodes", "Nodes of the fleet, this one included.", fleet.table().nodes())?;
    if let Some(skew) = Skew::largest(&shared.origin) {
        let help = "How far this machine's clock is ahead of Redis'; below 0: behind.";
        sheet.seconds("clock_skew_seconds", help, skew.seconds())?;
    }
    let leases = fleet.table().stats();
    sheet.gauge("leases", "Shared cells in the table.", leases.cells as u64)?;
    sheet.counter("lease_hits", "Asks decided from a lease at hand.", leases.near)?;
    sheet.counter("lease_waits", "Asks that waited for Redis.", leases.waited)?;
    sheet.counter(
        "lease_detached",
        "Asks that found the table of leases full.",
        leases.detached,
    )?;
    let lines = fleet.shadowed.read();
    let sum = |of: fn(&Agreement) -> u64| lines.iter().map(|(_, one)| of(one)).sum::<u64>();
    let (stricter, looser) = (sum(|one| one.stricter), sum(|one| one.looser));
    let same = sum(|one| one.compared) - stricter - looser;
    let rows = [("same", same), ("stricter", stricter), ("looser", looser)];
    sheet.counters(
        "shadow",
        "Decisions compared with Redis in shadow mode.",
        ["agreement"],
        || rows.into_iter().map(|(agreement, count)| ([agreement], count)),
    )?;
    let skipped = fleet.shadowed.skipped();
    sheet.counter(
        "shadow_skipped",
        "Decisions not compared: too many at once, or Redis did not answer.",
        skipped,
    )
}

/// Usage between the request and the database.
fn used(sheet: &mut Page<'_, '_>, usage: &UsageReading) -> fmt::Result {
    let pages = &usage.pages;
    sheet.gauge("usage_waiting", "Minutes of keys not seen in the ledger yet.", pages.waiting)?;
    sheet.gauge("usage_unkept", "Of these those that a kill would lose.", pages.unkept)?;
    let help = "Minutes of keys counted under their project alone, for want of room.";
    sheet.counter("usage_overflowed", help, pages.overflowed)?;
    sheet.counter("usage_lost", "Requests that no room was found for at all.", pages.lost)?;
    let help = "Times that the disk had no room for more usage.";
    sheet.counter("usage_page_failures", help, pages.failures)?;
    sheet.counter("usage_flush_failures", "Rounds that did not go well.", usage.failures)?;
    sheet.gauge("usage_flush_age_ms", "Since the last one that did.", usage.lag_ms)?;
    let help = "Minutes of keys of earlier processes that could not be read.";
    sheet.counter("usage_set_aside", help, usage.set_aside)?;
    let help = "Minutes of keys too old for the ledger to know whether they were counted.";
    sheet.counter("usage_too_old", help, usage.too_old)?;
    let help = "Times that the database had lost usage and was told again.";
    sheet.counter("usage_rewound", help, usage.rewound)
}

/// Connections and calls.
fn redis(sheet: &mut Page<'_, '_>, shared: &Shared) -> fmt::Result {
    let stats = shared.origin.redis().stats();
    let connects = [("ok", stats.connects_ok), ("failed", stats.connects_failed)];
    sheet.counters("redis_connects", "Connections to Redis.", ["result"], || {
        connects.into_iter().map(|(result, count)| ([result], count))
    })?;
    let calls =
        [("ok", stats.calls_ok), ("failed", stats.calls_failed), ("late", stats.calls_late)];
    sheet.counters("redis_calls", "Calls of Redis.", ["result"], || {
        calls.into_iter().map(|(result, count)| ([result], count))
    })?;
    let servers = shared.origin.redis().servers();
    let connected = servers.iter().filter(|server| server.connected).count();
    sheet.gauge("redis_servers", "Servers of Redis there should be.", servers.len() as u64)?;
    sheet.gauge("redis_servers_connected", "Servers of Redis connected.", connected as u64)?;
    sheet.histogram(
        "redis_operation_seconds",
        "From a call of Redis to its answer.",
        &Seconds::of_calls(&stats.took),
    )
}

/// One metric at a time, with little ceremony.
struct Page<'e, 'w>(&'e mut DescriptorEncoder<'w>);

// === impl Page ===

impl Page<'_, '_> {
    fn counters<const N: usize, I>(
        &mut self,
        name: &str,
        help: &str,
        names: [&'static str; N],
        rows: impl FnOnce() -> I,
    ) -> fmt::Result
    where
        I: Iterator<Item = ([&'static str; N], u64)>,
    {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (values, count) in rows() {
            let labels: Vec<_> = names.iter().copied().zip(values).collect();
            ConstCounter::new(count).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }

    /// A series appears with the first response of its status: at most one per status there is.
    fn responses(&mut self, counts: &BTreeMap<u16, u64>) -> fmt::Result {
        let help = "HTTP responses by status.";
        let mut metric = self.0.encode_descriptor("responses", help, None, MetricType::Counter)?;
        for (status, count) in counts {
            let labels = [("status", *status)];
            ConstCounter::new(*count).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn counter(&mut self, name: &str, help: &str, count: u64) -> fmt::Result {
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(count).encode(metric)
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)).encode(metric)
    }

    fn seconds(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(metric)
    }

    fn gauges<I>(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        rows: impl FnOnce() -> I,
    ) -> fmt::Result
    where
        I: Iterator<Item = (&'static str, u64)>,
    {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (value, count) in rows() {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            ConstGauge::new(count).encode(metric.encode_family(&[(label, value)])?)?;
        }
        Ok(())
    }

    fn info(&mut self, name: &str, help: &str, labels: &[(&str, &str)]) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(1_i64).encode(metric.encode_family(&labels.to_vec())?)
    }

    fn histogram(&mut self, name: &str, help: &str, reading: &Seconds) -> fmt::Result {
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        reading.encode(metric)
    }
}

/// A reading in the unit that Prometheus speaks.
struct Seconds {
    buckets: Vec<(f64, u64)>,
    sum: f64,
}

// === impl Seconds ===

#[allow(clippy::cast_precision_loss, reason = "a metric is read by people")]
impl Seconds {
    fn of_decisions(reading: &HistogramReading) -> Self {
        Self::new(&BOUNDS_US, &reading.buckets, reading.sum_ns as f64 / 1e9)
    }

    fn of_calls(reading: &tollkeeper_redis::HistogramReading) -> Self {
        Self::new(&tollkeeper_redis::BOUNDS_US, &reading.buckets, reading.sum_us as f64 / 1e6)
    }

    fn new(bounds_us: &[u64], counts: &[u64], sum: f64) -> Self {
        let bounds = bounds_us.iter().map(|us| *us as f64 / 1e6).chain([f64::INFINITY]);
        Self { buckets: bounds.zip(counts.iter().copied()).collect(), sum }
    }
}

impl TypedMetric for Seconds {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Seconds {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        let count = self.buckets.iter().map(|(_, count)| count).sum();
        encoder.encode_histogram::<NoLabelSet>(self.sum, count, &self.buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}
