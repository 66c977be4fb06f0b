//! Signals that end a wait, or are meant for the command that is run.

use std::fs::File;

use anyhow::Context as _;
use nix::sys::signal::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT, SIGTERM and SIGHUP, from when it is made.
#[derive(Debug)]
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    pub(super) fn listen() -> anyhow::Result<Self> {
        let listen = |kind, name| signal(kind).with_context(|| format!("cannot handle {name}"));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt(), "SIGINT")?,
            terminate: listen(SignalKind::terminate(), "SIGTERM")?,
            hangup: listen(SignalKind::hangup(), "SIGHUP")?,
        })
    }

    /// The next one that comes.
    pub(super) async fn next(&mut self) -> Number {
        tokio::select! {
            _ = self.interrupt.recv() => Number::SIGINT,
            _ = self.terminate.recv() => Number::SIGTERM,
            _ = self.hangup.recv() => Number::SIGHUP,
        }
    }
}

/// Whether `signal` was most likely typed at a terminal, which has sent it to everybody in the foreground already: many
/// programs take a second Ctrl-C as an order to end at once.
pub(super) fn is_typed(signal: Number) -> bool {
    let typed_for = || nix::unistd::tcgetpgrp(File::open("/dev/tty").ok()?).ok();
    signal == Number::SIGINT && typed_for() == Some(nix::unistd::getpgrp())
}
