//! Tables on a terminal.

use std::iter;

use console::{measure_text_width, pad_str, truncate_str};
use os_upgrade_console::rows::runs::MISSED;
use os_upgrade_console::{Column, Kind, Row, Zone};
use os_upgrade_kernel::{HostStatus, Reachability};
use os_upgrade_protocol::text::sanitized;

/// The space between two columns.
const GAP: &str = "  ";
/// How narrow a column of free text may become, in columns of the terminal, before words are cut.
const TEXT_COLUMNS_MIN: usize = 20;
/// How narrow any column may become.
const COLUMNS_MIN: usize = 6;
/// The width to which words are cut before text becomes narrower.
const WORD_COLUMNS_MAX: usize = 40;
/// The width to which rows are padded at most where nothing is cut, so that one long name does not widen all of them.
const PADDED_COLUMNS_MAX: usize = 64;
/// The width of a terminal into which every narrow table fits, in columns, however long its entries are.
const TERMINAL_COLUMNS_MIN: usize = 80;
/// What a column without a heading is called when it is cut.
const NO_HEAD: &str = "remarks";

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

/// What the line that says what is cut calls the column.
const fn called<R>(column: &Column<R>) -> &'static str {
    if column.head.is_empty() { NO_HEAD } else { column.head }
}

/// How narrow the narrow table can become, and how wide the line is that says that every column is cut.
const fn narrowest<R>(columns: &[Column<R>]) -> (usize, usize) {
    let (mut table, mut heads, mut at) = (0, 0, 0);
    while at < columns.len() {
        if !columns[at].is_wide {
            table += COLUMNS_MIN + GAP.len();
            heads += called(&columns[at]).len() + ", ".len();
        }
        at += 1;
    }
    (table.saturating_sub(GAP.len()), CUT.len() + heads.saturating_sub(", ".len()) + WHERE_ALL_IS.len())
}

/// The beginning and the end of the line that says which columns are cut.
const CUT: &str = "(cut: ";
const WHERE_ALL_IS: &str = "; -o wide shows all)";

/// The rows as a table. Names and reasons are untrusted, so control characters in them are replaced.
pub(crate) fn table<R: Row>(rows: &[R], canvas: &Canvas) -> String {
    // Every narrow table, and the line that says what is cut of it, fit into a terminal: the program is not compiled otherwise.
    const {
        let (table, cut) = narrowest(R::COLUMNS);
        assert!(table <= TERMINAL_COLUMNS_MIN, "too many columns: make some of them wide");
        assert!(cut <= TERMINAL_COLUMNS_MIN, "the headings are too long for the line that says what is cut");
    }
    let columns: Vec<&Column<R>> =
        R::COLUMNS.iter().filter(|column| canvas.is_wide || !column.is_wide).collect();
    let entries = |column: &&Column<R>| -> Vec<String> {
        let shown =
            rows.iter().map(|row| sanitized(&canvas.zone.times_in(&(column.entry)(row, canvas.zone))));
        iter::once(column.head.to_owned()).chain(shown).collect()
    };
    let entries: Vec<Vec<String>> = columns.iter().map(entries).collect();
    let natural: Vec<usize> = entries.iter().map(|column| width(column)).collect();
    let kinds: Vec<Kind> = columns.iter().map(|column| column.kind).collect();
    let widths = fit(&natural, &kinds, canvas.columns);
    // Text in the last column goes on in the next line: it says why.
    let wraps = canvas.columns.is_some() && kinds.last() == Some(&Kind::Text);
    let last = columns.len().saturating_sub(1);
    let line = |row: usize| {
        let mut line = String::new();
        let mut indent = 0;
        for (at, (column, width)) in entries.iter().zip(&widths).enumerate() {
            let Some(entry) = column.get(row) else { continue };
            if at == last && wraps && measure_text_width(entry) > *width {
                line += &wrapped(entry, *width).join(&format!("\n{}", " ".repeat(indent)));
                continue;
            }
            let width = if canvas.columns.is_none() { (*width).min(PADDED_COLUMNS_MAX) } else { *width };
            let cut =
                canvas.columns.map_or_else(|| entry.as_str().into(), |_| truncate_str(entry, width, "…"));
            let padded = pad_str(&cut, width, console::Alignment::Left, None);
            let padded = if at == last { padded.trim_end() } else { &padded };
            line += &coloured(padded, entry);
            if at < last {
                line += GAP;
            }
            indent += width + GAP.len();
        }
        format!("{}\n", line.trim_end())
    };
    let mut text: String = (0..=rows.len()).map(line).collect();
    let cut: Vec<&str> = columns
        .iter()
        .enumerate()
        .zip(natural.iter().zip(&widths))
        .filter(|((at, _), (natural, width))| width < natural && !(wraps && *at == last))
        .map(|((_, column), _)| called(column))
        .collect();
    if !cut.is_empty() {
        text.extend([CUT, &cut.join(", "), WHERE_ALL_IS, "\n"]);
    }
    text
}

/// `text` in lines of at most `columns`.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let options = textwrap::Options::new(columns).word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::wrap(text, options).into_iter().map(Into::into).collect()
}

/// `padded`, which shows `entry`: in red if it is a failure, on a terminal that has colours.
fn coloured(padded: &str, entry: &str) -> String {
    if is_failure(entry) { console::style(padded).red().to_string() } else { padded.to_owned() }
}

/// Whether `entry` is the word for a failure. The results of runs have the words of hosts.
fn is_failure(entry: &str) -> bool {
    let hosts = [HostStatus::Failed, HostStatus::TimedOut].map(HostStatus::as_str);
    hosts.contains(&entry) || entry == Reachability::Unreachable.as_str() || entry == MISSED
}

fn width(entries: &[String]) -> usize {
    entries.iter().map(|entry| measure_text_width(entry)).max().unwrap_or(0)
}

/// The widths at which columns fit into `limit`: words of more than 40 columns become narrower first, then the widest text, then the
/// widest word, then times and ids.
fn fit(natural: &[usize], kinds: &[Kind], limit: Option<usize>) -> Vec<usize> {
    let mut widths = natural.to_vec();
    let Some(limit) = limit else { return widths };
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    let mut excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(limit);
    while excess > 0 {
        let widest = |(from, upto, least): (Kind, Kind, usize)| {
            let is_meant = |kind: Kind| from <= kind && kind <= upto;
            let candidates = (0..widths.len()).filter(|at| is_meant(kinds[*at]) && widths[*at] > least);
            candidates.max_by_key(|at| widths[*at])
        };
        let order = [
            (Kind::Word, Kind::Word, WORD_COLUMNS_MAX),
            (Kind::Text, Kind::Text, TEXT_COLUMNS_MIN),
            (Kind::Text, Kind::Word, COLUMNS_MIN),
            (Kind::Text, Kind::Whole, COLUMNS_MIN),
        ];
        let Some(at) = order.into_iter().find_map(widest) else { break };
        widths[at] -= 1;
        excess -= 1;
    }
    widths
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
    fn one_long_name_does_not_widen_every_row() {
        let long: &'static str = Box::leak("n".repeat(223).into_boxed_str());
        let rows = [Pair("a", "b"), Pair(long, "x")];
        let expected = format!("{:64}  WHY\n{:64}  b\n{long}  x\n", "ID", "a");
        assert_eq!(table(&rows, &canvas(false, None)), expected);
        let narrow = table(&rows, &canvas(false, Some(80)));
        assert!(narrow.lines().all(|line| measure_text_width(line) <= 80), "{narrow}");
        assert!(narrow.ends_with("(cut: ID; -o wide shows all)\n"), "{narrow}");
    }

    #[test]
    fn failures_are_red_on_terminals_only() {
        assert_eq!(coloured("failed  ", "failed"), "failed  ", "standard output of tests is no terminal");
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
a-name-of-twenty-one  because of a reason
                      that takes more than
                      the rest of the line
";
        assert_eq!(table(&rows, &canvas(false, Some(44))), expected);
        let expected = "\
ID                 WHY
a-name-of-twenty…  because of a
                   reason that
                   takes more than
                   the rest of the
                   line
(cut: ID; -o wide shows all)
";
        assert_eq!(table(&rows, &canvas(false, Some(35))), expected);
    }

    /// As many columns as fit.
    struct Widest([String; 10]);

    impl Row for Widest {
        const COLUMNS: &'static [Column<Self>] = &[
            Column::text("", |row, _| row.0[0].clone()),
            Column::new("B", |row, _| row.0[1].clone()),
            Column::text("C", |row, _| row.0[2].clone()),
            Column::new("D", |row, _| row.0[3].clone()),
            Column::new("E", |row, _| row.0[4].clone()),
            Column::new("F", |row, _| row.0[5].clone()),
            Column::new("G", |row, _| row.0[6].clone()),
            Column::new("H", |row, _| row.0[7].clone()),
            Column::new("I", |row, _| row.0[8].clone()),
            Column::new("J", |row, _| row.0[9].clone()),
        ];
        const NONE: &'static str = "nothing";

        fn name(&self) -> Option<String> {
            None
        }
    }

    proptest! {
        /// With what [`table`] asserts of each type of rows, this holds for every table.
        #[test]
        fn every_table_fits_and_says_what_it_cuts(
            rows in prop::collection::vec(prop::array::uniform10("([a-z]|馬){0,40}"), 1..4),
            columns in TERMINAL_COLUMNS_MIN..200,
        ) {
            let rows: Vec<_> = rows.into_iter().map(Widest).collect();
            let text = table(&rows, &canvas(false, Some(columns)));
            prop_assert!(text.lines().all(|line| measure_text_width(line) <= columns), "{}", text);
            let said = text.lines().last().and_then(|line| line.strip_prefix(CUT)).unwrap_or_default();
            let said: Vec<_> = said.trim_end_matches(WHERE_ALL_IS).split(", ").collect();
            for (at, column) in Widest::COLUMNS.iter().enumerate() {
                let is_whole = rows.iter().zip(text.lines().skip(1)).all(|(row, line)| line.contains(&row.0[at]));
                prop_assert!(is_whole || said.contains(&called(column)), "{}: {}", called(column), text);
            }
        }
    }

    #[test]
    fn widths_fit_the_terminal() {
        use Kind::{Text, Whole, Word};
        for (natural, kinds, limit, expected) in [
            (&[10, 30][..], &[Word, Text][..], None, &[10, 30][..]),
            (&[10, 30], &[Word, Text], Some(42), &[10, 30]),
            (&[10, 30], &[Word, Text], Some(40), &[10, 28]),
            (&[60, 60], &[Word, Text], Some(80), &[40, 38]),
            (&[60, 60], &[Word, Text], Some(50), &[28, 20]),
            (&[60, 60], &[Word, Word], Some(80), &[39, 39]),
            (&[25, 13, 20], &[Whole, Word, Text], Some(50), &[25, 11, 10]),
            (&[25, 13, 30], &[Whole, Word, Text], Some(62), &[25, 13, 20]),
            (&[20, 20, 20], &[Word, Text, Whole], Some(4), &[6, 6, 6]),
        ] {
            assert_eq!(fit(natural, kinds, limit), expected, "{natural:?} {limit:?}");
        }
    }
}
