//! The agent of a host that runs units, in this process: it speaks to the bus as a real one does, and plays systemd in memory.

mod systemd;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::{Client, jetstream};
use chrono::Utc;
use futures::StreamExt as _;
use os_upgrade_protocol::{
    Announcement, ApplicationName, Applied, Heartbeat, HostName, ItemId, ItemKind, Manifest, ManifestRefusal,
    Revision, UnitItem, subject,
};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::host::APPLICATION;

use self::systemd::{Systemd, Wanted};

pub use self::systemd::{Step, UnitLog};

/// Between two heartbeats, and between two looks at the manifest. Agents send one each five seconds; this one is heard sooner.
const INTERVAL: Duration = Duration::from_secs(1);

/// The machine id of the host `name`, unless a test chooses another one.
pub fn machine_id(name: &str) -> String {
    let id = name.bytes().fold(0_u128, |id, byte| (id << 8) | u128::from(byte));
    format!("{id:032x}")
}

/// What the host remembers, and what it is.
#[derive(Debug)]
struct Memory {
    machine_id: String,
    boot: u32,
    is_silent: bool,
    last_heartbeat: Option<Instant>,
    /// The site and the revision of the accepted manifest.
    accepted: Option<(String, Revision)>,
    refused: Option<ManifestRefusal>,
    /// The units of that manifest, which need not be read again.
    items: BTreeMap<ItemId, UnitItem>,
    systemd: Systemd,
    /// The last report that the stream has.
    reported: Option<Applied>,
}

impl Memory {
    /// Follows the manifest, or says why not. A host that is cut off has not read it.
    fn consider(&mut self, manifest: &Manifest, wanted: &Wanted) {
        if self.is_silent {
            return;
        }
        self.refused = match &self.accepted {
            Some((site, _)) if *site != manifest.site => Some(ManifestRefusal::OtherSite),
            Some((_, revision)) if *revision > manifest.revision => Some(ManifestRefusal::Older),
            Some(_) | None => None,
        };
        if self.refused.is_none() {
            self.accepted = Some((manifest.site.clone(), manifest.revision));
            self.items = wanted.values().cloned().collect();
            self.systemd.follow(wanted);
        }
    }

    /// What the host reports; absent before it has accepted a manifest.
    fn report(&self) -> Option<Applied> {
        let (site, revision) = self.accepted.clone()?;
        Some(Applied { site, revision, items: self.systemd.report(), refused: self.refused })
    }
}

#[derive(Debug)]
struct Host {
    name: HostName,
    memory: Mutex<Memory>,
    /// A test has changed something.
    changed: Notify,
}

/// An agent. It ends when it is dropped.
#[derive(Debug)]
pub struct UnitAgent {
    host: Arc<Host>,
    task: Mutex<JoinHandle<()>>,
}

impl UnitAgent {
    /// Starts the agent of the host `name` at the nats-server at `url`. What its systemd does is written to `log`.
    pub fn start(url: &str, name: &str, log: &UnitLog) -> Self {
        Self::start_as(url, name, &machine_id(name), log)
    }

    /// The same on the machine with this id.
    pub fn start_as(url: &str, name: &str, machine_id: &str, log: &UnitLog) -> Self {
        let memory = Memory {
            machine_id: machine_id.to_owned(),
            boot: 1,
            is_silent: false,
            last_heartbeat: None,
            accepted: None,
            refused: None,
            items: BTreeMap::new(),
            systemd: Systemd::new(name, log),
            reported: None,
        };
        let name = HostName::new(name).unwrap();
        let host = Arc::new(Host { name, memory: Mutex::new(memory), changed: Notify::new() });
        let task = tokio::spawn(Arc::clone(&host).serve(url.to_owned()));
        Self { host, task: Mutex::new(task) }
    }

    /// Goes on at another nats-server, with what it has and remembers.
    pub fn move_to(&self, url: &str) {
        self.host.memory().reported = None;
        let task = tokio::spawn(Arc::clone(&self.host).serve(url.to_owned()));
        std::mem::replace(&mut *self.task.lock().unwrap_or_else(PoisonError::into_inner), task).abort();
    }

    /// The name of the host.
    pub fn name(&self) -> String {
        self.host.name.to_string()
    }

    /// The id of the machine.
    pub fn machine_id(&self) -> String {
        self.host.memory().machine_id.clone()
    }

    /// Becomes the machine with this id, as a host does that was set up anew.
    pub fn become_machine(&self, machine_id: &str) {
        machine_id.clone_into(&mut self.host.memory().machine_id);
        self.host.changed.notify_one();
    }

    /// Is cut off: it says and hears nothing, and what runs there goes on running. Returns when it sent its last heartbeat.
    pub fn fall_silent(&self) -> Instant {
        let mut memory = self.host.memory();
        memory.is_silent = true;
        memory.last_heartbeat.unwrap()
    }

    /// Is connected again.
    pub fn speak(&self) {
        self.host.memory().is_silent = false;
        self.host.changed.notify_one();
    }

    /// Its systemd does not do this with the unit any more, until it is [released](Self::release).
    pub fn hold(&self, step: Step, unit: &str) {
        self.host.memory().systemd.hold(step, unit);
    }

    /// Its systemd may do this with the unit.
    pub fn release(&self, step: Step, unit: &str) {
        self.host.memory().systemd.release(step, unit);
        self.host.changed.notify_one();
    }

    /// Reboots the host: all units stop, and those of its manifest are loaded and started again.
    pub fn reboot(&self) {
        let mut memory = self.host.memory();
        memory.boot += 1;
        memory.systemd.reboot();
        self.host.changed.notify_one();
    }

    /// Whether the unit runs there.
    pub fn is_running(&self, unit: &str) -> bool {
        self.host.memory().systemd.is_running(unit)
    }

    /// The manifest that its last stored report follows.
    pub fn reported(&self) -> Option<Revision> {
        self.host.memory().reported.as_ref().map(|report| report.revision)
    }
}

impl Drop for UnitAgent {
    fn drop(&mut self) {
        self.task.lock().unwrap_or_else(PoisonError::into_inner).abort();
    }
}

impl Host {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(self: Arc<Self>, url: String) {
        let client = async_nats::connect(url).await.unwrap();
        tokio::join!(self.send_heartbeats(&client), self.run_units(&client));
    }

    async fn send_heartbeats(&self, client: &Client) {
        let mut interval = tokio::time::interval(INTERVAL);
        loop {
            interval.tick().await;
            {
                let mut memory = self.memory();
                if memory.is_silent {
                    continue;
                }
                // Before it is sent: it cannot be heard earlier.
                memory.last_heartbeat = Some(Instant::now());
            }
            let heartbeat = Heartbeat { time: Some(Utc::now()), units: true };
            client.publish(subject::presence(&self.name), heartbeat.to_payload().into()).await.unwrap();
        }
    }

    /// Looks at the manifest at each hint, each change of the test's, and each second.
    async fn run_units(&self, client: &Client) {
        let jetstream = jetstream::new(client.clone());
        let mut hints = client.subscribe(subject::desired_hint(&self.name)).await.unwrap();
        let mut interval = tokio::time::interval(INTERVAL);
        let mut announced = None;
        loop {
            tokio::select! {
                _ = interval.tick() => {}
                _ = hints.next() => {}
                () = self.changed.notified() => {}
            }
            if self.memory().is_silent {
                continue;
            }
            let announcement = self.announcement();
            if announced.as_ref() != Some(&announcement) {
                let to = subject::worker(&announcement.application, &announcement.host);
                if store(&jetstream, to, announcement.to_payload()).await.is_some() {
                    announced = Some(announcement);
                }
            }
            self.follow(client).await;
            self.report(&jetstream).await;
        }
    }

    fn announcement(&self) -> Announcement {
        let memory = self.memory();
        let application = ApplicationName::new(APPLICATION).unwrap();
        Announcement {
            machine_id: Some(memory.machine_id.clone()),
            boot_id: Some(format!("boot-{}", memory.boot)),
            addresses: vec!["192.0.2.7".to_owned()],
            heartbeats: true,
            runs_units: true,
            ..Announcement::new(self.name.clone(), application)
        }
    }

    /// Reads the manifest and the units that it names, and does what it says. Nothing is done if one of them cannot be read: there is a newer
    /// manifest then, or no bus.
    async fn follow(&self, client: &Client) -> Option<()> {
        let manifest = desired(client, &subject::desired_manifest(&self.name)).await?;
        let manifest = Manifest::parse(&manifest).unwrap();
        let mut wanted = Wanted::new();
        for item in manifest.items.iter().filter(|item| item.kind == ItemKind::Unit) {
            let known = self.memory().items.get(&item.id).cloned();
            let unit = if let Some(unit) = known {
                unit
            } else {
                let content = desired(client, &subject::desired_item(&self.name, &item.id)).await?;
                UnitItem::parse(&content).unwrap()
            };
            assert_eq!(unit.name, item.name, "the item is of another unit than the manifest says");
            wanted.insert(item.name.clone(), (item.id.clone(), unit));
        }
        self.memory().consider(&manifest, &wanted);
        Some(())
    }

    async fn report(&self, jetstream: &jetstream::Context) {
        let report = {
            let memory = self.memory();
            memory.report().filter(|report| !memory.is_silent && memory.reported.as_ref() != Some(report))
        };
        let Some(report) = report else { return };
        if store(jetstream, subject::applied(&self.name), report.to_payload()).await.is_some() {
            self.memory().reported = Some(report);
        }
    }
}

/// Publishes a message that a stream must store. Nothing is said of one that it did not.
async fn store(jetstream: &jetstream::Context, to: String, payload: Vec<u8>) -> Option<()> {
    jetstream.publish(to, payload.into()).await.ok()?.await.ok()?;
    Some(())
}

/// The payload of the newest message on the subject `at` of the stream of desired states; absent if there is none.
async fn desired(client: &Client, at: &str) -> Option<Vec<u8>> {
    let request = format!("$JS.API.DIRECT.GET.{}.{at}", subject::DESIRED_STREAM);
    let answer = client.request(request, "".into()).await.ok()?;
    answer.headers?.get("Nats-Subject").map(|_| answer.payload.to_vec())
}
