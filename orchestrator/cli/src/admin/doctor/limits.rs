//! What NATS takes and stores at most, and how much of it is left.

use os_upgrade_bus::Bus;
use os_upgrade_bus::connect::SmallMessages;
use os_upgrade_bus::storage::{
    ACCOUNT, ACCOUNT_MEMORY, CONSUMERS_ALLOWED_MIN, Count, OUTPUT_BYTES_RESERVED, STREAMS, Usage,
};
use os_upgrade_bus::trial::ServerStorage;
use os_upgrade_protocol::limits::NATS_MESSAGE_BYTES;
use os_upgrade_protocol::subject::OUTPUT_STREAM;

use super::check::Check;

/// As long as so many bytes fit, no message is refused.
const BYTES_LEFT_MIN: u64 = NATS_MESSAGE_BYTES as u64;

/// Whether NATS takes every message that may have to be sent.
pub(super) async fn messages(bus: &Bus) -> Check {
    const NAME: &str = "messages";
    match bus.try_messages().await {
        Ok(()) => Check::ok(NAME, format!("of {NATS_MESSAGE_BYTES} bytes are taken")),
        Err(unknown @ SmallMessages::Unknown) => Check::warning(NAME, unknown.to_string(), "check NATS"),
        Err(small @ (SmallMessages::Server { .. } | SmallMessages::User)) => {
            Check::problem(NAME, small.to_string(), "instances wait until it is raised")
        }
    }
}

/// Compares what the account, the streams and the server have with what they may have.
pub(super) async fn examine(bus: &Bus, replicas: u32) -> Vec<Check> {
    let usage = bus.usage().await;
    let missing = STREAMS.iter().filter(|name| !usage.iter().any(|part| part.of == **name)).count() as u64;
    let mut checks: Vec<_> = usage.iter().map(storage).collect();
    for part in &usage {
        // They would not be in the tier of streams with another number of replicas.
        let is_other_tier =
            part.of.strip_prefix(ACCOUNT).is_some_and(|tier| !["", &format!(" R{replicas}")].contains(&tier));
        let missing = if is_other_tier { 0 } else { missing };
        checks.extend(part.streams.map(|count| streams(&part.of, count, missing)));
        checks.extend(part.consumers.map(|count| match part.streams {
            Some(_) => consumers_of_account(&part.of, count, missing),
            None => consumers_of_stream(&part.of, count),
        }));
    }
    let Some(account) = usage.iter().find(|part| part.of == ACCOUNT) else { return checks };
    let mut lowest = account.limit;
    // A cluster would not tell.
    let found = if replicas > 1 { Ok(ServerStorage::Unknown) } else { bus.server_storage().await };
    match found {
        Ok(ServerStorage::AccountIsLower) => {}
        Ok(ServerStorage::Limited(limit)) => {
            lowest = Some(limit);
            let of = "the server, max_file_store".to_owned();
            checks.push(storage(&Usage { of, limit: lowest, ..account.clone() }));
        }
        Ok(ServerStorage::Unknown) => {
            let found =
                "NATS tells it only to its administrators: see max_file_store, and /jsz of each server";
            checks.push(Check::ok("storage of the servers", found));
        }
        Err(why) => {
            let advice = "delete it with `nats stream rm`: it takes messages of the journal";
            checks.push(Check::problem("storage of the servers", why, advice));
        }
    }
    if !usage.iter().any(|part| part.of == OUTPUT_STREAM) {
        checks.extend(lowest.and_then(|limit| output(account, limit)));
    }
    checks
}

/// Whether the stream of output, which is missing, fits into what the account may still store or reserve.
fn output(account: &Usage, limit: u64) -> Option<Check> {
    let left = limit.saturating_sub(account.bytes.max(account.reserved));
    let found = format!(
        "not kept: {OUTPUT_BYTES_RESERVED} bytes are reserved for it, and {left} of {limit} are left"
    );
    let advice = "raise the limit, if operators should see what commands print";
    (left < OUTPUT_BYTES_RESERVED).then(|| Check::warning("output of commands", found, advice))
}

/// Compares what a part of NATS stores with its limit.
fn storage(Usage { of, bytes, messages, drops_oldest, limit, .. }: &Usage) -> Check {
    let name = format!("storage of {of}");
    let messages = messages.map(|messages| format!(", {messages} messages")).unwrap_or_default();
    let Some(limit) = *limit else { return Check::ok(name, format!("{bytes} bytes{messages}")) };
    let left = limit.saturating_sub(*bytes);
    let found = format!("{bytes} of {limit} bytes, {left} left{messages}");
    if *drops_oldest {
        Check::ok(name, format!("{found}; the oldest are dropped at the limit"))
    } else if of == ACCOUNT_MEMORY {
        Check::ok(name, format!("{found}; the site stores nothing there"))
    } else if left < BYTES_LEFT_MIN {
        let advice = "raise the limit, or delete other streams: NATS refuses what does not fit";
        Check::problem(name, found, advice)
    } else if is_nearly_reached(*bytes, limit) {
        Check::warning(name, found, "raise the limit in time")
    } else {
        Check::ok(name, found)
    }
}

/// Whether the account may have the streams of the site that are `missing`. It needs no others.
fn streams(of: &str, Count { used, limit }: Count, missing: u64) -> Check {
    let name = format!("streams of {of}");
    let Some(limit) = limit else { return Check::ok(name, used.to_string()) };
    let left = limit.saturating_sub(used);
    let found = format!("{used} of {limit}, {left} left");
    if left < missing {
        let advice = "raise the limit, or delete streams of other programs";
        return Check::problem(name, format!("{found}; {missing} of the site are missing"), advice);
    }
    Check::ok(name, found)
}

/// Whether the streams of the site that are `missing` may have as many consumers as they want. The limit holds for each
/// stream.
fn consumers_of_account(of: &str, Count { used, limit }: Count, missing: u64) -> Check {
    let name = format!("consumers of {of}");
    let Some(limit) = limit else { return Check::ok(name, used.to_string()) };
    let found = format!("{used}, and {limit} for each stream");
    if missing > 0 && limit < CONSUMERS_ALLOWED_MIN {
        let advice = format!("raise the limit to {CONSUMERS_ALLOWED_MIN}: NATS does not create the streams");
        return Check::problem(name, format!("{found}; {missing} streams of the site are missing"), advice);
    }
    Check::ok(name, found)
}

/// Whether the stream may have more consumers: one for each host, and those of readers.
fn consumers_of_stream(of: &str, Count { used, limit }: Count) -> Check {
    let name = format!("consumers of {of}");
    let Some(limit) = limit else { return Check::ok(name, used.to_string()) };
    let left = limit.saturating_sub(used);
    let found = format!("{used} of {limit}, {left} left");
    if left == 0 {
        Check::problem(name, found, "raise the limit of the account: new hosts get no commands")
    } else if is_nearly_reached(used, limit) {
        Check::warning(name, found, "raise the limit of the account in time: each host needs one")
    } else {
        Check::ok(name, found)
    }
}

/// Whether four fifths of a limit are reached.
const fn is_nearly_reached(used: u64, limit: u64) -> bool {
    (used as u128) * 5 >= (limit as u128) * 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::doctor::check::Verdict;

    fn account() -> Usage {
        let (messages, limit, streams, consumers) = (None, None, None, None);
        Usage {
            of: "a".to_owned(),
            bytes: 0,
            reserved: 0,
            messages,
            drops_oldest: false,
            limit,
            streams,
            consumers,
        }
    }

    #[test]
    fn output_needs_what_is_left() {
        const LIMIT: u64 = OUTPUT_BYTES_RESERVED + 10;
        for (bytes, reserved, left) in
            [(10, 10, None), (11, 0, Some(1)), (0, 11, Some(1)), (2 * LIMIT, 0, Some(OUTPUT_BYTES_RESERVED))]
        {
            let check = output(&Usage { bytes, reserved, ..account() }, LIMIT);
            let found = left.map(|lacking| {
                let left = OUTPUT_BYTES_RESERVED - lacking;
                format!("not kept: 1073741824 bytes are reserved for it, and {left} of 1073741834 are left")
            });
            assert_eq!(check.map(|check| check.found), found, "{bytes} {reserved}");
        }
    }

    #[test]
    fn storage_is_compared_with_its_limit() {
        const MIB: u64 = 1024 * 1024;
        for (bytes, messages, limit, verdict, found) in [
            (7, Some(2), None, Verdict::Ok, "7 bytes, 2 messages"),
            (7, None, Some(10 * MIB), Verdict::Ok, "7 of 10485760 bytes, 10485753 left"),
            (
                8 * MIB,
                Some(2),
                Some(10 * MIB),
                Verdict::Warning,
                "8388608 of 10485760 bytes, 2097152 left, 2 messages",
            ),
            (9 * MIB + 1, None, Some(10 * MIB), Verdict::Problem, "9437185 of 10485760 bytes, 1048575 left"),
        ] {
            let usage = Usage { bytes, messages, limit, ..account() };
            let check = storage(&usage);
            assert_eq!(
                (check.name.as_str(), check.verdict, check.found.as_str()),
                ("storage of a", verdict, found)
            );
            let check = storage(&Usage { drops_oldest: true, ..usage });
            assert_eq!((check.verdict, check.found.starts_with(found)), (Verdict::Ok, true));
        }
    }

    #[test]
    fn counts_are_compared_with_their_limits() {
        let count = |used, limit| Count { used, limit };
        for (check, verdict, found) in [
            (streams("a", count(6, None), 0), Verdict::Ok, "6"),
            (streams("a", count(6, Some(6)), 0), Verdict::Ok, "6 of 6, 0 left"),
            (streams("a", count(5, Some(6)), 1), Verdict::Ok, "5 of 6, 1 left"),
            (
                streams("a", count(6, Some(6)), 1),
                Verdict::Problem,
                "6 of 6, 0 left; 1 of the site are missing",
            ),
            (consumers_of_stream("a", count(6, None)), Verdict::Ok, "6"),
            (consumers_of_stream("a", count(0, Some(4))), Verdict::Ok, "0 of 4, 4 left"),
            (consumers_of_stream("a", count(4, Some(9))), Verdict::Ok, "4 of 9, 5 left"),
            (consumers_of_stream("a", count(7, Some(10))), Verdict::Ok, "7 of 10, 3 left"),
            (consumers_of_stream("a", count(8, Some(10))), Verdict::Warning, "8 of 10, 2 left"),
            (consumers_of_stream("a", count(11, Some(10))), Verdict::Problem, "11 of 10, 0 left"),
            (consumers_of_account("a", count(11, None), 1), Verdict::Ok, "11"),
            (consumers_of_account("a", count(11, Some(10)), 0), Verdict::Ok, "11, and 10 for each stream"),
            (
                consumers_of_account("a", count(0, Some(100_000)), 1),
                Verdict::Ok,
                "0, and 100000 for each stream",
            ),
            (
                consumers_of_account("a", count(0, Some(99_999)), 6),
                Verdict::Problem,
                "0, and 99999 for each stream; 6 streams of the site are missing",
            ),
        ] {
            assert_eq!((check.verdict, check.found.as_str()), (verdict, found));
        }
    }
}
