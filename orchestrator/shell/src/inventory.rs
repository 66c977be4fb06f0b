//! The inventory: announcements, heartbeats and versions, folded into the kernel's view.

mod agents;
mod announced;
mod surplus;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use imbl::OrdMap;
use os_upgrade_calendar::Zones;
use os_upgrade_kernel::{Clock, Poll, Reachability, Sealed, SeenHost, SeenNode, Silence, State, View};
use os_upgrade_protocol::applied::apply_error;
use os_upgrade_protocol::{
    Announcement, ApplicationName, Applied, HostName, LongToken, ParseError, Progress, UnitReport, Versions,
};
use os_upgrade_provider_rules::ProviderName;

use self::agents::Agents;
pub use self::announced::APPLICATIONS_MAX;
use self::announced::{Announced, AnnouncedHost, Recorded, Said};
use self::surplus::Surplus;
use crate::clock::Now;

/// A host that sends heartbeats is unreachable after this long without one.
pub const PRESENCE_TTL: Duration = Duration::from_secs(30);

/// How long a host may be awaited in all without a heartbeat, though signs of life come or heartbeats may have been lost:
/// a run that starts automatically waits for it.
const AWAITED_MAX: Duration = Duration::from_mins(5);

/// How long what the Kubernetes cluster said of its nodes counts. It is asked several times within.
pub const NODES_TTL: Duration = Duration::from_mins(1);

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
    /// The host's name is too long.
    #[error("the name of the host cannot be used: {0}")]
    Name(LongToken),
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
        payload: Bytes,
        /// When the bus stored it.
        at: DateTime<Utc>,
    },
    /// What the host has of what it is to have. An empty payload deletes an earlier report.
    Applied {
        /// The host in the subject.
        host: HostName,
        payload: Bytes,
    },
    Heartbeat {
        /// The host in the subject.
        host: HostName,
        /// The worker's time when it was sent, if the heartbeat contains it.
        time: Option<DateTime<Utc>>,
        /// Whether it is that of the agent, which runs units there.
        units: bool,
    },
    /// Heartbeats and progress may have been lost on the way.
    ReportsLost,
    /// The progress of its command.
    Progress {
        /// The host in the subject.
        host: HostName,
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
    agents: Agents,
    /// The total time for which the bus has been connected.
    listened: Duration,
    ticked_at: Option<Duration>,
    /// The value of `listened` when the control stream had been read.
    control_read: Option<Duration>,
    is_read: bool,
    /// When the cluster was last asked for its nodes, on the monotonic clock.
    nodes_asked: Duration,
}

/// What was heard last of a host that sends heartbeats.
#[derive(Debug, Clone, Copy)]
struct LifeSign {
    /// When its last sign of life arrived, on the monotonic clock; `None` before its first heartbeat.
    last: Option<Duration>,
    /// The value of [`Inventory::listened`] from which on its silence counts.
    listened: Duration,
    /// The value of [`Inventory::listened`] when it last counted as reachable, or became known.
    heard: Duration,
}

impl LifeSign {
    /// A sign of life that is no heartbeat. It counts as one once a heartbeat has been heard: the first must be one, because
    /// it brings the host's time, without which a wrong clock could start a run. Until then the host is awaited, but not
    /// for ever.
    fn shown_alive(&mut self, now: Now, listened: Duration) {
        if let Some(last) = &mut self.last {
            *last = now.monotonic;
            self.heard = listened;
        }
        self.listen_anew(listened);
    }

    /// The silence so far does not count, unless it has lasted too long.
    fn listen_anew(&mut self, listened: Duration) {
        if listened.saturating_sub(self.heard) < AWAITED_MAX {
            self.listened = listened;
        }
    }

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

impl LifeSign {
    /// The silence of a host whose reachability has become `reachability` just now.
    fn silence(self, now: Now, reachability: Reachability) -> Option<Silence> {
        let heard = |last| now.wall - now.monotonic.saturating_sub(last);
        let silence = || Silence { since: now.wall, heard_at: self.last.map(heard) };
        (reachability == Reachability::Unreachable).then(silence)
    }
}

impl Inventory {
    /// An inventory that has seen nothing but the rules of time zones.
    pub fn new(zones: Zones) -> Self {
        Self { view: View { zones, ..View::default() }, ..Self::default() }
    }

    /// The rules of time zones are others from `at` on.
    pub fn zones_replaced(&mut self, zones: Zones, at: DateTime<Utc>) {
        if zones != self.view.zones {
            self.view.zones = zones;
            self.view.zones_changed = Some(at);
        }
    }

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
            WorkerMessage::Applied { host, payload } => {
                let result = self.applied_reported(&host, &payload);
                (host, result)
            }
            WorkerMessage::Progress { host, payload } => {
                let result = self.progress_reported(&host, &payload);
                (host, result)
            }
            WorkerMessage::Heartbeat { host, time: _, units } => {
                self.heartbeat(now, &host);
                if units {
                    self.agent_heard(&host);
                }
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

    /// Records what providers said of hosts; absent if this instance does not lead.
    pub(crate) fn polled(&mut self, polls: Option<OrdMap<ProviderName, OrdMap<HostName, Poll>>>) {
        self.view.polls = polls;
    }

    /// Records what the Kubernetes cluster said when it was asked `at` this monotonic time. It counts for [`NODES_TTL`] from
    /// then on, however long the answer was on its way.
    pub fn cluster_seen(&mut self, now: Now, at: Duration, nodes: OrdMap<HostName, SeenNode>) -> bool {
        if at < self.nodes_asked || now.monotonic.saturating_sub(at) >= NODES_TTL {
            return false;
        }
        self.nodes_asked = at;
        // Equal ones stay the same map, which is cheap to compare.
        if self.view.nodes.as_ref() != Some(&nodes) {
            self.view.nodes = Some(nodes);
        }
        true
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
        host.check_length().map_err(InventoryError::Name)?;
        let (sequence, at) = stored;
        let (said, result) = match read_announcement(application, host, payload, at) {
            Ok(said) => (said, Ok(())),
            Err(error) => (Said::Unusable, Err(error)),
        };
        let is_announcement = matches!(said, Said::Announced(_));
        let is_new = is_announcement && self.is_new(now, at);
        match self.announced.entry(host.clone()).or_default().record(application, sequence, said) {
            Recorded::Counts => {}
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

    /// Records a host's versions; the bus stored them `at`. On an error about one of them the others are recorded. An empty
    /// payload says that the host has been removed.
    fn versions_published(
        &mut self,
        host: &HostName,
        payload: &[u8],
        at: DateTime<Utc>,
    ) -> Result<(), InventoryError> {
        if payload.is_empty() {
            self.versions.remove(host);
            return Ok(());
        }
        let (versions, fault) = Versions::parse_plain(payload)?;
        self.versions.insert(host.clone(), HostVersions { versions, published_at: at });
        fault.map_or(Ok(()), |fault| Err(fault.into()))
    }

    /// Records what a host has of what it is to have.
    fn applied_reported(&mut self, host: &HostName, payload: &[u8]) -> Result<(), InventoryError> {
        if payload.is_empty() {
            self.view.applied.remove(host);
            return Ok(());
        }
        let mut applied = Applied::parse(payload)?;
        // A worker that is not ours may say more, and on several lines.
        for item in &mut applied.items {
            item.error = item.error.take().map(|error| apply_error(&error));
            item.unit = item.unit.take().map(UnitReport::bounded);
        }
        self.view.applied.insert(host.clone(), Arc::new(applied));
        Ok(())
    }

    /// Records a host's progress. Anybody can send it, even for hosts that were never announced; those are ignored.
    fn progress_reported(&mut self, host: &HostName, payload: &[u8]) -> Result<(), InventoryError> {
        let progress = Progress::parse(payload)?;
        if self.view.hosts.contains_key(host) {
            self.progress.insert(host.clone(), progress);
        }
        Ok(())
    }

    /// Records a host's reply, which the bus stored `at`. If it is recent and the host sends heartbeats, it is a sign of
    /// life: after a reboot the first heartbeat may arrive later than the reply.
    pub fn replied(&mut self, now: Now, host: &HostName, at: DateTime<Utc>) {
        let (is_new, listened) = (self.is_new(now, at), self.listened);
        let Some(sign) = self.life_signs.get_mut(host).filter(|_| is_new) else { return };
        sign.shown_alive(now, listened);
        let sign = *sign;
        self.set_reachability(now, host, sign.reachability(now, listened), sign);
    }

    fn heartbeat(&mut self, now: Now, host: &HostName) {
        let listened = self.listened;
        let sign = LifeSign { last: Some(now.monotonic), listened, heard: listened };
        self.life_signs.insert(host.clone(), sign);
        self.set_reachability(now, host, Reachability::Reachable, sign);
    }

    /// A heartbeat of an agent. Anybody can send some for hosts that were never announced; those are ignored.
    fn agent_heard(&mut self, host: &HostName) {
        if is_known(&self.view, host) {
            self.agents.heard(host, self.listened);
            self.agents.show_one(host, &mut self.view.agents, self.listened);
        }
    }

    /// This instance begins to lead: from here on the silence of agents is counted.
    pub(crate) fn leadership_begins(&mut self) {
        self.agents.leadership_begins(self.listened);
        self.show_agents();
    }

    /// The leader has committed a record, which led from `before` to `after`: where the grace of a host has become shorter, as at the release of
    /// its slot, the silence of its agent is counted from here on.
    pub(crate) fn graces_changed(&mut self, before: &State, after: &State) {
        let shorter = before.slots.keys().filter(|host| after.agent_grace(host) < before.agent_grace(host));
        for host in shorter {
            self.agents.listen_anew(host, self.listened);
            self.agents.show_one(host, &mut self.view.agents, self.listened);
        }
    }

    fn show_agents(&mut self) {
        self.agents.show(&mut self.view.agents, self.listened);
        self.view.agents_awaited_for = self.agents.listened_for(self.listened);
    }

    /// Heartbeats may have been lost, so the silence of hosts up to now proves nothing: they are awaited anew, up to
    /// [`AWAITED_MAX`]. Hosts that were unreachable before stay so.
    fn reports_lost(&mut self, now: Now) {
        self.unused.losses += 1;
        let listened = self.listened;
        for sign in self.life_signs.values_mut() {
            if sign.reachability(now, listened) != Reachability::Unreachable {
                sign.listen_anew(listened);
            }
        }
        self.agents.reports_lost(listened);
    }

    /// Updates reachability, and forgets nodes that have not been seen of late. While the bus is away, silence proves nothing.
    pub fn tick(&mut self, now: Now, connected: bool) {
        if now.monotonic.saturating_sub(self.nodes_asked) >= NODES_TTL {
            self.view.nodes = None;
        }
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
                changed.push((host.clone(), reachability, *last));
            }
            // Anybody can send heartbeats for hosts that were never announced; those are forgotten again.
            known.is_some() || reachability == Reachability::Reachable
        });
        for (host, reachability, sign) in changed {
            self.set_reachability(now, &host, reachability, sign);
        }
        self.agents.retain(|host| is_known(&self.view, host));
        self.show_agents();
    }

    /// Whether a message that the bus stored `at` is recent.
    fn is_new(&self, now: Now, at: DateTime<Utc>) -> bool {
        self.is_read && (now.wall - at).abs() < TimeDelta::from_std(PRESENCE_TTL).expect("it is short")
    }

    /// The reachability of a host that has announced itself. `is_new`: the announcement is a sign of life.
    fn reachability(
        &mut self,
        now: Now,
        host: &HostName,
        sends_heartbeats: bool,
        is_new: bool,
    ) -> Reachability {
        let listened = self.listened;
        if sends_heartbeats && !self.life_signs.contains_key(host) {
            self.life_signs.insert(host.clone(), LifeSign { last: None, listened, heard: listened });
        }
        let Some(sign) = self.life_signs.get_mut(host) else { return Reachability::Unknown };
        if is_new {
            sign.shown_alive(now, listened);
        }
        sign.reachability(now, listened)
    }

    fn set_reachability(&mut self, now: Now, host: &HostName, reachability: Reachability, sign: LifeSign) {
        let differs = self.view.hosts.get(host).is_some_and(|seen| seen.reachability != reachability);
        if differs && let Some(seen) = self.view.hosts.get_mut(host) {
            seen.reachability = reachability;
            seen.silence = sign.silence(now, reachability);
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
                let begun = || self.life_signs.get(host)?.silence(now, seen.reachability);
                // It goes on if it was silent before.
                let earlier = self.view.hosts.get(host).and_then(|earlier| earlier.silence);
                seen.silence = begun().map(|begun| earlier.unwrap_or(begun));
                if seen.runs_units.is_some() {
                    self.agents.announced(host, self.listened);
                    self.agents.show_one(host, &mut self.view.agents, self.listened);
                }
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

/// Whether a worker of `host` has ever announced itself, as far as this instance has read. A host that has left may still have an agent.
fn is_known(view: &View, host: &HostName) -> bool {
    view.hosts.contains_key(host) || view.left.contains(host)
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
mod tests;
