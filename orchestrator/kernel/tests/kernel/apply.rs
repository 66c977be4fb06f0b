//! Facts that do not apply to the state are refused with a typed error and change nothing.

use std::collections::BTreeMap;

use os_upgrade_kernel::fact::{ControlFact, RunFact, SlotFact};
use os_upgrade_kernel::slot::ReleaseCause;
use os_upgrade_kernel::{ApplyError, Fact, HostEvent, LockProvider, Record, RunResult};

use crate::common::{self, Site, group, host, run, start};

#[test]
fn inapplicable_facts_change_nothing() {
    let mut site = Site::ready(&["h1", "h2"]);
    for line in ["trigger r1", "deliver", "reply h1 prepare done", "reply h2 prepare done"] {
        common::script::perform(&mut site, line);
    }
    let (r, h1, h2, why) = (run("r1"), host("h1"), host("h2"), ReleaseCause::Upgraded);
    let event =
        |host: &str, event| Fact::Run(RunFact::Host { run: run("r1"), host: common::host(host), event });
    let granted =
        |name: &str, provider| HostEvent::SlotGranted { group: group(name), provider, drain: false };
    let wrong_run = ApplyError::WrongRun { fact: run("r0") };
    let table = [
        (Fact::Run(RunFact::UpgradesBegan { run: run("r0") }), wrong_run.clone()),
        (
            Fact::Run(RunFact::Ended { run: run("r0"), result: RunResult::Failed, counts: BTreeMap::new() }),
            wrong_run.clone(),
        ),
        (
            Fact::Run(RunFact::Host { run: run("r0"), host: h1.clone(), event: HostEvent::Upgraded }),
            wrong_run,
        ),
        (Fact::Control(ControlFact::FencePassed { sequence: 9 }), ApplyError::WrongFence(9)),
        (Fact::Slot(SlotFact::Released { host: h2.clone(), why }), ApplyError::NoSlot(h2.clone())),
        (Fact::Slot(SlotFact::ReleaseDue { host: h2.clone(), why }), ApplyError::NoSlot(h2)),
        (
            Fact::Slot(SlotFact::Requested { host: h1.clone(), group: group("default"), owner: r.into() }),
            ApplyError::SlotTaken(h1.clone()),
        ),
        (event("h1", granted("edge", LockProvider::Embedded)), ApplyError::SlotTaken(h1.clone())),
        (event("h1", granted("default", LockProvider::External)), ApplyError::SlotTaken(h1)),
    ];
    for (fact, error) in table {
        let mut state = site.state.clone();
        assert_eq!(state.apply(start(), &fact), Err(error.clone()));
        assert_eq!(state, site.state, "{fact:?}");
        // All facts of a record apply, or none.
        let facts = vec![Fact::Control(ControlFact::Fenced { sequence: 77, leader: "two".to_owned() }), fact];
        let record = Record { at: start(), control: 99, facts };
        assert!(state.apply_record(&record).is_err());
        assert_eq!(state, site.state, "{record:?}");
    }
    for (fact, message) in [
        (event("h9", HostEvent::Prepared), "the run has no host h9"),
        (event("h1", HostEvent::Prepared), "host h1"),
    ] {
        let mut state = site.state.clone();
        assert_eq!(state.apply(start(), &fact).unwrap_err().to_string(), message);
        assert_eq!(state, site.state);
    }
}
