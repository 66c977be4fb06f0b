//! Parses the output of rpm-ostree.

use serde::Deserialize;

use super::{Deployment, Status};

/// The exit status of `rpm-ostree upgrade --unchanged-exit-77` when nothing newer exists.
pub const UNCHANGED: i32 = 77;

#[derive(Debug, Deserialize)]
struct Host {
    /// The first one is booted next.
    deployments: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Entry {
    #[serde(default)]
    booted: bool,
    checksum: String,
    version: Option<String>,
    origin: Option<String>,
    container_image_reference: Option<String>,
    #[serde(default)]
    finalization_locked: bool,
}

impl From<&Entry> for Deployment {
    fn from(entry: &Entry) -> Self {
        Self {
            id: entry.checksum.clone(),
            image: entry.container_image_reference.clone().or_else(|| entry.origin.clone()),
            version: entry.version.clone(),
        }
    }
}

/// Parses the output of `rpm-ostree status --json`.
///
/// # Errors
/// A message for the operator: the output is invalid, or the host was not booted from an rpm-ostree deployment.
pub fn status(json: &str) -> Result<Status, String> {
    let host: Host = serde_json::from_str(json)
        .map_err(|error| format!("cannot parse the output of rpm-ostree status: {error}"))?;
    let at = host.deployments.iter().position(|entry| entry.booted);
    let at = at.ok_or("this host was not booted from an rpm-ostree deployment")?;
    let next = host.deployments.first().filter(|entry| !entry.booted);
    Ok(Status {
        booted: (&host.deployments[at]).into(),
        next: next.map(Deployment::from),
        next_is_locked: next.is_some_and(|entry| entry.finalization_locked),
        earlier: host.deployments[at + 1..].iter().map(|entry| entry.checksum.clone()).collect(),
    })
}

/// Whether rpm-ostree failed because another transaction is under way.
pub fn is_busy(output: &str) -> bool {
    // "Transaction in progress" is rpm-ostree's own; "System transaction in progress" means that another program has
    // locked the deployments.
    output.to_lowercase().contains("transaction in progress")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With layered packages, so the base has its own checksum.
    const BOOTED: &str = r#"{"booted": true, "checksum": "aaaa", "version": "41.20260901.0", "origin": "fedora:fedora/x86_64/coreos/stable",
        "id": "fedora-coreos-aaaa.0", "osname": "fedora-coreos", "serial": 0, "staged": false, "pinned": false,
        "unlocked": "none", "timestamp": 1788220800, "packages": ["jq"], "requested-packages": ["jq"], "modules": [],
        "base-checksum": "a0a0", "base-version": "41.20260901.0", "base-timestamp": 1788220000, "gpg-enabled": true,
        "signatures": [[true, false, false, false, false, "0A0A", 1788220100, 0, "RSA", "SHA256", "Fedora", "x", "0A0A", 0, 0]],
        "base-commit-meta": {"version": "41.20260901.0", "ostree.linux": "6.16.4", "ostree.bootable": true, "rpmostree.rpmmd-repos":
        [{"id": "fedora", "timestamp": -2945197617627267072}]}, "layered-commit-meta": {"rpmostree.clientlayer": true},
        "base-local-replacements": [[["x-1", "x", 0, "1", "1", "x86_64"]]], "base-remote-replacements": {}, "base-removals": [],
        "pending-base-checksum": "b0b0", "pending-base-version": "41.20260915.0", "regenerate-initramfs": false}"#;
    const STAGED: &str = r#"{"booted": false, "checksum": "bbbb", "version": "41.20260915.0", "staged": true, "finalization-locked": true,
        "id": "fedora-coreos-bbbb.0", "osname": "fedora-coreos", "serial": 0, "pinned": false, "unlocked": "none",
        "container-image-reference": "ostree-unverified-registry:registry.example/os:stable",
        "container-image-reference-digest": "sha256:bbbb", "timestamp": 1789430400, "packages": [], "requested-packages": [],
        "base-commit-meta": {"ostree.manifest-digest": "sha256:bbbb", "ostree.manifest": "{\"schemaVersion\":2}", "ostree.tar-filtered": {}}}"#;
    /// Output of a version without staged deployments, and without an image version.
    const OLD: &str = r#"{"booted": false, "checksum": "cccc", "id": "rhel-cccc.0", "osname": "rhel", "serial": 0, "unlocked": "none"}"#;

    #[test]
    fn booted_and_next_deployments_are_parsed() {
        let host = |deployments: &[&str]| {
            format!(
                r#"{{"deployments": [{}], "transaction": null, "cached-update": null, "update-driver": null}}"#,
                deployments.join(",")
            )
        };
        let booted = Deployment {
            id: "aaaa".to_owned(),
            image: Some("fedora:fedora/x86_64/coreos/stable".to_owned()),
            version: Some("41.20260901.0".to_owned()),
        };
        let next = Deployment {
            id: "bbbb".to_owned(),
            image: Some("ostree-unverified-registry:registry.example/os:stable".to_owned()),
            version: Some("41.20260915.0".to_owned()),
        };
        let old = Deployment { id: "cccc".to_owned(), image: None, version: None };
        for (deployments, expected, locked, earlier) in [
            (&[BOOTED, OLD] as &[&str], None, false, &["cccc"] as &[&str]),
            (&[STAGED, BOOTED, OLD], Some(next), true, &["cccc"]),
            // After `rpm-ostree rollback`.
            (&[OLD, BOOTED], Some(old), false, &[]),
        ] {
            let earlier = earlier.iter().map(|&id| id.to_owned()).collect();
            let expected = Status { booted: booted.clone(), next: expected, next_is_locked: locked, earlier };
            assert_eq!(status(&host(deployments)), Ok(expected));
        }
        assert!(status(&host(&[OLD])).is_err_and(|error| error.contains("not booted from an rpm-ostree")));
        assert!(status("error: not booted").is_err_and(|error| error.contains("cannot parse")));
    }

    #[test]
    fn other_transactions_are_detected() {
        let busy = "error: Transaction in progress: upgrade\n You can cancel the current transaction with `rpm-ostree cancel`\n";
        let locked = "error: System transaction in progress\n";
        assert!(is_busy(busy) && is_busy(locked) && !is_busy("error: No space left on device"));
    }
}
