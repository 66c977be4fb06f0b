//! How far a step is, and the table of legal transitions.

use os_upgrade_protocol::Action;

/// How far a host's step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It has not begun: the host of a run is being prepared.
    Before,
    /// The host waits for its slot.
    Slot,
    /// It has its slot, and its node is being drained if there is one.
    Drain,
    /// Its `upgrade` is sent, or about to be.
    Command,
    /// It is told to reboot, or about to be.
    Boot,
    /// It is back, and its node is being uncordoned.
    Recover,
    Ended,
}

/// What takes a step to another stage. How a step ends without success is for its owner to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Move {
    /// It is known why it has no slot yet.
    Waits,
    /// Its slot is granted.
    Granted {
        /// Whether its drain begins, or its first command is due at once.
        drain: bool,
    },
    /// Its drain is given up for now.
    BacksOff,
    /// Its drain is over, so that the first command of its owner is due: this one.
    Drained(Action),
    /// Its command was seen in the control stream.
    Sent(Action),
    /// Its host has been upgraded, and needs a reboot for that.
    NeedsReboot,
    /// Its host is back.
    Returns,
    Done,
}

impl Stage {
    /// The stage after a move: the table of legal transitions. `None` if the move is illegal at this stage.
    pub(crate) const fn after(self, by: Move) -> Option<Self> {
        Some(match (self, by) {
            (Self::Slot, Move::Waits) | (Self::Drain, Move::BacksOff) => Self::Slot,
            (Self::Slot, Move::Granted { drain: true }) => Self::Drain,
            (Self::Slot, Move::Granted { drain: false })
            | (Self::Drain, Move::Drained(Action::Upgrade))
            | (Self::Command, Move::Sent(Action::Upgrade)) => Self::Command,
            (Self::Drain, Move::Drained(Action::Reboot))
            | (Self::Command, Move::NeedsReboot)
            | (Self::Boot, Move::Sent(Action::Reboot)) => Self::Boot,
            (Self::Command | Self::Boot, Move::Returns) => Self::Recover,
            (Self::Command | Self::Boot | Self::Recover, Move::Done) => Self::Ended,
            (
                Self::Before
                | Self::Slot
                | Self::Drain
                | Self::Command
                | Self::Boot
                | Self::Recover
                | Self::Ended,
                Move::Waits
                | Move::Granted { .. }
                | Move::BacksOff
                | Move::Drained(_)
                | Move::Sent(_)
                | Move::NeedsReboot
                | Move::Returns
                | Move::Done,
            ) => return None,
        })
    }

    /// Whether the host has its slot, and is being drained, upgraded, rebooted or uncordoned.
    pub(crate) const fn is_under_way(self) -> bool {
        match self {
            Self::Drain | Self::Command | Self::Boot | Self::Recover => true,
            Self::Before | Self::Slot | Self::Ended => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAGES: [Stage; 7] =
        [Stage::Before, Stage::Slot, Stage::Drain, Stage::Command, Stage::Boot, Stage::Recover, Stage::Ended];

    #[test]
    fn a_step_goes_forward_or_back_to_its_slot() {
        let actions = || [Action::Prepare, Action::Upgrade, Action::Reboot].into_iter();
        let granted = [true, false].map(|drain| Move::Granted { drain });
        let others = [Move::Waits, Move::BacksOff, Move::NeedsReboot, Move::Returns, Move::Done];
        let of_actions = || actions().map(Move::Drained).chain(actions().map(Move::Sent));
        let moves = || granted.into_iter().chain(others).chain(of_actions());
        for (position, from) in STAGES.into_iter().enumerate() {
            let reached = moves().filter_map(|by| Some((by, from.after(by)?)));
            let is_in_order = |(by, to): (Move, Stage)| {
                let forward = STAGES.iter().position(|stage| *stage == to) >= Some(position);
                forward || (by, to) == (Move::BacksOff, Stage::Slot)
            };
            assert!(reached.clone().all(is_in_order), "{from:?}");
            let ends = [Stage::Before, Stage::Ended].contains(&from);
            assert_eq!(reached.count() == 0, ends, "{from:?}");
        }
    }
}
