//! Groups of slots, who holds slots, and who waits for one.

use os_upgrade_api_types::routes::slots::{SlotGroup, SlotHolder, SlotWaiter, Slots};
use os_upgrade_api_types::word::Word;

use crate::row::{Column, Row};

/// A holder or waiter, with the name of its group.
#[derive(Debug)]
pub struct InGroup<E> {
    group: String,
    entry: E,
}

/// The holders in every group.
pub fn holders(slots: &Slots<'static>) -> Vec<InGroup<SlotHolder<'static>>> {
    in_groups(slots, |group| &group.holders)
}

/// The waiters in every group.
pub fn waiters(slots: &Slots<'static>) -> Vec<InGroup<SlotWaiter<'static>>> {
    in_groups(slots, |group| &group.waiters)
}

fn in_groups<E: Clone>(
    slots: &Slots<'static>,
    entries: impl for<'a> Fn(&'a SlotGroup<'static>) -> &'a [E],
) -> Vec<InGroup<E>> {
    let of_group = |group: &SlotGroup<'static>| -> Vec<InGroup<E>> {
        let entries = entries(group).iter().cloned();
        entries.map(|entry| InGroup { group: group.group.to_string(), entry }).collect()
    };
    slots.groups.iter().flat_map(of_group).collect()
}

impl Row for SlotGroup<'static> {
    const COLUMNS: &'static [Column<Self>] =
        &[
            Column::new("GROUP", |group, _| group.group.to_string()),
            Column::new("SLOTS", |group, _| {
                group.slots.map_or_else(|| "-".to_owned(), |slots| slots.to_string())
            }),
            Column::wide("FAILED", |group, _| {
                group.failed.map_or_else(|| "-".to_owned(), |failed| failed.to_string())
            }),
            Column::new("HELD", |group, _| group.held.to_string()),
            Column::new("WAITING", |group, _| group.waiters.len().to_string()),
            Column::new("", |group, _| {
                if group.excess > 0 { format!("{} too many", group.excess) } else { String::new() }
            }),
        ];
    const NONE: &'static str = "there is no such group";

    fn name(&self) -> Option<String> {
        Some(self.group.to_string())
    }
}

impl Row for InGroup<SlotHolder<'static>> {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("GROUP", |row, _| row.group.clone()),
        Column::new("HOLDER", |row, _| row.entry.id.to_string()),
        Column::whole("SINCE", |row, zone| zone.stamp(row.entry.since)),
        Column::new("FOR", |row, _| {
            row.entry.on_behalf_of.iter().map(Word::as_str).collect::<Vec<_>>().join(", ")
        }),
        Column::text("REASON", |row, _| {
            format!("{}{}", if row.entry.stuck { "stuck: " } else { "" }, row.entry.reason)
        }),
    ];
    const NONE: &'static str = "nobody holds a slot";

    fn name(&self) -> Option<String> {
        Some(self.entry.id.to_string())
    }
}

impl Row for InGroup<SlotWaiter<'static>> {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("GROUP", |row, _| row.group.clone()),
        Column::new("WAITER", |row, _| row.entry.id.to_string()),
        Column::new("KIND", |row, _| row.entry.kind.to_string()),
        Column::whole("SINCE", |row, zone| zone.stamp(row.entry.since)),
        Column::whole("LAST ASKED", |row, zone| zone.stamp_or_dash(row.entry.last_asked)),
    ];
    const NONE: &'static str = "nobody waits for a slot";

    fn name(&self) -> Option<String> {
        Some(self.entry.id.to_string())
    }
}
