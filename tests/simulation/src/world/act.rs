//! What operators and FleetLock clients do, at good moments and bad ones.

use std::collections::BTreeMap;

use os_upgrade_calendar::Duration;
use os_upgrade_kernel::{
    ClientId, ConfigOperation, EnrolmentOperation, Expected, LockOperation, Request, RunOperation,
    SecretName, SecretOperation, SlotOperation, Targets,
};
use os_upgrade_protocol::{GroupName, HostName, RunId};
use os_upgrade_shell::instance::Event;

use super::World;
use crate::agenda::{Item, Process};
use crate::plan::draw_config;

/// The approval of hosts, without what they announce.
fn approval_of(hosts: Vec<HostName>) -> EnrolmentOperation {
    EnrolmentOperation::Approve { hosts, keys: BTreeMap::new(), machines: BTreeMap::new() }
}

impl World {
    pub(super) fn act(&mut self) {
        if !self.faults_enabled {
            return;
        }
        let every = 2 * self.plan.act_every * self.slowdown();
        self.after(every, Item::Act);
        self.other_client_acts();
        let request = match self.rng.u32(..11) {
            0..=1 => self.configuration(),
            2 => self.slot_of_operator(),
            3 => self.enrolment(),
            4 if self.operators.runs > 0 => self.give_up(),
            5 if self.operators.runs > 0 => {
                Request::new("operator", RunOperation::Cancel { reason: None }).into()
            }
            6 => self.secret(),
            _ if self.operators.granted == 0 => self.configuration(),
            _ if !self.plan.settings.auto_approve && self.rng.u32(..3) == 0 => self.approval(),
            _ => self.trigger(),
        };
        let index = self.rng.usize(..self.instances.len());
        self.request(index, request);
    }

    pub(super) fn configuration(&mut self) -> Request {
        let (actor, validate) = ("operator".to_owned(), self.rng.u32(..10) == 0);
        let expected = self.expected();
        if self.operators.granted > 0 && self.rng.u32(..8) == 0 {
            let operation = ConfigOperation::Delete { expected };
            return Request { actor, validate, operation }.into();
        }
        let config = if self.operators.granted == 0 || self.rng.bool() {
            self.plan.config.clone()
        } else {
            draw_config(&mut self.rng)
        };
        let config = self.with_providers(config);
        let operation = ConfigOperation::Put { config: config.into(), expected };
        Request { actor, validate, operation }.into()
    }

    /// The precondition of a change, perhaps with tags that an operator has read from any instance, so they may be
    /// old.
    fn expected(&mut self) -> Expected {
        let read = self.rng.usize(..self.instances.len());
        match (self.rng.u32(..6), &self.instances[read].logic) {
            (0, Some(logic)) => Expected::Tags(logic.state().config_tag().into_iter().collect()),
            (1, _) => Expected::Present,
            (2, _) => Expected::Absent,
            (_, _) => Expected::Anything,
        }
    }

    /// A FleetLock client asks an instance for a slot, or gives it back, whatever it was answered before.
    pub(super) fn client_acts(&mut self, client: usize) {
        if !self.faults_enabled {
            return;
        }
        let every = 2 * self.plan.client_every * self.slowdown();
        self.after(every, Item::Client { client });
        let (group, id) = (self.group(), self.plan.clients[client].clone());
        let unlock = self.rng.u32(..5) < 2;
        let operation =
            if unlock { LockOperation::Unlock { group, id } } else { LockOperation::Lock { group, id } };
        let request = Request::new("client", operation).into();
        let index = self.rng.usize(..self.instances.len());
        self.request(index, request);
    }

    /// An operator places a hold, or releases or reclaims a slot.
    fn slot_of_operator(&mut self) -> Request {
        let hosts = self.hosts.iter().map(|host| host.name.as_str());
        let names: Vec<&str> = self.plan.clients.iter().map(ClientId::as_str).chain(hosts).collect();
        let id = ClientId::new(self.rng.choice(names).expect("not empty")).expect("a valid id");
        let group = self.group();
        let reason = "a new disk".to_owned();
        let operation = match self.rng.u32(..5) {
            0..=1 => SlotOperation::Hold { group, id, reason },
            2..=3 => SlotOperation::Release { group, id, reason },
            _ => SlotOperation::Reclaim { group, id },
        };
        Request::new("operator", operation).into()
    }

    /// An operator stores or removes a secret. There are two keys, so that some requests are refused.
    fn secret(&mut self) -> Request {
        let (actor, validate) = ("operator".to_owned(), self.rng.u32(..10) == 0);
        let name = SecretName::new(self.rng.choice(["a", "b"]).expect("not empty")).expect("a valid name");
        let operation = if self.rng.u32(..3) == 0 {
            SecretOperation::Remove { name }
        } else {
            let check = (*self.rng.choice(&["k", "k", "other"]).expect("not empty")).to_owned();
            let sealed = format!("{check} {}", self.rng.u32(..));
            SecretOperation::Keep { name, sealed, origin: None, check }
        };
        Request { actor, validate, operation }.into()
    }

    /// An operator approves a host, or withdraws it.
    fn enrolment(&mut self) -> Request {
        let index = self.rng.usize(..self.hosts.len());
        let (host, actor) = (self.hosts[index].name.clone(), "operator".to_owned());
        let validate = self.rng.u32(..10) == 0;
        if self.rng.u32(..3) == 0 {
            let operation = approval_of(vec![host]);
            return Request { actor, validate, operation }.into();
        }
        let reason = "it is moved".to_owned();
        let operation = if self.rng.u32(..4) == 0 {
            EnrolmentOperation::Remove { host, reason }
        } else {
            EnrolmentOperation::Withdraw { host, reason }
        };
        Request { actor, validate, operation }.into()
    }

    /// An operator gives up a host, whether it is at work or not.
    fn give_up(&mut self) -> Request {
        let index = self.rng.usize(..self.hosts.len());
        let (host, actor) = (self.hosts[index].name.clone(), "operator".to_owned());
        let validate = self.rng.u32(..10) == 0;
        let operation = RunOperation::GiveUpHost { host, reason: "it is off".to_owned() };
        Request { actor, validate, operation }.into()
    }

    /// The approval of one host, or of all.
    fn approval(&mut self) -> Request {
        if self.rng.bool() {
            return self.approval_of_all();
        }
        let host = self.rng.usize(..self.hosts.len());
        let hosts = vec![self.hosts[host].name.clone()];
        Request::new("operator", approval_of(hosts)).into()
    }

    pub(super) fn approval_of_all(&mut self) -> Request {
        let hosts = self.hosts.iter().map(|host| host.name.clone()).collect();
        Request::new("operator", approval_of(hosts)).into()
    }

    /// Usually the default group; sometimes another, or one that does not exist.
    fn group(&mut self) -> GroupName {
        match self.rng.u32(..20) {
            0 => GroupName::new("nowhere").expect("a valid name"),
            1..=3 => GroupName::new("edge").expect("a valid name"),
            _ => self.plan.settings.default_group.clone(),
        }
    }

    /// Another client of the external lock server takes a slot, or gives it back.
    fn other_client_acts(&mut self) {
        let group = self.plan.settings.default_group.clone();
        if self.rng.u32(..6) == 0 && self.locks.is_up {
            self.locks.lock(&group, "other");
        } else {
            self.locks.unlock(&group, "other");
        }
    }

    pub(super) fn trigger(&mut self) -> Request {
        self.operators.runs += 1;
        let seconds = u64::try_from(self.plan.timeout_max.num_seconds()).unwrap_or(60);
        let run = RunId::new(&format!("r{}", self.operators.runs)).expect("a valid id");
        let timeout = Duration::from_secs(self.rng.u64(5..=seconds));
        Request::new(
            "operator",
            RunOperation::Trigger { run, timeout: Some(timeout), targets: Targets::default(), reason: None },
        )
        .into()
    }

    /// Sends a request to an instance, if its process is running.
    pub(super) fn request(&mut self, index: usize, mut request: Request) {
        if self.instances[index].logic.is_none() {
            return;
        }
        let call = self.operators.next_call();
        // The checker recognises by the actor which request a fact belongs to.
        request.actor = format!("{} {call}", request.actor);
        self.checker.called(call, &request);
        let boot = self.instances[index].boot;
        let what = Process::Event(Event::Call { call, request, forwarded_at: None });
        let latency = self.latency();
        self.at(latency, Item::Process { instance: index, boot, what });
    }
}
