//! Schedules with the five fields of a crontab: minute, hour, day of the month, month and day of the week.

use super::cron_error::{Field, joined};
use crate::deserialize::quoted;

/// The days of the week by their numbers. 0 and 7 are both Sunday.
const DAYS: [&str; 8] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
/// What a day of the week may be.
const RANGE: &str = "Sun to Sat, or 0 (Sunday) to 7 (Sunday)";

/// The same schedule with six fields, of which the first is the second, or a mistake in it. `None`: it has not five fields.
pub(super) fn translate(text: &str) -> Option<Result<String, String>> {
    let text = joined(text);
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields[..] else { return None };
    let is_restricted = |field: &str| !matches!(field, "*" | "?");
    if is_restricted(day) && is_restricted(weekday) {
        let either =
            "a crontab means either the day of the month or the day of the week; write a window for each";
        return Some(Err(either.to_owned()));
    }
    let weekdays: Result<Vec<String>, String> = weekday.split(',').map(weekdays).collect();
    Some(weekdays.map(|weekdays| format!("0 {minute} {hour} {day} {month} {}", weekdays.join(","))))
}

/// The days that an entry stands for, by name.
fn weekdays(entry: &str) -> Result<String, String> {
    let (range, step) = entry.split_once('/').map_or((entry, None), |(range, step)| (range, Some(step)));
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) else {
        let is_name = |text: &str| {
            text.chars().all(|character| character.is_ascii_alphabetic() || "*?".contains(character))
        };
        if [first, last].into_iter().all(is_name) && Field::WEEKDAY.first_error(entry).is_none() {
            return Ok(entry.to_owned());
        }
        return Err(format!("{} is not a day of the week: {RANGE}", quoted(entry)));
    };
    if let Some(wrong) = [first, last].into_iter().find(|number| *number >= DAYS.len()) {
        return Err(format!("{wrong} is not a day of the week: {RANGE}"));
    }
    if first > last {
        return Err(format!("{} goes backwards; list the values, separated by commas", quoted(range)));
    }
    let (last, step) = match step.map(str::parse::<usize>) {
        None => (last, 1),
        // As in the other fields, one number with a step goes to the end: Saturday, or Sunday if that is written as 7.
        Some(Ok(step)) if step > 0 && !range.contains('-') => (last.max(DAYS.len() - 2), step),
        Some(Ok(step)) if step > 0 => (last, step),
        Some(_) => return Err(format!("{} has no step from 1 to 7 after the /", quoted(entry))),
    };
    let days: Vec<&str> = DAYS.iter().take(last + 1).skip(first).step_by(step).copied().collect();
    // The library's weeks begin on Sunday.
    let is_range = step == 1 && days.len() > 2 && last < DAYS.len() - 1;
    Ok(if is_range { format!("{}-{}", DAYS[first], DAYS[last]) } else { days.join(",") })
}
