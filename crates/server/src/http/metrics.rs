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
use tollkeeper_account::{BOUNDS_US, Code, Health, HistogramReading, Kind, Ledger};
use tollkeeper_core::Millis;
use tollkeeper_decide::Decider;

use super::idempotency::Idempotency;
use super::reply::{Reply, plain};
use super::route::METRICS_TYPE;
use crate::app::App;
use crate::net::Gauges;

pub fn metrics(app: &App) -> Reply {
    let mut registry = Registry::with_prefix("tollkeeper");
    registry.register_collector(Box::new(Readings {
        ledger: app.ledger.clone(),
        decider: Arc::clone(&app.decider),
        journal: Arc::clone(&app.journal),
        gauges: Arc::clone(&app.gauges),
        idempotency: Arc::clone(&app.idempotency),
        now: app.clock.now(),
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
    decider: Arc<Decider>,
    journal: Arc<Health>,
    gauges: Arc<Gauges>,
    idempotency: Arc<Idempotency>,
    now: Millis,
    node: Arc<str>,
}

/// By the index that `CacheName` and `Freshness` have.
const CACHES: [&str; 3] = ["root_key", "namespace", "key"];
const FRESHNESS: [&str; 3] = ["fresh", "stale", "miss"];

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
        sheet.histogram(
            "decision_seconds",
            "From the whole request to the reply.",
            &reading.decisions,
        )?;
        self.loads(&mut sheet)?;
        self.table(&mut sheet)?;
        self.network(&mut sheet)?;
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
        sheet.counter("connections_refused", "Connections over the cap.", self.gauges.refused())?;
        sheet.counter(
            "connections_timed_out",
            "Closed for being slow or idle.",
            self.gauges.timed_out(),
        )
    }

    fn durability(&self, sheet: &mut Page<'_, '_>) -> fmt::Result {
        sheet.counter(
            "idempotency_forgotten",
            "Answers that left before their minute was over.",
            self.idempotency.forgotten(),
        )?;
        let failing = self.journal.failing() || self.journal.is_late(self.now);
        sheet.counter(
            "journal_failures",
            "Writes to the journal that failed.",
            self.journal.failures(),
        )?;
        sheet.gauge("journal_bytes", "Size of the current journal file.", self.journal.bytes())?;
        sheet.gauge(
            "degraded",
            "1 while counters would not survive a restart.",
            u64::from(failing),
        )?;
        let labels = [("version", env!("CARGO_PKG_VERSION")), ("node", &*self.node)];
        sheet.info("build_info", "This server.", &labels)
    }
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

    fn info(&mut self, name: &str, help: &str, labels: &[(&str, &str)]) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(1_i64).encode(metric.encode_family(&labels.to_vec())?)
    }

    fn histogram(&mut self, name: &str, help: &str, reading: &HistogramReading) -> fmt::Result {
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        Seconds(reading).encode(metric)
    }
}

/// A reading in the unit that Prometheus speaks.
struct Seconds<'a>(&'a HistogramReading);

impl TypedMetric for Seconds<'_> {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Seconds<'_> {
    #[allow(clippy::cast_precision_loss, reason = "a metric is read by people")]
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        let bounds = BOUNDS_US.iter().map(|us| *us as f64 / 1e6).chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(self.0.buckets).collect();
        let count = self.0.buckets.iter().sum();
        encoder.encode_histogram::<NoLabelSet>(self.0.sum_ns as f64 / 1e9, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}
