//! The parts of a case. The cases themselves are in [`super::table`].

use std::fmt;

/// One case: the state before, and what is done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) before: Before,
    pub(super) what: What,
}

/// Who holds slots when a case begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// No id of ours.
    Free,
    /// [`Who::Holder`].
    Held,
    /// [`Who::Holder`] and as many other ids of ours as are granted a slot.
    Full,
}

/// What is done.
#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    /// One request after the other; the first unexpected answer fails the case.
    Steps(&'static [Step]),
    /// The same request to both endpoints, first to lock.
    Both(Step),
    /// Takes slots until one is refused: exactly `--slots` must be granted.
    Slots,
    /// Several rounds in which many ids lock at once while one slot is free.
    Contend,
}

/// A request with what is expected of its answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) sent: Sent,
    /// What the protocol and its clients demand; `None` if they leave it open.
    pub(super) protocol: Option<Expected>,
    /// What os-upgrade's own server answers.
    pub(super) ours: Expected,
}

/// What is expected of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// 200 with a JSON object, which every client takes for a grant.
    Granted,
    /// 400 to 599 with `kind` and `value`.
    Refused,
    /// 400 to 499 with `kind` and `value`.
    ClientError,
    /// 400 to 599, whatever the body.
    Status4xx5xx,
    /// This status, whatever the body; a 405 names POST.
    Status(u16),
    /// This status and this kind; a 405 names POST.
    Error(u16, &'static str),
    /// The error of a full group, which names a holder.
    Full,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted => f.write_str("200 and a JSON object"),
            Self::Refused => f.write_str("4xx or 5xx, kind and value"),
            Self::ClientError => f.write_str("4xx, kind and value"),
            Self::Status4xx5xx => f.write_str("4xx or 5xx"),
            Self::Status(status) => write!(f, "{status}"),
            Self::Error(status, kind) => write!(f, "{status} {kind}"),
            Self::Full => f.write_str("409 failed_lock_semaphore_full, a holder named"),
        }
    }
}

/// The endpoint of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Lock,
    Unlock,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lock => "pre-reboot",
            Self::Unlock => "steady-state",
        })
    }
}

/// The id of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// The id that holds a slot in [`Before::Held`] and [`Before::Full`].
    Holder,
    /// The holder's id in capitals, which is a different id.
    HolderInCapitals,
    /// An id that holds no slot.
    Other,
}

/// A request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) operation: Operation,
    pub(super) who: Who,
    pub(super) method: &'static str,
    pub(super) join: Join,
    pub(super) headers: &'static [(&'static str, &'static str)],
    pub(super) body: Body,
    /// Whether the body is sent in chunks, without its length.
    pub(super) chunked: bool,
}

/// How the path is joined to the base URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Join {
    /// With one slash.
    Slash,
    /// With two, as fleetlockctl does when the base URL ends in one.
    TwoSlashes,
    /// With one, and one more at the end.
    SlashAtEnd,
    /// With one, and a query.
    Query,
}

/// The content of a request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// The protocol's object.
    Claim,
    /// The protocol's object as Zincati writes it: over several lines, the id first.
    Pretty,
    /// The protocol's object with unknown fields.
    ExtraFields,
    /// The protocol's object, padded with white space to this number of bytes.
    Padded(usize),
    /// The protocol's object, with another group.
    OtherGroup(Group),
    /// The protocol's object, with another id.
    OtherId(Id),
    /// Nothing.
    Empty,
    /// Half an object.
    Half,
    List,
    /// An object without `client_params`.
    NoParams,
    /// An object without the id.
    NoId,
    /// An object without the group.
    NoGroup,
    /// The protocol's object with text after it.
    Trailing,
    /// The protocol's object with two ids.
    TwoIds,
    /// An id that is a number.
    NumberId,
}

/// A group other than the one examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    Empty,
    /// A valid name of a group that does not exist.
    Unknown,
    /// A name that the protocol does not allow.
    Invalid,
}

/// An unusual id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Id {
    Empty,
    /// An id of this number of bytes.
    Long(usize),
    ControlCharacters,
    NotAscii,
}
