//! A zone's file, in the format `TZif` of RFC 9636, as offsets.

use std::io;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use os_upgrade_calendar::{Offsets, OffsetsError};

/// The largest file of a zone, in bytes. Real ones have 4 kB.
pub(crate) const ZONE_BYTES_MAX: u64 = 64 * 1024;

/// The start of 1969 and of 2101 in seconds since 1970: windows start from 1970 on, and what is compiled in ends with 2100.
/// Rules for all later years would have to be kept as rules.
const FIRST: i64 = -31_536_000;
const LAST: i64 = 4_133_980_800;

/// The length of a header.
const HEADER_BYTES: usize = 44;

/// Why the file of a zone cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ZoneFileError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// It is longer than any zone's.
    #[error("it has more than {ZONE_BYTES_MAX} bytes")]
    TooLong,
    /// It is not in the format.
    #[error("it is damaged, or no time zone file")]
    Damaged(#[source] jiff::Error),
    /// Its times count leap seconds, so that clocks would change too late.
    #[error("it counts leap seconds, like the files below right/")]
    LeapSeconds,
    /// Windows cannot rely on its offsets.
    #[error(transparent)]
    Offsets(#[from] OffsetsError),
}

/// The offsets of the zone `name` whose file has `data`.
///
/// # Errors
/// The file is damaged, counts leap seconds, or its clocks change as no zone's do.
pub fn offsets(name: &str, data: &[u8]) -> Result<Offsets, ZoneFileError> {
    let zone = TimeZone::tzif(name, data).map_err(ZoneFileError::Damaged)?;
    // The library reads such a file without its leap seconds, by which all its times are late.
    if counts_leap_seconds(data) {
        return Err(ZoneFileError::LeapSeconds);
    }
    let begin = Timestamp::constant(FIRST, 0);
    let first = zone.to_offset(begin).seconds();
    let (mut changes, mut last, mut before) = (Vec::new(), FIRST, first);
    for change in zone.following(begin) {
        let (at, offset) = (change.timestamp().as_second(), change.offset().seconds());
        // Of a file without a footer, the library gives the last change again and again.
        if at <= last || at >= LAST {
            break;
        }
        // Where only the abbreviation changes, clocks do not.
        if offset != before {
            changes.push((at, offset));
        }
        (last, before) = (at, offset);
    }
    Ok(Offsets::new(first, changes)?)
}

/// Whether a file in the format says how many leap seconds there were: such data count them, and others do not. The first
/// header may leave it to the second.
fn counts_leap_seconds(data: &[u8]) -> bool {
    let Some(first) = Header::read(data) else { return false };
    let second = first.block_bytes().and_then(|bytes| Header::read(data.get(HEADER_BYTES + bytes..)?));
    first.leap_seconds != 0 || second.is_some_and(|second| second.leap_seconds != 0)
}

/// The counts in a header.
struct Header {
    leap_seconds: u32,
    /// Of what else its block has: how many, and the bytes of each in the first block.
    others: [(u32, usize); 5],
}

impl Header {
    fn read(data: &[u8]) -> Option<Self> {
        let header = data.get(..HEADER_BYTES)?;
        let counts: Vec<u32> = header
            .strip_prefix(b"TZif")?
            .get(16..)?
            .as_chunks()
            .0
            .iter()
            .copied()
            .map(u32::from_be_bytes)
            .collect();
        let [ut, standard, leap_seconds, times, types, characters] = counts[..] else { return None };
        Some(Self { leap_seconds, others: [(ut, 1), (standard, 1), (times, 5), (types, 6), (characters, 1)] })
    }

    /// The length of the first block.
    fn block_bytes(&self) -> Option<usize> {
        let parts = self.others.into_iter().chain([(self.leap_seconds, 8)]);
        parts.map(|(count, bytes)| usize::try_from(count).ok()?.checked_mul(bytes)).sum()
    }
}
