//! What is seen of the site: announcements, heartbeats and versions, folded into the kernel's view.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use imbl::OrdMap;
use os_upgrade_kernel::{Reachability, Sealed, SeenHost, View};
use os_upgrade_protocol::{Announcement, ApplicationName, HostName, ParseError, Progress, Versions};

use crate::clock::Now;

/// A host that sends heartbeats is unreachable after so long without one.
pub const PRESENCE_TTL: Duration = Duration::from_secs(30);

/// As much as is taken to have been listened between two ticks: a process that stood still has not heard what came then.
const TICK_MAX: Duration = Duration::from_secs(1);

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

/// Something that a worker says of its host.
#[derive(Debug)]
pub enum WorkerMessage {
    /// It announces itself; with an empty payload, it withdraws.
    Announced {
        /// The application that the subject names.
        application: ApplicationName,
        /// The host that the subject names.
        host: HostName,
        /// The payload.
        payload: Bytes,
        /// When the bus took it.
        at: DateTime<Utc>,
    },
    /// All announcements that stood in the stream at the start have been handed in.
    AllAnnounced,
    /// It publishes versions.
    Versions {
        /// The host that the subject names.
        host: HostName,
        /// The payload.
        payload: Bytes,
        /// When the bus took it.
        at: DateTime<Utc>,
    },
    /// It is alive.
    Heartbeat(HostName),
    /// It says how far it is with its command.
    Progress {
        /// The host that the subject names.
        host: HostName,
        /// The payload.
        payload: Bytes,
    },
}

/// What is seen of the site.
#[derive(Debug, Default)]
pub struct Inventory {
    view: View,
    versions: OrdMap<HostName, HostVersions>,
    progress: OrdMap<HostName, Progress>,
    announced: BTreeMap<(HostName, ApplicationName), Announced>,
    signs: HashMap<HostName, Signs>,
    /// For how long the bus has been there, all in all.
    listened: Duration,
    ticked_at: Option<Duration>,
    /// What `listened` was when the control stream had been read.
    control_read: Option<Duration>,
    is_read: bool,
}

/// The signs of life of a host that sends heartbeats.
#[derive(Debug, Clone, Copy)]
struct Signs {
    /// When the last one came, on the monotonic clock; `None` for a host that has only announced itself, long ago.
    last: Option<Duration>,
    /// For how long the bus had been there by then.
    listened: Duration,
}

#[derive(Debug)]
struct Announced {
    announcement: Announcement,
    clock_skew_secs: Option<i64>,
    at: DateTime<Utc>,
}

impl Signs {
    /// How the host stands, when the bus has been there for `listened` by now. What it was before an absence of the bus is
    /// not known any more after it.
    fn reachability(self, now: Now, listened: Duration) -> Reachability {
        if self.last.is_some_and(|last| now.monotonic.saturating_sub(last) < PRESENCE_TTL) {
            Reachability::Reachable
        } else if listened.saturating_sub(self.listened) < PRESENCE_TTL {
            Reachability::Awaited
        } else {
            Reachability::Unreachable
        }
    }
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

    /// What every host's worker said last of how far it is; the command that it is about may have been answered since.
    pub fn progress(&self) -> &OrdMap<HostName, Progress> {
        &self.progress
    }

    /// Takes in what a worker says.
    ///
    /// # Errors
    /// What it says of the host cannot be used.
    pub fn take_in(&mut self, now: Now, message: WorkerMessage) -> Result<(), (HostName, InventoryError)> {
        let (host, taken) = match message {
            WorkerMessage::Announced { application, host, payload, at } => {
                let taken = self.announced(now, &application, &host, &payload, at);
                (host, taken)
            }
            WorkerMessage::Versions { host, payload, at } => {
                let taken = self.versions_published(&host, &payload, at);
                (host, taken)
            }
            WorkerMessage::Progress { host, payload } => {
                let taken = self.progressed(&host, &payload);
                (host, taken)
            }
            WorkerMessage::Heartbeat(host) => {
                self.heartbeat(now, &host);
                return Ok(());
            }
            // What comes now is news.
            WorkerMessage::AllAnnounced => {
                self.is_read = true;
                return Ok(());
            }
        };
        taken.map_err(|error| (host, error))
    }

    /// Whether everything that was announced before has been noted.
    pub fn is_read(&self) -> bool {
        self.is_read
    }

    /// Notes how the orchestrator's clock stands to the bus's.
    pub fn clocks_compared(&mut self, skew: TimeDelta) {
        self.view.clock_skew = Some(skew);
    }

    /// Notes whether the control stream has been read up to the fence of this leadership. From then on a worker has as long
    /// to answer as a host has for a sign of life, and again after the bus was away or this process stood still.
    pub fn control_read(&mut self, has_read: bool) {
        let since = has_read.then(|| *self.control_read.get_or_insert(self.listened));
        self.control_read = since;
        self.view.has_read_control = has_read;
        self.view.has_heard_control =
            since.is_some_and(|since| self.listened.saturating_sub(since) >= PRESENCE_TTL);
    }

    /// Notes why slots cannot be asked for with the secrets there are, or that they can.
    pub fn secrets_seen(&mut self, sealed: Option<Sealed>) {
        self.view.sealed = sealed;
    }

    /// An announcement, or an empty payload that withdraws one; the bus took it `at`. One that has just been made is a
    /// sign of life.
    fn announced(
        &mut self,
        now: Now,
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
            self.announced.insert(key, Announced { announcement, clock_skew_secs, at });
        }
        let is_new = self.is_new(now, at) && !payload.is_empty();
        self.look_again_at(now, host, is_new);
        Ok(())
    }

    /// Versions that a host published; the bus took them `at`.
    fn versions_published(
        &mut self,
        host: &HostName,
        payload: &[u8],
        at: DateTime<Utc>,
    ) -> Result<(), InventoryError> {
        let versions = Versions::parse(payload)?;
        self.versions.insert(host.clone(), HostVersions { versions, published_at: at });
        Ok(())
    }

    /// What a host's worker says of how far it is. Anybody may say so, for hosts that are never announced too.
    fn progressed(&mut self, host: &HostName, payload: &[u8]) -> Result<(), InventoryError> {
        let progress = Progress::parse(payload)?;
        if self.view.hosts.contains_key(host) {
            self.progress.insert(host.clone(), progress);
        }
        Ok(())
    }

    /// A reply of a host's, which the bus took `at`. Where the host sends heartbeats, and it has just been made, it is a
    /// sign of life as they are: after a reboot the first heartbeat may come later than the reply.
    pub fn replied(&mut self, now: Now, host: &HostName, at: DateTime<Utc>) {
        if self.is_new(now, at) && self.signs.contains_key(host) {
            self.heartbeat(now, host);
        }
    }

    /// A heartbeat.
    fn heartbeat(&mut self, now: Now, host: &HostName) {
        self.signs.insert(host.clone(), self.sign(now));
        self.set_reachability(host, Reachability::Reachable);
    }

    /// Time has passed. While the bus is away nobody's silence means anything.
    pub fn tick(&mut self, now: Now, connected: bool) {
        let passed = now.monotonic.saturating_sub(self.ticked_at.unwrap_or(now.monotonic));
        self.ticked_at = Some(now.monotonic);
        if !connected || passed > PRESENCE_TTL {
            self.control_read = None;
        }
        if !connected {
            return;
        }
        self.listened += passed.min(TICK_MAX);
        let mut differ = Vec::new();
        let (view, listened) = (&self.view, self.listened);
        self.signs.retain(|host, signs| {
            let reachability = signs.reachability(now, listened);
            let known = view.hosts.get(host).map(|seen| seen.reachability);
            if known.is_some_and(|known| known != reachability) {
                differ.push((host.clone(), reachability));
            }
            // Anybody may send heartbeats, for hosts that are never announced too.
            known.is_some() || reachability == Reachability::Reachable
        });
        for (host, reachability) in differ {
            self.set_reachability(&host, reachability);
        }
    }

    /// Whether what the bus took `at` has just been said.
    fn is_new(&self, now: Now, at: DateTime<Utc>) -> bool {
        self.is_read && (now.wall - at).abs() < TimeDelta::from_std(PRESENCE_TTL).expect("it is short")
    }

    fn sign(&self, now: Now) -> Signs {
        Signs { last: Some(now.monotonic), listened: self.listened }
    }

    /// The reachability of a host that announces itself, and whether it sends heartbeats.
    fn reachability(
        &mut self,
        now: Now,
        host: &HostName,
        sends_heartbeats: bool,
        is_new: bool,
    ) -> Reachability {
        let sign = self.sign(now);
        let signs = match self.signs.get_mut(host) {
            Some(signs) if is_new => {
                *signs = sign;
                sign
            }
            Some(signs) => *signs,
            None if sends_heartbeats => {
                let signs = if is_new { sign } else { Signs { last: None, ..sign } };
                self.signs.insert(host.clone(), signs);
                signs
            }
            None => return Reachability::Unknown,
        };
        signs.reachability(now, self.listened)
    }

    fn set_reachability(&mut self, host: &HostName, reachability: Reachability) {
        let differs = self.view.hosts.get(host).is_some_and(|seen| seen.reachability != reachability);
        if differs && let Some(seen) = self.view.hosts.get_mut(host) {
            seen.reachability = reachability;
        }
    }

    fn look_again_at(&mut self, now: Now, host: &HostName, is_new: bool) {
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
            seen.announced_at = seen.announced_at.max(Some(announced.at));
        }
        match seen {
            None => {
                self.view.hosts.remove(host);
                self.progress.remove(host);
                self.view.left.insert(host.clone());
            }
            Some(mut seen) => {
                self.view.left.remove(host);
                seen.reachability = self.reachability(now, host, sends_heartbeats, is_new);
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
        let monotonic = Duration::from_secs(secs);
        Now { wall: LATER + monotonic, monotonic }
    }

    /// A long time after what has been announced at the epoch.
    const LATER: DateTime<Utc> = DateTime::from_timestamp(1_000_000, 0).unwrap();

    fn announce(inventory: &mut Inventory, app: &str, name: &str) {
        let announcement = Announcement::new(host(name), application(app));
        say(inventory, at(0), app, name, &announcement.to_payload(), DateTime::UNIX_EPOCH);
    }

    fn say(inventory: &mut Inventory, now: Now, app: &str, name: &str, payload: &[u8], at: DateTime<Utc>) {
        inventory.announced(now, &application(app), &host(name), payload, at).unwrap();
    }

    /// That it sends heartbeats, said at `secs`, and read so much later.
    fn announce_heartbeats(inventory: &mut Inventory, name: &str, secs: u64, later: TimeDelta) {
        let announcement =
            Announcement { heartbeats: true, ..Announcement::new(host(name), application("a")) };
        say(inventory, at(secs), "a", name, &announcement.to_payload(), at(secs).wall - later);
    }

    /// Ticks every second from `from` to `to`.
    fn tick(inventory: &mut Inventory, from: u64, to: u64, connected: bool) {
        (from..=to).for_each(|secs| inventory.tick(at(secs), connected));
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
        say(&mut inventory, at(0), "a", "h1", b"", DateTime::UNIX_EPOCH);
        assert_eq!(inventory.view().hosts[&host("h1")].applications.len(), 1);
        say(&mut inventory, at(0), "b", "h1", b"", DateTime::UNIX_EPOCH);
        assert_eq!(inventory.view().hosts.get(&host("h1")), None);
    }

    #[test]
    fn nobody_announces_another() {
        let mut inventory = Inventory::default();
        let payload = Announcement::new(host("h2"), application("a")).to_payload();
        let told = inventory.announced(at(0), &application("a"), &host("h1"), &payload, DateTime::UNIX_EPOCH);
        let error = told.unwrap_err();
        assert_eq!(error.to_string(), "the announcement on the subject of a on h1 is about a on h2");
        assert!(inventory.view().hosts.is_empty());
    }

    #[test]
    fn a_lack_of_answers_means_something_once_there_was_time_to_give_them() {
        let mut inventory = Inventory::default();
        let mut heard_from = |from: u64, to: u64, connected: bool| {
            let heard = (from..=to).find(|secs| {
                inventory.tick(at(*secs), connected);
                inventory.control_read(connected);
                inventory.view().has_heard_control
            });
            (heard, inventory.view().has_heard_control)
        };
        assert_eq!(heard_from(0, 60, true), (Some(30), true));
        // The bus is away for a moment.
        assert_eq!(heard_from(61, 61, false), (None, false));
        assert_eq!(heard_from(62, 120, true), (Some(92), true));
        // This process stood still for an hour, and nobody's answer has come in yet.
        assert_eq!(heard_from(3_720, 3_780, true), (Some(3_750), true));
        assert!(inventory.view().has_read_control);
        inventory.control_read(false);
        let view = inventory.view();
        assert!(!view.has_heard_control && !view.has_read_control, "another leadership begins");
        inventory.control_read(true);
        let view = inventory.view();
        assert!(!view.has_heard_control && view.has_read_control, "and has read what was there");
    }

    const AWAITED: Option<Reachability> = Some(Reachability::Awaited);
    const REACHABLE: Option<Reachability> = Some(Reachability::Reachable);
    const UNREACHABLE: Option<Reachability> = Some(Reachability::Unreachable);

    #[test]
    fn who_says_that_it_sends_heartbeats_is_awaited_for_a_time() {
        let mut inventory = Inventory::default();
        let long_ago = TimeDelta::hours(8);
        for name in ["h1", "h2"] {
            announce_heartbeats(&mut inventory, name, 0, long_ago);
        }
        inventory.is_read = true;
        let both = |inventory: &Inventory| ["h1", "h2"].map(|name| reachability(inventory, name));
        // The time in which the bus is away does not count, nor that in which the process stands still.
        tick(&mut inventory, 1_000, 1_100, false);
        tick(&mut inventory, 1_200, 1_228, true);
        assert_eq!(both(&inventory), [AWAITED; 2]);
        inventory.heartbeat(at(1_228), &host("h1"));
        inventory.tick(at(1_229), true);
        assert_eq!(both(&inventory), [REACHABLE, UNREACHABLE]);
        // What was said long ago is no sign of life; what is said now is.
        announce_heartbeats(&mut inventory, "h2", 1_230, long_ago);
        assert_eq!(both(&inventory), [REACHABLE, UNREACHABLE]);
        announce_heartbeats(&mut inventory, "h2", 1_231, TimeDelta::milliseconds(40));
        assert_eq!(both(&inventory), [REACHABLE, REACHABLE]);
        tick(&mut inventory, 1_232, 1_261, true);
        assert_eq!(both(&inventory), [UNREACHABLE; 2]);
    }

    #[test]
    fn nobody_is_awaited_for_longer_by_coming_and_going() {
        let mut inventory = Inventory::default();
        // It may have been turned off since.
        announce_heartbeats(&mut inventory, "h1", 0, TimeDelta::seconds(1));
        assert_eq!(reachability(&inventory, "h1"), AWAITED);
        inventory.is_read = true;
        for secs in 1..=40 {
            if secs % 20 == 0 {
                say(&mut inventory, at(secs), "a", "h1", b"", at(secs).wall);
                announce_heartbeats(&mut inventory, "h1", secs, TimeDelta::hours(8));
            }
            // The bus comes and goes, too.
            inventory.tick(at(secs), secs % 10 != 0);
        }
        assert_eq!(reachability(&inventory, "h1"), UNREACHABLE);
    }

    #[test]
    fn after_an_absence_of_the_bus_nobody_is_taken_to_be_there_still() {
        let mut inventory = Inventory::default();
        announce(&mut inventory, "a", "h1");
        inventory.tick(at(100), true);
        inventory.heartbeat(at(100), &host("h1"));
        tick(&mut inventory, 101, 3_700, false);
        assert_eq!(reachability(&inventory, "h1"), REACHABLE);
        inventory.tick(at(3_701), true);
        assert_eq!(reachability(&inventory, "h1"), AWAITED);
        tick(&mut inventory, 3_702, 3_728, true);
        assert_eq!(reachability(&inventory, "h1"), AWAITED);
        tick(&mut inventory, 3_729, 3_731, true);
        assert_eq!(reachability(&inventory, "h1"), UNREACHABLE, "silence of the bus is not the host's");
    }

    #[test]
    fn reachability_follows_heartbeats() {
        let mut inventory = Inventory::default();
        announce(&mut inventory, "a", "h1");
        assert_eq!(reachability(&inventory, "h1"), Some(Reachability::Unknown));
        inventory.tick(at(100), true);
        assert_eq!(reachability(&inventory, "h1"), Some(Reachability::Unknown));
        inventory.heartbeat(at(100), &host("h1"));
        tick(&mut inventory, 101, 129, true);
        assert_eq!(reachability(&inventory, "h1"), REACHABLE);
        inventory.tick(at(130), true);
        assert_eq!(reachability(&inventory, "h1"), UNREACHABLE);
        inventory.heartbeat(at(230), &host("h2"));
        announce(&mut inventory, "a", "h2");
        assert_eq!(reachability(&inventory, "h2"), REACHABLE);
        inventory.is_read = true;
        inventory.replied(at(231), &host("h1"), at(231).wall);
        assert_eq!(reachability(&inventory, "h1"), REACHABLE);
        tick(&mut inventory, 232, 261, true);
        inventory.replied(at(261), &host("h1"), at(231).wall);
        assert_eq!(reachability(&inventory, "h1"), UNREACHABLE, "an old one says nothing");
        inventory.replied(at(261), &host("h3"), at(261).wall);
        announce(&mut inventory, "a", "h3");
        assert_eq!(reachability(&inventory, "h3"), Some(Reachability::Unknown), "it sends no heartbeats");
        announce(&mut inventory, "a", "h2");
        inventory.heartbeat(at(230), &host("h2"));
        // Who is never announced is forgotten.
        inventory.heartbeat(at(230), &host("nobody"));
        tick(&mut inventory, 231, 261, true);
        assert_eq!(inventory.signs.len(), 2);
    }
    #[test]
    fn progress_is_kept_of_hosts_that_are_there() {
        let mut inventory = Inventory::default();
        let told = |percent| Progress::new(7, percent, "unpacking");
        inventory.progressed(&host("h01"), &told(1).to_payload()).unwrap();
        assert!(inventory.progress().is_empty());
        announce(&mut inventory, "a", "h01");
        for percent in [10, 20] {
            inventory.progressed(&host("h01"), &told(percent).to_payload()).unwrap();
        }
        assert_eq!(inventory.progress().get(&host("h01")), Some(&told(20)));
        assert!(inventory.progressed(&host("h01"), b"20 %").is_err());
        say(&mut inventory, at(0), "a", "h01", b"", DateTime::UNIX_EPOCH);
        assert!(inventory.progress().is_empty());
    }
}
