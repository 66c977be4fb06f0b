//! Schedules with the five fields of a crontab: minute, hour, day of the month, month and day of the week.

use crate::deserialize::quoted;

/// The days of the week by their numbers. 0 and 7 are both Sunday.
const DAYS: [&str; 8] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// The same schedule with six fields, of which the first is the second, or a mistake in it. `None`: it has not five fields.
pub(super) fn translate(text: &str) -> Option<Result<String, String>> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields[..] else { return None };
    if ![day, weekday].contains(&"*") {
        let either =
            "a crontab means either the day of the month or the day of the week; write a window for each";
        return Some(Err(either.to_owned()));
    }
    let weekdays: Result<Vec<String>, String> = weekday.split(',').map(weekdays).collect();
    Some(weekdays.map(|weekdays| format!("0 {minute} {hour} {day} {month} {}", weekdays.join(","))))
}

/// The days that an entry stands for, by name. What has no number is left to the library.
fn weekdays(entry: &str) -> Result<String, String> {
    let (range, step) = entry.split_once('/').map_or((entry, None), |(range, step)| (range, Some(step)));
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) else {
        return Ok(entry.to_owned());
    };
    if let Some(wrong) = [first, last].into_iter().find(|number| *number >= DAYS.len()) {
        return Err(format!("{wrong} is not a day of the week: Sun to Sat, or 0 (Sunday) to 7 (Sunday)"));
    }
    if first > last {
        return Err(format!("{} is not a range of days of the week; list them", quoted(range)));
    }
    let step = match step.map(str::parse::<usize>) {
        None => 1,
        Some(Ok(step)) if step > 0 => step,
        Some(_) => return Err(format!("{} has no step after the /", quoted(entry))),
    };
    let days: Vec<&str> = DAYS[first..=last].iter().step_by(step).copied().collect();
    // The library's weeks begin on Sunday.
    let is_range = step == 1 && days.len() > 2 && last < DAYS.len() - 1;
    Ok(if is_range { format!("{}-{}", DAYS[first], DAYS[last]) } else { days.join(",") })
}
