//! What must be so once the bus has lost what it had acknowledged.
//!
//! It is asked for as long as the streams are shorter than what is known of them. Once another instance, which knew of
//! no loss, has let them grow again, append ids tell, which is tested apart from here.

use super::violation::Violation;
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

/// What each instance knows of what the bus has lost, once it has lost something.
#[derive(Debug, Default)]
pub(super) struct Loss {
    known: Option<Vec<Knows>>,
}

impl Loss {
    /// The bus has lost something.
    pub(super) fn data_lost(&mut self, knows: Vec<Knows>) {
        self.known = Some(knows);
    }

    /// Whether it has.
    pub(super) fn has_lost_data(&self) -> bool {
        self.known.is_some()
    }

    /// A process has been told that the bus is back.
    pub(super) fn reconnected(&mut self, now: Micros, instance: usize) {
        if let Some(knows) = &mut self.known {
            knows[instance].told.get_or_insert(now);
        }
    }

    /// A process writes to the journal, or sends a command, which left it at `sent`; the streams end at `ends` then.
    pub(super) fn check_write(
        &self,
        from: Peer,
        process: u32,
        sent: Micros,
        ends: Ends,
    ) -> Result<(), Violation> {
        let (Some(knows), Peer::Instance(instance)) = (&self.known, from) else { return Ok(()) };
        let knows = knows[instance];
        let of_it = if process == knows.process {
            knows.live.filter(|_| knows.told.is_some_and(|told| told < sent))
        } else {
            // What an earlier process had sent may arrive late.
            knows.stored.filter(|_| process > knows.process)
        };
        if of_it.is_some_and(|of_it| of_it.is_beyond(ends)) {
            let text = format!("i{instance} goes on though it knows that data is lost");
            return Err(Violation::new("loss", text));
        }
        Ok(())
    }

    /// Whether each instance has stopped, after some time.
    pub(super) fn check_stopped(&self, stopped: &[bool], ends: Ends) -> Result<(), Violation> {
        let known = self.known.iter().flatten().zip(stopped).enumerate();
        for (instance, (knows, stopped)) in known {
            if knows.stored.is_some_and(|stored| stored.is_beyond(ends)) && !stopped {
                let text = format!("i{instance} has not stopped though its store has more");
                return Err(Violation::new("loss", text));
            }
        }
        Ok(())
    }
}
