//! Which hosts lag behind: those that report an older version of a package than another host.

use std::collections::{BTreeMap, HashMap};

use debversion::Version;
use serde::Deserialize;
use serde_json::Value;

/// What is read of a host.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Reported {
    enrolment: String,
    versions: BTreeMap<String, String>,
}

/// Those of `hosts` that report an older version of a package than another one of them that takes part in runs. A version
/// that Debian's rules cannot read compares with none.
///
/// # Errors
/// The hosts are not as an API describes them.
pub(super) fn among(hosts: Vec<Value>) -> anyhow::Result<Vec<Value>> {
    let reported = hosts.iter().map(Reported::deserialize).collect::<Result<Vec<_>, _>>()?;
    let mut newest: HashMap<&str, Version> = HashMap::new();
    for host in reported.iter().filter(|host| host.takes_part()) {
        for (package, version) in host.versions() {
            if newest.get(package).is_none_or(|newest| *newest < version) {
                newest.insert(package, version);
            }
        }
    }
    let is_older = |(package, version)| newest.get(package).is_some_and(|newest| version < *newest);
    let outdated: Vec<bool> = reported.iter().map(|host| host.versions().any(is_older)).collect();
    Ok(hosts
        .into_iter()
        .zip(outdated)
        .filter_map(|(host, is_outdated)| is_outdated.then_some(host))
        .collect())
}

impl Reported {
    fn takes_part(&self) -> bool {
        matches!(self.enrolment.as_str(), "approved" | "auto")
    }

    fn versions(&self) -> impl Iterator<Item = (&str, Version)> {
        self.versions.iter().filter_map(|(package, version)| Some((package.as_str(), version.parse().ok()?)))
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_api_types::text::ENROLMENTS;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_enrolment_is_known() {
        let takes_part =
            |word: &&str| Reported { enrolment: (*word).to_owned(), ..Reported::default() }.takes_part();
        assert_eq!(ENROLMENTS.iter().filter(|word| takes_part(word)).count(), 2);
        assert_eq!(ENROLMENTS.len(), 4, "does a host of the new enrolment take part?");
    }

    #[test]
    fn outdated_hosts_lag_behind_those_that_take_part() {
        let host = |name: &str, enrolment: &str, versions: Value| json!({ "hostname": name, "enrolment": enrolment, "versions": versions });
        let hosts = vec![
            host("a", "approved", json!({ "linux": "6.12.43-1", "app": "2.0" })),
            host("b", "approved", json!({ "linux": "6.12.9-1" })),
            host("c", "auto", json!({ "linux": "6.12.43-1", "app": "10.0~rc1" })),
            host("d", "auto", json!({ "linux": "6.12.43-1+deb13u1", "app": "10.0" })),
            // Strangers and hosts on their way out say nothing of the others, but may be behind themselves.
            host("e", "pending", json!({ "linux": "99", "other": "1" })),
            host("f", "withdrawn", json!({ "linux": "6.1" })),
            // What is no version is not compared.
            host("g", "approved", json!({ "linux": "the newest!", "app": "10.0" })),
            host("h", "approved", json!({})),
            json!({ "hostname": "i", "enrolment": "approved" }),
        ];
        let outdated = among(hosts).unwrap();
        let names: Vec<_> = outdated.iter().map(|host| host["hostname"].as_str().unwrap()).collect();
        assert_eq!(names, ["a", "b", "c", "f"]);
    }
}
