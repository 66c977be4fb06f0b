//! What a case is made of. The cases themselves are in [`super::table`].

use std::fmt;

/// One row: how things are before, and what is done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) before: Before,
    pub(super) what: What,
}

/// Who holds slots when a case begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// None of ours.
    Free,
    /// [`Who::Holder`].
    Held,
    /// [`Who::Holder`] and as many more of ours as are granted a slot.
    Full,
}

/// What is done.
#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    /// One request after the other; the first that is not answered as expected decides.
    Steps(&'static [Step]),
    /// The same request to both endpoints, first to lock.
    Both(Step),
    /// As many slots are granted as there are said to be.
    Slots,
    /// Many lock at once while one slot is free, again and again.
    Contend,
}

/// A request with what is expected of its answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) sent: Sent,
    /// What the protocol and its clients demand, if anything.
    pub(super) protocol: Option<Expected>,
    /// What our server answers.
    pub(super) ours: Expected,
}

/// What is expected of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// 200 with a JSON object, which every client takes for a yes.
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

/// What is asked for.
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

/// In whose name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// Who holds a slot in [`Before::Held`] and [`Before::Full`].
    Holder,
    /// The same in capitals, which is another.
    HolderInCapitals,
    /// Somebody else.
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

/// What the body says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// The protocol's object.
    Claim,
    /// The same as Zincati writes it: over several lines, the id first.
    Pretty,
    /// The same with fields that the protocol does not have.
    ExtraFields,
    /// The same, filled with white space to so many bytes.
    Padded(usize),
    /// The protocol's object, of another group.
    OtherGroup(Group),
    /// The protocol's object, with another id.
    OtherId(Id),
    /// Nothing.
    Empty,
    /// Half an object.
    Half,
    /// A list.
    List,
    /// An object without `client_params`.
    NoParams,
    /// An object without the id.
    NoId,
    /// An object without the group.
    NoGroup,
    /// The protocol's object with more behind it.
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
    /// A name that nobody has configured.
    Unknown,
    /// A name that the protocol does not allow.
    Invalid,
}

/// An unusual id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Id {
    Empty,
    /// Of so many bytes.
    Long(usize),
    ControlCharacters,
    NotAscii,
}
