//! The parameter `site`, by which another site is asked, and which routes take it.

/// What has the parameter, and everything below it.
const BELOW: &str = "/v1/state/os-upgrade";

/// The parameter.
pub const PARAMETER: &str = "site";

/// Whether what is at `path` may be asked of another site.
pub fn takes_site(path: &str) -> bool {
    path.strip_prefix(BELOW).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_the_parameter() {
        for (path, takes) in [
            ("/v1/state/os-upgrade", true),
            ("/v1/state/os-upgrade/hosts/h01", true),
            ("/v1/state/os-upgrades", false),
            ("/v1/config/os-upgrade", false),
            ("/v1/state/fleet-lock", false),
        ] {
            assert_eq!(takes_site(path), takes, "{path}");
        }
    }
}
