//! The instances of the site by their own account, for operators. Nothing is decided by it; the lease says which may
//! lead.
//!
//! Every instance sends heartbeats and remembers those of the others for a while.

mod settings_digest;

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_kernel::{self as kernel, ClockDoubt, NextRun, WindowBlocker, format};
use os_upgrade_protocol::json;
use os_upgrade_shell::instance::Leadership;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use tokio::sync::watch;

use crate::published_state::PublishedState;

pub use settings_digest::{SettingsDigest, differences};

/// An instance counts as unreachable after this long without a heartbeat.
const UNREACHABLE_AFTER: TimeDelta = TimeDelta::seconds(5);
/// An instance is forgotten after this long without a heartbeat.
const FORGOTTEN_AFTER: TimeDelta = TimeDelta::minutes(10);
/// The most instances that are remembered; a site has two or three.
const INSTANCES_MAX: usize = 64;
/// The largest heartbeat, in bytes.
const HEARTBEAT_BYTES_MAX: usize = 4_096;

/// The role of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It leads.
    Leader,
    /// Another instance leads, or none.
    Follower,
}

impl Role {
    /// Its word in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Leader => "leader",
            Self::Follower => "follower",
        }
    }
}

/// What an instance reports about itself. Fields may be added; unknown ones are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Heartbeat {
    /// Its name, the same across restarts.
    pub instance: String,
    pub role: Role,
    /// The sequence up to which it has the journal.
    pub position: u64,
    /// The address of its API.
    pub address: String,
    /// The version of its program.
    pub version: String,
    /// The newest format of the journal that it reads. Versions that do not say so read the oldest one only.
    #[serde(default = "oldest_format")]
    pub reads_format: u32,
    /// Why it accepts no writes; absent if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_ready: Option<String>,
    /// The last record that a power cut does not take from its store; 0 before the first. Absent in older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<u64>,
    /// The site's time zone in its settings, in force while it leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// The release of its time zone data, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone_data: Option<String>,
    /// Its settings that apply to the site while it leads.
    #[serde(default, deserialize_with = "ignore_unknown", skip_serializing_if = "Option::is_none")]
    pub settings: Option<SettingsDigest>,
    /// What keeps a run from starting automatically now; absent if nothing does, or if it does not lead.
    #[serde(default, deserialize_with = "ignore_unknown", skip_serializing_if = "Option::is_none")]
    pub blocker: Option<WindowBlocker>,
    /// Why it doubts its clock; absent if it does not.
    #[serde(default, deserialize_with = "ignore_unknown", skip_serializing_if = "Option::is_none")]
    pub clock_doubt: Option<ClockDoubt>,
}

const fn oldest_format() -> u32 {
    format::OLDEST
}

impl Heartbeat {
    /// Parses a heartbeat; `None` if it is invalid.
    pub fn read(payload: &[u8]) -> Option<Self> {
        if payload.len() > HEARTBEAT_BYTES_MAX {
            tracing::debug!(bytes = payload.len(), "a heartbeat of an instance is too long");
            return None;
        }
        let read = json::object(payload);
        read.inspect_err(|error| tracing::debug!(%error, "a heartbeat of an instance cannot be read")).ok()
    }
}

/// A field for which a newer version may have other values: an unknown value counts as absent.
fn ignore_unknown<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}

/// An instance by its last heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    pub heartbeat: Heartbeat,
    /// When it arrived.
    pub seen: DateTime<Utc>,
}

impl Instance {
    /// Whether its last heartbeat is recent.
    pub fn is_reachable(&self, now: DateTime<Utc>) -> bool {
        now - self.seen < UNREACHABLE_AFTER
    }
}

/// The known instances, by name.
#[derive(Debug, Clone, Default)]
pub struct Instances(BTreeMap<String, Instance>);

impl Instances {
    /// Records a heartbeat, and forgets instances that have been silent for long.
    fn record(&mut self, heartbeat: Heartbeat, now: DateTime<Utc>) {
        self.0.retain(|_, known| now - known.seen < FORGOTTEN_AFTER);
        let is_known = self.0.contains_key(&heartbeat.instance);
        if is_known || self.0.len() < INSTANCES_MAX {
            self.0.insert(heartbeat.instance.clone(), Instance { heartbeat, seen: now });
        }
    }

    /// How reachable instances differ where they should not, a sentence each: in settings and time zone data that apply to
    /// the site, and in the formats that they read.
    pub fn differences(&self, now: DateTime<Utc>) -> Vec<String> {
        let reachable = || self.iter().filter(|known| known.is_reachable(now)).map(|known| &known.heartbeat);
        let settings = reachable().filter_map(|beat| Some((beat.instance.as_str(), beat.settings.as_ref()?)));
        let formats = reachable().map(|beat| (beat.instance.as_str(), beat.reads_format));
        differences(settings).into_iter().chain(outdated(formats)).collect()
    }

    /// All instances, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Instance> {
        self.0.values()
    }
}

/// Which of the named instances read older formats of the journal than others.
pub fn outdated<'a>(named: impl IntoIterator<Item = (&'a str, u32)>) -> Option<String> {
    let mut by_format: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for (who, format) in named {
        by_format.entry(format).or_default().push(who);
    }
    let (newest, _) = by_format.pop_last()?;
    let older: Vec<String> =
        by_format.iter().map(|(format, who)| format!("{} ({format})", who.join(", "))).collect();
    (!older.is_empty()).then(|| {
        format!(
            "instances read the journal up to different formats: upgrade {}; others read {newest}, and as soon as \
             something needs it, these stop",
            older.join(", ")
        )
    })
}

/// What this instance reports about itself besides the published state.
#[derive(Debug, Clone)]
pub struct About {
    pub instance: String,
    /// The address of its API.
    pub address: String,
    /// Its present settings.
    pub settings: watch::Receiver<kernel::Settings>,
    /// The URL of its lock server, without a password; `None` if it grants slots itself.
    pub lock_server: Option<String>,
}

/// An instance without a name, with default settings.
impl Default for About {
    fn default() -> Self {
        let (_, settings) = watch::channel(kernel::Settings::default());
        Self { instance: String::new(), address: String::new(), settings, lock_server: None }
    }
}

impl About {
    fn heartbeat(&self, published: &PublishedState, now: DateTime<Utc>) -> Heartbeat {
        let role = match published.leadership {
            Leadership::Here(_) => Role::Leader,
            Leadership::At(_) | Leadership::Unknown => Role::Follower,
        };
        let settings = self.settings.borrow();
        Heartbeat {
            instance: self.instance.clone(),
            role,
            position: published.position,
            address: self.address.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            reads_format: format::NEWEST,
            not_ready: published.readiness.reason_not_ready().map(str::to_owned),
            stored: Some(published.stored),
            timezone: Some(settings.timezone.to_string()),
            zone_data: published.view.zones.version().map(str::to_owned),
            settings: Some(SettingsDigest::of(&settings, self.lock_server.as_deref(), &published.view.zones)),
            blocker: match (role, published.forecast(now).next) {
                (Role::Leader, NextRun::Blocked { by, .. }) => Some(by),
                (Role::Leader, NextRun::At(_) | NextRun::Never(_)) | (Role::Follower, _) => None,
            },
            clock_doubt: published.view.clock.doubt.clone(),
        }
    }
}

/// The instances of the site as this one sees them. Clones are cheap and share what is known.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    about: About,
    instances: Arc<ArcSwap<Instances>>,
}

impl Cluster {
    /// The view of the instance `about`, without others so far.
    pub fn new(about: About) -> Self {
        Self { about, instances: Arc::default() }
    }

    /// This instance's heartbeat.
    pub fn heartbeat(&self, published: &PublishedState, now: DateTime<Utc>) -> Heartbeat {
        self.about.heartbeat(published, now)
    }

    /// Records another instance's heartbeat.
    pub fn record(&self, heartbeat: Heartbeat, now: DateTime<Utc>) {
        let mut instances = self.instances.load().as_ref().clone();
        instances.record(heartbeat, now);
        self.instances.store(Arc::new(instances));
    }

    /// All known instances, and this one with its present heartbeat.
    pub fn instances(&self, published: &PublishedState, now: DateTime<Utc>) -> Instances {
        let mut instances = self.instances.load().as_ref().clone();
        instances.record(self.heartbeat(published, now), now);
        instances
    }

    /// The last record that no store of an instance loses which was heard of in the last 10 minutes; `None` if one of them
    /// does not say.
    pub fn stored_by_all(&self, published: &PublishedState, now: DateTime<Utc>) -> Option<u64> {
        let instances = self.instances.load();
        let others = instances.iter().filter(|known| known.heartbeat.instance != self.about.instance);
        let live = others.filter(|known| now - known.seen < FORGOTTEN_AFTER);
        live.map(|known| known.heartbeat.stored).chain([Some(published.stored)]).min().flatten()
    }

    /// The leader's own heartbeat; `None` unless another, reachable instance leads.
    pub fn leader(&self, leadership: &Leadership, now: DateTime<Utc>) -> Option<Heartbeat> {
        let Leadership::At(leader) = leadership else { return None };
        let instances = self.instances.load();
        let known = instances.0.get(&leader.instance).filter(|known| known.is_reachable(now))?;
        (known.heartbeat.role == Role::Leader).then(|| known.heartbeat.clone())
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_kernel::{Sealed, StartBlocker};
    use os_upgrade_shell::lease::LeaseHolder;

    use super::*;

    fn about(instance: &str) -> (watch::Sender<kernel::Settings>, About) {
        let (sender, settings) = watch::channel(kernel::Settings::default());
        (sender, About { instance: instance.to_owned(), settings, ..About::default() })
    }

    fn heartbeat(instance: &str) -> Heartbeat {
        about(instance).1.heartbeat(&PublishedState::default(), DateTime::UNIX_EPOCH)
    }

    fn names(instances: &Instances) -> Vec<&str> {
        instances.iter().map(|known| known.heartbeat.instance.as_str()).collect()
    }

    #[test]
    fn silent_instances_are_forgotten() {
        let start = DateTime::UNIX_EPOCH;
        let mut instances = Instances::default();
        instances.record(heartbeat("a"), start);
        instances.record(heartbeat("b"), start + TimeDelta::seconds(6));
        let reachable =
            |now| -> Vec<bool> { instances.iter().map(|known| known.is_reachable(now)).collect() };
        assert_eq!(reachable(start + TimeDelta::seconds(6)), [false, true]);
        instances.record(heartbeat("b"), start + FORGOTTEN_AFTER);
        assert_eq!(names(&instances), ["b"]);
    }

    #[test]
    fn remembered_instances_are_bounded() {
        let start = DateTime::UNIX_EPOCH;
        let mut instances = Instances::default();
        for number in 0..INSTANCES_MAX + 3 {
            instances.record(heartbeat(&format!("i{number:03}")), start);
        }
        assert_eq!(names(&instances).len(), INSTANCES_MAX);
        instances.record(heartbeat("i000"), start + TimeDelta::seconds(1));
        assert_eq!(instances.iter().next().unwrap().seen, start + TimeDelta::seconds(1));
    }

    #[test]
    fn heartbeat_of_another_version_is_read() {
        let text = r#"{"instance":"a","role":"leader","position":7,"address":"x:1","version":"9","new":1}"#;
        let read: Heartbeat = serde_json::from_str(text).unwrap();
        assert_eq!((read.role, read.position, read.not_ready), (Role::Leader, 7, None));
        assert_eq!((read.timezone, read.settings, read.blocker), (None, None, None));
        // The versions that do not say which formats they read.
        assert_eq!(read.reads_format, 2);
        let with = |blocker| text.replace(r#""new":1"#, &format!(r#""blocker":{blocker}"#));
        let read = |blocker| serde_json::from_str::<Heartbeat>(&with(blocker)).unwrap().blocker;
        let sealed = StartBlocker::StrongboxSealed { why: Sealed::NoKey };
        for (blocker, json) in [
            (WindowBlocker::Any(sealed), r#"{"kind":"strongbox-sealed","why":{"kind":"no-key"}}"#),
            (WindowBlocker::HostsAwaited { hosts: 3 }, r#"{"kind":"hosts-awaited","hosts":3}"#),
        ] {
            assert_eq!(serde_json::to_string(&blocker).unwrap(), json);
            assert_eq!(read(json), Some(blocker));
        }
        assert_eq!(read(r#"{"kind":"the-moon"}"#), None);
        let doubts = |doubt| text.replace(r#""new":1"#, &format!(r#""clock-doubt":{doubt}"#));
        let doubt = |doubt| serde_json::from_str::<Heartbeat>(&doubts(doubt)).unwrap().clock_doubt;
        assert_eq!(doubt(r#"{"kind":"clock-stepped"}"#), Some(ClockDoubt::ClockStepped));
        assert_eq!(doubt(r#"{"kind":"the-moon"}"#), None);
    }

    #[test]
    fn only_a_reachable_leader_is_believed() {
        let now = DateTime::UNIX_EPOCH;
        let cluster = Cluster::default();
        let mut instances = Instances::default();
        let leader = Heartbeat { role: Role::Leader, ..heartbeat("a") };
        instances.record(leader.clone(), now);
        instances.record(heartbeat("b"), now);
        cluster.instances.store(Arc::new(instances));
        let at = |instance: &str| Leadership::At(LeaseHolder::new(instance, ""));
        assert_eq!(cluster.leader(&at("a"), now), Some(leader));
        assert_eq!(cluster.leader(&at("a"), now + UNREACHABLE_AFTER), None);
        for other in [at("b"), at("c"), Leadership::Unknown] {
            assert_eq!(cluster.leader(&other, now), None);
        }
    }

    #[test]
    fn older_instances_are_reported() {
        let now = DateTime::UNIX_EPOCH;
        let mut instances = Instances::default();
        instances.record(heartbeat("a"), now);
        instances.record(heartbeat("b"), now);
        assert_eq!(instances.differences(now), Vec::<String>::new());
        instances.record(Heartbeat { reads_format: 10, ..heartbeat("c") }, now);
        instances.record(Heartbeat { reads_format: 10, ..heartbeat("d") }, now);
        let expected = "instances read the journal up to different formats: upgrade c, d (10); others read 11, and as \
                        soon as something needs it, these stop";
        assert_eq!(instances.differences(now), [expected]);
        assert_eq!(instances.differences(now + UNREACHABLE_AFTER), Vec::<String>::new());
    }

    #[test]
    fn differing_settings_are_reported() {
        let now = DateTime::UNIX_EPOCH;
        let mut instances = Instances::default();
        instances.record(heartbeat("a"), now);
        instances.record(heartbeat("b"), now);
        assert_eq!(instances.differences(now), Vec::<String>::new());
        let (settings, about) = about("c");
        settings.send_modify(|settings| settings.auto_approve = true);
        instances.record(about.heartbeat(&PublishedState::default(), now), now);
        let expected = "instances have different values for [site] auto-approve (the leader's applies): \
                        false (a, b), true (c)";
        assert_eq!(instances.differences(now), [expected]);
        let nobody = now + UNREACHABLE_AFTER;
        assert_eq!(instances.differences(nobody), Vec::<String>::new(), "no instance is reachable");
    }
}
