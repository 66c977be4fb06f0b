//! The ids and groups of one examination. They are unique, so that no other client's slot is touched.

use super::case::{Group, Id, Who};

/// The parts of which ids and groups are made.
#[derive(Debug)]
pub(super) struct Names {
    /// The group that is tested.
    pub(super) group: String,
    /// The prefix of every id.
    prefix: String,
    /// The id that is a number.
    pub(super) number: u64,
}

impl Names {
    /// Names with `random` in them.
    pub(super) fn new(group: &str, random: u64) -> Self {
        // At most 52 bits, so that every JSON parser reads it exactly.
        let number = random >> 12;
        Self { group: group.to_owned(), prefix: format!("conformance-{:08x}", random >> 32), number }
    }

    pub(super) fn who(&self, who: Who) -> String {
        match who {
            Who::Holder => self.id("a"),
            Who::HolderInCapitals => self.id("A"),
            Who::Other => self.id("b"),
        }
    }

    /// An id that fills the group.
    pub(super) fn filler(&self, number: usize) -> String {
        self.id(&format!("fill-{number}"))
    }

    /// An id that contends for the last slot.
    pub(super) fn contender(&self, number: usize) -> String {
        self.id(&format!("many-{number}"))
    }

    pub(super) fn second(&self) -> String {
        self.id("c")
    }

    /// Whether `text` contains one of our ids.
    pub(super) fn is_named_in(&self, text: &str) -> bool {
        text.contains(&self.prefix)
    }

    pub(super) fn other_id(&self, id: Id) -> String {
        match id {
            Id::Empty => String::new(),
            Id::Long(length) => format!("{:x<length$}", self.id("long-")),
            Id::ControlCharacters => self.id("a\n\u{7}"),
            Id::NotAscii => self.id("häst-馬"),
        }
    }

    pub(super) fn other_group(&self, group: Group) -> String {
        match group {
            Group::Empty => String::new(),
            Group::Unknown => self.prefix.clone(),
            Group::Invalid => self.prefix.replace('-', "_"),
        }
    }

    fn id(&self, end: &str) -> String {
        format!("{}-{end}", self.prefix)
    }
}
