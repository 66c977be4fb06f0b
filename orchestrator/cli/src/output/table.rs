//! Tables for people. A row type describes its columns once; the narrow table, the wide one and the list of names follow
//! from that.

use std::iter;

use console::{measure_text_width, pad_str, truncate_str};
use os_upgrade_shell::text::sanitized;

use super::Zone;

/// The space between two columns.
const GAP: &str = "  ";
/// How narrow a column of free text may become, in columns of the terminal, before others are cut.
const TEXT_COLUMNS_MIN: usize = 20;
/// How narrow any column may become.
const COLUMNS_MIN: usize = 6;

/// What text is drawn on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Canvas {
    /// Whether columns for the wide format are shown.
    pub(crate) is_wide: bool,
    /// How many columns the terminal has; without a limit, nothing is cut.
    pub(crate) columns: Option<usize>,
    /// The zone of times.
    pub(crate) zone: Zone,
}

/// A column of a table with rows of `R`.
#[derive(Debug)]
pub(crate) struct Column<R> {
    head: &'static str,
    entry: fn(&R, Zone) -> String,
    is_wide: bool,
    is_text: bool,
}

impl<R> Column<R> {
    /// A column with a heading, and what it shows of a row.
    pub(crate) const fn new(head: &'static str, entry: fn(&R, Zone) -> String) -> Self {
        Self { head, entry, is_wide: false, is_text: false }
    }

    /// A column of the wide format only.
    pub(crate) const fn wide(head: &'static str, entry: fn(&R, Zone) -> String) -> Self {
        Self { is_wide: true, ..Self::new(head, entry) }
    }

    /// A column of free text, which is cut before others are.
    pub(crate) const fn text(head: &'static str, entry: fn(&R, Zone) -> String) -> Self {
        Self { is_text: true, ..Self::new(head, entry) }
    }
}

/// An entry of a list.
pub(crate) trait Row: Sized + 'static {
    /// Its columns.
    const COLUMNS: &'static [Column<Self>];
    /// What is printed in place of an empty table.
    const NONE: &'static str;

    /// Its name, for `-o name`; absent if such entries have none.
    fn name(&self) -> Option<String>;
}

/// The rows as a table. Names and reasons are untrusted, so control characters in them are replaced.
pub(crate) fn table<R: Row>(rows: &[R], canvas: &Canvas) -> String {
    let columns: Vec<&Column<R>> =
        R::COLUMNS.iter().filter(|column| canvas.is_wide || !column.is_wide).collect();
    let entries = |column: &&Column<R>| -> Vec<String> {
        let shown = rows.iter().map(|row| sanitized(&(column.entry)(row, canvas.zone)));
        iter::once(column.head.to_owned()).chain(shown).collect()
    };
    let entries: Vec<Vec<String>> = columns.iter().map(entries).collect();
    let natural: Vec<usize> = entries.iter().map(|column| width(column)).collect();
    let texts: Vec<bool> = columns.iter().map(|column| column.is_text).collect();
    let widths = fit(&natural, &texts, canvas.columns);
    let line = |row: usize| {
        let cells = entries.iter().zip(&widths).filter_map(|(column, width)| {
            let cut = truncate_str(column.get(row)?, *width, "…");
            Some(pad_str(&cut, *width, console::Alignment::Left, None).into_owned())
        });
        format!("{}\n", cells.collect::<Vec<_>>().join(GAP).trim_end())
    };
    let mut text: String = (0..=rows.len()).map(line).collect();
    let cut: Vec<&str> = columns
        .iter()
        .zip(natural.iter().zip(&widths))
        .filter(|(_, (natural, width))| width < natural)
        .map(|(column, _)| column.head)
        .collect();
    if !cut.is_empty() {
        text.extend(["(cut: ", &cut.join(", "), "; -o wide shows all)\n"]);
    }
    text
}

fn width(entries: &[String]) -> usize {
    entries.iter().map(|entry| measure_text_width(entry)).max().unwrap_or(0)
}

/// The widths at which columns fit into `limit`: the widest text is cut first, then the widest column.
fn fit(natural: &[usize], is_text: &[bool], limit: Option<usize>) -> Vec<usize> {
    let mut widths = natural.to_vec();
    let Some(limit) = limit else { return widths };
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    let mut excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(limit);
    while excess > 0 {
        let widest = |texts_only: bool, least: usize| {
            let candidates =
                (0..widths.len()).filter(|at| (is_text[*at] || !texts_only) && widths[*at] > least);
            candidates.max_by_key(|at| widths[*at])
        };
        let Some(at) = widest(true, TEXT_COLUMNS_MIN).or_else(|| widest(false, COLUMNS_MIN)) else { break };
        widths[at] -= 1;
        excess -= 1;
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Pair(&'static str, &'static str);

    impl Row for Pair {
        const COLUMNS: &'static [Column<Self>] = &[
            Column::new("ID", |row, _| row.0.to_owned()),
            Column::text("WHY", |row, _| row.1.to_owned()),
            Column::wide("LENGTH", |row, _| row.1.len().to_string()),
        ];
        const NONE: &'static str = "nothing";

        fn name(&self) -> Option<String> {
            Some(self.0.to_owned())
        }
    }

    fn canvas(is_wide: bool, columns: Option<usize>) -> Canvas {
        Canvas { is_wide, columns, zone: Zone::Utc }
    }

    #[test]
    fn control_characters_are_replaced() {
        let rows = [Pair("a\u{202e}b\u{1b}[2J\nc", "ä馬")];
        let expected = "ID         WHY\na\u{fffd}b\u{fffd}[2J\u{fffd}c  ä馬\n";
        assert_eq!(table(&rows, &canvas(false, None)), expected);
    }

    #[test]
    fn wide_tables_have_every_column() {
        let rows = [Pair("a", "b"), Pair("long", "x")];
        let expected = "ID    WHY  LENGTH\na     b    1\nlong  x    1\n";
        assert_eq!(table(&rows, &canvas(true, None)), expected);
    }

    #[test]
    fn tables_that_are_cut_say_so() {
        let rows =
            [Pair("a-name-of-twenty-one", "because of a reason that takes more than the rest of the line")];
        let expected = "\
ID                    WHY
a-name-of-twenty-one  because of a reason t…
(cut: WHY; -o wide shows all)
";
        assert_eq!(table(&rows, &canvas(false, Some(44))), expected);
        let expected = "\
ID                 WHY
a-name-of-twenty…  because of a re…
(cut: ID, WHY; -o wide shows all)
";
        assert_eq!(table(&rows, &canvas(false, Some(35))), expected);
    }

    #[test]
    fn widths_fit_the_terminal() {
        for (natural, is_text, limit, expected) in [
            (&[10, 30][..], &[false, true][..], None, &[10, 30][..]),
            (&[10, 30], &[false, true], Some(42), &[10, 30]),
            (&[10, 30], &[false, true], Some(40), &[10, 28]),
            (&[60, 60], &[false, true], Some(80), &[58, 20]),
            (&[60, 60], &[false, false], Some(80), &[39, 39]),
            (&[20, 20], &[false, true], Some(4), &[6, 6]),
        ] {
            assert_eq!(fit(natural, is_text, limit), expected, "{natural:?} {limit:?}");
        }
    }
}
