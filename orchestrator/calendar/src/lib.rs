//! Maintenance and deny windows as operators write them, their occurrences, and which of these are used. It has no state and reads
//! no clock.

mod cron;
mod cron_error;
mod crontab;
mod date;
mod days;
mod definition;
pub mod deserialize;
mod duration;
mod local;
mod occurrences;
mod one_window;
mod start_time;
mod timezone;
mod watermark;
pub mod zone_advice;
mod zones;

pub use cron::{Cron, CronError};
pub use date::{Date, DateError};
pub use days::{DaysError, DaysOfWeek};
pub use definition::{DstPolicy, Occurrence, Window, WindowError};
pub use duration::Duration;
pub use occurrences::{Calendar, CalendarError, DENIED_MAX};
pub use start_time::{StartTime, StartTimeError};
pub use timezone::{Timezone, TimezoneError};
pub use watermark::Watermark;
pub use zones::{Offsets, OffsetsError, OldZones, Rules, ZoneSource, ZoneVersion, ZoneVersionError, Zones};

#[cfg(test)]
mod tests;
