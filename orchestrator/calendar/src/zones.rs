//! The rules of time zones: their offsets from UTC, as one release of the IANA database has them.
//!
//! Names are those of chrono-tz. Whoever reads rules passes them in the view; without them those of chrono-tz count, which
//! are the same on every machine, and old.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use chrono::{DateTime, NaiveDate, NaiveTime, Offset, TimeDelta, TimeZone, Utc};
use chrono_tz::{IANA_TZDB_VERSION, Tz};

/// The most changes of a zone's clocks. Real zones have less than 300 from 1970 to 2100.
const CHANGES_MAX: usize = 1_000;
/// Two changes of a zone's clocks are further apart than this, in seconds.
const CHANGES_APART: i64 = 2 * 86_400;
/// Offsets are smaller than this, and clocks jump no further, in seconds.
const DAY: i32 = 86_400;
/// The longest version, in bytes. Releases are called `2026f`; people who build their own may append something.
const VERSION_BYTES_MAX: usize = 32;

/// The rules of all zones. Cheap to clone. The default is those of chrono-tz, for tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Zones {
    read: Option<Arc<Rules>>,
}

/// Rules as they were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Where those of most zones are from.
    pub source: ZoneSource,
    /// Their release; absent if the system does not say it.
    pub version: Option<ZoneVersion>,
    /// The release of the system's data, if it does not count because it is older.
    pub passed_over: Option<ZoneVersion>,
    /// The offsets of each zone.
    pub offsets: HashMap<Tz, Offsets>,
}

static BUILT_IN: Zones = Zones { read: None };

/// Where rules come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum ZoneSource {
    /// The system's zone data.
    System,
    /// The program: the system has none, or older ones.
    BuiltIn,
}

impl ZoneSource {
    /// Its word in the API.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The release of the IANA database from which rules are, such as `2026f`: a year, and letters in alphabetical order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ZoneVersion {
    year: i32,
    text: String,
}

/// A text is not the name of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not a release of the IANA time zone database, such as 2026f")]
pub struct ZoneVersionError;

/// Why rules should be replaced by newer ones. `Display` gives the sentence for operators.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OldZones {
    /// They are at least half a year old: governments change their clocks, and some say so only weeks ahead.
    #[error("time zone data {version} is more than half a year old: windows may open an hour off")]
    HalfAYear {
        /// Their release.
        version: String,
        /// Where they are from.
        from: ZoneSource,
    },
    /// The system's are older than those that are compiled in, which count.
    #[error(
        "windows go by the time zone data {built_in}, which is compiled in: the system's is older, {version}"
    )]
    OlderThanBuiltIn {
        /// The system's release.
        version: String,
        /// The one that is compiled in.
        built_in: String,
    },
    /// Nobody can tell how old the system's are.
    #[error(
        "the time zone data of the system does not say its release: windows may open an hour off if it is old"
    )]
    Unknown,
}

impl OldZones {
    /// Whether windows may open at the wrong time.
    pub const fn may_move_windows(&self) -> bool {
        match self {
            Self::HalfAYear { .. } | Self::Unknown => true,
            Self::OlderThanBuiltIn { .. } => false,
        }
    }

    /// What to do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::HalfAYear { from: ZoneSource::BuiltIn, .. } => {
                "install the system's package tzdata, or update it; it counts within a minute"
            }
            Self::HalfAYear { from: ZoneSource::System, .. } => {
                "update the system's package tzdata; it counts within a minute. If there is none that is newer, ask the \
                 distribution for it, or use a newer version of this program"
            }
            Self::OlderThanBuiltIn { .. } => {
                "update the system's package tzdata: the host's `date` goes by it"
            }
            Self::Unknown => "install the system's package tzdata, with its file tzdata.zi",
        }
    }
}

/// The offsets of one zone from UTC, in seconds east of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offsets {
    /// Before the first change.
    first: i32,
    /// The time of each change, in seconds since 1970, and the offset from then on.
    changes: Box<[(i64, i32)]>,
}

/// Why offsets cannot be those of a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OffsetsError {
    /// There are more changes than clocks are changed.
    #[error("its clocks change more than {CHANGES_MAX} times")]
    TooMany,
    /// Windows rely on changes being more than two days apart.
    #[error("its clocks change twice within two days")]
    TooClose,
    /// Windows rely on offsets of less than a day, and on jumps of a day at most.
    #[error("its clocks are a day or more from UTC, or jump by more than a day")]
    TooFar,
}

/// The rules of one zone.
#[derive(Debug, Clone, Copy)]
pub(super) enum Zone<'a> {
    Default(Tz),
    Read(&'a Offsets),
}

impl Zones {
    /// The default.
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// Rules as they were read.
    pub fn new(rules: Rules) -> Self {
        Self { read: Some(Arc::new(rules)) }
    }

    /// Where they come from.
    pub fn source(&self) -> ZoneSource {
        self.read.as_ref().map_or(ZoneSource::BuiltIn, |rules| rules.source)
    }

    /// Their release; `None` if the system does not say it.
    pub fn version(&self) -> Option<&str> {
        let version = self.known_version()?;
        Some(&version.text)
    }

    /// The release of the system's data, if it does not count because it is older.
    pub fn passed_over(&self) -> Option<&ZoneVersion> {
        self.read.as_ref()?.passed_over.as_ref()
    }

    fn known_version(&self) -> Option<&ZoneVersion> {
        static VERSION: LazyLock<ZoneVersion> =
            LazyLock::new(|| IANA_TZDB_VERSION.parse().expect("chrono-tz is built from a release"));
        match &self.read {
            None => Some(&VERSION),
            Some(rules) => rules.version.as_ref(),
        }
    }

    /// Why they should be replaced by newer ones, if they should at `now`.
    pub fn old(&self, now: DateTime<Utc>) -> Option<OldZones> {
        let Some(version) = self.known_version() else { return Some(OldZones::Unknown) };
        let text = || version.text.clone();
        if version.half_a_year_later() <= now {
            return Some(OldZones::HalfAYear { version: text(), from: self.source() });
        }
        let older = self.passed_over()?;
        Some(OldZones::OlderThanBuiltIn { version: older.text.clone(), built_in: text() })
    }

    pub(super) fn zone(&self, name: Tz) -> Zone<'_> {
        let offsets = self.read.as_ref().and_then(|rules| rules.offsets.get(&name));
        offsets.map_or(Zone::Default(name), Zone::Read)
    }
}

/// The text.
impl fmt::Display for ZoneVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl ZoneVersion {
    /// When the release is certainly half a year old: it was made in its year.
    fn half_a_year_later(&self) -> DateTime<Utc> {
        let day = NaiveDate::from_ymd_opt(self.year + 1, 7, 1).expect("a year of four digits");
        day.and_time(NaiveTime::MIN).and_utc()
    }
}

impl FromStr for ZoneVersion {
    type Err = ZoneVersionError;

    fn from_str(text: &str) -> Result<Self, ZoneVersionError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
        let (year, letters) = text.split_at_checked(4).ok_or(ZoneVersionError)?;
        if !year.bytes().all(|byte| byte.is_ascii_digit())
            || !letters.starts_with(|letter: char| letter.is_ascii_lowercase())
            || text.len() > VERSION_BYTES_MAX
            || !text.bytes().all(is_plain)
        {
            return Err(ZoneVersionError);
        }
        Ok(Self { year: year.parse().map_err(|_| ZoneVersionError)?, text: text.to_owned() })
    }
}

impl Offsets {
    /// The offset `first` up to the first change, then those of `changes`: times in seconds since 1970, in order, with the
    /// offset from then on. After the last one it stays.
    ///
    /// # Errors
    /// Windows cannot rely on them.
    pub fn new(first: i32, changes: Vec<(i64, i32)>) -> Result<Self, OffsetsError> {
        if changes.len() > CHANGES_MAX {
            return Err(OffsetsError::TooMany);
        }
        let is_close = |pair: &[(i64, i32)]| pair[1].0.saturating_sub(pair[0].0) <= CHANGES_APART;
        if changes.windows(2).any(is_close) {
            return Err(OffsetsError::TooClose);
        }
        let offsets = || [first].into_iter().chain(changes.iter().map(|(_, offset)| *offset));
        let mut jumps = offsets().zip(offsets().skip(1)).map(|(before, after)| (after - before).abs());
        if offsets().any(|offset| offset <= -DAY || offset >= DAY) || jumps.any(|jump| jump > DAY) {
            return Err(OffsetsError::TooFar);
        }
        Ok(Self { first, changes: changes.into() })
    }

    fn at(&self, seconds: i64) -> i32 {
        let passed = self.changes.partition_point(|(at, _)| *at <= seconds);
        passed.checked_sub(1).map_or(self.first, |last| self.changes[last].1)
    }
}

impl Zone<'_> {
    /// The offset from UTC at `at`.
    pub(super) fn offset(self, at: DateTime<Utc>) -> TimeDelta {
        let seconds = match self {
            Self::Default(zone) => zone.offset_from_utc_datetime(&at.naive_utc()).fix().local_minus_utc(),
            Self::Read(offsets) => offsets.at(at.timestamp()),
        };
        TimeDelta::seconds(i64::from(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn version(text: &str) -> ZoneVersion {
        text.parse().unwrap()
    }

    fn system(text: Option<&str>) -> Zones {
        of(ZoneSource::System, text, HashMap::new())
    }

    fn of(source: ZoneSource, text: Option<&str>, offsets: HashMap<Tz, Offsets>) -> Zones {
        Zones::new(Rules { source, version: text.map(version), passed_over: None, offsets })
    }

    #[test]
    fn only_releases_are_versions() {
        for text in ["2026f", "1996a", "2025b-rearguard", "2024a-5-g0b0b0b0", "2030zz"] {
            assert_eq!(text.parse::<ZoneVersion>().map(|version| version.text), Ok(text.to_owned()));
        }
        let long = "2026".to_owned() + &"f".repeat(29);
        for text in
            ["", "2026", "26f", "2026F", "unknown", "2026f\u{1b}[2J", "2026 f", "é026f", long.as_str()]
        {
            assert_eq!(text.parse::<ZoneVersion>(), Err(ZoneVersionError), "{text}");
        }
        let order = ["2025b", "2025c", "2026a", "2026f", "2026z", "2026za"];
        let order = order.map(|text| text.parse::<ZoneVersion>().unwrap());
        assert!(order.is_sorted());
    }

    /// A release of 2025 may be of its last day.
    #[test]
    fn data_is_old_after_half_a_year() {
        let half_a_year = |from| Some(OldZones::HalfAYear { version: "2025c".to_owned(), from });
        for (now, old) in [
            ("2025-12-31T00:00:00Z", None),
            ("2026-06-30T23:59:59Z", None),
            ("2026-07-01T00:00:00Z", half_a_year(ZoneSource::System)),
            ("2036-01-01T00:00:00Z", half_a_year(ZoneSource::System)),
        ] {
            assert_eq!(system(Some("2025c")).old(at(now)), old, "{now}");
        }
        assert_eq!(system(None).old(at("2025-01-01T00:00:00Z")), Some(OldZones::Unknown));
        let passed_over = Zones::new(Rules {
            source: ZoneSource::BuiltIn,
            version: Some(version("2025b")),
            passed_over: Some(version("2023a")),
            offsets: HashMap::new(),
        });
        let older = OldZones::OlderThanBuiltIn { version: "2023a".to_owned(), built_in: "2025b".to_owned() };
        assert_eq!(passed_over.old(at("2025-04-01T00:00:00Z")), Some(older));
        let of_built_in = OldZones::HalfAYear { version: "2025b".to_owned(), from: ZoneSource::BuiltIn };
        assert_eq!(passed_over.old(at("2026-07-01T00:00:00Z")), Some(of_built_in));
        let built_in = of(ZoneSource::BuiltIn, Some("2025c"), HashMap::new());
        assert_eq!(built_in.old(at("2026-04-01T00:00:00Z")), None);
        let old = built_in.old(at("2036-01-01T00:00:00Z"));
        assert_eq!(old, half_a_year(ZoneSource::BuiltIn));
        let advice = "install the system's package tzdata, or update it; it counts within a minute";
        assert_eq!(old.unwrap().advice(), advice);
    }

    #[test]
    fn offsets_that_windows_cannot_use_are_refused() {
        let daily = |count: i64| (0..count).map(|day| (day * 3 * 86_400, 3_600 * (day % 2) as i32)).collect();
        assert!(Offsets::new(0, daily(1_000)).is_ok());
        for (changes, error) in [
            (daily(1_001), OffsetsError::TooMany),
            (vec![(0, 3_600), (172_800, 0)], OffsetsError::TooClose),
            (vec![(0, 3_600), (0, 0)], OffsetsError::TooClose),
            (vec![(172_801, 3_600), (0, 0)], OffsetsError::TooClose),
            (vec![(i64::MAX, 3_600), (i64::MIN, 0)], OffsetsError::TooClose),
            (vec![(0, 86_400)], OffsetsError::TooFar),
            (vec![(0, -86_400)], OffsetsError::TooFar),
            (vec![(0, 43_201), (172_801, -43_200)], OffsetsError::TooFar),
        ] {
            assert_eq!(Offsets::new(0, changes.clone()), Err(error), "{changes:?}");
        }
    }

    #[test]
    fn offset_changes_at_its_second() {
        let offsets = Offsets::new(60, vec![(1_000, 3_600), (1_000_000, 7_200)]).unwrap();
        let at = |seconds| offsets.at(seconds);
        assert_eq!(
            [i64::MIN, 999, 1_000, 999_999, 1_000_000, i64::MAX].map(at),
            [60, 60, 3_600, 3_600, 7_200, 7_200]
        );
    }

    #[test]
    fn rules_take_the_place_of_the_default() {
        let tokyo = HashMap::from([(Tz::Asia__Tokyo, Offsets::new(60, vec![]).unwrap())]);
        let zones = of(ZoneSource::System, None, tokyo);
        let noon = at("2026-11-27T12:00:00Z");
        assert_eq!(zones.zone(Tz::Asia__Tokyo).offset(noon), TimeDelta::minutes(1));
        assert_eq!(zones.zone(Tz::Asia__Seoul).offset(noon), TimeDelta::hours(9));
        assert_eq!(Zones::default().version(), Some(IANA_TZDB_VERSION));
    }
}
