//! Whether acknowledgements arrive, and whether hosts may acknowledge in the form that is to become NATS's default.

use std::cmp::Ordering;

use os_upgrade_bus::Bus;
use os_upgrade_bus::trial::AckTrial;
use os_upgrade_nats_config::{RIGHTS_SUBJECT, compare_rights};

use super::check::Check;

const ACKNOWLEDGEMENTS: &str = "acknowledgements";

pub(super) async fn examine(bus: &Bus) -> Vec<Check> {
    let trial = bus.try_acknowledgement().await;
    let is_long = matches!(&trial, Ok(Some(AckTrial { is_long: true, .. })));
    let rights = if bus.has_orchestrator_credentials() {
        Some(rights(bus.try_mapping(RIGHTS_SUBJECT).await, is_long))
    } else {
        None
    };
    [acknowledgements(trial)].into_iter().chain(rights).collect()
}

fn acknowledgements(trial: Result<Option<AckTrial>, String>) -> Check {
    const ADVICE: &str =
        "orchestrators and workers need the right to publish to the subjects of acknowledgements, $JS.ACK.>";
    match trial {
        Ok(None) => Check::ok(ACKNOWLEDGEMENTS, "not tried: there is no message"),
        Ok(Some(AckTrial { is_long, taken })) => {
            let form = if is_long {
                "$JS.ACK.<domain>.<account>.<stream>.<consumer>..."
            } else {
                "$JS.ACK.<stream>.<consumer>..."
            };
            match taken {
                Ok(()) => Check::ok(ACKNOWLEDGEMENTS, format!("taken at {form}")),
                Err(why) => Check::problem(ACKNOWLEDGEMENTS, format!("not taken at {form}: {why}"), ADVICE),
            }
        }
        // Without a consumer there is nothing to acknowledge, which says nothing of rights.
        Err(why) => Check::warning(ACKNOWLEDGEMENTS, format!("none can be tried: {why}"), "check NATS"),
    }
}

/// Compares the rights of hosts in force with those of this version. `is_long`: NATS gives the long form of subjects.
fn rights(mark: Result<String, String>, is_long: bool) -> Check {
    const NAME: &str = "rights of hosts";
    const ADVICE: &str =
        "run `os-upgrade nats-config init` again, as before, then `push`; credentials stay as they are";
    match mark.map(|mark| compare_rights(&mark)) {
        Err(why) => Check::warning(NAME, format!("unknown: {why}"), "check NATS"),
        Ok(Ordering::Equal) => Check::ok(NAME, "those of this version"),
        Ok(Ordering::Greater) => {
            let found = "those of a newer version of `os-upgrade nats-config`";
            let advice = "use the newer os-upgrade: `init` of this version would take rights back";
            Check::warning(NAME, found, advice)
        }
        Ok(Ordering::Less) => {
            let found = "those of an older version of `os-upgrade nats-config`";
            if is_long {
                let found = format!("{found}: workers without the SDK may be unable to acknowledge");
                Check::problem(NAME, found, ADVICE)
            } else {
                Check::warning(NAME, found, ADVICE)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::doctor::check::Verdict;

    #[test]
    fn other_rights_are_worse_with_long_acknowledgements() {
        for (mark, is_long, verdict) in [
            (Ok(os_upgrade_nats_config::rights_mark()), true, Verdict::Ok),
            (Ok(format!("{RIGHTS_SUBJECT}.{}", u32::MAX)), true, Verdict::Warning),
            (Ok(RIGHTS_SUBJECT.to_owned()), false, Verdict::Warning),
            (Ok(RIGHTS_SUBJECT.to_owned()), true, Verdict::Problem),
            (Err("no".to_owned()), true, Verdict::Warning),
        ] {
            assert_eq!(rights(mark.clone(), is_long).verdict, verdict, "{mark:?} {is_long}");
        }
    }

    #[test]
    fn lost_acknowledgements_are_a_problem() {
        let trial = |is_long, taken| Ok(Some(AckTrial { is_long, taken }));
        for (trial, verdict, found) in [
            (Ok(None), Verdict::Ok, "not tried: there is no message"),
            (trial(false, Ok(())), Verdict::Ok, "taken at $JS.ACK.<stream>.<consumer>..."),
            (
                trial(true, Err("no".to_owned())),
                Verdict::Problem,
                "not taken at $JS.ACK.<domain>.<account>.<stream>.<consumer>...: no",
            ),
            (Err("no".to_owned()), Verdict::Warning, "none can be tried: no"),
        ] {
            let check = acknowledgements(trial);
            assert_eq!((check.verdict, check.found.as_str()), (verdict, found));
        }
    }
}
