//! The instances of the site, as they say of themselves: for operators to look at. Nothing is decided by it; who may
//! lead is the lease's to say.
//!
//! Every instance sends a heartbeat, and remembers those of the others for a while.

mod settings_digest;

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_kernel::{self as kernel, Forecast, WindowBlocker};
use os_upgrade_protocol::json;
use os_upgrade_shell::node::Leadership;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use tokio::sync::watch;

use crate::snapshot::SiteSnapshot;

pub use settings_digest::{SettingsDigest, differences};

/// An instance that has sent none for so long counts as unreachable.
const UNREACHABLE_AFTER: TimeDelta = TimeDelta::seconds(5);
/// And after so long it is forgotten.
const FORGOTTEN_AFTER: TimeDelta = TimeDelta::minutes(10);
/// Instances that are remembered at most; a site has two or three.
const INSTANCES_MAX: usize = 64;
/// Largest heartbeat, in bytes.
const HEARTBEAT_BYTES_MAX: usize = 4_096;

/// What an instance does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It leads.
    Leader,
    /// Another does, or nobody.
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

/// What an instance says of itself. Fields may be added; unknown ones are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Heartbeat {
    /// Its name, the same across restarts.
    pub instance: String,
    /// What it does.
    pub role: Role,
    /// The sequence up to which it has the journal.
    pub position: u64,
    /// Where its API listens.
    pub address: String,
    /// The version of its program.
    pub version: String,
    /// Why it takes no writes, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_ready: Option<String>,
    /// The site's zone by its settings, in force once it leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Its settings that decide for the site while it leads.
    #[serde(default, deserialize_with = "if_known", skip_serializing_if = "Option::is_none")]
    pub settings: Option<SettingsDigest>,
    /// What keeps a run from starting by itself now, if it leads.
    #[serde(default, deserialize_with = "if_known", skip_serializing_if = "Option::is_none")]
    pub blocker: Option<WindowBlocker>,
}

impl Heartbeat {
    /// The heartbeat that a message holds, if it is one.
    pub fn read(payload: &[u8]) -> Option<Self> {
        if payload.len() > HEARTBEAT_BYTES_MAX {
            tracing::debug!(bytes = payload.len(), "a heartbeat of an instance is too long");
            return None;
        }
        let read = json::object(payload);
        read.inspect_err(|error| tracing::debug!(%error, "a heartbeat of an instance cannot be read")).ok()
    }
}

/// What a newer version may have given other values.
fn if_known<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}

/// An instance as it was last heard of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// What it said.
    pub heartbeat: Heartbeat,
    /// When.
    pub seen: DateTime<Utc>,
}

impl Instance {
    /// Whether it has been heard of lately.
    pub fn is_reachable(&self, now: DateTime<Utc>) -> bool {
        now - self.seen < UNREACHABLE_AFTER
    }
}

/// The instances that have been heard of, by name.
#[derive(Debug, Clone, Default)]
pub struct Instances(BTreeMap<String, Instance>);

impl Instances {
    /// Notes a heartbeat, and forgets who has sent none for long.
    fn heard(&mut self, heartbeat: Heartbeat, now: DateTime<Utc>) {
        self.0.retain(|_, known| now - known.seen < FORGOTTEN_AFTER);
        let is_known = self.0.contains_key(&heartbeat.instance);
        if is_known || self.0.len() < INSTANCES_MAX {
            self.0.insert(heartbeat.instance.clone(), Instance { heartbeat, seen: now });
        }
    }

    /// How instances that can be reached differ in settings that decide for the site, a sentence for each of these.
    pub fn differences(&self, now: DateTime<Utc>) -> Vec<String> {
        let reachable = self.iter().filter(|known| known.is_reachable(now)).map(|known| &known.heartbeat);
        differences(reachable.filter_map(|beat| Some((beat.instance.as_str(), beat.settings.as_ref()?))))
    }

    /// Everyone, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Instance> {
        self.0.values()
    }
}

/// What this instance says of itself beside what changes.
#[derive(Debug, Clone)]
pub struct About {
    /// Its name.
    pub instance: String,
    /// Where its API listens.
    pub address: String,
    /// Its settings as they are now.
    pub settings: watch::Receiver<kernel::Settings>,
    /// The lock server that it asks for slots, if it gives none itself, without a password.
    pub lock_server: Option<String>,
}

/// One that nobody has named, with settings that do not change.
impl Default for About {
    fn default() -> Self {
        let (_, settings) = watch::channel(kernel::Settings::default());
        Self { instance: String::new(), address: String::new(), settings, lock_server: None }
    }
}

impl About {
    fn heartbeat(&self, present: &SiteSnapshot, now: DateTime<Utc>) -> Heartbeat {
        let role = match present.leadership {
            Leadership::Here(_) => Role::Leader,
            Leadership::At(_) | Leadership::Unknown => Role::Follower,
        };
        let settings = self.settings.borrow();
        Heartbeat {
            instance: self.instance.clone(),
            role,
            position: present.position,
            address: self.address.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            not_ready: present.readiness.why_not().map(str::to_owned),
            timezone: Some(settings.timezone.to_string()),
            settings: Some(SettingsDigest::of(&settings, self.lock_server.as_deref())),
            blocker: match (role, present.forecast(now)) {
                (Role::Leader, Forecast::Blocked { by, .. }) => Some(by),
                (Role::Leader, Forecast::Next(_) | Forecast::Never(_)) | (Role::Follower, _) => None,
            },
        }
    }
}

/// The instances of the site, as this one sees them. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    about: About,
    instances: Arc<ArcSwap<Instances>>,
}

impl Cluster {
    /// The view of the instance `about`, which has heard of nobody yet.
    pub fn new(about: About) -> Self {
        Self { about, instances: Arc::default() }
    }

    /// What this instance says of itself.
    pub fn heartbeat(&self, present: &SiteSnapshot, now: DateTime<Utc>) -> Heartbeat {
        self.about.heartbeat(present, now)
    }

    /// Takes in what another instance says of itself.
    pub fn note(&self, heartbeat: Heartbeat, now: DateTime<Utc>) {
        let mut instances = self.instances.load().as_ref().clone();
        instances.heard(heartbeat, now);
        self.instances.store(Arc::new(instances));
    }

    /// Everyone who has been heard of, and this instance as it is now.
    pub fn instances(&self, present: &SiteSnapshot, now: DateTime<Utc>) -> Instances {
        let mut instances = self.instances.load().as_ref().clone();
        instances.heard(self.heartbeat(present, now), now);
        instances
    }

    /// Whether a run whose time has come can start by itself, as the leader says, if that is another which has been heard
    /// of lately.
    pub fn leader_says(
        &self,
        leadership: &Leadership,
        now: DateTime<Utc>,
    ) -> Option<Result<(), WindowBlocker>> {
        let Leadership::At(leader) = leadership else { return None };
        let instances = self.instances.load();
        let known = instances.0.get(&leader.instance).filter(|known| known.is_reachable(now))?;
        (known.heartbeat.role == Role::Leader).then(|| known.heartbeat.blocker.clone().map_or(Ok(()), Err))
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
        about(instance).1.heartbeat(&SiteSnapshot::default(), DateTime::UNIX_EPOCH)
    }

    fn names(instances: &Instances) -> Vec<&str> {
        instances.iter().map(|known| known.heartbeat.instance.as_str()).collect()
    }

    #[test]
    fn who_is_silent_is_unreachable_and_then_forgotten() {
        let start = DateTime::UNIX_EPOCH;
        let mut instances = Instances::default();
        instances.heard(heartbeat("a"), start);
        instances.heard(heartbeat("b"), start + TimeDelta::seconds(6));
        let reachable =
            |now| -> Vec<bool> { instances.iter().map(|known| known.is_reachable(now)).collect() };
        assert_eq!(reachable(start + TimeDelta::seconds(6)), [false, true]);
        instances.heard(heartbeat("b"), start + FORGOTTEN_AFTER);
        assert_eq!(names(&instances), ["b"]);
    }

    #[test]
    fn so_many_are_remembered_and_no_more() {
        let start = DateTime::UNIX_EPOCH;
        let mut instances = Instances::default();
        for number in 0..INSTANCES_MAX + 3 {
            instances.heard(heartbeat(&format!("i{number:03}")), start);
        }
        assert_eq!(names(&instances).len(), INSTANCES_MAX);
        instances.heard(heartbeat("i000"), start + TimeDelta::seconds(1));
        assert_eq!(instances.iter().next().unwrap().seen, start + TimeDelta::seconds(1));
    }

    #[test]
    fn a_heartbeat_of_another_version_is_read() {
        let text = r#"{"instance":"a","role":"leader","position":7,"address":"x:1","version":"9","new":1}"#;
        let read: Heartbeat = serde_json::from_str(text).unwrap();
        assert_eq!((read.role, read.position, read.not_ready), (Role::Leader, 7, None));
        assert_eq!((read.timezone, read.settings, read.blocker), (None, None, None));
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
    }

    #[test]
    fn what_the_leader_says_is_believed_while_it_leads_and_can_be_reached() {
        let now = DateTime::UNIX_EPOCH;
        let cluster = Cluster::default();
        let mut instances = Instances::default();
        let blocker = Some(WindowBlocker::HostsAwaited { hosts: 3 });
        instances.heard(Heartbeat { role: Role::Leader, blocker: blocker.clone(), ..heartbeat("a") }, now);
        instances.heard(heartbeat("b"), now);
        cluster.instances.store(Arc::new(instances));
        let at = |instance: &str| {
            Leadership::At(LeaseHolder { instance: instance.to_owned(), nonce: String::new() })
        };
        assert_eq!(cluster.leader_says(&at("a"), now), blocker.map(Err));
        assert_eq!(cluster.leader_says(&at("a"), now + UNREACHABLE_AFTER), None);
        for other in [at("b"), at("c"), Leadership::Unknown] {
            assert_eq!(cluster.leader_says(&other, now), None);
        }
    }

    #[test]
    fn settings_in_which_instances_that_can_be_reached_differ_are_said() {
        let now = DateTime::UNIX_EPOCH;
        let mut instances = Instances::default();
        instances.heard(heartbeat("a"), now);
        instances.heard(heartbeat("b"), now);
        assert_eq!(instances.differences(now), Vec::<String>::new());
        let (settings, about) = about("c");
        settings.send_modify(|settings| settings.auto_approve = true);
        instances.heard(about.heartbeat(&SiteSnapshot::default(), now), now);
        let expected = "the instances differ in [site] auto-approve, and what the one that leads has is in force: \
                        false (a, b), true (c)";
        assert_eq!(instances.differences(now), [expected]);
        let nobody = now + UNREACHABLE_AFTER;
        assert_eq!(instances.differences(nobody), Vec::<String>::new(), "nobody is known to be there");
    }
}
