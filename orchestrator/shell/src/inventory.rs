//! The inventory: announcements, heartbeats and versions, folded into the kernel's view.

mod announced;
mod surplus;

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use imbl::OrdMap;
use os_upgrade_kernel::{Clock, Reachability, Sealed, SeenHost, View};
use os_upgrade_protocol::{Announcement, ApplicationName, HostName, ParseError, Progress, Versions};

pub use self::announced::APPLICATIONS_MAX;
use self::announced::{Announced, AnnouncedHost, Recorded, Said};
use self::surplus::Surplus;
use crate::clock::Now;

/// A host that sends heartbeats is unreachable after this long without one.
pub const PRESENCE_TTL: Duration = Duration::from_secs(30);

/// The most time between two ticks that counts as listening: a paused process hears nothing.
const TICK_MAX: Duration = Duration::from_secs(1);

/// The versions that a host last published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostVersions {
    /// Package to version.
    pub versions: Versions,
    /// When the bus stored them.
    pub published_at: DateTime<Utc>,
}

/// Why a worker's message cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    /// The payload is invalid.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The announcement is about another host or application than its subject names.
    #[error("the announcement on the subject of {subject} is about {announced}")]
    OtherThanSubject {
        /// Application and host of the subject.
        subject: String,
        /// Application and host of the announcement.
        announced: String,
    },
    /// The host has announced as many other applications as count.
    #[error(
        "{application} does not count: {APPLICATIONS_MAX} applications are announced on the host already"
    )]
    TooManyApplications {
        /// The application that does not count.
        application: ApplicationName,
    },
}

/// Something that a worker reports about its host.
#[derive(Debug)]
pub enum WorkerMessage {
    /// An announcement. An empty payload deletes the earlier one.
    Announced {
        /// The application in the subject.
        application: ApplicationName,
        /// The host in the subject.
        host: HostName,
        /// The payload.
        payload: Bytes,
        /// Its sequence in the stream.
        sequence: u64,
        /// When the bus stored it.
        at: DateTime<Utc>,
    },
    /// A message in the stream of announcements whose subject names no application or no host.
    Stray {
        /// Its sequence in the stream.
        sequence: u64,
    },
    /// All announcements that were in the stream at the start have been delivered.
    AllAnnounced,
    /// Installed versions.
    Versions {
        /// The host in the subject.
        host: HostName,
        /// The payload.
        payload: Bytes,
        /// When the bus stored it.
        at: DateTime<Utc>,
    },
    /// A heartbeat.
    Heartbeat {
        /// The host in the subject.
        host: HostName,
        /// The worker's time when it was sent, if the heartbeat contains it.
        time: Option<DateTime<Utc>>,
    },
    /// Heartbeats and progress may have been lost on the way.
    ReportsLost,
    /// The progress of its command.
    Progress {
        /// The host in the subject.
        host: HostName,
        /// The payload.
        payload: Bytes,
    },
}

/// How many messages of workers were not used since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unused {
    /// Announcements, versions and progress that could not be read or did not count.
    pub messages: u64,
    /// Replies that changed nothing and are not journaled.
    pub replies: u64,
    /// Occasions on which heartbeats or progress may have been lost.
    pub losses: u64,
}

/// What this instance sees of the site.
#[derive(Debug, Default)]
pub struct Inventory {
    view: View,
    versions: OrdMap<HostName, HostVersions>,
    progress: OrdMap<HostName, Progress>,
    announced: HashMap<HostName, AnnouncedHost>,
    surplus: Surplus,
    unused: Unused,
    life_signs: HashMap<HostName, LifeSign>,
    /// The total time for which the bus has been connected.
    listened: Duration,
    ticked_at: Option<Duration>,
    /// The value of `listened` when the control stream had been read.
    control_read: Option<Duration>,
    is_read: bool,
}

/// The last sign of life of a host that sends heartbeats.
#[derive(Debug, Clone, Copy)]
struct LifeSign {
    /// When it arrived, on the monotonic clock; `None` if only an old announcement is known.
    last: Option<Duration>,
    /// The value of [`Inventory::listened`] at that time.
    listened: Duration,
}

impl LifeSign {
    /// The host's reachability now, given the current value of [`Inventory::listened`]. After an absence of the bus,
    /// hosts are awaited again.
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

    /// The last published versions of every host.
    pub fn versions(&self) -> &OrdMap<HostName, HostVersions> {
        &self.versions
    }

    /// The last reported progress of every host. Its command may have been answered since.
    pub fn progress(&self) -> &OrdMap<HostName, Progress> {
        &self.progress
    }

    /// Applies a worker's message.
    ///
    /// # Errors
    /// The message cannot be used; the host is the one in the subject.
    pub fn apply(&mut self, now: Now, message: WorkerMessage) -> Result<(), (HostName, InventoryError)> {
        let (host, result) = match message {
            WorkerMessage::Announced { application, host, payload, sequence, at } => {
                let result = self.announced(now, &application, &host, &payload, (sequence, at));
                (host, result)
            }
            WorkerMessage::Versions { host, payload, at } => {
                let result = self.versions_published(&host, &payload, at);
                (host, result)
            }
            WorkerMessage::Progress { host, payload } => {
                let result = self.progress_reported(&host, &payload);
                (host, result)
            }
            WorkerMessage::Heartbeat { host, .. } => {
                self.heartbeat(now, &host);
                return Ok(());
            }
            WorkerMessage::ReportsLost => {
                self.reports_lost(now);
                return Ok(());
            }
            WorkerMessage::Stray { sequence } => {
                self.unused.messages += 1;
                self.surplus.add(sequence);
                return Ok(());
            }
            // Later announcements are new.
            WorkerMessage::AllAnnounced => {
                self.is_read = true;
                return Ok(());
            }
        };
        result.map_err(|error| {
            self.unused.messages += 1;
            (host, error)
        })
    }

    /// How many messages of workers were not used.
    pub fn unused(&self) -> Unused {
        self.unused
    }

    /// Records that replies were ignored without a record in the journal.
    pub(crate) fn replies_ignored(&mut self, count: u64) {
        self.unused.replies += count;
    }

    /// The announcements that nobody needs in their stream.
    pub(crate) fn surplus(&mut self) -> &mut Surplus {
        &mut self.surplus
    }

    /// Whether all announcements from before the start have been read.
    pub fn is_read(&self) -> bool {
        self.is_read
    }

    /// Records what is known of the orchestrator's clock.
    pub fn clock_judged(&mut self, clock: Clock) {
        self.view.clock = clock;
    }

    /// Records whether the control stream has been read up to the fence of this leadership. From then on workers have
    /// [`PRESENCE_TTL`] to answer, and again after the bus was away or this process was paused.
    pub fn control_read(&mut self, has_read: bool) {
        let since = has_read.then(|| *self.control_read.get_or_insert(self.listened));
        self.control_read = since;
        self.view.has_read_control = has_read;
        self.view.has_awaited_replies =
            since.is_some_and(|since| self.listened.saturating_sub(since) >= PRESENCE_TTL);
    }

    /// Records why the current secrets do not allow slot requests; `None` if they do.
    pub fn secrets_seen(&mut self, sealed: Option<Sealed>) {
        self.view.sealed = sealed;
    }

    /// Applies an announcement, or the empty payload that deletes one; the bus `stored` it with this sequence, at this time.
    /// A recent announcement is a sign of life.
    fn announced(
        &mut self,
        now: Now,
        application: &ApplicationName,
        host: &HostName,
        payload: &[u8],
        stored: (u64, DateTime<Utc>),
    ) -> Result<(), InventoryError> {
        let (sequence, at) = stored;
        let (said, result) = match read_announcement(application, host, payload, at) {
            Ok(said) => (said, Ok(())),
            Err(error) => (Said::Unusable, Err(error)),
        };
        let is_announcement = matches!(said, Said::Announced(_));
        let is_new = is_announcement && self.is_new(now, at);
        match self.announced.entry(host.clone()).or_default().record(application, sequence, said) {
            Recorded::Counts => {}
            // The subjects differ where a name is spelled in another way, and then both messages are in the stream.
            Recorded::Replaces { sequence } => self.surplus.add(sequence),
            Recorded::Surplus => {
                self.surplus.add(sequence);
                self.show_refused(host);
                result?;
                let refused = InventoryError::TooManyApplications { application: application.clone() };
                return if is_announcement { Err(refused) } else { Ok(()) };
            }
        }
        if result.is_ok() {
            self.refresh_host(now, host, is_new);
        }
        result
    }

    /// Records a host's versions; the bus stored them `at`. On an error about one of them the others are recorded.
    fn versions_published(
        &mut self,
        host: &HostName,
        payload: &[u8],
        at: DateTime<Utc>,
    ) -> Result<(), InventoryError> {
        let (versions, fault) = Versions::parse_plain(payload)?;
        self.versions.insert(host.clone(), HostVersions { versions, published_at: at });
        fault.map_or(Ok(()), |fault| Err(fault.into()))
    }

    /// Records a host's progress. Anybody can send it, even for hosts that were never announced; those are ignored.
    fn progress_reported(&mut self, host: &HostName, payload: &[u8]) -> Result<(), InventoryError> {
        let progress = Progress::parse(payload)?;
        if self.view.hosts.contains_key(host) {
            self.progress.insert(host.clone(), progress);
        }
        Ok(())
    }

    /// Records a host's reply, which the bus stored `at`. If it is recent and the host sends heartbeats, it counts as
    /// one: after a reboot the first heartbeat may arrive later than the reply.
    pub fn replied(&mut self, now: Now, host: &HostName, at: DateTime<Utc>) {
        if self.is_new(now, at) && self.life_signs.contains_key(host) {
            self.heartbeat(now, host);
        }
    }

    fn heartbeat(&mut self, now: Now, host: &HostName) {
        self.life_signs.insert(host.clone(), self.life_sign(now));
        self.set_reachability(host, Reachability::Reachable);
    }

    /// Heartbeats may have been lost, so the silence of hosts up to now proves nothing: they are awaited anew. Hosts that
    /// were unreachable before stay so.
    fn reports_lost(&mut self, now: Now) {
        self.unused.losses += 1;
        let listened = self.listened;
        for sign in self.life_signs.values_mut() {
            if sign.reachability(now, listened) != Reachability::Unreachable {
                sign.listened = listened;
            }
        }
    }

    /// Updates reachability. While the bus is away, silence proves nothing.
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
        let mut changed = Vec::new();
        let (view, listened) = (&self.view, self.listened);
        self.life_signs.retain(|host, last| {
            let reachability = last.reachability(now, listened);
            let known = view.hosts.get(host).map(|seen| seen.reachability);
            if known.is_some_and(|known| known != reachability) {
                changed.push((host.clone(), reachability));
            }
            // Anybody can send heartbeats for hosts that were never announced; those are forgotten again.
            known.is_some() || reachability == Reachability::Reachable
        });
        for (host, reachability) in changed {
            self.set_reachability(&host, reachability);
        }
    }

    /// Whether a message that the bus stored `at` is recent.
    fn is_new(&self, now: Now, at: DateTime<Utc>) -> bool {
        self.is_read && (now.wall - at).abs() < TimeDelta::from_std(PRESENCE_TTL).expect("it is short")
    }

    fn life_sign(&self, now: Now) -> LifeSign {
        LifeSign { last: Some(now.monotonic), listened: self.listened }
    }

    /// The reachability of a host that has announced itself. `is_new`: the announcement is a sign of life.
    fn reachability(
        &mut self,
        now: Now,
        host: &HostName,
        sends_heartbeats: bool,
        is_new: bool,
    ) -> Reachability {
        let life_sign = self.life_sign(now);
        let last = match self.life_signs.get_mut(host) {
            Some(last) if is_new => {
                *last = life_sign;
                life_sign
            }
            Some(last) => *last,
            None if sends_heartbeats => {
                let last = if is_new { life_sign } else { LifeSign { last: None, ..life_sign } };
                self.life_signs.insert(host.clone(), last);
                last
            }
            None => return Reachability::Unknown,
        };
        last.reachability(now, self.listened)
    }

    fn set_reachability(&mut self, host: &HostName, reachability: Reachability) {
        let differs = self.view.hosts.get(host).is_some_and(|seen| seen.reachability != reachability);
        if differs && let Some(seen) = self.view.hosts.get_mut(host) {
            seen.reachability = reachability;
        }
    }

    fn refresh_host(&mut self, now: Now, host: &HostName, is_new: bool) {
        match self.announced.get(host).and_then(AnnouncedHost::seen) {
            None => {
                self.view.hosts.remove(host);
                self.progress.remove(host);
                self.view.left.insert(host.clone());
            }
            Some((mut seen, sends_heartbeats)) => {
                self.view.left.remove(host);
                seen.reachability = self.reachability(now, host, sends_heartbeats, is_new);
                self.view.hosts.insert(host.clone(), seen);
            }
        }
    }

    fn show_refused(&mut self, host: &HostName) {
        let refused = self.announced.get(host).map(AnnouncedHost::refused);
        if let (Some(refused), Some(seen)) = (refused, self.view.hosts.get(host))
            && seen.refused.len() != refused.len()
        {
            let seen = SeenHost { refused: refused.clone(), ..seen.clone() };
            self.view.hosts.insert(host.clone(), seen);
        }
    }
}

/// Reads an announcement on the subject of `application` and `host`, which the bus stored `at`.
fn read_announcement(
    application: &ApplicationName,
    host: &HostName,
    payload: &[u8],
    at: DateTime<Utc>,
) -> Result<Said, InventoryError> {
    if payload.is_empty() {
        return Ok(Said::Withdrawn);
    }
    let announcement = Announcement::parse(payload)?;
    if announcement.host != *host || announcement.application != *application {
        return Err(InventoryError::OtherThanSubject {
            subject: format!("{application} on {host}"),
            announced: format!("{} on {}", announcement.application, announcement.host),
        });
    }
    let clock_skew_secs = announcement.time.map(|time| (time - at).num_seconds());
    Ok(Said::Announced(Box::new(Announced { announcement, clock_skew_secs, at })))
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

    /// Long after the announcements made at the epoch.
    const LATER: DateTime<Utc> = DateTime::from_timestamp(1_000_000, 0).unwrap();

    fn announce(inventory: &mut Inventory, app: &str, name: &str) {
        let announcement = Announcement::new(host(name), application(app));
        receive(inventory, at(0), app, name, &announcement.to_payload(), DateTime::UNIX_EPOCH);
    }

    fn receive(
        inventory: &mut Inventory,
        now: Now,
        app: &str,
        name: &str,
        payload: &[u8],
        at: DateTime<Utc>,
    ) {
        inventory.announced(now, &application(app), &host(name), payload, (1, at)).unwrap();
    }

    /// Announces a host that sends heartbeats. The announcement is read at `secs` and is `age` old by then.
    fn announce_heartbeats(inventory: &mut Inventory, name: &str, secs: u64, age: TimeDelta) {
        let announcement =
            Announcement { heartbeats: true, ..Announcement::new(host(name), application("a")) };
        receive(inventory, at(secs), "a", name, &announcement.to_payload(), at(secs).wall - age);
    }

    /// Ticks every second from `from` to `to`.
    fn tick(inventory: &mut Inventory, from: u64, to: u64, connected: bool) {
        (from..=to).for_each(|secs| inventory.tick(at(secs), connected));
    }

    fn reachability(inventory: &Inventory, name: &str) -> Option<Reachability> {
        inventory.view().hosts.get(&host(name)).map(|seen| seen.reachability)
    }

    #[test]
    fn announcements_are_per_application() {
        let mut inventory = Inventory::default();
        announce(&mut inventory, "a", "h1");
        announce(&mut inventory, "b", "h1");
        announce(&mut inventory, "a", "h10");
        assert_eq!(inventory.view().hosts[&host("h1")].applications.len(), 2);
        assert_eq!(inventory.view().hosts[&host("h10")].applications.len(), 1);
        receive(&mut inventory, at(0), "a", "h1", b"", DateTime::UNIX_EPOCH);
        assert_eq!(inventory.view().hosts[&host("h1")].applications.len(), 1);
        receive(&mut inventory, at(0), "b", "h1", b"", DateTime::UNIX_EPOCH);
        assert_eq!(inventory.view().hosts.get(&host("h1")), None);
    }

    #[test]
    fn announcement_for_another_host_is_refused() {
        let mut inventory = Inventory::default();
        let payload = Announcement::new(host("h2"), application("a")).to_payload();
        let stored = (1, DateTime::UNIX_EPOCH);
        let result = inventory.announced(at(0), &application("a"), &host("h1"), &payload, stored);
        let error = result.unwrap_err();
        assert_eq!(error.to_string(), "the announcement on the subject of a on h1 is about a on h2");
        assert!(inventory.view().hosts.is_empty());
    }

    #[test]
    fn workers_have_time_to_answer() {
        let mut inventory = Inventory::default();
        let mut tick_from = |from: u64, to: u64, connected: bool| {
            let heard = (from..=to).find(|secs| {
                inventory.tick(at(*secs), connected);
                inventory.control_read(connected);
                inventory.view().has_awaited_replies
            });
            (heard, inventory.view().has_awaited_replies)
        };
        assert_eq!(tick_from(0, 60, true), (Some(30), true));
        // The bus is away for a moment.
        assert_eq!(tick_from(61, 61, false), (None, false));
        assert_eq!(tick_from(62, 120, true), (Some(92), true));
        // This process was paused for an hour, and no answer has arrived since.
        assert_eq!(tick_from(3_720, 3_780, true), (Some(3_750), true));
        assert!(inventory.view().has_read_control);
        inventory.control_read(false);
        let view = inventory.view();
        assert!(!view.has_awaited_replies && !view.has_read_control, "another leadership begins");
        inventory.control_read(true);
        let view = inventory.view();
        assert!(!view.has_awaited_replies && view.has_read_control, "and has read what was there");
    }

    const AWAITED: Option<Reachability> = Some(Reachability::Awaited);
    const REACHABLE: Option<Reachability> = Some(Reachability::Reachable);
    const UNREACHABLE: Option<Reachability> = Some(Reachability::Unreachable);

    #[test]
    fn hosts_with_heartbeats_are_awaited() {
        let mut inventory = Inventory::default();
        let long_ago = TimeDelta::hours(8);
        for name in ["h1", "h2"] {
            announce_heartbeats(&mut inventory, name, 0, long_ago);
        }
        inventory.is_read = true;
        let both = |inventory: &Inventory| ["h1", "h2"].map(|name| reachability(inventory, name));
        // Time in which the bus is away or the process is paused does not count.
        tick(&mut inventory, 1_000, 1_100, false);
        tick(&mut inventory, 1_200, 1_228, true);
        assert_eq!(both(&inventory), [AWAITED; 2]);
        inventory.heartbeat(at(1_228), &host("h1"));
        inventory.tick(at(1_229), true);
        assert_eq!(both(&inventory), [REACHABLE, UNREACHABLE]);
        // An old announcement is no sign of life; a recent one is.
        announce_heartbeats(&mut inventory, "h2", 1_230, long_ago);
        assert_eq!(both(&inventory), [REACHABLE, UNREACHABLE]);
        announce_heartbeats(&mut inventory, "h2", 1_231, TimeDelta::milliseconds(40));
        assert_eq!(both(&inventory), [REACHABLE, REACHABLE]);
        tick(&mut inventory, 1_232, 1_261, true);
        assert_eq!(both(&inventory), [UNREACHABLE; 2]);
    }

    #[test]
    fn reannouncing_does_not_prolong_awaiting() {
        let mut inventory = Inventory::default();
        // Even the host of a recent announcement may have been turned off since.
        announce_heartbeats(&mut inventory, "h1", 0, TimeDelta::seconds(1));
        assert_eq!(reachability(&inventory, "h1"), AWAITED);
        inventory.is_read = true;
        for secs in 1..=40 {
            if secs % 20 == 0 {
                receive(&mut inventory, at(secs), "a", "h1", b"", at(secs).wall);
                announce_heartbeats(&mut inventory, "h1", secs, TimeDelta::hours(8));
            }
            // The bus disconnects now and then, too.
            inventory.tick(at(secs), secs % 10 != 0);
        }
        assert_eq!(reachability(&inventory, "h1"), UNREACHABLE);
    }

    #[test]
    fn hosts_are_awaited_after_an_absence_of_the_bus() {
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
        assert_eq!(reachability(&inventory, "h1"), UNREACHABLE, "only silence on a connected bus counts");
    }

    #[test]
    fn silence_proves_nothing_while_heartbeats_are_lost() {
        let mut inventory = Inventory::default();
        for name in ["h1", "h2"] {
            announce(&mut inventory, "a", name);
        }
        inventory.tick(at(100), true);
        inventory.heartbeat(at(100), &host("h1"));
        tick(&mut inventory, 101, 131, true);
        assert_eq!(reachability(&inventory, "h1"), UNREACHABLE);
        inventory.heartbeat(at(131), &host("h2"));
        for secs in 132..300 {
            inventory.apply(at(secs), WorkerMessage::ReportsLost).unwrap();
            inventory.tick(at(secs), true);
        }
        assert_eq!(reachability(&inventory, "h2"), AWAITED);
        assert_eq!(reachability(&inventory, "h1"), UNREACHABLE, "it was before");
        tick(&mut inventory, 300, 327, true);
        assert_eq!(reachability(&inventory, "h2"), AWAITED);
        tick(&mut inventory, 328, 329, true);
        assert_eq!(reachability(&inventory, "h2"), UNREACHABLE);
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
        assert_eq!(reachability(&inventory, "h1"), UNREACHABLE, "an old reply proves nothing");
        inventory.replied(at(261), &host("h3"), at(261).wall);
        announce(&mut inventory, "a", "h3");
        assert_eq!(reachability(&inventory, "h3"), Some(Reachability::Unknown), "it sends no heartbeats");
        announce(&mut inventory, "a", "h2");
        inventory.heartbeat(at(230), &host("h2"));
        // A host that is never announced is forgotten.
        inventory.heartbeat(at(230), &host("nobody"));
        tick(&mut inventory, 231, 261, true);
        assert_eq!(inventory.life_signs.len(), 2);
    }

    #[test]
    fn progress_is_kept_for_announced_hosts() {
        let mut inventory = Inventory::default();
        let progress = |percent| Progress::new(7, percent, "unpacking");
        inventory.progress_reported(&host("h01"), &progress(1).to_payload()).unwrap();
        assert!(inventory.progress().is_empty());
        announce(&mut inventory, "a", "h01");
        for percent in [10, 20] {
            inventory.progress_reported(&host("h01"), &progress(percent).to_payload()).unwrap();
        }
        assert_eq!(inventory.progress().get(&host("h01")), Some(&progress(20)));
        assert!(inventory.progress_reported(&host("h01"), b"20 %").is_err());
        receive(&mut inventory, at(0), "a", "h01", b"", DateTime::UNIX_EPOCH);
        assert!(inventory.progress().is_empty());
    }
}
