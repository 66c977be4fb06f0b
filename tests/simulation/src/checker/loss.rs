//! What must hold once the bus has lost acknowledged data.
//!
//! It is checked while the streams are shorter than an instance knows them to be. Once another instance, which does
//! not know of the loss, has let them grow again, append ids reveal it; other tests cover that.

use super::violation::Violation;
use crate::bus::Ends;
use crate::peer::Peer;
use crate::time::Micros;

/// What an instance knows of the ends of the streams when the bus loses data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownEnds {
    /// The number of its process at that time, or its last one before.
    pub(crate) process: u32,
    /// What that process knows, if it is running.
    pub(crate) live: Option<Ends>,
    /// When that process noticed that the bus is back.
    pub(crate) reconnected: Option<Micros>,
    /// What its store knows, if it has anything.
    pub(crate) stored: Option<Ends>,
}

/// What each instance knows of the streams, once the bus has lost data.
#[derive(Debug, Default)]
pub(super) struct Loss {
    known: Option<Vec<KnownEnds>>,
}

impl Loss {
    /// The bus has lost data; `known_ends` has what each instance knows.
    pub(super) fn data_lost(&mut self, known_ends: Vec<KnownEnds>) {
        self.known = Some(known_ends);
    }

    /// Whether the bus has lost data.
    pub(super) fn has_lost_data(&self) -> bool {
        self.known.is_some()
    }

    /// A process has noticed that the bus is back.
    pub(super) fn reconnected(&mut self, now: Micros, instance: usize) {
        if let Some(known_ends) = &mut self.known {
            known_ends[instance].reconnected.get_or_insert(now);
        }
    }

    /// An append or a command arrives that left its process at `sent`; the streams end at `ends` before it.
    pub(super) fn check_write(
        &self,
        from: Peer,
        process: u32,
        sent: Micros,
        ends: Ends,
    ) -> Result<(), Violation> {
        let (Some(known_ends), Peer::Instance(instance)) = (&self.known, from) else { return Ok(()) };
        let known_ends = known_ends[instance];
        let known = if process == known_ends.process {
            known_ends.live.filter(|_| known_ends.reconnected.is_some_and(|reconnected| reconnected < sent))
        } else {
            // What an earlier process sent may arrive late.
            known_ends.stored.filter(|_| process > known_ends.process)
        };
        if known.is_some_and(|known| known.is_beyond(ends)) {
            let text = format!("i{instance} goes on though it knows that data is lost");
            return Err(Violation::new("loss", text));
        }
        Ok(())
    }

    /// Checks some time after a loss whether each instance has stopped.
    pub(super) fn check_stopped(&self, stopped: &[bool], ends: Ends) -> Result<(), Violation> {
        let known = self.known.iter().flatten().zip(stopped).enumerate();
        for (instance, (known_ends, stopped)) in known {
            if known_ends.stored.is_some_and(|stored| stored.is_beyond(ends)) && !stopped {
                let text = format!("i{instance} has not stopped though its store has more");
                return Err(Violation::new("loss", text));
            }
        }
        Ok(())
    }
}
