//! Why a request about units is refused, why a unit is not on a machine or leaves it, and why a machine gets no further one.

use std::fmt::{self, Formatter};

use os_upgrade_kernel::UnitRefusal;
use os_upgrade_kernel::unit::{Closed, TakenAway};
use os_upgrade_protocol::HostName;
use os_upgrade_scheduler::Misfit;

use crate::commands::shell_word;
use crate::describe::Describe;

/// That a unit starts nowhere until `host`, from which it was taken away, says that it has stopped there, and what to do if the host is no
/// machine any more and may never say so.
pub fn not_stopped(host: &HostName, is_machine: bool) -> String {
    if is_machine {
        return format!("it has not stopped on {host} yet");
    }
    let name = shell_word(host.as_str());
    format!(
        "it has not stopped yet on {host}, which was withdrawn: if that host is gone, `os-upgrade hosts remove {name}`"
    )
}

impl Describe for UnitRefusal {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownUnit { unit } => write!(f, "there is no unit {unit}"),
            Self::NoContents { unit } => write!(f, "there is no unit {unit} yet: give its contents"),
            Self::OtherContents { unit } => {
                write!(f, "the unit {unit} has other contents: destroy it first, or give it another name")
            }
            Self::NoState { unit } => {
                write!(f, "the unit {unit} is there already: give the state that it is to be in")
            }
            Self::ActivatesTemplate { unit } => {
                write!(f, "the template {unit} cannot be loaded or launched, only its instances can")
            }
            Self::BadFile { unit, error } | Self::BadRequirements { unit, error } => {
                write!(f, "the contents of unit {unit} cannot be used: {error}")
            }
            Self::TooManyUnits { limit } => {
                write!(f, "there are {limit} units, and no more may be: destroy some first")
            }
            Self::TooManyBytes { limit } => {
                write!(f, "all units together would have more than {limit} bytes: destroy some first")
            }
        }
    }
}

impl Describe for TakenAway {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWanted => f.write_str("it is to be inactive"),
            Self::Destroyed => f.write_str("it was destroyed"),
            Self::MachineLost => f.write_str("the machine is lost"),
            Self::NoLongerFits { misfit } => misfit.describe(f),
            Self::ReplacedBy { unit } => write!(f, "{unit} replaces it"),
            Self::Evacuated => f.write_str("the machine is evacuated"),
            Self::NoLongerGlobal => f.write_str("it is not global any more"),
        }
    }
}

impl Describe for Misfit {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchUnit => f.write_str("there is no such unit"),
            Self::NoSuchMachine => f.write_str("there is no such machine"),
            Self::Template => f.write_str("it is a template, and only instances run"),
            Self::Leaving { machine } => write!(f, "it has not stopped on machine {machine} yet"),
            Self::OtherMachine { wanted } => write!(f, "its MachineID is {wanted}"),
            Self::Metadata { key, wanted } => {
                let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
                write!(f, "the machine's {key} is not {}", wanted.join(" or "))
            }
            Self::Lost => f.write_str("the machine is lost"),
            Self::Closed => f.write_str("the machine gets no further unit now"),
            Self::PeerMissing { peer } => write!(f, "there is no unit {peer}, which its MachineOf names"),
            Self::PeerElsewhere { peer, machine: Some(machine) } => {
                write!(f, "{peer}, which its MachineOf names, is on machine {machine}")
            }
            Self::PeerElsewhere { peer, machine: None } => {
                write!(f, "{peer}, which its MachineOf names, is not on the machine")
            }
            Self::Conflict { unit } => write!(f, "it conflicts with {unit}, which is there"),
            Self::ReplacedBy { unit } => write!(f, "{unit}, which is there, replaces it"),
            Self::Circle { unit } => {
                write!(f, "{unit} replaces it, and it replaces {unit}: one of them runs")
            }
        }
    }
}

impl Describe for Closed {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEnrolled => f.write_str("its host takes no part"),
            Self::HoldsSlot => f.write_str("its host has a slot"),
            Self::Paused => f.write_str("the site is paused"),
            Self::Deferred => f.write_str("its host is deferred"),
            Self::OtherId { announced: Some(id) } => write!(
                f,
                "its host announces another machine id than the approved one, {id}: `os-upgrade hosts approve` approves that"
            ),
            Self::OtherId { announced: None } => f.write_str("its host does not run units now"),
            Self::Withheld => f.write_str("delivery waits for `os-upgrade desired resume`"),
            Self::Silent => f.write_str("its agent is silent, as too many others are"),
            Self::Full => f.write_str("it has as many units as a machine may have"),
            Self::Leaving => {
                f.write_str("a unit that was global, or is destroyed, has not stopped there yet")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_that_have_not_stopped_name_the_host() {
        let host = HostName::new("-h").unwrap();
        assert_eq!(not_stopped(&host, true), "it has not stopped on -h yet");
        let withdrawn = not_stopped(&host, false);
        assert!(withdrawn.ends_with("`os-upgrade hosts remove -- -h`"), "{withdrawn}");
    }
}
