//! What happens on hosts about what they are to have: the manifest is read, items are got, opened and applied.

use os_upgrade_protocol::{Item as DesiredItem, ItemKind};
use os_upgrade_worker_rules::{DesiredAction, DesiredEvent, DesiredState, Loaded};

use super::World;
use crate::agenda::{Item, Worker};
use crate::fault::Fault;
use crate::peer::Peer;
use crate::time::{MILLI, MINUTE, SECOND};

impl World {
    /// The worker's process has started: its host takes what providers give for it, if it does.
    pub(super) fn start_desired(&mut self, index: usize) {
        if self.hosts[index].desired.is_none() {
            return;
        }
        if self.hosts[index].desired_disk.is_some() && self.occurs(Fault::DesiredStateLost) {
            let host = &mut self.hosts[index];
            host.desired_disk = None;
            host.forgotten = host.contents.keys().cloned().collect();
        }
        let host = &self.hosts[index];
        let loaded = match &host.desired_disk {
            None => Loaded::Nothing,
            Some(bytes) => match DesiredState::parse(bytes, &host.name) {
                Ok(file) => Loaded::File(Box::new(file)),
                Err(error) => Loaded::Corrupt { error: error.to_string() },
            },
        };
        self.enqueue_desired(index, DesiredEvent::Started(loaded));
        let process = self.hosts[index].process_count;
        self.after(MINUTE, Item::Worker { host: index, process, what: Worker::ReadManifest { again: true } });
    }

    /// The worker has a new connection.
    pub(super) fn desired_connected(&mut self, index: usize) {
        let Some(desired) = &mut self.hosts[index].desired else { return };
        desired.reported = None;
        self.read_manifest(index);
    }

    /// The worker reads what its host is to have; if it `again`, also in a minute.
    pub(super) fn manifest_is_due(&mut self, index: usize, again: bool) {
        if again {
            let (process, what) = (self.hosts[index].process_count, Worker::ReadManifest { again });
            self.at(MINUTE, Item::Worker { host: index, process, what });
        }
        self.read_manifest(index);
        self.agent_reads(index);
    }

    fn read_manifest(&mut self, index: usize) {
        if !self.is_linked(Peer::Host(index)) || self.hosts[index].desired.is_none() {
            return;
        }
        let manifest = self.bus.desired.manifest(&self.hosts[index].name);
        let payload = manifest.map(os_upgrade_protocol::Manifest::to_payload);
        self.enqueue_desired(index, DesiredEvent::ManifestRead(payload));
        self.enqueue_desired(index, DesiredEvent::RetryNow);
    }

    /// Puts `event` into the mailbox of the part of the worker that applies what its host is to have.
    pub(super) fn enqueue_desired(&mut self, index: usize, event: DesiredEvent) {
        let Some(desired) = &mut self.hosts[index].desired else { return };
        desired.mailbox.push_back(event);
        self.schedule_desired(index);
    }

    fn schedule_desired(&mut self, index: usize) {
        let process = self.hosts[index].process_count;
        let Some(desired) = &mut self.hosts[index].desired else { return };
        if !std::mem::replace(&mut desired.step_is_due, true) {
            self.after(MILLI, Item::Worker { host: index, process, what: Worker::DesiredStep });
        }
    }

    /// One event is handled, or one action carried out: the worker may be killed between any two.
    pub(super) fn step_desired(&mut self, index: usize) {
        let monotonic = crate::time::span(self.now);
        let Some(desired) = &mut self.hosts[index].desired else { return };
        desired.step_is_due = false;
        if let Some(action) = desired.todo.pop_front() {
            self.carry_out_desired(index, action);
        } else if let Some(event) = desired.mailbox.pop_front() {
            let actions = desired.logic.handle(monotonic, event.clone());
            desired.todo.extend(actions);
            let name = &self.hosts[index].name;
            let is_tick = event == DesiredEvent::Tick;
            self.trace.record_of(self.now, name, '<', || (!is_tick).then(|| format!("{event:?}")));
        }
        self.report_desired(index);
        let is_at_work = |desired: &crate::desired_worker::DesiredWorker| {
            !desired.todo.is_empty() || !desired.mailbox.is_empty()
        };
        if self.hosts[index].desired.as_ref().is_some_and(|desired| is_at_work(desired)) {
            self.schedule_desired(index);
        }
    }

    /// Orchestrators are told what the host has, if they do not know it.
    fn report_desired(&mut self, index: usize) {
        let may_report = self.is_linked(Peer::Host(index)) && self.sabotage_report(&self.hosts[index].name);
        let host = &mut self.hosts[index];
        let Some(desired) = &mut host.desired else { return };
        let Some(report) = desired.logic.report().filter(|_| may_report) else { return };
        if desired.reported.as_ref() == Some(&report) {
            return;
        }
        let (name, payload) = (host.name.clone(), report.to_payload());
        desired.reported = Some(report);
        self.report_arrives(&name, &payload);
    }

    fn carry_out_desired(&mut self, index: usize, action: DesiredAction) {
        let name = &self.hosts[index].name;
        self.trace.record_of(self.now, name, '>', || Some(format!("{action:?}")));
        match action {
            DesiredAction::SaveState(file) => self.save_desired(index, &file),
            DesiredAction::Get(item) => self.get_item(index, &item),
            DesiredAction::Configure(item) => self.configure(index, &item),
            DesiredAction::Discard => {
                if let Some(desired) = &mut self.hosts[index].desired {
                    desired.opened = None;
                }
            }
            DesiredAction::Revoke(name) => self.revoke(index, &name),
            DesiredAction::Log(_) => {}
        }
    }

    fn save_desired(&mut self, index: usize, file: &DesiredState) {
        let event = if self.occurs(Fault::SaveFails) {
            DesiredEvent::StateSaveFailed("no space left on device".to_owned())
        } else {
            self.hosts[index].desired_disk = Some(file.to_bytes());
            DesiredEvent::StateSaved
        };
        if let Some(desired) = &mut self.hosts[index].desired {
            // Its outcome is handled before anything else, as the executor does.
            desired.mailbox.push_front(event);
        }
    }

    /// The worker gets an item. It can open one that was sealed to its key for its host, the item's name and the manifest's place for it.
    fn get_item(&mut self, index: usize, item: &DesiredItem) {
        let host = &self.hosts[index];
        let stored =
            self.bus.desired.item(&host.name, &item.id).filter(|_| self.is_linked(Peer::Host(index)));
        let opens = |key| {
            stored.is_some_and(|stored| {
                let is_meant = stored.host == host.name && stored.provider.as_str() == item.name;
                is_meant && stored.sealed == item.sealed && stored.key == key
            })
        };
        let opened = stored.map(|stored| stored.content).filter(|_| host.key().is_some_and(opens));
        let result = opened.map(|_| ()).ok_or_else(|| "it cannot be opened".to_owned());
        if let Some(desired) = &mut self.hosts[index].desired {
            desired.opened = opened;
        }
        let (latency, process) = (self.latency(), self.hosts[index].process_count);
        let what = Worker::Desired(DesiredEvent::Got(result));
        self.at(latency, Item::Worker { host: index, process, what });
    }

    fn configure(&mut self, index: usize, item: &DesiredItem) {
        let fails = self.occurs(Fault::HandlerFails);
        let host = &mut self.hosts[index];
        let opened = host.desired.as_mut().and_then(|desired| desired.opened.take());
        let (Some(content), ItemKind::Configuration) = (opened, item.kind) else {
            return self.desired_finishes(index, Err("nothing was opened".to_owned()));
        };
        let accepted = host.desired.as_ref().and_then(|desired| desired.logic.report());
        let epoch = accepted.map_or(0, |report| report.revision.epoch);
        let (name, of) = (item.name.clone(), host.name.clone());
        // The worker has saved the name before, and revokes it even if this fails.
        host.forgotten.remove(&name);
        if !fails {
            host.contents.insert(name.clone(), content);
        }
        self.checker.configured(&of, &name, content, epoch);
        self.desired_finishes(index, if fails { Err("no luck".to_owned()) } else { Ok(()) });
    }

    fn revoke(&mut self, index: usize, name: &str) {
        let fails = self.occurs(Fault::HandlerFails);
        if !fails {
            self.hosts[index].contents.remove(name);
        }
        self.desired_finishes(index, if fails { Err("no luck".to_owned()) } else { Ok(()) });
    }

    fn desired_finishes(&mut self, index: usize, result: Result<(), String>) {
        let (time, process) = (self.rng.u64(MILLI..3 * SECOND), self.hosts[index].process_count);
        let what = Worker::Desired(DesiredEvent::Finished(result));
        self.at(time, Item::Worker { host: index, process, what });
    }
}
