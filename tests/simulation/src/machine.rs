//! The machine on which the bus and all instances run, as saved at one moment.

use crate::bus::Bus;
use crate::checker::Journal;
use crate::instance::{Instance, Store};

/// Its disks, and what the checker had seen of them.
#[derive(Debug)]
pub(crate) struct Machine {
    bus: Bus,
    directories: Vec<Directory>,
    journal: Journal,
}

/// The data directory of an instance, and what others had heard of it.
#[derive(Debug)]
struct Directory {
    name: String,
    store: Store,
    announced: Option<u64>,
    stored_once: Option<u64>,
}

impl Machine {
    /// The machine as it is now.
    pub(crate) fn of(bus: &Bus, instances: &[Instance], journal: &Journal) -> Self {
        let directory = |instance: &Instance| Directory {
            name: instance.name.clone(),
            store: instance.store.clone(),
            announced: instance.announced,
            stored_once: instance.stored_once,
        };
        let directories = instances.iter().map(directory).collect();
        Self { bus: bus.clone(), directories, journal: journal.clone() }
    }

    /// Puts the disks back. Returns what the checker had seen of the journal.
    pub(crate) fn put_back(self, bus: &mut Bus, instances: &mut [Instance]) -> Journal {
        *bus = self.bus;
        for (directory, instance) in self.directories.into_iter().zip(instances) {
            let Directory { name, store, announced, stored_once } = directory;
            (instance.name, instance.store) = (name, store);
            (instance.announced, instance.stored_once) = (announced, stored_once);
        }
        self.journal
    }
}
