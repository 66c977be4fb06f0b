//! What keeps configuration from hosts.

use os_upgrade_bus::Bus;
use os_upgrade_console::describe;
use os_upgrade_kernel::State;
use os_upgrade_protocol::time;

use super::check::Check;

/// What the checks are of.
pub(super) const NAME: &str = "configuration of hosts";

/// Whether the stream of what hosts are to have is that of `site`.
pub(super) async fn examine_stream(bus: &Bus, site: &str) -> Option<Check> {
    match bus.desired_site().await {
        Ok(Some(of)) if of != site => {
            let found = format!("the stream os-upgrade:desired is that of site {of}: hosts get none");
            Some(Check::problem(NAME, found, "give each site an account of NATS of its own"))
        }
        Ok(Some(_)) => Some(Check::ok(NAME, "its stream is this site's")),
        // The first leader makes it.
        Ok(None) => None,
        Err(why) => {
            Some(Check::warning(NAME, format!("whose its stream is is unknown: {why}"), "check NATS"))
        }
    }
}

/// A warning for each provider that fails for every host, and for hosts that are not told what they are to have, according to `state`, folded from
/// the journal: it does not know of hosts that only report to have something.
pub(super) fn examine(state: &State) -> Vec<Check> {
    let failed = state.desired.failed.iter().map(|(name, failed)| {
        let since = time::format(failed.since);
        let how = describe(&failed.failure);
        let found =
            format!("provider {name} fails for every host since {since}, as for {}: {how}", failed.host);
        let advice = format!("`os-upgrade providers test {name} --host {}` tries it", failed.host);
        Check::warning(NAME, found, advice)
    });
    let withheld = state.desired.hosts.keys().filter(|host| !state.is_delivered(host)).count();
    let withheld = (withheld > 0).then(|| {
        let found = format!("{withheld} hosts are not told what they are to have, because the site was restored");
        let advice = "`os-upgrade desired list` shows what they would gain and lose, `os-upgrade desired resume` tells them";
        Check::warning(NAME, found, advice)
    });
    failed.chain(withheld).collect()
}
