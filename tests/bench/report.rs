//! The table: one row for each measurement, built of pairs; and the progress messages before it.

use std::io::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

/// The rows measured so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

/// A row of the table.
#[derive(Debug)]
struct Row {
    what: String,
    unit: Unit,
    pairs: Pairs,
    target: Target,
}

/// Measurements of the floor and of our program, taken in turns. Both of a pair have the same load of the machine, so the
/// median of the pairs' ratios is judged.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    floor: Vec<f64>,
    ours: Vec<f64>,
}

/// The unit of a row's numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unit {
    /// Milliseconds.
    Millis,
    /// Mebibytes.
    Mebibytes,
    /// Per second.
    PerSecond,
    /// A factor.
    Times,
    /// A number of things.
    Number,
}

/// The target for the ratio of ours to the floor.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// At most this, where less is better.
    AtMost(f64),
    /// At least this, where more is better.
    AtLeast(f64),
}

impl Pairs {
    /// A single pair, for a value that does not vary.
    pub(crate) fn once(floor: f64, ours: f64) -> Self {
        Self { floor: vec![floor], ours: vec![ours] }
    }

    pub(crate) fn push(&mut self, floor: f64, ours: f64) {
        self.floor.push(floor);
        self.ours.push(ours);
    }

    /// A pair of times, in milliseconds.
    pub(crate) fn push_times(&mut self, floor: Duration, ours: Duration) {
        self.push(floor.as_secs_f64() * 1_000.0, ours.as_secs_f64() * 1_000.0);
    }

    /// The ratios, the smallest first.
    fn ratios(&self) -> Vec<f64> {
        sorted(self.floor.iter().zip(&self.ours).map(|(floor, ours)| ours / floor).collect())
    }
}

impl Unit {
    fn text(self, number: f64) -> String {
        match self {
            Self::Millis if number < 10.0 => format!("{number:.3} ms"),
            Self::Millis => format!("{number:.0} ms"),
            Self::Mebibytes => format!("{number:.1} MiB"),
            Self::PerSecond => format!("{number:.0}/s"),
            Self::Times => format!("{number:.2}x"),
            Self::Number => format!("{number:.1}"),
        }
    }

    const fn symbol(self) -> &'static str {
        match self {
            Self::Millis => "ms",
            Self::Mebibytes => "MiB",
            Self::PerSecond => "1/s",
            Self::Times | Self::Number => "1",
        }
    }
}

impl Target {
    fn met(self, ratio: f64) -> bool {
        match self {
            Self::AtMost(most) => ratio <= most,
            Self::AtLeast(least) => ratio >= least,
        }
    }
}

impl Row {
    fn met(&self) -> bool {
        self.target.met(median(&self.pairs.ratios()))
    }

    fn cells(&self) -> [String; 7] {
        let ratios = self.pairs.ratios();
        let spread = match ratios.as_slice() {
            [least, .., most] => format!("{least:.2}..{most:.2}"),
            [] | [_] => "-".to_owned(),
        };
        let target = match self.target {
            Target::AtMost(most) => format!("<= {most:.2}x"),
            Target::AtLeast(least) => format!(">= {least:.2}x"),
        };
        [
            self.what.clone(),
            self.unit.text(median(&self.pairs.floor)),
            self.unit.text(median(&self.pairs.ours)),
            format!("{:.2}x", median(&ratios)),
            spread,
            target,
            if self.met() { "yes" } else { "**no**" }.to_owned(),
        ]
    }

    fn json(&self) -> Value {
        let ratios = self.pairs.ratios();
        let target = match self.target {
            Target::AtMost(most) => json!({ "at-most": most }),
            Target::AtLeast(least) => json!({ "at-least": least }),
        };
        json!({
            "what": self.what,
            "unit": self.unit.symbol(),
            "floor": median(&self.pairs.floor),
            "ours": median(&self.pairs.ours),
            "ratio": median(&ratios),
            "ratios": ratios,
            "target": target,
            "met": self.met(),
        })
    }
}

impl Report {
    pub(crate) fn push(&mut self, what: impl Into<String>, unit: Unit, pairs: Pairs, target: Target) {
        let row = Row { what: what.into(), unit, pairs, target };
        progress(row.cells().join(" | "));
        self.rows.push(row);
    }

    /// Whether every row meets its target.
    pub(crate) fn met(&self) -> bool {
        self.rows.iter().all(Row::met)
    }

    pub(crate) fn json(&self) -> String {
        let rows: Vec<Value> = self.rows.iter().map(Row::json).collect();
        format!("{:#}", json!({ "rows": rows }))
    }

    pub(crate) fn markdown(&self) -> String {
        let head = ["what", "floor", "ours", "ratio", "spread", "target", "met"].map(ToOwned::to_owned);
        let lines: Vec<[String; 7]> = std::iter::once(head).chain(self.rows.iter().map(Row::cells)).collect();
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..7).map(width).collect();
        let line = |cells: &[String]| {
            let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            format!("| {} |\n", padded.collect::<Vec<_>>().join(" | "))
        };
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        let (head, rows) = lines.split_at(1);
        let rows = rows.iter().map(|cells| line(cells));
        head.iter().map(|cells| line(cells)).chain([line(&rule)]).chain(rows).collect()
    }
}

/// Prints progress to standard error.
pub(crate) fn progress(text: impl std::fmt::Display) {
    // Lost progress messages do not matter.
    let _ = writeln!(std::io::stderr(), "bench: {text}");
}

/// Bytes in mebibytes.
pub(crate) fn mebibytes(bytes: u64) -> f64 {
    f64::from(u32::try_from(bytes / 1_024).unwrap_or(u32::MAX)) / 1_024.0
}

fn sorted(mut numbers: Vec<f64>) -> Vec<f64> {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers
}

/// The middle number, or the mean of the two in the middle. Without numbers it is NaN, which meets no target.
fn median(numbers: &[f64]) -> f64 {
    let numbers = sorted(numbers.to_vec());
    let middle = numbers.len() / 2;
    match (numbers.get(middle), numbers.len() % 2) {
        (None, _) => f64::NAN,
        (Some(upper), 0) => f64::midpoint(numbers[middle - 1], *upper),
        (Some(only), _) => *only,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        let mut report = Report::default();
        let mut steps = Pairs::default();
        for (floor, ours) in [(500, 700), (1_000, 2_000), (400, 500)] {
            steps.push_times(Duration::from_micros(floor), Duration::from_micros(ours));
        }
        report.push("step", Unit::Millis, steps, Target::AtMost(1.5));
        assert!(report.met());
        report.push("rate", Unit::PerSecond, Pairs::once(100.0, 250.0), Target::AtLeast(3.0));
        assert!(!report.met());
        let expected = "\
            | what | floor    | ours     | ratio | spread     | target   | met    |\n\
            | ---- | -------- | -------- | ----- | ---------- | -------- | ------ |\n\
            | step | 0.500 ms | 0.700 ms | 1.40x | 1.25..2.00 | <= 1.50x | yes    |\n\
            | rate | 100/s    | 250/s    | 2.50x | -          | >= 3.00x | **no** |\n";
        assert_eq!(report.markdown(), expected);
    }

    #[test]
    fn median_of_even_count() {
        assert!((median(&[4.0, 1.0, 3.0, 2.0]) - 2.5).abs() < f64::EPSILON);
    }

    #[test]
    fn empty_row_misses_target() {
        let mut report = Report::default();
        report.push("nothing", Unit::Millis, Pairs::default(), Target::AtMost(1.5));
        assert!(!report.met());
    }
}
