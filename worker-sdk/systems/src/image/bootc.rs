//! Parses the output of `bootc status --format json`.

use serde::Deserialize;

use super::{Deployment, Status};

#[derive(Debug, Deserialize)]
struct Host {
    status: Option<HostStatus>,
}

#[derive(Debug, Deserialize)]
struct HostStatus {
    staged: Option<Entry>,
    booted: Option<Entry>,
    rollback: Option<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    image: Option<ImageStatus>,
    #[serde(default)]
    incompatible: bool,
    /// Only since bootc 1.12, which also has the options to use it.
    #[serde(default)]
    download_only: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ImageStatus {
    image: Reference,
    version: Option<String>,
    image_digest: String,
}

#[derive(Debug, Deserialize)]
struct Reference {
    image: String,
}

impl Entry {
    fn deployment(&self) -> Option<Deployment> {
        let image = self.image.as_ref()?;
        Some(Deployment {
            id: image.image_digest.clone(),
            image: Some(image.image.image.clone()),
            version: image.version.clone(),
        })
    }
}

/// Parses the output of `bootc status --format json`.
///
/// # Errors
/// A message for the operator: the output is invalid, or the host was not booted from a bootc image.
pub fn status(json: &str) -> Result<Status, String> {
    let host: Host = serde_json::from_str(json)
        .map_err(|error| format!("cannot parse the output of bootc status: {error}"))?;
    let status = host.status.ok_or("bootc status contains no status of the host")?;
    let booted = status.booted.ok_or("this host was not booted from a bootc image")?;
    if booted.incompatible {
        return Err("this host was changed with rpm-ostree in ways that bootc does not support".to_owned());
    }
    let booted = booted.deployment().ok_or("this host was not booted from a container image")?;
    let next_is_locked = status.staged.as_ref().is_some_and(|staged| staged.download_only);
    let next = match status.staged {
        None => None,
        // A reboot would boot the staged deployment even if it is not from bootc, so that is an error.
        Some(staged) => Some(staged.deployment().ok_or(
            "the deployment to boot next was not created by bootc; inspect it with rpm-ostree status, and remove it with \
             rpm-ostree cleanup --pending",
        )?),
    };
    let earlier = status.rollback.and_then(|rollback| rollback.deployment()).map(|earlier| earlier.id);
    Ok(Status { booted, next, next_is_locked, earlier: earlier.into_iter().collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOTED: &str = r#"{
        "image": {
            "image": {"image": "registry.example/os:stable", "transport": "registry", "signature": {"ostreeRemote": "example"}},
            "version": "41.20260901.0", "timestamp": "2026-09-01T10:00:00.5Z", "imageDigest": "sha256:aaaa", "architecture": "amd64"
        },
        "cachedUpdate": {
            "image": {"image": "registry.example/os:stable", "transport": "registry"},
            "version": null, "timestamp": null, "imageDigest": "sha256:cccc", "architecture": "amd64"
        },
        "incompatible": false, "pinned": true, "softRebootCapable": false, "downloadOnly": false, "store": "ostreeContainer",
        "ostree": {"checksum": "26836632", "deploySerial": 0, "stateroot": "default"}, "composefs": null
    }"#;
    /// Output of bootc before 1.0.
    const BOOTED_BEFORE_1_0: &str = r#"{
        "image": {
            "image": {"image": "registry.example/os:stable", "transport": "registry", "signature": "insecure"},
            "version": "41.20260901.0", "timestamp": null, "imageDigest": "sha256:aaaa"
        },
        "incompatible": false, "pinned": false, "ostree": {"checksum": "26836632", "deploySerial": 0}
    }"#;
    /// Without ostree.
    const BOOTED_COMPOSEFS: &str = r#"{
        "image": {
            "image": {"image": "registry.example/os:stable", "transport": "registry"},
            "version": "41.20260901.0", "timestamp": "2026-09-01T10:00:00Z", "imageDigest": "sha256:aaaa", "architecture": "amd64"
        },
        "cachedUpdate": null, "incompatible": false, "pinned": false, "softRebootCapable": true, "downloadOnly": false,
        "store": null, "ostree": null,
        "composefs": {"verity": "f5f5", "bootType": "Bls", "bootloader": "systemd", "bootDigest": "0101", "missingVerityAllowed": false}
    }"#;

    fn host(staged: &str, booted: &str) -> String {
        format!(
            r#"{{"apiVersion": "org.containers.bootc/v1", "kind": "BootcHost", "metadata": {{"name": "host"}},
            "spec": {{"image": {{"image": "registry.example/os:stable", "transport": "registry"}}, "bootOrder": "default"}},
            "status": {{"staged": {staged}, "booted": {booted}, "rollback": null, "rollbackQueued": false, "type": "bootcHost",
            "usrOverlay": null, "readOnly": false}}}}"#
        )
    }

    /// Output of bootc before 1.0.
    fn host_before_1_0(staged: &str, booted: &str) -> String {
        format!(
            r#"{{"apiVersion": "org.containers.bootc/v1alpha1", "kind": "BootcHost", "metadata": {{"name": "host"}},
            "spec": {{"image": {{"image": "registry.example/os:stable", "transport": "registry"}}}},
            "status": {{"staged": {staged}, "booted": {booted}, "rollback": null, "isContainer": false}}}}"#
        )
    }

    fn staged(more: &str) -> String {
        format!(
            r#"{{"image": {{"image": {{"image": "registry.example/os:stable", "transport": "registry"}}, "version": null,
            "timestamp": null, "imageDigest": "sha256:bbbb", "architecture": "amd64"}}, "cachedUpdate": null,
            "incompatible": false, "pinned": false{more}, "store": "ostreeContainer",
            "ostree": {{"checksum": "9e9e", "deploySerial": 0, "stateroot": "default"}}}}"#
        )
    }

    /// A deployment created by rpm-ostree, as bootc shows it.
    const FOREIGN: &str = r#"{"image": null, "cachedUpdate": null, "incompatible": true, "pinned": false, "store": null,
        "ostree": {"checksum": "1c1c", "deploySerial": 0, "stateroot": "default"}}"#;

    #[test]
    fn booted_and_next_deployments_are_parsed() {
        let booted = Deployment {
            id: "sha256:aaaa".to_owned(),
            image: Some("registry.example/os:stable".to_owned()),
            version: Some("41.20260901.0".to_owned()),
        };
        let next = Deployment { id: "sha256:bbbb".to_owned(), version: None, ..booted.clone() };
        for (text, expected_next, locked) in [
            ("null".to_owned(), None, false),
            (staged(""), Some(&next), false),
            (staged(r#", "downloadOnly": true, "softRebootCapable": true"#), Some(&next), true),
            (staged(r#", "downloadOnly": false"#), Some(&next), false),
        ] {
            let mut expected = Status {
                booted: booted.clone(),
                next: expected_next.cloned(),
                next_is_locked: locked,
                earlier: Vec::new(),
            };
            for document in [
                host(&text, BOOTED),
                host(&text, BOOTED_COMPOSEFS),
                host_before_1_0(&text, BOOTED),
                host_before_1_0(&text, BOOTED_BEFORE_1_0),
            ] {
                assert_eq!(status(&document).as_ref(), Ok(&expected), "{document}");
            }
            let with_earlier = |earlier: &str| {
                host(&text, BOOTED).replace(r#""rollback": null"#, &format!(r#""rollback": {earlier}"#))
            };
            assert_eq!(status(&with_earlier(FOREIGN)).as_ref(), Ok(&expected));
            expected.earlier.push("sha256:bbbb".to_owned());
            assert_eq!(status(&with_earlier(&staged(""))).as_ref(), Ok(&expected));
        }
    }

    #[test]
    fn other_kinds_of_hosts_are_rejected() {
        for (json, part) in [
            (host("null", "null"), "was not booted from a bootc image"),
            (host("null", FOREIGN), "changed with rpm-ostree"),
            (host(&staged(""), &FOREIGN.replace("true", "false")), "from a container image"),
            (host(FOREIGN, BOOTED), "not created by bootc"),
            (r#"{"status": null}"#.to_owned(), "contains no status"),
            ("System is not deployed via bootc.".to_owned(), "cannot parse"),
        ] {
            assert!(status(&json).is_err_and(|error| error.contains(part)), "{json}");
        }
    }
}
