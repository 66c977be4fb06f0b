//! The text format 0.0.4 of Prometheus, which scrapers read that do not know `OpenMetrics`.

use std::collections::BTreeSet;

/// The metrics of `open_metrics` in the older format: there, a counter is named as its samples are, and no line marks the end.
pub(super) fn from_open_metrics(open_metrics: &str) -> String {
    let counters: BTreeSet<&str> = open_metrics.lines().filter_map(counter).collect();
    let lines = open_metrics.lines().filter(|line| *line != "# EOF" && !line.starts_with("# UNIT "));
    lines.map(|line| renamed(line, &counters) + "\n").collect()
}

/// The name in a line that describes a counter.
fn counter(line: &str) -> Option<&str> {
    line.strip_prefix("# TYPE ")?.strip_suffix(" counter")
}

/// A line, with the name of its samples if it describes one of the `counters`.
fn renamed(line: &str, counters: &BTreeSet<&str>) -> String {
    let mut words = line.splitn(4, ' ');
    match [words.next(), words.next(), words.next()] {
        [Some("#"), Some(what @ ("TYPE" | "HELP")), Some(name)] if counters.contains(name) => {
            format!("# {what} {name}_total {}", words.next().unwrap_or_default())
        }
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_named_as_their_samples() {
        let open_metrics = "# HELP a Answers.\n# TYPE a counter\na_total{kind=\"# TYPE b counter\"} 1\n\
                            # HELP b Bytes, as in a.\n# TYPE b gauge\n# UNIT b bytes\nb 2\n# EOF\n";
        let expected = "# HELP a_total Answers.\n# TYPE a_total counter\na_total{kind=\"# TYPE b counter\"} 1\n\
                        # HELP b Bytes, as in a.\n# TYPE b gauge\nb 2\n";
        assert_eq!(from_open_metrics(open_metrics), expected);
    }
}
