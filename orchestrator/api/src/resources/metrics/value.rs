//! Values of gauges.

use prometheus_client::metrics::gauge::Gauge;

/// A gauge that shows `value`.
pub(super) fn gauge(value: i64) -> Gauge {
    let gauge = Gauge::default();
    gauge.set(value);
    gauge
}

/// `count` as a gauge has it; the largest such number where it is larger.
pub(super) fn number(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}
