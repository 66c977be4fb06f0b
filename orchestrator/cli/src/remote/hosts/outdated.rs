//! Which hosts lag behind: those that report an older version of a package than another host.

use std::collections::HashMap;

use debversion::Version;
use os_upgrade_api_types::routes::hosts::Host;
use os_upgrade_api_types::word::Enrolment;
use serde::Deserialize as _;
use serde_json::Value;

/// Those of `hosts` that report an older version of a package than another one of them that takes part in runs. A version
/// that Debian's rules cannot read compares with none.
///
/// # Errors
/// The hosts are not as an API describes them.
pub(super) fn among(hosts: Vec<Value>) -> anyhow::Result<Vec<Value>> {
    let reported = hosts.iter().map(Host::deserialize).collect::<Result<Vec<_>, _>>()?;
    let mut newest: HashMap<&str, Version> = HashMap::new();
    for host in reported.iter().filter(|host| host.enrolment.is(Enrolment::takes_part)) {
        for (package, version) in versions(host) {
            if newest.get(package).is_none_or(|newest| *newest < version) {
                newest.insert(package, version);
            }
        }
    }
    let is_older = |(package, version)| newest.get(package).is_some_and(|newest| version < *newest);
    let outdated: Vec<bool> = reported.iter().map(|host| versions(host).any(is_older)).collect();
    Ok(hosts
        .into_iter()
        .zip(outdated)
        .filter_map(|(host, is_outdated)| is_outdated.then_some(host))
        .collect())
}

fn versions<'a>(host: &'a Host<'_>) -> impl Iterator<Item = (&'a str, Version)> {
    let versions = host.versions.iter().flat_map(|versions| &versions.0);
    versions.filter_map(|(package, version)| Some((package.as_str(), version.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::host;
    use super::*;

    #[test]
    fn outdated_hosts_lag_behind_those_that_take_part() {
        let reported = |name: &str, enrolment: &str, versions: Value| {
            host(json!({ "hostname": name, "enrolment": enrolment, "versions": versions }))
        };
        let hosts = vec![
            reported("a", "approved", json!({ "linux": "6.12.43-1", "app": "2.0" })),
            reported("b", "approved", json!({ "linux": "6.12.9-1" })),
            reported("c", "auto", json!({ "linux": "6.12.43-1", "app": "10.0~rc1" })),
            reported("d", "auto", json!({ "linux": "6.12.43-1+deb13u1", "app": "10.0" })),
            // Strangers and hosts on their way out say nothing of the others, but may be behind themselves.
            reported("e", "pending", json!({ "linux": "99", "other": "1" })),
            reported("f", "withdrawn", json!({ "linux": "6.1" })),
            // What is no version is not compared.
            reported("g", "approved", json!({ "linux": "the newest!", "app": "10.0" })),
            reported("h", "approved", json!({})),
            host(json!({ "hostname": "i" })),
        ];
        let outdated = among(hosts).unwrap();
        let names: Vec<_> = outdated.iter().map(|host| host["hostname"].as_str().unwrap()).collect();
        assert_eq!(names, ["a", "b", "c", "f"]);
    }
}
