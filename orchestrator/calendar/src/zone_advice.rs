//! What to write instead of a text that is not the name of a zone. The wrong zone would open windows at the wrong time, so
//! only what has the same meaning is advised.

use std::fmt;

use chrono_tz::TZ_VARIANTS;

/// The longest text for which a name is searched, in bytes. The longest name has half of that.
const TEXT_BYTES_MAX: usize = 64;
/// `ACT` is a part of Australia, and the time of a part of Brazil.
const ABBREVIATION_BYTES_MAX: usize = 3;
/// What several countries have, though not all of them in a zone's name.
const AMBIGUOUS: [&str; 9] =
    ["central", "east", "eastern", "general", "north", "south", "victoria", "west", "western"];
/// Offsets of the zones `Etc/GMT+12` to `Etc/GMT-14` from UTC, in hours.
const HOURS: std::ops::RangeInclusive<i32> = -12..=14;

/// The name that `text` is in other letters, the place that it names without its area, or the only place to which it is
/// similar: a typing error away.
pub fn nearest(text: &str) -> Option<&'static str> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let text = text.trim().to_lowercase().replace(' ', "_");
    let names = || TZ_VARIANTS.iter().map(|zone| zone.name());
    if let Some(same) = names().find(|name| name.to_lowercase() == text) {
        return Some(same);
    }
    // Etc/GMT+1 is behind UTC, and what somebody wrote as an offset probably is not. Abbreviations differ by one letter, too,
    // and by hours.
    let places = || names().filter(|name| name.contains('/') && !name.starts_with("Etc/"));
    if text.contains('/') {
        let distances = places().map(|name| (strsim::damerau_levenshtein(&text, &name.to_lowercase()), name));
        return only(distances.filter(|(distance, name)| *distance <= errors_max(city(name))));
    }
    if text.len() <= ABBREVIATION_BYTES_MAX || AMBIGUOUS.contains(&text.as_str()) {
        return None;
    }
    // Names of three parts are of places so small that others have the name, too: San Juan, Petersburg.
    let well_known = places().filter(|name| name.matches('/').count() == 1);
    only(well_known.filter(|name| city(name).to_lowercase() == text).map(|name| (0, name)))
}

/// The name with the least distance, unless another one has the same.
fn only(names: impl Iterator<Item = (usize, &'static str)>) -> Option<&'static str> {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    match names[..] {
        [(first, _), (second, _), ..] if first == second => None,
        [(_, name), ..] => Some(name),
        [] => None,
    }
}

fn city(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// How many typing errors in the name of a city still leave it the only one that can be meant. Mumbai is two away from Dubai.
fn errors_max(city: &str) -> usize {
    match city.len() {
        0..=4 => 0,
        5..=7 => 1,
        _ => 2,
    }
}

/// An offset from UTC, in hours. `Display` gives the zone that has it all year, and its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedOffset(i32);

impl FixedOffset {
    /// Reads an offset as people write it, such as `UTC+1`, `GMT-05:00` and `+0900`: positive ahead of UTC. `None` if there
    /// is no zone with it.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_uppercase();
        let offset =
            ["UTC", "GMT"].iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(&text).trim();
        let (sign, digits) = offset.strip_prefix('+').map(|digits| (1, digits)).or_else(|| {
            let digits = offset.strip_prefix(['-', '\u{2212}'])?;
            Some((-1, digits))
        })?;
        let (hours, minutes) = match digits.split_once(':') {
            Some(parts) => parts,
            None if digits.len() == 4 => digits.split_at_checked(2)?,
            None => (digits, "00"),
        };
        let is_hour = matches!(hours.len(), 1..=2) && hours.bytes().all(|digit| digit.is_ascii_digit());
        let hours = Some(hours).filter(|_| is_hour && minutes == "00")?.parse::<i32>().ok()?;
        Some(sign * hours).filter(|hours| HOURS.contains(hours)).map(Self)
    }
}

impl fmt::Display for FixedOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match self.0 {
            0 => return f.write_str("UTC"),
            ahead @ 1.. => {
                return write!(f, "Etc/GMT-{ahead} for {ahead} h ahead of UTC: its sign is reversed");
            }
            behind => -behind,
        };
        write!(f, "Etc/GMT+{side} for {side} h behind UTC: its sign is reversed")
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Offset as _, TimeZone as _};
    use chrono_tz::Tz;

    use super::*;

    #[test]
    fn names_are_found_by_what_they_mean() {
        for (text, name) in [
            ("europe/stockholm", "Europe/Stockholm"),
            ("Europe/Stokholm", "Europe/Stockholm"),
            ("Eurpoe/Stockholm", "Europe/Stockholm"),
            (" Europe/Stockholm ", "Europe/Stockholm"),
            ("Stockholm", "Europe/Stockholm"),
            ("new york", "America/New_York"),
            ("America/New York", "America/New_York"),
            ("America/Los Angles", "America/Los_Angeles"),
            ("Asia/Tokio", "Asia/Tokyo"),
            ("utc", "UTC"),
            ("cet", "CET"),
            ("est5edt", "EST5EDT"),
            ("etc/gmt-1", "Etc/GMT-1"),
            ("gmt0", "GMT0"),
        ] {
            assert_eq!(nearest(text), Some(name), "{text}");
        }
    }

    /// Each is similar to the name of a zone that is hours away.
    #[test]
    fn no_zone_of_another_meaning_is_advised() {
        for text in [
            "GMT+1",
            "GMT-5",
            "UTC+2",
            "UTC-8",
            "UTC+01:00",
            "+01:00",
            "Etc/GMT+01",
            "Etc/UTC+1",
            "Etc/GMT+15",
            "EST5",
            "EST6EDT",
            "CST5CDT",
            "AEST",
            "CEST",
            "WEST",
            "MEST",
            "IST",
            "BST",
            "PST",
            "EDT",
            "JST",
            "UCT1",
            "Asia/Mumbai",
            "Asia/Delhi",
            "Asia/Beijing",
            "Europe/Munich",
            "America/Boston",
            "America/Dallas",
            "America/St_Louis",
            "US/Western",
            "West",
            "East",
            "Central",
            "South",
            "ACT",
            "Victoria",
            "San Juan",
            "La Rioja",
            "Center",
            "Petersburg",
            "Etc/UTD",
            "",
        ] {
            assert_eq!(nearest(text), None, "{text}");
        }
    }

    #[test]
    fn offsets_name_the_zone_that_has_them() {
        for (text, hours) in [
            ("GMT+1", 1),
            ("GMT-5", -5),
            ("UTC+2", 2),
            ("utc -8", -8),
            ("UTC+01:00", 1),
            ("+01:00", 1),
            ("-0500", -5),
            ("+9", 9),
            ("GMT+14", 14),
            ("UTC-12", -12),
            ("UTC+0", 0),
            ("+00:00", 0),
            ("-00", 0),
            ("UTC\u{2212}3", -3),
            ("+10", 10),
            ("UTC+1000", 10),
        ] {
            let offset = FixedOffset::read(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(offset, FixedOffset(hours), "{text}");
            let said = offset.to_string();
            let zone: Tz = said.split(' ').next().unwrap().parse().unwrap();
            let of_zone = zone.offset_from_utc_datetime(&DateTime::UNIX_EPOCH.naive_utc()).fix();
            assert_eq!(of_zone.local_minus_utc(), hours * 3_600, "{said}");
        }
        for text in [
            "UTC+5:30",
            "+0530",
            "GMT+15",
            "GMT-13",
            "UTC+100",
            "1",
            "UTC",
            "EST+5",
            "Etc/GMT+1",
            "+",
            "+-1",
            "++1",
            "+1:0",
            "",
        ] {
            assert_eq!(FixedOffset::read(text), None, "{text}");
        }
    }
}
