//! What a seed decides about units: which hosts run some, and what operators submit. It has a stream of random numbers of its own, so that
//! worlds without units stay what they were.

use std::fmt::Write as _;

use fastrand::Rng;
use os_upgrade_scheduler::{MachineId, UnitName};

use crate::time::{Micros, SECOND};

/// Makes the stream of units another one than those of the rest.
const STREAM: u64 = 0x756e_6974_7320_6f66;

/// Two units that may exclude each other, and their template.
const WEB: [&str; 3] = ["web@1.service", "web@2.service", "web@.service"];
const DB: &str = "db.service";
/// It may need the machine of [`DB`].
const JOB: &str = "job.service";
/// It may exclude [`DB`].
const LOG: &str = "log.service";
/// It may run on every machine.
const NET: &str = "net.service";
/// How many files operators have for each unit.
const FILES: usize = 2;
/// In how many halls machines are.
pub(crate) const HALLS: u32 = 2;

/// The units of a world.
#[derive(Debug, Clone)]
pub(crate) struct UnitPlan {
    /// Which hosts have an agent.
    pub(crate) agents: Vec<bool>,
    /// In which hall each host is at first, as its labels say.
    pub(crate) halls: Vec<u32>,
    /// What operators submit.
    pub(crate) files: Vec<PlannedFile>,
    /// The mean time between two acts of operators.
    pub(crate) act_every: Micros,
    /// How long systemd takes at most to load, start or stop a unit.
    pub(crate) job_max: Micros,
}

/// A file that operators submit.
#[derive(Debug, Clone)]
pub(crate) struct PlannedFile {
    pub(crate) unit: UnitName,
    pub(crate) contents: String,
    pub(crate) wants: Wants,
}

/// What a file asks of machines, as its writer knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wants {
    /// The hall of the machine.
    pub(crate) hall: Option<u32>,
    /// The machine.
    pub(crate) machine: Option<MachineId>,
    /// The unit on whose machine it runs.
    pub(crate) peer: Option<UnitName>,
    /// Units with which it shares no machine.
    pub(crate) conflicts: Vec<UnitName>,
    /// Whether it runs on every machine.
    pub(crate) is_global: bool,
}

/// The random numbers that decide about units.
pub(crate) fn stream(seed: u64) -> Rng {
    Rng::with_seed(seed ^ STREAM)
}

/// The machine that the host of this index is.
pub(crate) fn machine_id(index: usize) -> MachineId {
    MachineId::new(&format!("{:032x}", index + 1)).expect("32 digits")
}

fn unit(name: &str) -> UnitName {
    UnitName::new(name).expect("a valid name")
}

impl UnitPlan {
    pub(crate) fn draw(rng: &mut Rng, hosts: usize) -> Self {
        // Somebody runs units.
        let agents: Vec<bool> = (0..hosts).map(|host| rng.u32(..5) > 0 || host == 0).collect();
        let is_global = rng.bool();
        let mut files = Vec::new();
        for name in WEB.into_iter().chain([DB, JOB, LOG, NET]) {
            for number in 0..FILES {
                let wants = Wants { is_global: is_global && name == NET, ..Wants::default() };
                let wants = draw_wants(rng, name, wants, &agents);
                let contents = write(name, number, &wants);
                files.push(PlannedFile { unit: unit(name), contents, wants });
            }
        }
        Self {
            agents,
            halls: (0..hosts).map(|_| rng.u32(1..=HALLS)).collect(),
            files,
            act_every: rng.u64(2..15) * SECOND,
            job_max: *rng.choice(&[SECOND, 10 * SECOND, 40 * SECOND]).expect("not empty"),
        }
    }
}

/// Draws what else a file asks, which must not contradict itself.
fn draw_wants(rng: &mut Rng, name: &str, mut wants: Wants, agents: &[bool]) -> Wants {
    let is_demanding = rng.u32(..3) > 0;
    if is_demanding && WEB.contains(&name) {
        wants.conflicts = WEB.into_iter().filter(|other| *other != name).map(unit).collect();
    } else if is_demanding && name == LOG {
        wants.conflicts = vec![unit(DB)];
    } else if is_demanding && name == JOB {
        wants.peer = Some(unit(DB));
    }
    let machines: Vec<usize> = (0..agents.len()).filter(|host| agents[*host]).collect();
    let machine = rng.choice(machines).map(machine_id);
    match rng.u32(..6) {
        0 | 1 if wants.peer.is_none() => wants.hall = Some(rng.u32(1..=HALLS)),
        2 if wants == Wants::default() => wants.machine = machine,
        _ => {}
    }
    wants
}

/// The file of a unit that asks for this. Each has a text of its own.
fn write(name: &str, number: usize, wants: &Wants) -> String {
    let mut text =
        format!("[Unit]\nDescription={name}, {number}\n\n[Service]\nExecStart=/usr/bin/true\n\n[X-Fleet]\n");
    let mut add = |option: &str, value: String| {
        let _ = writeln!(text, "{option}={value}");
    };
    if let Some(hall) = wants.hall {
        add("MachineMetadata", format!("hall={hall}"));
    }
    if let Some(machine) = wants.machine {
        add("MachineID", machine.to_string());
    }
    if let Some(peer) = &wants.peer {
        add("MachineOf", peer.to_string());
    }
    if WEB.contains(&name) && !wants.conflicts.is_empty() {
        add("Conflicts", "web@*.service".to_owned());
    } else {
        for other in &wants.conflicts {
            add("Conflicts", other.to_string());
        }
    }
    if wants.is_global {
        add("Global", "true".to_owned());
    }
    text
}
