//! CPU time, which other load on the machine affects less than the time that passes.

use std::fs;
use std::time::Duration;

use anyhow::Context as _;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

/// The unit of `/proc`, the same on every Linux.
const TICK: Duration = Duration::from_millis(10);
/// The number of fields in `/proc/PID/stat` between the name and the times.
const FIELDS_BEFORE: usize = 11;

/// The CPU time of the process `pid` so far, in user and kernel mode.
pub(crate) fn of_process(pid: u32) -> anyhow::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name, in parentheses, may contain anything.
    let (_, fields) = stat.rsplit_once(") ").context("a process without a name")?;
    let times = fields.split(' ').skip(FIELDS_BEFORE).take(2);
    Ok(TICK * times.map(str::parse::<u32>).sum::<Result<u32, _>>()?)
}

/// The CPU time of this thread so far, in user and kernel mode.
pub(crate) fn of_thread() -> anyhow::Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD)?;
    let micros = (usage.user_time() + usage.system_time()).num_microseconds();
    Ok(Duration::from_micros(micros.try_into()?))
}
