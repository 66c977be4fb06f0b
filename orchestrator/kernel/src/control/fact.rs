//! What becomes true of the control stream.

use os_upgrade_protocol::{Action, HostName, Reply, RunId};
use serde::{Deserialize, Serialize};

use crate::about::{About, OwnerRef, Part};

/// Something that has become true of the control stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum ControlFact {
    /// A fence is stored in the control stream; commands from here on carry it.
    Fenced {
        /// The fence's sequence in the control stream.
        sequence: u64,
        /// The leading instance.
        leader: String,
    },
    /// The control stream has been read past the fence: every command sent under an older fence has been seen, or will
    /// never appear.
    FencePassed {
        /// The fence's sequence in the control stream.
        sequence: u64,
    },
    /// A command appeared after its host's part in the run had ended; it is to be retracted. If a slot is still held in
    /// case the command appears, it is held for this command from here on.
    LateCommandSeen {
        host: HostName,
        action: Action,
        /// The command's sequence in the control stream.
        sequence: u64,
    },
    /// An attempt was made to retract an unanswered command of an ended run, or of a host that was given up.
    CommandRetracted {
        /// The host it was sent to.
        host: HostName,
        /// The command's sequence in the control stream.
        sequence: u64,
        /// Whether it was deleted; otherwise it had already been delivered to a worker.
        deleted: bool,
    },
    /// A message in the control stream changed nothing. Of the ignored replies of a host, the first of each minute is
    /// recorded.
    Ignored {
        /// The message's sequence.
        sequence: u64,
        /// The host in its subject, if any.
        host: Option<HostName>,
        /// The reply, when it could be parsed; the text of an error is left out.
        reply: Option<Reply>,
        /// Why it changed nothing.
        why: IgnoreCause,
    },
}

impl ControlFact {
    /// What it is about.
    pub(crate) fn about(&self) -> About<'_> {
        match self {
            Self::LateCommandSeen { host, action, sequence } => {
                About::host(OwnerRef::OfLateCommand, host).of_command(*sequence, Some(*action))
            }
            Self::CommandRetracted { host, sequence, .. } => {
                About::host(OwnerRef::OfCommand(*sequence), host).of_command(*sequence, None)
            }
            Self::Ignored { host, .. } => {
                About { owner: OwnerRef::Latest, host: host.as_ref(), ..About::default() }
            }
            Self::Fenced { .. } | Self::FencePassed { .. } => About::default(),
        }
    }

    /// What must be derived again after it.
    pub(crate) const fn affects(&self) -> &'static [Part] {
        match self {
            Self::FencePassed { .. } => &[Part::Commands],
            Self::Fenced { .. }
            | Self::LateCommandSeen { .. }
            | Self::CommandRetracted { .. }
            | Self::Ignored { .. } => &[],
        }
    }
}

/// Why a message in the control stream changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum IgnoreCause {
    /// It could not be parsed.
    Malformed {
        /// The parse error.
        detail: String,
    },
    /// Its subject is not one of the protocol's.
    UnknownSubject {
        /// That subject.
        subject: String,
    },
    /// A reply to no command that is outstanding for its host.
    NothingOutstanding,
    /// A reply to the `upgrade` or `reboot` of a host whose part in the run had ended without one.
    TooLate { run: RunId },
    /// A further reply to a command that has been answered.
    AlreadyAnswered,
    /// A command that this site has not decided.
    ForeignCommand,
}

impl IgnoreCause {
    /// Whether the message was a reply.
    pub(crate) fn is_of_reply(&self) -> bool {
        match self {
            Self::Malformed { .. }
            | Self::NothingOutstanding
            | Self::TooLate { .. }
            | Self::AlreadyAnswered => true,
            Self::UnknownSubject { .. } | Self::ForeignCommand => false,
        }
    }
}
