//! Maintenance and deny windows as operators write them, and their occurrences.

mod cron;
mod cron_error;
mod crontab;
mod date;
mod days;
mod definition;
mod local;
mod occurrences;
mod one_window;
mod start_time;
mod timezone;
pub mod zone_advice;
mod zones;

pub use cron::{Cron, CronError};
pub use date::{Date, DateError};
pub use days::{DaysError, DaysOfWeek};
pub use definition::{DstPolicy, Occurrence, Window, WindowError};
pub(crate) use occurrences::DENIED_MAX;
pub use occurrences::{Calendar, CalendarError};
pub use start_time::{StartTime, StartTimeError};
pub use timezone::{Timezone, TimezoneError};
pub use zones::{Offsets, OffsetsError, OldZones, Rules, ZoneSource, ZoneVersion, ZoneVersionError, Zones};

#[cfg(test)]
mod tests;
