//! Maintenance and deny windows as operators write them, and the `calendar` that computes their occurrences.

mod calendar;
mod cron_error;
mod date;
mod days;
mod definition;
mod local;
mod schedule;
mod series;
mod start_time;
mod timezone;

pub use calendar::{Calendar, CalendarError};
pub use date::{Date, DateError};
pub use days::{DaysError, DaysOfWeek};
pub use definition::{DstPolicy, Occurrence, Window, WindowError};
pub use schedule::{Cron, CronError};
pub use start_time::{StartTime, StartTimeError};
pub use timezone::{Timezone, TimezoneError};

#[cfg(test)]
mod tests;
