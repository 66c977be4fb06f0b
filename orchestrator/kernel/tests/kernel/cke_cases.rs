//! CKE's own cases of its reboot queue, as inputs and what is decided about nodes and entries. `docs/cke.md` compares the two in
//! full. CKE's cases about etcd, endpoints and the repair of machines have no counterpart here.

use crate::common::Site;
use crate::common::script::perform;

struct Case {
    /// What CKE's tests call it, and what it says.
    name: &'static str,
    /// The inputs before the last one.
    before: &'static [&'static str],
    /// The last input.
    input: &'static str,
    /// What is decided about nodes and entries, in order.
    decided: &'static [&'static str],
}

/// Three workers that can reboot, and two nodes more, which can be unreachable.
const SITE: &[&str] = &[
    "settings kubernetes default:9 reboots=2 unreachable=1",
    "host h1 boot=a1",
    "host h2 boot=a2",
    "host h3 boot=a3",
    "host h8",
    "host h9",
    "node h1",
    "node h2",
    "node h3",
    "node h8",
    "node h9",
    "fence",
];
const TWO_UNREACHABLE: [&str; 2] = ["node h8 not-ready", "host h9 unreachable"];

const CASES: &[Case] = &[
    Case {
        name: "R1: entries, and nothing that can reboot their hosts: nothing",
        before: &["rq disable", "rq add h1", "host h1", "rq enable"],
        input: "tick",
        decided: &[],
    },
    Case {
        name: "R2: two are queued, the first is the candidate: its drain starts; then, as two may be, the second's",
        before: &[],
        input: "rq add h1 h2",
        decided: &["started h1", "started h2"],
    },
    Case {
        name: "R3: two are unreachable, and one may be: nothing",
        before: &TWO_UNREACHABLE,
        input: "rq add h1 h2",
        decided: &[],
    },
    Case {
        name: "R4: a drain is complete, as R3: reboot",
        before: &["rq add h1", TWO_UNREACHABLE[0], TWO_UNREACHABLE[1]],
        input: "cluster h1 drained boot=a1",
        decided: &["cordoned h1", "drained h1", "reboot-began h1"],
    },
    Case {
        name: "R5: a drain takes too long, as R3: back off",
        before: &["rq add h1", TWO_UNREACHABLE[0], TWO_UNREACHABLE[1], "cluster h1 clear", "wait 10m"],
        input: "tick",
        decided: &["uncordon-due h1"],
    },
    Case {
        name: "R5, as soon as it is uncordoned: queued again",
        before: &[
            "rq add h1",
            TWO_UNREACHABLE[0],
            TWO_UNREACHABLE[1],
            "cluster h1 clear",
            "wait 10m",
            "tick",
        ],
        input: "cluster h1 uncordoned",
        decided: &["uncordoned h1", "backed-off h1"],
    },
    Case {
        name: "R6: booted, as R3: remove",
        before: &[
            "rq add h1",
            TWO_UNREACHABLE[0],
            TWO_UNREACHABLE[1],
            "cluster h1 drained boot=a1",
            "deliver",
            "reply h1 reboot done",
        ],
        input: "cluster h1 uncordoned",
        decided: &["uncordoned h1", "rebooted h1"],
    },
    Case {
        name: "R8: cancelled: remove, once it is uncordoned",
        before: &["rq add h1", "rq cancel 0"],
        input: "cluster h1 uncordoned",
        decided: &["uncordoned h1", "removed h1"],
    },
    Case {
        name: "R8, before it has started: remove",
        before: &["rq disable", "rq add h1"],
        input: "rq cancel 0",
        decided: &["cancelled h1", "removed h1"],
    },
    Case {
        name: "R9: cordoned and marked, without an entry: uncordon",
        before: &["node h1 unschedulable mark=1"],
        input: "nodes-seen",
        decided: &["uncordon-due h1"],
    },
    Case {
        name: "R9: only cordoned: nothing",
        before: &["node h1 unschedulable"],
        input: "nodes-seen",
        decided: &[],
    },
    Case {
        name: "R13: an API server is unhealthy or unreachable within the limit: starts go on",
        before: &["node h9 api-server not-ready"],
        input: "rq add h1",
        decided: &["started h1"],
    },
    Case {
        name: "Drain check: pods are left: neither complete nor too late",
        before: &["rq add h1", "cluster h1 clear", "wait 9m"],
        input: "cluster h1 remaining db-0",
        decided: &["waiting h1"],
    },
    Case {
        name: "Drain check: empty when the time is up: complete wins if it is known first",
        before: &["rq add h1", "cluster h1 clear", "wait 10m"],
        input: "cluster h1 drained boot=a1",
        decided: &["drained h1", "reboot-began h1"],
    },
    Case {
        name: "The check says that it has not booted: it stays",
        before: &["rq add h1", "cluster h1 drained boot=a1", "deliver", "reply h1 reboot done"],
        input: "cluster h1 not-ready",
        decided: &["waiting h1"],
    },
    Case {
        name: "The check says so later: it completes",
        before: &[
            "rq add h1",
            "cluster h1 drained boot=a1",
            "deliver",
            "reply h1 reboot done",
            "cluster h1 not-ready",
        ],
        input: "cluster h1 uncordoned",
        decided: &["uncordoned h1", "rebooted h1"],
    },
    Case {
        name: "Drain check: of an entry that is queued: nothing",
        before: &["rq disable", "rq add h1"],
        input: "nodes-seen",
        decided: &[],
    },
    Case {
        name: "Drain check: of an entry that reboots: nothing",
        before: &["rq add h1", "cluster h1 drained boot=a1", "deliver"],
        input: "nodes-seen",
        decided: &[],
    },
    Case {
        name: "Disabled: what is under way goes on",
        before: &["rq add h1", "rq disable"],
        input: "cluster h1 clear",
        decided: &["cordoned h1", "eviction-began h1"],
    },
    Case {
        name: "Enabled again: it starts",
        before: &["rq disable", "rq add h1"],
        input: "rq enable",
        decided: &["started h1"],
    },
    Case {
        name: "A running job, or a refused dry run: back off with nothing evicted",
        before: &["rq add h1"],
        input: "cluster h1 remaining job-0",
        decided: &["cordoned h1", "uncordon-due h1"],
    },
    Case {
        name: "One of two never boots: the other one, and the next, finish",
        before: &[
            "rq add h1 h2 h3",
            "cluster h1 drained boot=a1",
            "cluster h2 drained boot=a2",
            "deliver",
            "reply h2 reboot done",
        ],
        input: "cluster h2 uncordoned",
        decided: &["uncordoned h2", "rebooted h2", "started h3"],
    },
    Case {
        name: "A cancelled reboot is not undone: it stays until the host is back",
        before: &["rq add h1", "cluster h1 drained boot=a1", "deliver", "rq cancel 0"],
        input: "reply h1 reboot done",
        decided: &["booted h1", "uncordon-due h1"],
    },
    Case {
        name: "A reset lets what has backed off start at once",
        before: &["rq add h1", "cluster h1 remaining db-0", "cluster h1 uncordoned"],
        input: "rq reset-backoff",
        decided: &["started h1"],
    },
    Case {
        name: "Powered off: with a limit of 0 nothing starts",
        before: &["settings kubernetes default:9 reboots=2 unreachable=0", "node h1 not-ready"],
        input: "rq add h1",
        decided: &[],
    },
    Case {
        name: "Powered off: a limit of 1 lets others start, and it itself, too",
        before: &["node h1 not-ready"],
        input: "rq add h1",
        decided: &["started h1"],
    },
    Case {
        name: "Powered off: what has started completes, though the limit is 0 again",
        before: &["node h1 not-ready", "rq add h1", "settings kubernetes default:9 reboots=2 unreachable=0"],
        input: "cluster h1 drained boot=a1",
        decided: &["cordoned h1", "drained h1", "reboot-began h1"],
    },
];

/// Cases with API servers: the order matters.
const API_SERVER_CASES: &[(Case, &[&str])] = &[
    (
        Case {
            name: "API servers go first, or last",
            before: &["node h2 api-server"],
            input: "rq add h1 h2",
            decided: &["started h2"],
        },
        &["started h1"],
    ),
    (
        Case {
            name: "Nothing starts beside an API server",
            before: &["node h1 api-server", "rq add h1"],
            input: "rq add h2",
            decided: &[],
        },
        &[],
    ),
    (
        Case {
            name: "An API server waits until nothing is under way",
            before: &["node h2 api-server", "rq add h1"],
            input: "rq add h2",
            decided: &[],
        },
        &[],
    ),
    (
        Case {
            name: "An API server that has backed off holds nothing back",
            before: &[
                "node h1 api-server",
                "rq add h1",
                "cluster h1 remaining db-0",
                "cluster h1 uncordoned",
            ],
            input: "rq add h2",
            decided: &["started h2"],
        },
        &["started h2"],
    ),
    (
        Case {
            name: "Two API servers: one after the other",
            before: &["node h1 api-server", "node h2 api-server"],
            input: "rq add h1 h2",
            decided: &["started h1"],
        },
        &["started h1"],
    ),
];

/// What a line of the outcome says of an entry or a node; `None` for other facts, answers and hints.
fn decided(line: &str) -> Option<String> {
    let word = |name: &str| {
        let (_, rest) = line.split_once(name)?;
        rest.trim_start_matches('(').split([' ', ')']).next()
    };
    let kind = line.strip_prefix("+ ")?.split(' ').next()?;
    let what = match kind {
        "reboot" => word("event=")?,
        "node" => word("step=")?,
        _ => return None,
    };
    Some(format!("{what} {}", word("host=")?))
}

fn check(case: &Case, settings: &str, expected: &[&str]) {
    let mut site = Site::default();
    for line in SITE.iter().chain(case.before) {
        let line =
            if line.starts_with("settings") { format!("{line}{settings}") } else { (*line).to_owned() };
        perform(&mut site, &line);
    }
    let outcome = perform(&mut site, case.input);
    let decided: Vec<String> = outcome.iter().filter_map(|line| decided(line)).collect();
    assert_eq!(decided, expected, "{}:\n{}", case.name, outcome.join("\n"));
}

#[test]
fn ckes_cases_are_decided_as_listed() {
    for case in CASES {
        for order in ["", " servers-last"] {
            check(case, order, case.decided);
        }
    }
    for (case, last) in API_SERVER_CASES {
        check(case, "", case.decided);
        check(case, " servers-last", last);
    }
}
