//! What both dialects show. Each of them names and arranges it in its own way.

use std::collections::BTreeMap;

use os_upgrade_scheduler::{MachineId, UnitFile, UnitHash, UnitName, UnitState};

/// A unit.
#[derive(Debug, Clone)]
pub struct ShownUnit<'a> {
    /// Its name.
    pub name: &'a UnitName,
    /// Its file.
    pub file: &'a UnitFile,
    /// The state that somebody wishes.
    pub desired: UnitState,
    /// The state that it is in.
    pub current: UnitState,
    /// The machine on which it is placed; absent for a global unit, and while it is placed nowhere.
    pub target: Option<&'a MachineId>,
    /// What systemd says of it; absent until a machine has reported.
    pub systemd: Option<Systemd<'a>>,
}

/// What systemd says of a unit on one machine.
#[derive(Debug, Clone)]
pub struct Systemd<'a> {
    /// The LOAD state, such as `loaded`.
    pub load: &'a str,
    /// The ACTIVE state, such as `active`.
    pub active: &'a str,
    /// The SUB state, such as `running`.
    pub sub: &'a str,
    /// The machine that has reported it.
    pub machine: &'a MachineId,
    /// The hash of the options that are loaded there; absent if that is not known.
    pub hash: Option<UnitHash>,
}

/// A machine.
#[derive(Debug, Clone, Copy)]
pub struct ShownMachine<'a> {
    /// Its machine id.
    pub id: &'a MachineId,
    /// The address at which it can be reached; empty if that is not known.
    pub primary_ip: &'a str,
    /// Its metadata.
    pub metadata: &'a BTreeMap<String, String>,
}
