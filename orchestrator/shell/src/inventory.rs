//! What is seen of the site: announcements, heartbeats and versions, folded into the kernel's view.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use imbl::OrdMap;
use os_upgrade_kernel::{Reachability, Sealed, SeenHost, View};
use os_upgrade_protocol::{Announcement, ApplicationName, HostName, ParseError, Versions};

use crate::clock::Now;

/// A host that sends heartbeats is unreachable after so long without one.
pub const PRESENCE_TTL: Duration = Duration::from_secs(30);

/// The versions that a host published last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostVersions {
    /// Package to version.
    pub versions: Versions,
    /// When the bus took them.
    pub published_at: DateTime<Utc>,
}

/// A message on a subject of the inventory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    /// It cannot be read.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// It speaks for another than its subject names.
    #[error("the announcement on the subject of {subject} is about {announced}")]
    OtherThanSubject {
        /// Application and host of the subject.
        subject: String,
        /// Application and host of the announcement.
        announced: String,
    },
}

/// What is seen of the site.
#[derive(Debug, Default)]
pub struct Inventory {
    view: View,
    versions: OrdMap<HostName, HostVersions>,
    announced: BTreeMap<(HostName, ApplicationName), Announced>,
    heartbeats: HashMap<HostName, Heartbeats>,
}

/// The heartbeats of a host.
#[derive(Debug)]
struct Heartbeats {
    /// Since when none has been heard, on the monotonic clock, as far as the bus was there; `None` until the next tick.
    silent_since: Option<Duration>,
    /// Whether one has been heard at all.
    heard: bool,
}

impl Heartbeats {
    const AWAITED: Self = Self { silent_since: None, heard: false };
}

#[derive(Debug)]
struct Announced {
    announcement: Announcement,
    clock_skew_secs: Option<i64>,
}

impl Inventory {
    /// The kernel's view.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The last versions of every host.
    pub fn versions(&self) -> &OrdMap<HostName, HostVersions> {
        &self.versions
    }

    /// Notes how the orchestrator's clock stands to the bus's.
    pub fn clocks_compared(&mut self, skew: TimeDelta) {
        self.view.clock_skew = Some(skew);
    }

    /// Notes why slots cannot be asked for with the secrets there are, or that they can.
    pub fn secrets_seen(&mut self, sealed: Option<Sealed>) {
        self.view.sealed = sealed;
    }

    /// An announcement, or an empty payload that withdraws one; the bus took it `at`.
    pub fn announced(
        &mut self,
        application: &ApplicationName,
        host: &HostName,
        payload: &[u8],
        at: DateTime<Utc>,
    ) -> Result<(), InventoryError> {
        let key = (host.clone(), application.clone());
        if payload.is_empty() {
            self.announced.remove(&key);
        } else {
            let announcement = Announcement::parse(payload)?;
            if announcement.host != *host || announcement.application != *application {
                return Err(InventoryError::OtherThanSubject {
                    subject: format!("{application} on {host}"),
                    announced: format!("{} on {}", announcement.application, announcement.host),
                });
            }
            let clock_skew_secs = announcement.time.map(|time| (time - at).num_seconds());
            self.announced.insert(key, Announced { announcement, clock_skew_secs });
        }
        self.look_again_at(host);
        Ok(())
    }

    /// Versions that a host published; the bus took them `at`.
    pub fn versions_published(
        &mut self,
        host: &HostName,
        payload: &[u8],
        at: DateTime<Utc>,
    ) -> Result<(), InventoryError> {
        let versions = Versions::parse(payload)?;
        self.versions.insert(host.clone(), HostVersions { versions, published_at: at });
        Ok(())
    }

    /// A heartbeat.
    pub fn heartbeat(&mut self, now: Now, host: &HostName) {
        let heard = Heartbeats { silent_since: Some(now.monotonic), heard: true };
        self.heartbeats.insert(host.clone(), heard);
        self.set_reachability(host, Reachability::Reachable);
    }

    /// Time has passed. While the bus is away nobody's silence means anything.
    pub fn tick(&mut self, now: Now, connected: bool) {
        let mut silent = Vec::new();
        for (host, heartbeats) in &mut self.heartbeats {
            let since = heartbeats.silent_since.filter(|_| connected).unwrap_or(now.monotonic);
            heartbeats.silent_since = Some(since);
            if now.monotonic.saturating_sub(since) >= PRESENCE_TTL {
                silent.push(host.clone());
            }
        }
        for host in silent {
            self.set_reachability(&host, Reachability::Unreachable);
        }
    }

    /// The reachability of an announced host, which was `known` before.
    fn reachability(
        &mut self,
        host: &HostName,
        known: Option<Reachability>,
        sends_heartbeats: bool,
    ) -> Reachability {
        if sends_heartbeats {
            self.heartbeats.entry(host.clone()).or_insert(Heartbeats::AWAITED);
        } else if self.heartbeats.get(host).is_some_and(|heartbeats| !heartbeats.heard) {
            self.heartbeats.remove(host);
        }
        match self.heartbeats.get(host) {
            None => Reachability::Unknown,
            Some(_) if known == Some(Reachability::Unreachable) => Reachability::Unreachable,
            Some(Heartbeats { heard: true, .. }) => Reachability::Reachable,
            Some(Heartbeats { heard: false, .. }) => Reachability::Awaited,
        }
    }

    fn set_reachability(&mut self, host: &HostName, reachability: Reachability) {
        let differs = self.view.hosts.get(host).is_some_and(|seen| seen.reachability != reachability);
        if differs && let Some(seen) = self.view.hosts.get_mut(host) {
            seen.reachability = reachability;
        }
    }

    fn look_again_at(&mut self, host: &HostName) {
        let (mut seen, mut sends_heartbeats): (Option<SeenHost>, bool) = (None, false);
        let from = (host.clone(), ApplicationName::new("\u{20}").expect("a valid name"));
        for ((_, application), announced) in
            self.announced.range(from..).take_while(|((announced_on, _), _)| announced_on == host)
        {
            let seen = seen.get_or_insert_default();
            seen.applications.insert(application.clone());
            let announcement = &announced.announcement;
            seen.group = seen.group.take().or_else(|| announcement.group.clone());
            seen.boot_id = seen.boot_id.take().or_else(|| announcement.boot_id.clone());
            sends_heartbeats |= announcement.heartbeats;
            seen.clock_skew_secs = seen.clock_skew_secs.or(announced.clock_skew_secs);
        }
        match seen {
            None => {
                self.heartbeats.remove(host);
                self.view.hosts.remove(host);
                self.view.left.insert(host.clone());
            }
            Some(mut seen) => {
                self.view.left.remove(host);
                let known = self.view.hosts.get(host).map(|known| known.reachability);
                seen.reachability = self.reachability(host, known, sends_heartbeats);
                self.view.hosts.insert(host.clone(), seen);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> HostName {
        HostName::new(name).unwrap()
    }

    fn application(name: &str) -> ApplicationName {
        ApplicationName::new(name).unwrap()
    }

    fn at(secs: u64) -> Now {
        Now { wall: DateTime::UNIX_EPOCH, monotonic: Duration::from_secs(secs) }
    }

    fn announce(inventory: &mut Inventory, app: &str, name: &str) {
        let announcement = Announcement::new(host(name), application(app));
        inventory
            .announced(&application(app), &host(name), &announcement.to_payload(), DateTime::UNIX_EPOCH)
            .unwrap();
    }

    fn announce_heartbeats(inventory: &mut Inventory, name: &str, heartbeats: bool) {
        let announcement = Announcement { heartbeats, ..Announcement::new(host(name), application("a")) };
        inventory
            .announced(&application("a"), &host(name), &announcement.to_payload(), DateTime::UNIX_EPOCH)
            .unwrap();
    }

    fn reachability(inventory: &Inventory, name: &str) -> Option<Reachability> {
        inventory.view().hosts.get(&host(name)).map(|seen| seen.reachability)
    }

    #[test]
    fn announcements_come_and_go_per_application() {
        let mut inventory = Inventory::default();
        announce(&mut inventory, "a", "h1");
        announce(&mut inventory, "b", "h1");
        announce(&mut inventory, "a", "h10");
        assert_eq!(inventory.view().hosts[&host("h1")].applications.len(), 2);
        assert_eq!(inventory.view().hosts[&host("h10")].applications.len(), 1);
        inventory.announced(&application("a"), &host("h1"), b"", DateTime::UNIX_EPOCH).unwrap();
        assert_eq!(inventory.view().hosts[&host("h1")].applications.len(), 1);
        inventory.announced(&application("b"), &host("h1"), b"", DateTime::UNIX_EPOCH).unwrap();
        assert_eq!(inventory.view().hosts.get(&host("h1")), None);
    }

    #[test]
    fn nobody_announces_another() {
        let mut inventory = Inventory::default();
        let payload = Announcement::new(host("h2"), application("a")).to_payload();
        let error =
            inventory.announced(&application("a"), &host("h1"), &payload, DateTime::UNIX_EPOCH).unwrap_err();
        assert_eq!(error.to_string(), "the announcement on the subject of a on h1 is about a on h2");
        assert!(inventory.view().hosts.is_empty());
    }

    #[test]
    fn who_says_that_it_sends_heartbeats_is_awaited_for_a_time() {
        let mut inventory = Inventory::default();
        announce_heartbeats(&mut inventory, "h1", true);
        announce_heartbeats(&mut inventory, "h2", true);
        announce_heartbeats(&mut inventory, "h3", false);
        let words =
            |inventory: &Inventory| ["h1", "h2", "h3"].map(|name| reachability(inventory, name).unwrap());
        let (awaited, unknown) = (Reachability::Awaited, Reachability::Unknown);
        assert_eq!(words(&inventory), [awaited, awaited, unknown]);
        // The time in which the bus is away does not count.
        inventory.tick(at(1_000), false);
        inventory.tick(at(1_100), false);
        inventory.tick(at(1_129), true);
        assert_eq!(words(&inventory), [awaited, awaited, unknown]);
        inventory.heartbeat(at(1_129), &host("h1"));
        inventory.tick(at(1_130), true);
        let (reachable, unreachable) = (Reachability::Reachable, Reachability::Unreachable);
        assert_eq!(words(&inventory), [reachable, unreachable, unknown]);
        // Saying it again is no sign of life.
        announce_heartbeats(&mut inventory, "h2", true);
        assert_eq!(words(&inventory), [reachable, unreachable, unknown]);
        inventory.heartbeat(at(1_131), &host("h2"));
        assert_eq!(words(&inventory), [reachable, reachable, unknown]);
        // Who goes and comes again is awaited again; whose other worker sends none is not.
        inventory.announced(&application("a"), &host("h1"), b"", DateTime::UNIX_EPOCH).unwrap();
        announce_heartbeats(&mut inventory, "h1", true);
        assert_eq!(words(&inventory), [awaited, reachable, unknown]);
        announce_heartbeats(&mut inventory, "h1", false);
        assert_eq!(words(&inventory), [unknown, reachable, unknown]);
    }

    #[test]
    fn reachability_follows_heartbeats() {
        let mut inventory = Inventory::default();
        announce(&mut inventory, "a", "h1");
        assert_eq!(reachability(&inventory, "h1"), Some(Reachability::Unknown));
        inventory.tick(at(100), true);
        assert_eq!(reachability(&inventory, "h1"), Some(Reachability::Unknown));
        inventory.heartbeat(at(100), &host("h1"));
        inventory.tick(at(129), true);
        assert_eq!(reachability(&inventory, "h1"), Some(Reachability::Reachable));
        inventory.tick(at(130), true);
        assert_eq!(reachability(&inventory, "h1"), Some(Reachability::Unreachable));
        inventory.heartbeat(at(140), &host("h1"));
        inventory.tick(at(200), false);
        inventory.tick(at(229), true);
        assert_eq!(
            reachability(&inventory, "h1"),
            Some(Reachability::Reachable),
            "silence of the bus is not the host's"
        );
        inventory.heartbeat(at(230), &host("h2"));
        announce(&mut inventory, "a", "h2");
        assert_eq!(reachability(&inventory, "h2"), Some(Reachability::Reachable));
    }
}
