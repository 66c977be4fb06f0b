//! Errors of cron schedules. Those of the library refer to positions in its grammar and state wrong limits, so the first
//! mistake is searched for here.

use crate::deserialize::quoted;

/// A field of a schedule: its description, its range of numbers, and the names of the numbers, if any.
pub(super) struct Field {
    what: &'static str,
    first: u32,
    last: u32,
    names: &'static [&'static str],
    range: &'static str,
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const DAYS: [&str; 7] = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

/// The length of an abbreviated name; only this length or the full name is valid.
const ABBREVIATION: usize = 3;
/// Longer abbreviations that the library accepts.
const ABBREVIATIONS: [&str; 2] = ["tues", "thurs"];

const FIELDS: [Field; 7] = [
    Field { what: "a second", first: 0, last: 59, names: &[], range: "0 to 59" },
    Field { what: "a minute", first: 0, last: 59, names: &[], range: "0 to 59" },
    Field { what: "an hour", first: 0, last: 23, names: &[], range: "0 to 23" },
    Field { what: "a day of the month", first: 1, last: 31, names: &[], range: "1 to 31" },
    Field { what: "a month", first: 1, last: 12, names: &MONTHS, range: "Jan to Dec, or 1 to 12" },
    Field::WEEKDAY,
    Field { what: "a year", first: 1970, last: 2100, names: &[], range: "1970 to 2100" },
];

/// `text` without spaces around separators within a field.
pub(super) fn joined(text: &str) -> String {
    [",", "/", "-"].into_iter().fold(text.to_owned(), |text, separator| {
        text.split(separator).map(str::trim).collect::<Vec<_>>().join(separator)
    })
}

/// The first mistake found in `text`, if any.
pub(super) fn first_error(text: &str) -> Option<String> {
    if text.trim_start().starts_with('@') {
        return Some("use @hourly, @daily, @weekly, @monthly or @yearly".to_owned());
    }
    let text = joined(text);
    let fields: Vec<&str> = text.split_whitespace().collect();
    match fields.len() {
        6 | 7 => {}
        count => return Some(format!("it has {count} fields, not 5 to 7")),
    }
    let parts =
        fields.iter().zip(&FIELDS).flat_map(|(text, field)| text.split(',').map(move |part| (part, field)));
    parts.into_iter().find_map(|(part, field)| field.first_error(part))
}

impl Field {
    pub(super) const WEEKDAY: Self = Self {
        what: "a day of the week",
        first: 1,
        last: 7,
        names: &DAYS,
        range: "Sun to Sat, or 1 (Sunday) to 7",
    };

    pub(super) fn first_error(&self, part: &str) -> Option<String> {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        if let Some(step) = step
            && !step.parse().is_ok_and(|step| (1..=self.last).contains(&step))
        {
            return Some(format!("{:?} is not a step, after a /: 1 to {}", quoted(step), self.last));
        }
        if range == "*" || range == "?" {
            return None;
        }
        let (start, end) = range.split_once('-').unwrap_or((range, range));
        if let Some(wrong) = [start, end].into_iter().find(|text| self.number(text).is_none()) {
            return Some(format!("{} is not {}: {}", quoted(wrong), self.what, self.range));
        }
        (self.number(start) > self.number(end))
            .then(|| format!("{} goes backwards; list the values, separated by commas", quoted(range)))
    }

    /// The number that `text` is or names, if any.
    fn number(&self, text: &str) -> Option<u32> {
        if let Ok(number) = text.parse::<u32>() {
            return (self.first..=self.last).contains(&number).then_some(number);
        }
        let text = text.to_lowercase();
        let is_meant = |name: &str| {
            let is_short = text.len() == ABBREVIATION || ABBREVIATIONS.contains(&text.as_str());
            name == text || (is_short && name.starts_with(&text))
        };
        let numbers = self.first..=self.last;
        numbers.zip(self.names).find(|(_, name)| is_meant(name)).map(|(number, _)| number)
    }
}
