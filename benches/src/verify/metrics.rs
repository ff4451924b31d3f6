//! What a server counts of itself, read from its `/metrics`.

use tollkeeper_testkit::Connection;

use crate::failure::Failure;

const BUCKET: &str = "tollkeeper_decision_seconds_bucket{le=\"";

#[derive(Debug)]
pub(crate) struct Metrics(String);

// === impl Metrics ===

impl Metrics {
    pub(crate) fn of(url: &str) -> Result<Self, Failure> {
        let mut connection = Connection::open(url).map_err(Failure::io("a connection"))?;
        let answer = connection.exchange("GET", "/metrics", &[], b"");
        Ok(Self(answer.map_err(Failure::io("/metrics"))?.text()))
    }

    /// One series, labels included; one that is not there counts nothing yet.
    pub(crate) fn count(&self, series: &str) -> u64 {
        let line = self.0.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).unwrap_or(0)
    }

    /// How often the database was asked for a key.
    pub(crate) fn key_loads(&self) -> u64 {
        self.count("tollkeeper_cache_loads_total{cache=\"key\"}")
    }

    /// The bound, in µs, below which this share of the requests since `before` was served.
    pub(crate) fn served_within_us(&self, before: &Self, share: f64) -> Option<f64> {
        let (now, then) = (self.buckets(), before.buckets());
        let since = |at: usize| now[at].1 - then.get(at).map_or(0.0, |bucket| bucket.1);
        let all = since(now.len().checked_sub(1)?);
        let at = (0..now.len()).find(|at| since(*at) >= share * all)?;
        Some(now[at].0 * 1e6)
    }

    /// Bounds in seconds, each with the number of requests that took no longer.
    fn buckets(&self) -> Vec<(f64, f64)> {
        let rows = self.0.lines().filter_map(|line| line.strip_prefix(BUCKET)?.split_once("\"} "));
        let number = |text: &str| match text {
            "+Inf" => Some(f64::INFINITY),
            text => text.parse().ok(),
        };
        rows.filter_map(|(bound, count)| Some((number(bound)?, number(count)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(counts: [u64; 3]) -> Metrics {
        let row = |(le, count)| format!("{BUCKET}{le}\"}} {count}\n");
        Metrics(["0.001", "0.01", "+Inf"].into_iter().zip(counts).map(row).collect())
    }

    #[test]
    fn a_share_is_of_what_came_since_and_told_by_its_bucket() {
        let (before, after) = (counted([100, 100, 100]), counted([199, 200, 200]));
        assert_eq!(after.served_within_us(&before, 0.99), Some(1_000.0));
        assert_eq!(after.served_within_us(&before, 0.995), Some(10_000.0));
        assert_eq!(after.count("tollkeeper_nothing"), 0);
    }
}
