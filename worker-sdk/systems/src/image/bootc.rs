//! What `bootc status --format json` says.

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
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    image: Option<ImageStatus>,
    #[serde(default)]
    incompatible: bool,
    /// Since bootc 1.11; before, it stands in a field of another name.
    #[serde(default, alias = "finalizationLocked")]
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

/// Reads it.
///
/// # Errors
/// It is not what bootc prints, or the host does not run an image of bootc's; why, for the operator.
pub fn status(json: &str) -> Result<Status, String> {
    let host: Host =
        serde_json::from_str(json).map_err(|error| format!("bootc status is not understood: {error}"))?;
    let status = host.status.ok_or("bootc status says nothing about the host")?;
    let booted = status.booted.ok_or("this host was not booted from an image of bootc's")?;
    if booted.incompatible {
        return Err("this host was changed with rpm-ostree in ways that bootc does not know".to_owned());
    }
    let next = status.staged.as_ref().and_then(Entry::deployment);
    Ok(Status {
        booted: booted.deployment().ok_or("this host was not booted from a container image")?,
        next_is_locked: next.is_some() && status.staged.is_some_and(|staged| staged.download_only),
        next,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOTED: &str = r#"{
        "image": {
            "image": {"image": "registry.example/os:stable", "transport": "registry"},
            "version": "41.20260901.0", "timestamp": "2026-09-01T10:00:00Z", "imageDigest": "sha256:aaaa", "architecture": "amd64"
        },
        "cachedUpdate": null, "incompatible": false, "pinned": false, "store": "ostreeContainer",
        "ostree": {"checksum": "26836632", "deploySerial": 0, "stateroot": "default"}
    }"#;

    fn host(staged: &str, booted: &str) -> String {
        format!(
            r#"{{"apiVersion": "org.containers.bootc/v1", "kind": "BootcHost", "metadata": {{"name": "host"}},
            "spec": {{"image": {{"image": "registry.example/os:stable", "transport": "registry"}}, "bootOrder": "default"}},
            "status": {{"staged": {staged}, "booted": {booted}, "rollback": null, "rollbackQueued": false, "type": "bootcHost"}}}}"#
        )
    }

    fn staged(more: &str) -> String {
        format!(
            r#"{{"image": {{"image": {{"image": "registry.example/os:stable", "transport": "registry"}}, "version": null,
            "timestamp": null, "imageDigest": "sha256:bbbb"}}, "incompatible": false, "pinned": false{more}}}"#
        )
    }

    #[test]
    fn what_runs_and_what_comes_next_is_read() {
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
            (staged(r#", "finalizationLocked": true"#), Some(&next), true),
            (staged(r#", "downloadOnly": false"#), Some(&next), false),
        ] {
            let expected =
                Status { booted: booted.clone(), next: expected_next.cloned(), next_is_locked: locked };
            assert_eq!(status(&host(&text, BOOTED)), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_host_of_another_kind_is_said_to_be_one() {
        for (json, part) in [
            (host("null", "null"), "was not booted from an image"),
            (host("null", r#"{"image": null, "incompatible": true}"#), "changed with rpm-ostree"),
            (host("null", r#"{"image": null, "incompatible": false}"#), "from a container image"),
            (r#"{"status": null}"#.to_owned(), "says nothing"),
            ("System is not deployed via bootc.".to_owned(), "is not understood"),
        ] {
            assert!(status(&json).is_err_and(|error| error.contains(part)), "{json}");
        }
    }
}
