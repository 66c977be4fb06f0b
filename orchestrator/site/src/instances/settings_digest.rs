//! The settings of an instance that apply to the whole site while it leads, and how instances differ in them.

use std::collections::BTreeMap;

use os_upgrade_calendar::Zones;
use os_upgrade_kernel as kernel;
use os_upgrade_kernel::{KubernetesSettings, RebootCommandSettings, RebootSettings};
use os_upgrade_protocol::{GroupName, HostName};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The longest value that is kept in full, in bytes, so that heartbeats stay small.
const WORD_BYTES_MAX: usize = 256;

/// The settings that are in force for the site while their instance leads: text values by their keys in the settings
/// file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsDigest(BTreeMap<String, String>);

impl SettingsDigest {
    /// The digest of `settings`. `lock_server` is the URL, without a password, of the server that grants slots; `None`
    /// if the instance grants them itself. With a lock server, the settings of its own groups have no effect and are
    /// left out. `zones` are no setting, but apply to the site in the same way.
    pub fn of(settings: &kernel::Settings, lock_server: Option<&str>, zones: &Zones) -> Self {
        let kernel::Settings {
            site: _,
            timezone,
            provider: _,
            default_group,
            on_failure,
            groups,
            failed,
            reclaim,
            stuck_after,
            auto_approve,
            reboot:
                RebootSettings {
                    max_concurrent,
                    unreachable_max,
                    in_windows,
                    queue_required,
                    api_servers,
                    backoff,
                    command,
                },
            kubernetes,
        } = settings;
        let mut words = BTreeMap::from([
            ("[site] timezone", timezone.to_string()),
            ("time zone data", zones.version().unwrap_or("unknown").to_owned()),
            ("[site] auto-approve", auto_approve.to_string()),
            ("[reboot] max-concurrent-reboots", max_concurrent.to_string()),
            ("[reboot] maximum-unreachable-nodes-for-reboot", unreachable_max.to_string()),
            ("[reboot] in-windows", in_windows.to_string()),
            ("[reboot] queue-required", queue_required.to_string()),
            ("[reboot] api-servers", api_servers.as_str().to_owned()),
            ("[reboot] backoff-*", format!("{} {} {}", backoff.first, backoff.max, backoff.jitter)),
            ("[reboot] reboot-command", command.as_ref().map_or_else(|| "none".to_owned(), reboot_command)),
            ("[kubernetes]", kubernetes.as_ref().map_or_else(|| "none".to_owned(), cluster)),
            ("[fleet-lock] default-group", default_group.to_string()),
            ("[fleet-lock] on-failure", on_failure.as_str().to_owned()),
            ("[fleet-lock] stuck-after", stuck_after.to_string()),
        ]);
        words.insert("[fleet-lock] url", short(lock_server.unwrap_or("none")));
        if lock_server.is_none() {
            words.insert("[fleet-lock] reclaim", reclaim.as_str().to_owned());
            words.insert("[fleet-lock.groups]", slots(groups, failed));
        }
        Self(words.into_iter().map(|(key, word)| (key.to_owned(), word)).collect())
    }
}

/// How nodes are drained, in a few words.
fn cluster(kubernetes: &KubernetesSettings) -> String {
    let KubernetesSettings { drain_timeout, uncordon_failed, hosts } = kubernetes;
    let on_failure = if *uncordon_failed { "uncordon" } else { "keep-cordoned" };
    let hosts = hosts.iter().flatten().map(HostName::as_str).collect::<Vec<_>>().join(" ");
    short(&format!("drain-timeout={drain_timeout} on-failure={on_failure} {hosts}"))
}

fn reboot_command(command: &RebootCommandSettings) -> String {
    let RebootCommandSettings { within, checks_boot } = command;
    format!("within {within}{}", if *checks_boot { " with boot-check-command" } else { "" })
}

fn slots(groups: &BTreeMap<GroupName, u32>, failed: &BTreeMap<GroupName, u32>) -> String {
    let failed = |group| failed.get(group).map_or_else(String::new, |failed| format!("+{failed}"));
    let each = groups.iter().map(|(group, slots)| format!("{group}={slots}{}", failed(group)));
    let each: Vec<String> = each.collect();
    short(&each.join(" "))
}

/// `word`, or its beginning and a digest if it is long.
fn short(word: &str) -> String {
    if word.len() <= WORD_BYTES_MAX {
        return word.to_owned();
    }
    let beginning = &word[..word.floor_char_boundary(WORD_BYTES_MAX / 4)];
    let digest = Sha256::digest(word.as_bytes());
    format!("{beginning}… ({:02x}{:02x}{:02x}{:02x})", digest[0], digest[1], digest[2], digest[3])
}

/// How the named instances differ in their settings, one sentence per setting. If an instance does not report a
/// setting, as another version may not, the others are still compared.
pub fn differences<'a>(named: impl IntoIterator<Item = (&'a str, &'a SettingsDigest)>) -> Vec<String> {
    let mut by_key: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for (who, settings) in named {
        for (key, word) in &settings.0 {
            by_key.entry(key).or_default().entry(word).or_default().push(who);
        }
    }
    let differing = by_key.into_iter().filter(|(_, by_word)| by_word.len() > 1);
    differing.map(|(key, by_word)| sentence(key, &by_word)).collect()
}

fn sentence(key: &str, by_word: &BTreeMap<&str, Vec<&str>>) -> String {
    let each: Vec<String> =
        by_word.iter().map(|(word, who)| format!("{word} ({})", who.join(", "))).collect();
    format!("instances have different values for {key} (the leader's applies): {}", each.join(", "))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use os_upgrade_calendar::{Rules, ZoneSource, ZoneVersion};

    use super::*;

    fn group(name: &str) -> GroupName {
        GroupName::new(name).unwrap()
    }

    #[test]
    fn each_differing_setting_is_reported() {
        let settings = kernel::Settings { timezone: chrono_tz::UTC, ..kernel::Settings::default() };
        let same = SettingsDigest::of(&settings, None, Zones::built_in());
        let other = kernel::Settings {
            timezone: chrono_tz::Europe::Stockholm,
            auto_approve: true,
            groups: [(group("default"), 2)].into(),
            ..settings
        };
        let version: ZoneVersion = "2999a".parse().unwrap();
        let rules = Rules {
            source: ZoneSource::System,
            version: Some(version),
            passed_over: None,
            offsets: HashMap::new(),
        };
        let newer = Zones::new(rules);
        let other = SettingsDigest::of(&other, None, &newer);
        // An older version reports no settings.
        let older = SettingsDigest::default();
        let named = [("a", &same), ("b", &same), ("c", &older)];
        assert_eq!(differences(named), Vec::<String>::new());
        let reported = differences(named.into_iter().chain([("d", &other)]));
        let keys = ["[fleet-lock.groups]", "[site] auto-approve", "[site] timezone", "time zone data"];
        assert_eq!(reported.len(), keys.len(), "{reported:?}");
        for (sentence, key) in reported.iter().zip(keys) {
            assert!(
                sentence.starts_with(&format!("instances have different values for {key} (the")),
                "{sentence}"
            );
        }
        assert!(reported[2].ends_with(": Europe/Stockholm (d), UTC (a, b)"), "{}", reported[2]);
    }

    #[test]
    fn slots_without_effect_are_not_compared() {
        let of = |slots, lock_server| {
            let groups = [(group("default"), slots)].into();
            SettingsDigest::of(
                &kernel::Settings { groups, ..kernel::Settings::default() },
                lock_server,
                Zones::built_in(),
            )
        };
        assert_eq!(of(1, Some("https://a")), of(2, Some("https://a")));
        assert_ne!(of(1, Some("https://a")), of(1, Some("https://b")));
        assert_ne!(of(1, Some("https://a")), of(1, None));
        assert_ne!(of(1, None), of(2, None));
    }

    #[test]
    fn digest_of_many_groups_stays_small() {
        let many = |slots| {
            let groups = (0..10_000).map(|number| (group(&format!("group-{number}")), slots)).collect();
            SettingsDigest::of(
                &kernel::Settings { groups, ..kernel::Settings::default() },
                None,
                Zones::built_in(),
            )
        };
        assert_ne!(many(1), many(2));
        let bytes = serde_json::to_vec(&many(1)).unwrap();
        assert!(bytes.len() < 640, "{} bytes", bytes.len());
    }
}
