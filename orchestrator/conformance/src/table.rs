//! The table of cases.

use super::case::{Before, Body, Case, Expected, Group, Id, Join, Operation, Sent, Step, What, Who};
use Before::{Free, Full, Held};
use Expected::{ClientError, Error, Granted, Refused, Status, Status4xx5xx};

const PROTOCOL: &[(&str, &str)] = &[("fleet-lock-protocol", "true")];

pub(super) const LOCK: Sent = Sent {
    operation: Operation::Lock,
    who: Who::Holder,
    method: "POST",
    join: Join::Slash,
    headers: PROTOCOL,
    body: Body::Claim,
    chunked: false,
};
pub(super) const UNLOCK: Sent = Sent { operation: Operation::Unlock, ..LOCK };
const OTHER_LOCK: Sent = Sent { who: Who::Other, ..LOCK };
const OTHER_UNLOCK: Sent = Sent { who: Who::Other, ..UNLOCK };

/// A request that every server must grant.
const fn granted(sent: Sent) -> Step {
    Step { sent, protocol: Some(Granted), ours: Granted }
}

/// A request that os-upgrade's own server grants, and the protocol leaves open.
const fn granted_by_us(sent: Sent) -> What {
    What::Both(Step { sent, protocol: None, ours: Granted })
}

const fn full(sent: Sent) -> Step {
    Step { sent, protocol: Some(Refused), ours: Expected::Full }
}

const fn both(protocol: Option<Expected>, sent: Sent, ours: Expected) -> What {
    What::Both(Step { sent, protocol, ours })
}

const fn headers(protocol: Option<Expected>, headers: &'static [(&'static str, &'static str)]) -> What {
    both(protocol, Sent { headers, ..LOCK }, Error(400, "missing_fleet_lock_header"))
}

const fn method(protocol: Option<Expected>, method: &'static str, body: Body) -> What {
    both(protocol, Sent { method, body, ..LOCK }, Error(405, "method_not_allowed"))
}

const fn body(protocol: Option<Expected>, body: Body, status: u16, kind: &'static str) -> What {
    both(protocol, Sent { body, ..LOCK }, Error(status, kind))
}

/// A lock and an unlock as a client sends them.
const fn client(join: Join, headers: &'static [(&'static str, &'static str)], body: Body) -> What {
    What::Both(granted(Sent { join, headers, body, ..LOCK }))
}

const fn row(name: &'static str, before: Before, what: What) -> Case {
    Case { name, before, what }
}

const fn steps(name: &'static str, before: Before, steps: &'static [Step]) -> Case {
    row(name, before, What::Steps(steps))
}

/// Every case, in the order of execution.
pub(super) const CASES: &[Case] = &[
    steps("lock", Free, &[granted(LOCK)]),
    steps("lock again, same id", Held, &[granted(LOCK), granted(LOCK)]),
    steps("unlock by the holder", Held, &[granted(UNLOCK)]),
    steps("unlock again", Held, &[granted(UNLOCK), granted(UNLOCK)]),
    steps("unlock, nothing held", Free, &[granted(OTHER_UNLOCK)]),
    steps("unlock, another holds", Held, &[granted(OTHER_UNLOCK), granted(LOCK)]),
    row("number of slots", Free, What::Slots),
    steps("full", Full, &[full(OTHER_LOCK)]),
    steps("full: a holder locks again", Full, &[granted(LOCK)]),
    steps("full: the holder's id in capitals", Full, &[full(Sent { who: Who::HolderInCapitals, ..LOCK })]),
    steps("full: unlock by another frees nothing", Full, &[granted(OTHER_UNLOCK), full(OTHER_LOCK)]),
    steps("full: a freed slot goes to another", Full, &[granted(UNLOCK), granted(OTHER_LOCK), full(LOCK)]),
    row("many at once for the last slot", Full, What::Contend),
    row(
        "as Zincati asks",
        Free,
        client(Join::Slash, &[("fleet-lock-protocol", "true"), ("accept", "*/*")], Body::Pretty),
    ),
    row(
        "as fleetctl asks",
        Free,
        client(
            Join::Slash,
            &[
                ("fleet-lock-protocol", "true"),
                ("content-type", "application/json"),
                ("user-agent", "Go-http-client/1.1"),
                ("accept-encoding", "gzip"),
            ],
            Body::Claim,
        ),
    ),
    row(
        "as fleetlockctl asks, //v1/",
        Free,
        client(
            Join::TwoSlashes,
            &[
                ("fleet-lock-protocol", "true"),
                ("user-agent", "Go-http-client/1.1"),
                ("accept-encoding", "gzip"),
            ],
            Body::Claim,
        ),
    ),
    row(
        "as curl -d asks",
        Free,
        client(
            Join::Slash,
            &[
                ("fleet-lock-protocol", "true"),
                ("content-type", "application/x-www-form-urlencoded"),
                ("user-agent", "curl/8.5.0"),
                ("accept", "*/*"),
            ],
            Body::Claim,
        ),
    ),
    row("slash at the end", Free, granted_by_us(Sent { join: Join::SlashAtEnd, ..LOCK })),
    row("query", Free, granted_by_us(Sent { join: Join::Query, ..LOCK })),
    row("body in chunks", Free, granted_by_us(Sent { chunked: true, ..LOCK })),
    row(
        "expect: 100-continue",
        Free,
        granted_by_us(Sent {
            headers: &[("fleet-lock-protocol", "true"), ("expect", "100-continue")],
            ..LOCK
        }),
    ),
    row("extra fields", Free, client(Join::Slash, PROTOCOL, Body::ExtraFields)),
    row("header missing", Free, headers(Some(ClientError), &[])),
    row("header TRUE", Free, headers(Some(Refused), &[("fleet-lock-protocol", "TRUE")])),
    row("header false", Free, headers(Some(Refused), &[("fleet-lock-protocol", "false")])),
    row(
        "header twice",
        Free,
        headers(None, &[("fleet-lock-protocol", "true"), ("fleet-lock-protocol", "true")]),
    ),
    row("GET", Free, method(Some(Status4xx5xx), "GET", Body::Empty)),
    row("GET with a body", Free, method(Some(Status4xx5xx), "GET", Body::Claim)),
    row("PUT", Free, method(Some(Status4xx5xx), "PUT", Body::Claim)),
    row("DELETE", Free, method(None, "DELETE", Body::Claim)),
    row("OPTIONS", Free, method(None, "OPTIONS", Body::Empty)),
    row("HEAD", Free, both(None, Sent { method: "HEAD", body: Body::Empty, ..LOCK }, Status(405))),
    row("empty body", Free, body(Some(Refused), Body::Empty, 400, "invalid_body")),
    row("half a body", Free, body(Some(Refused), Body::Half, 400, "invalid_body")),
    row("a list", Free, body(Some(Refused), Body::List, 400, "invalid_body")),
    row("no client_params", Free, body(Some(Refused), Body::NoParams, 400, "invalid_body")),
    row("no id", Free, body(Some(Refused), Body::NoId, 400, "invalid_body")),
    row("no group", Free, body(Some(Refused), Body::NoGroup, 400, "invalid_body")),
    row("text after the body", Free, body(Some(Refused), Body::Trailing, 400, "invalid_body")),
    row("two ids", Free, body(None, Body::TwoIds, 400, "invalid_body")),
    row("numeric id", Free, body(Some(Refused), Body::NumberId, 400, "invalid_body")),
    row("empty id", Free, body(Some(Refused), Body::OtherId(Id::Empty), 400, "invalid_id")),
    row("id of 256 bytes", Free, granted_by_us(Sent { body: Body::OtherId(Id::Long(256)), ..LOCK })),
    row("id of 257 bytes", Free, body(None, Body::OtherId(Id::Long(257)), 400, "invalid_id")),
    row(
        "id with control characters",
        Free,
        body(None, Body::OtherId(Id::ControlCharacters), 400, "invalid_id"),
    ),
    row("id that is not ASCII", Free, granted_by_us(Sent { body: Body::OtherId(Id::NotAscii), ..LOCK })),
    row("empty group", Free, body(Some(Refused), Body::OtherGroup(Group::Empty), 400, "invalid_group")),
    row(
        "group with a character not allowed",
        Free,
        body(None, Body::OtherGroup(Group::Invalid), 400, "invalid_group"),
    ),
    row("unknown group", Free, body(None, Body::OtherGroup(Group::Unknown), 400, "unknown_group")),
    row("body of 64 KiB", Free, granted_by_us(Sent { body: Body::Padded(64 * 1024), ..LOCK })),
    row("body over 64 KiB", Free, body(None, Body::Padded(64 * 1024 + 1), 413, "body_too_large")),
    row("body of 512 KiB", Free, body(None, Body::Padded(512 * 1024), 413, "body_too_large")),
    row(
        "unneeded user and password",
        Free,
        granted_by_us(Sent {
            headers: &[("fleet-lock-protocol", "true"), ("authorization", "Basic Y29uZm9ybWFuY2U6eA==")],
            ..LOCK
        }),
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn case_names_are_unique() {
        let names: BTreeSet<_> = CASES.iter().map(|case| case.name).collect();
        assert_eq!(names.len(), CASES.len());
    }
}
