//! The table: one row for each thing measured.

use std::time::Duration;

use serde_json::{Value, json};

/// What has been measured.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

/// One line.
#[derive(Debug)]
pub(crate) struct Row {
    /// What was measured.
    pub(crate) what: String,
    /// What the bare loop needs.
    pub(crate) floor: Option<Quantity>,
    /// What the orchestrator needs.
    pub(crate) ours: Quantity,
    /// What is compared with the target.
    pub(crate) target: Target,
}

/// A number with its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Quantity {
    /// Milliseconds.
    Millis(f64),
    /// Mebibytes.
    Mebibytes(f64),
    /// So many a second.
    PerSecond(f64),
}

/// What a row should be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// At most this many times the floor.
    Ratio(f64),
    /// At most this, by itself.
    AtMost(Quantity),
    /// At least this, by itself.
    AtLeast(Quantity),
}

impl Quantity {
    pub(crate) fn of(time: Duration) -> Self {
        Self::Millis(time.as_secs_f64() * 1_000.0)
    }

    fn number(self) -> f64 {
        match self {
            Self::Millis(number) | Self::Mebibytes(number) | Self::PerSecond(number) => number,
        }
    }

    fn text(self) -> String {
        match self {
            Self::Millis(millis) if millis < 10.0 => format!("{millis:.3} ms"),
            Self::Millis(millis) => format!("{millis:.0} ms"),
            Self::Mebibytes(mebibytes) => format!("{mebibytes:.0} MiB"),
            Self::PerSecond(rate) => format!("{rate:.0}/s"),
        }
    }
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        self.floor.map(|floor| self.ours.number() / floor.number())
    }

    fn met(&self) -> bool {
        match self.target {
            Target::Ratio(most) => self.ratio().is_some_and(|ratio| ratio <= most),
            Target::AtMost(most) => self.ours.number() <= most.number(),
            Target::AtLeast(least) => self.ours.number() >= least.number(),
        }
    }

    fn cells(&self) -> [String; 6] {
        let target = match self.target {
            Target::Ratio(most) => format!("<= {most:.2}x"),
            Target::AtMost(most) => format!("<= {}", most.text()),
            Target::AtLeast(least) => format!(">= {}", least.text()),
        };
        [
            self.what.clone(),
            self.floor.map_or_else(|| "-".to_owned(), Quantity::text),
            self.ours.text(),
            self.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}x")),
            target,
            if self.met() { "yes" } else { "**no**" }.to_owned(),
        ]
    }

    fn json(&self) -> Value {
        let target = match self.target {
            Target::Ratio(most) => json!({ "ratio": most }),
            Target::AtMost(most) => json!({ "at-most": most.number() }),
            Target::AtLeast(least) => json!({ "at-least": least.number() }),
        };
        let unit = match self.ours {
            Quantity::Millis(_) => "ms",
            Quantity::Mebibytes(_) => "MiB",
            Quantity::PerSecond(_) => "1/s",
        };
        json!({
            "what": self.what,
            "unit": unit,
            "floor": self.floor.map(Quantity::number),
            "ours": self.ours.number(),
            "ratio": self.ratio(),
            "target": target,
            "met": self.met(),
        })
    }
}

impl Report {
    pub(crate) fn push(&mut self, row: Row) {
        crate::progress(row.cells().join(" | "));
        self.rows.push(row);
    }

    pub(crate) fn json(&self) -> String {
        let rows: Vec<Value> = self.rows.iter().map(Row::json).collect();
        format!("{:#}", json!({ "rows": rows }))
    }

    pub(crate) fn markdown(&self) -> String {
        let head = ["what", "floor", "ours", "ratio", "target", "met"].map(ToOwned::to_owned);
        let lines: Vec<[String; 6]> = std::iter::once(head).chain(self.rows.iter().map(Row::cells)).collect();
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..6).map(width).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table() {
        let mut report = Report::default();
        report.push(Row {
            what: "step".to_owned(),
            floor: Some(Quantity::Millis(0.5)),
            ours: Quantity::of(Duration::from_micros(700)),
            target: Target::Ratio(1.5),
        });
        report.push(Row {
            what: "memory".to_owned(),
            floor: None,
            ours: Quantity::Mebibytes(151.0),
            target: Target::AtMost(Quantity::Mebibytes(150.0)),
        });
        let expected = "\
            | what   | floor    | ours     | ratio | target     | met    |\n\
            | ------ | -------- | -------- | ----- | ---------- | ------ |\n\
            | step   | 0.500 ms | 0.700 ms | 1.40x | <= 1.50x   | yes    |\n\
            | memory | -        | 151 MiB  | -     | <= 150 MiB | **no** |\n";
        assert_eq!(report.markdown(), expected);
    }
}
