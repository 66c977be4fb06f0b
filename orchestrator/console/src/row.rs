//! Rows of tables for people. A type describes its columns once; the narrow table, the wide one and the list of names follow from that.
//! Drawing is left to who shows them.

use crate::zone::Zone;

/// A column of a table with rows of `R`.
#[derive(Debug)]
pub struct Column<R> {
    /// Its heading; empty if it has none.
    pub head: &'static str,
    /// What it shows of a row, with times in a zone.
    pub entry: fn(&R, Zone) -> String,
    /// Whether only the wide format has it.
    pub is_wide: bool,
    /// What it holds.
    pub kind: Kind,
}

/// What a column holds, in the order in which columns are cut where there is too little room: free text first, and last what says
/// nothing in part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Sentences.
    Text,
    /// Names, words and numbers.
    Word,
    /// Times and ids.
    Whole,
}

impl<R> Column<R> {
    /// A column with a heading, and what it shows of a row.
    pub const fn new(head: &'static str, entry: fn(&R, Zone) -> String) -> Self {
        Self { head, entry, is_wide: false, kind: Kind::Word }
    }

    /// A column of the wide format only.
    pub const fn wide(head: &'static str, entry: fn(&R, Zone) -> String) -> Self {
        Self { is_wide: true, ..Self::new(head, entry) }
    }

    /// A column of free text, which is cut before others are.
    pub const fn text(head: &'static str, entry: fn(&R, Zone) -> String) -> Self {
        Self { kind: Kind::Text, ..Self::new(head, entry) }
    }

    /// A column of times or ids, part of which says nothing.
    pub const fn whole(head: &'static str, entry: fn(&R, Zone) -> String) -> Self {
        Self { kind: Kind::Whole, ..Self::new(head, entry) }
    }
}

/// An entry of a list.
pub trait Row: Sized + 'static {
    /// Its columns.
    const COLUMNS: &'static [Column<Self>];
    /// What is said in place of an empty table.
    const NONE: &'static str;

    /// Its name, for `-o name`; absent if such entries have none.
    fn name(&self) -> Option<String> {
        None
    }
}

/// A line about one thing: the name of what it says, and that. The name is empty where a line goes on with what the one before it says.
pub type Detail = (&'static str, String);

/// A text that may be absent; `-` stands for that.
pub fn or_dash(text: Option<&str>) -> String {
    text.unwrap_or("-").to_owned()
}
