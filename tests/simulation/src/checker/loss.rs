//! What must be so once the bus has lost what it had acknowledged.
//!
//! It is asked for as long as the streams are shorter than what is known of them. Once another instance, which knew of
//! no loss, has let them grow again, append ids tell, which is tested apart from here.

use super::Checker;
use crate::bus::Ends;
use crate::peer::Peer;
use crate::time::Micros;

/// What an instance knows of the streams when the bus loses something.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Knows {
    /// Its last process of that time.
    pub(crate) process: u32,
    /// What that one knows, if it lives.
    pub(crate) live: Option<Ends>,
    /// When that one was told that the bus is back.
    pub(crate) told: Option<Micros>,
    /// What its store knows.
    pub(crate) stored: Option<Ends>,
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

    /// A process writes to the journal, or sends a command, which left it at `sent`; the streams end at `ends` then.
    pub(crate) fn wrote(&mut self, from: Peer, process: u32, sent: Micros, ends: Ends) {
        let (Some(knows), Peer::Instance(instance)) = (&self.lost, from) else { return };
        let knows = knows[instance];
        let of_it = if process == knows.process {
            knows.live.filter(|_| knows.told.is_some_and(|told| told < sent))
        } else {
            // What an earlier process had sent may arrive late.
            knows.stored.filter(|_| process > knows.process)
        };
        if of_it.is_some_and(|of_it| of_it.is_beyond(ends)) {
            self.violated("loss", format!("i{instance} goes on though it knows that data is lost"));
        }
    }

    /// Whether each instance has stopped, after some time.
    pub(crate) fn have_stopped(&mut self, stopped: &[bool], ends: Ends) {
        let Some(knows) = self.lost.clone() else { return };
        for (instance, (knows, stopped)) in knows.iter().zip(stopped).enumerate() {
            if knows.stored.is_some_and(|stored| stored.is_beyond(ends)) && !stopped {
                self.violated("loss", format!("i{instance} has not stopped though its store has more"));
            }
        }
    }
}
