//! Why a host that runs units is no machine.

use os_upgrade_kernel::Admission;
use os_upgrade_protocol::HostName;

use crate::commands::shell_word;

/// Why a host that runs units is no machine, and what to do; absent if it is one.
pub fn no_machine(host: &HostName, admission: &Admission<'_>) -> Option<String> {
    match admission {
        Admission::Joined | Admission::OtherMetadata(_) | Admission::OtherId { .. } => None,
        Admission::Waiting(_) => {
            let name = shell_word(host.as_str());
            Some(format!("nobody has approved that it runs units: `os-upgrade hosts approve {name}`"))
        }
        Admission::Taken { id: _, by } => Some(format!(
            "it announces the machine id of {by}: machines that were cloned need a new one, such as `systemd-machine-id-setup` \
             makes after /etc/machine-id was emptied"
        )),
        Admission::NoId => {
            Some("it announces no valid machine id, as in /etc/machine-id, so it gets no units".to_owned())
        }
        Admission::TwoReporters => Some(
            "one application of it runs units, and another one does so too, or takes configuration: both would write the host's one report, so it gets no units; let one do both"
                .to_owned(),
        ),
    }
}

/// That the labels of a machine are other ones than those that were approved, and what to do about it.
pub fn other_metadata(host: &HostName, admission: &Admission<'_>) -> Option<String> {
    match admission {
        Admission::OtherMetadata(_) => {
            let name = shell_word(host.as_str());
            Some(format!(
                "it announces other labels than the approved ones, which are its metadata until `os-upgrade hosts approve {name}`"
            ))
        }
        Admission::Joined
        | Admission::OtherId { .. }
        | Admission::Waiting(_)
        | Admission::Taken { .. }
        | Admission::NoId
        | Admission::TwoReporters => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use os_upgrade_kernel::MachineOffer;
    use os_upgrade_scheduler::MachineId;

    use super::*;

    #[test]
    fn hosts_that_are_no_machines_say_what_to_do() {
        let machine = MachineId::new("933fbdff1bdc4be0a7b64a9b58c3189d").unwrap();
        let (host, other) = (HostName::new("-h").unwrap(), HostName::new("h01").unwrap());
        let offer = MachineOffer { id: machine, metadata: BTreeMap::new() };
        let said = |admission| no_machine(&host, &admission).unwrap_or_default();
        let labels = other_metadata(&host, &Admission::OtherMetadata(offer.clone())).unwrap();
        assert!(labels.ends_with("until `os-upgrade hosts approve -- -h`"), "{labels}");
        assert_eq!(other_metadata(&host, &Admission::Joined), None);
        let waiting = said(Admission::Waiting(offer));
        assert!(waiting.ends_with("`os-upgrade hosts approve -- -h`"), "{waiting}");
        let taken = said(Admission::Taken { id: machine, by: &other });
        assert!(taken.starts_with("it announces the machine id of h01: "), "{taken}");
        assert_eq!(no_machine(&host, &Admission::Joined), None);
    }
}
