//! What operators do, at good moments and bad ones.

use os_upgrade_kernel::duration::Duration;
use os_upgrade_kernel::{ClientId, Request};
use os_upgrade_protocol::RunId;
use os_upgrade_shell::node::Event;

use super::{Item, World};
use crate::plan::draw_config;

/// FleetLock clients from outside. One calls itself like a host of ours.
pub(super) const CLIENTS: [&str; 3] = ["c0", "c1", "h0"];

impl World {
    pub(super) fn act(&mut self) {
        if !self.rough {
            return;
        }
        let every = 2 * self.plan.act_every;
        self.after(every, Item::Act);
        self.other_client_acts();
        let request = match self.rng.u32(..10) {
            0..=1 => self.configuration(),
            2..=4 => self.client(),
            5 if self.operators.runs > 0 => Request::Cancel { actor: "operator".to_owned() },
            _ if self.operators.granted == 0 => self.configuration(),
            _ => self.trigger(),
        };
        let index = self.rng.usize(..self.instances.len());
        self.request(index, request);
    }

    pub(super) fn configuration(&mut self) -> Request {
        let config = if self.operators.granted == 0 || self.rng.bool() {
            self.plan.config.clone()
        } else {
            draw_config(&mut self.rng)
        };
        Request::PutConfig {
            config,
            actor: format!("operator {}", self.operators.calls),
            validate: self.rng.u32(..10) == 0,
        }
    }

    /// A FleetLock client asks this site for a slot, or gives it back. Some call themselves like hosts of ours.
    fn client(&mut self) -> Request {
        let id = *self.rng.choice(&CLIENTS).expect("not empty");
        let group = self.plan.settings.default_group.clone();
        let id = ClientId::new(id).expect("a valid id");
        if self.rng.bool() { Request::Unlock { group, id } } else { Request::Lock { group, id } }
    }

    /// A client gives its slot back.
    pub(super) fn unlock_of(&self, id: &str) -> Request {
        let group = self.plan.settings.default_group.clone();
        Request::Unlock { group, id: ClientId::new(id).expect("a valid id") }
    }

    /// Another client of the lock server elsewhere takes a slot, or gives it back.
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
        Request::Trigger {
            run: RunId::new(&format!("r{}", self.operators.runs)).expect("a valid id"),
            timeout: Duration::from_secs(self.rng.u64(5..=seconds)),
            actor: "operator".to_owned(),
            validate: false,
        }
    }

    /// Asks an instance, if its process takes requests.
    pub(super) fn request(&mut self, index: usize, request: Request) {
        if self.instances[index].node.is_none() {
            return;
        }
        let call = self.operators.next_call();
        self.checker.asked(call, &request);
        let boot = self.instances[index].boot;
        let what = super::Process::Event(Event::Call { call, request });
        let latency = self.latency();
        self.at(latency, Item::Process { instance: index, boot, what });
    }
}
