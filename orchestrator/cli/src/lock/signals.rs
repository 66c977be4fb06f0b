//! Signals that end the wait for a slot, or are passed on to the command.

use std::fs::{self, File};
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use anyhow::Context as _;
use futures::FutureExt as _;
use nix::sys::signal::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

/// The signals that are handled.
const HANDLED: [Number; 4] = [Number::SIGINT, Number::SIGTERM, Number::SIGHUP, Number::SIGQUIT];

/// How long the same signal counts as a repetition: tools that end several processes may signal them one by one, and some
/// signal twice.
const SAME_WITHIN: Duration = Duration::from_secs(1);

/// Receives SIGINT, SIGTERM, SIGHUP and SIGQUIT, except those that were ignored at the start, as under `nohup`.
#[derive(Debug)]
pub(super) struct Signals(Vec<(Number, Signal)>);

impl Signals {
    pub(super) fn listen() -> anyhow::Result<Self> {
        let ignored = ignored();
        let listen = |number: Number| {
            let listening = signal(SignalKind::from_raw(number as i32));
            Ok((number, listening.with_context(|| format!("cannot handle {number}"))?))
        };
        let handled = HANDLED.into_iter().filter(|number| ignored & bit(*number) == 0);
        handled.map(listen).collect::<anyhow::Result<_>>().map(Self)
    }

    /// Waits for the next signal.
    pub(super) async fn next(&mut self) -> Number {
        poll_fn(|context| {
            for (number, signal) in &mut self.0 {
                if signal.poll_recv(context).is_ready() {
                    return Poll::Ready(*number);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Waits for the next signal that is not a repetition of one that may have come at `since`.
    pub(super) async fn another(&mut self, since: Instant) -> Number {
        sleep_until(since + SAME_WITHIN).await;
        for _ in HANDLED {
            let _ = self.next().now_or_never();
        }
        self.next().await
    }
}

const fn bit(number: Number) -> u64 {
    1 << (number as i32 - 1)
}

/// The ignored signals, a bit for each; none if the system does not report them.
fn ignored() -> u64 {
    fs::read_to_string("/proc/self/status").ok().and_then(|status| read_ignored(&status)).unwrap_or_default()
}

fn read_ignored(status: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

/// Whether `signal` was most likely typed at a terminal, which has already sent it to every process in the foreground. It
/// is not passed on then: many programs take a second Ctrl-C as an order to end at once.
pub(super) fn is_typed(signal: Number) -> bool {
    let typed_for = || nix::unistd::tcgetpgrp(File::open("/dev/tty").ok()?).ok();
    matches!(signal, Number::SIGINT | Number::SIGQUIT) && typed_for() == Some(nix::unistd::getpgrp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read() {
        let status =
            "Name:\tx\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000000001\nSigCgt:\tffffffffffffffff\n";
        let ignored = read_ignored(status).unwrap();
        assert_eq!(HANDLED.map(|number| ignored & bit(number) != 0), [false, false, true, false]);
        assert_eq!(read_ignored("Name:\tSigIgn:"), None);
    }
}
