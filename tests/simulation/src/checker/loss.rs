//! What must be so once the bus has lost what it had acknowledged.

use super::Checker;
use crate::agenda::Micros;
use crate::world::Peer;

/// What an instance knows of what is lost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Knows {
    /// Its process of that time, if that had seen some of it.
    pub(crate) live: Option<u32>,
    /// When that was told that the bus is back.
    pub(crate) told: Option<Micros>,
    /// Its last process of that time.
    pub(crate) process: u32,
    /// Whether its store has some of it.
    pub(crate) stored: bool,
    /// Whether that is of the journal, where every message tells its predecessor.
    pub(crate) journal: bool,
    /// Up to where its store had taken the control stream into account. A control stream that another instance, which
    /// knew of no loss, has let grow again beyond that shows nothing any more.
    pub(crate) control: u64,
}

impl Checker {
    /// The bus has lost something.
    pub(crate) fn data_lost(&mut self, knows: Vec<Knows>) {
        self.lost = Some(knows);
    }

    /// Whether it has.
    pub(crate) fn has_lost_data(&self) -> bool {
        self.lost.is_some()
    }

    /// A process has been told that the bus is back.
    pub(crate) fn reconnected(&mut self, instance: usize) {
        if let Some(knows) = &mut self.lost {
            knows[instance].told.get_or_insert(self.now);
        }
    }

    /// A process has written to the journal, or sent a command, which left it at `sent`.
    pub(crate) fn wrote(&mut self, from: Peer, process: u32, sent: Micros) {
        let (Some(knows), Peer::Instance(instance)) = (&self.lost, from) else { return };
        let knows = knows[instance];
        let must_know = if knows.live == Some(process) {
            knows.told.is_some_and(|told| told < sent)
        } else {
            knows.stored && knows.journal && process > knows.process
        };
        if must_know {
            self.violated("loss", format!("i{instance} goes on though it knows that data is lost"));
        }
    }

    /// Whether each instance has stopped, after some time.
    pub(crate) fn have_stopped(&mut self, stopped: &[bool], control_len: u64) {
        let Some(knows) = self.lost.clone() else { return };
        for (instance, (knows, stopped)) in knows.iter().zip(stopped).enumerate() {
            let shows = knows.journal || control_len < knows.control;
            if knows.stored && shows && !stopped {
                self.violated("loss", format!("i{instance} has not stopped though its store has more"));
            }
        }
    }
}
