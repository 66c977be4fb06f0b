//! The parameter `site`, which sends a request to another site, and the routes that accept it.

use crate::routes::events::FOLLOW;

/// These paths and all below them accept the parameter.
const BELOW: [&str; 2] = ["/v1/state/os-upgrade", "/v1/state/reboot-queue"];

/// The name of the parameter.
pub const PARAMETER: &str = "site";

/// Whether requests for `path` may be sent to another site.
pub fn takes_site(path: &str) -> bool {
    // An answer without an end cannot be passed on.
    path != FOLLOW.path()
        && BELOW
            .iter()
            .filter_map(|below| path.strip_prefix(below))
            .any(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_accept_site() {
        for (path, takes) in [
            ("/v1/state/os-upgrade", true),
            ("/v1/state/os-upgrade/hosts/h01", true),
            ("/v1/state/os-upgrade/events", false),
            ("/v1/state/os-upgrades", false),
            ("/v1/state/reboot-queue/add", true),
            ("/v1/config/os-upgrade", false),
            ("/v1/state/fleet-lock", false),
        ] {
            assert_eq!(takes_site(path), takes, "{path}");
        }
    }
}
