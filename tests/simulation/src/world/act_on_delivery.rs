//! What providers and operators do about what hosts are to have, at good moments and bad ones; and what must be true of it in the end.

use std::collections::BTreeMap;

use os_upgrade_kernel::{
    Config, ConfigOperation, ConfigProvider, DesiredOperation, EnrolmentOperation, Expected, Request, State,
};
use os_upgrade_protocol::{HostKey, HostName, Manifest};
use os_upgrade_shell::instance::Instance as Logic;

use super::World;
use crate::agenda::{Item, Process};
use crate::checker::Checker;
use crate::delivery_plan::keeps;
use crate::fault::Fault;
use crate::host::Host;
use crate::peer::Peer;
use crate::time::{MINUTE, Micros, SECOND};

/// Within this time hosts have what their providers say: it is polled, stored, published, read and applied, some of it after pauses of
/// minutes for failures.
const DELIVERED_WITHIN: Micros = 30 * MINUTE;
/// Within this time providers are told of everything: pauses after failures are at most an hour, and other metadata wait for ten minutes.
const TOLD_WITHIN: Micros = 80 * MINUTE;
/// How often an operator looks whether hosts are left alone.
const LOOK_EVERY: Micros = 2 * MINUTE;

impl World {
    /// Hosts take what providers give, and providers have something for most of them.
    pub(super) fn begin_delivery(&mut self) {
        let Some(delivery) = self.plan.delivery.clone() else { return };
        for (host, configures) in self.hosts.iter_mut().zip(&delivery.configures) {
            host.configures = *configures && host.sdk;
        }
        for host in 0..self.hosts.len() {
            for provider in &delivery.providers {
                self.change_word(provider, host);
            }
        }
        self.after(delivery.act_every, Item::ActOnDelivery);
        if delivery.hooks().next().is_some() {
            self.after(delivery.act_every, Item::ActOnHooks);
        }
    }

    pub(super) fn change_word(&mut self, provider: &ConfigProvider, host: usize) {
        let (name, host) = (&provider.name, self.hosts[host].name.clone());
        let word = self.words.change(&mut self.rng, name, &host);
        self.checker.provider_said(name, &host, word);
        if provider.is_hooks() {
            self.hook_providers.changed(name, &host);
        }
        self.trace.record(self.now, || format!("{name} has {word:?} for {host}"));
    }

    /// A provider changes its mind, a host its key, or an operator does something.
    pub(super) fn act_on_delivery(&mut self) {
        let Some(delivery) = self.plan.delivery.clone().filter(|_| self.faults_enabled) else { return };
        let every = 2 * delivery.act_every * self.slowdown();
        self.after(every, Item::ActOnDelivery);
        let host = self.rng.usize(..self.hosts.len());
        let provider = self.rng.choice(&delivery.providers).expect("not empty").clone();
        let index = self.rng.usize(..self.instances.len());
        match self.rng.u32(..20) {
            0..=6 => self.change_word(&provider, host),
            // What changes is often polled at once.
            7..=10 => {
                if self.rng.bool() {
                    self.change_word(&provider, host);
                }
                let host = self.rng.bool().then(|| self.hosts[host].name.clone());
                let poll = DesiredOperation::Poll { provider: provider.name, host };
                self.request(index, Request::new("operator", poll).into());
            }
            // An operator has second thoughts.
            11..=12 => {
                let (name, reason) = (self.hosts[host].name.clone(), "it is moved".to_owned());
                let withdraw = EnrolmentOperation::Withdraw { host: name, reason };
                self.request(index, Request::new("operator", withdraw).into());
                if self.rng.u32(..4) > 0 {
                    let approval = self.approval_with_key(host);
                    self.request(index, approval);
                }
            }
            13..=14 => {
                let approval = self.approval_with_key(host);
                self.request(index, approval);
            }
            15..=16 => {
                if self.rng.bool() {
                    let delete = ConfigOperation::Delete { expected: Expected::Anything };
                    self.request(index, Request::new("operator", delete).into());
                }
                let config = self.with_providers(self.plan.config.clone());
                self.request(index, Self::put_config(config));
            }
            17 => {
                let host = self.rng.bool().then(|| self.hosts[host].name.clone());
                let resume = DesiredOperation::Resume { host };
                self.request(index, Request::new("operator", resume).into());
            }
            _ => {
                if self.hosts[host].configures && self.occurs(Fault::KeyChanged) {
                    self.change_key(host);
                    if self.rng.bool() {
                        let approval = self.approval_with_key(host);
                        self.request(index, approval);
                    }
                }
            }
        }
    }

    /// The configuration with providers, as an operator who knows of them writes it.
    pub(super) fn with_providers(&mut self, config: Config) -> Config {
        let Some(delivery) = self.plan.delivery.clone() else { return config };
        let names: Vec<HostName> = self.plan.names().collect();
        Config { config_providers: delivery.configured(&mut self.rng, &names), ..config }
    }

    /// The approval of a host, and of the key that it has and the machine that it is.
    pub(super) fn approval_with_key(&self, index: usize) -> Request {
        let host = &self.hosts[index];
        let keys = host.key().map(|key| (host.name.clone(), key)).into_iter().collect();
        let hosts = vec![host.name.clone()];
        let machines = self.offers([index]);
        Request::new("operator", EnrolmentOperation::Approve { hosts, keys, machines }).into()
    }

    /// A host is installed anew: it has another key, and nothing else.
    fn change_key(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        host.earlier_keys = host.earlier_keys.saturating_add(1);
        host.desired_disk = None;
        host.contents.clear();
        host.forgotten.clear();
        host.kill();
        let boot = host.boot;
        self.after(SECOND, Item::StartWorker { host: index, boot });
        self.announce_again(index);
    }

    /// A host announces itself anew, which every instance hears that is connected.
    pub(super) fn announce_again(&mut self, index: usize) {
        for instance in 0..self.instances.len() {
            if self.is_linked(Peer::Instance(instance)) {
                let (boot, latency) = (self.instances[instance].boot, self.latency());
                self.at(latency, Item::Process { instance, boot, what: Process::Announced { host: index } });
            }
        }
    }

    /// Every host that takes what providers give gets what they say, and a host that is withdrawn or removed has nothing. Returns whether that
    /// is so.
    pub(super) fn is_delivered(&mut self) -> bool {
        let Some(delivery) = &self.plan.delivery else { return true };
        let removes_host = delivery.removes_host;
        let lacks = |world: &Self, state: &State| {
            let lacking = world.hosts.iter().find_map(|host| world.lacks(host, state));
            lacking.or_else(|| world.checker.untold_join())
        };
        if !self.until_granted("the keys of all hosts are approved", World::approval_of_keys)
            || !self.is_called_back()
            || !self.until_delivered(lacks)
        {
            return false;
        }
        let Some(host) = self.hosts.iter().position(Host::has_configuration) else { return true };
        let has_nothing = move |world: &Self, _: &State| {
            let host = &world.hosts[host];
            let manifest = world.bus.desired.manifest(&host.name);
            let is_empty = manifest.is_none_or(|manifest: &Manifest| manifest.items.is_empty());
            let has = || format!("{} takes no part and has {:?}, by {manifest:?}", host.name, host.contents);
            (!is_empty || host.has_configuration()).then(has)
        };
        let is_out = if removes_host && self.is_removable(host) {
            self.is_removed(host)
        } else {
            self.is_withdrawn(host)
        };
        is_out
            && self.until_delivered(has_nothing)
            && self.until_granted("every host is approved", World::approval_of_all)
    }

    /// In the end providers of kind `hooks` are told of every event of their hosts, and of the metadata that these have.
    pub(super) fn everything_is_told(&mut self) {
        let is_told = |world: &Self| {
            let leader = world.leader();
            leader.is_some_and(|leader| {
                Checker::is_told(leader.state(), leader.inventory().view(), world.time())
            })
        };
        let until = self.now + TOLD_WITHIN;
        while self.now < until && self.checker.is_clean() && !is_told(self) && self.step() {}
        let shown = self.leader().map(|leader| (leader.state().clone(), leader.inventory().view().clone()));
        if let Some((state, view)) = shown {
            let now = self.time();
            self.checker.check_told(&state, &view, now);
        }
    }

    fn is_withdrawn(&mut self, index: usize) -> bool {
        let name = self.hosts[index].name.clone();
        let withdraw = move |_: &mut Self| {
            let (host, reason) = (name.clone(), "the end".to_owned());
            Request::new("operator", EnrolmentOperation::Withdraw { host, reason }).into()
        };
        self.until_granted("a host is withdrawn", withdraw)
    }

    /// Whether nothing but that it is not away keeps a host from being removed.
    fn is_removable(&self, index: usize) -> bool {
        let name = &self.hosts[index].name;
        let is_held = |state: &State| state.slots.contains_key(name) || state.nodes.contains_key(name);
        self.leader().is_some_and(|leader| !is_held(leader.state()))
    }

    /// A host that is away is removed. It comes back once what was stored of it is deleted.
    fn is_removed(&mut self, index: usize) -> bool {
        let (peer, name) = (Peer::Host(index), self.hosts[index].name.clone());
        self.hosts[index].linked = false;
        self.link_lost(peer);
        let gone = name.clone();
        // It is refused until the host counts as unreachable.
        let remove = move |_: &mut Self| {
            let (host, reason) = (gone.clone(), "the end".to_owned());
            Request::new("operator", EnrolmentOperation::Remove { host, reason }).into()
        };
        let is_stored = move |_: &Self, state: &State| {
            let is_left = state.enrolment.removed.get(&name).is_some_and(|removal| !removal.purged);
            is_left.then(|| format!("{name} is removed, and what was stored of it is not deleted"))
        };
        let is_removed = self.until_granted("a host is removed", remove) && self.until_delivered(is_stored);
        self.link_back(peer);
        is_removed
    }

    pub(super) fn approval_of_keys(&mut self) -> Request {
        let hosts: Vec<HostName> = self.hosts.iter().map(|host| host.name.clone()).collect();
        let keys: BTreeMap<HostName, HostKey> =
            self.hosts.iter().filter_map(|host| Some((host.name.clone(), host.key()?))).collect();
        let machines = self.offers(0..self.hosts.len());
        Request::new("operator", EnrolmentOperation::Approve { hosts, keys, machines }).into()
    }

    fn until_delivered(&mut self, lacks: impl Fn(&Self, &State) -> Option<String>) -> bool {
        self.until_there("delivered", lacks)
    }

    /// Waits until `lacks` says nothing, while an operator resumes the delivery wherever that is necessary. Else this `rule` is broken.
    pub(super) fn until_there(
        &mut self,
        rule: &'static str,
        lacks: impl Fn(&Self, &State) -> Option<String>,
    ) -> bool {
        let lacks = |world: &Self| match world.leader() {
            Some(leader) => lacks(world, leader.state()),
            None => Some("no instance leads".to_owned()),
        };
        let until = self.now + DELIVERED_WITHIN;
        while self.checker.is_clean() {
            let Some(what) = lacks(self) else { return true };
            if self.now > until {
                let state = self.leader().map(|leader| format!("{:#?}", leader.state().desired));
                self.checker.never_delivered(rule, &what, state.as_deref().unwrap_or_default());
                break;
            }
            for resume in self.resumptions() {
                let request = move |_: &mut Self| Request::new("operator", resume.clone()).into();
                if !self.until_granted("the delivery is resumed", request) {
                    return false;
                }
            }
            let look = self.now + LOOK_EVERY;
            while self.now < look && self.checker.is_clean() && lacks(self).is_some() && self.step() {}
        }
        false
    }

    /// What an operator does about the hosts that are left alone: the page and `os-upgrade status` show them.
    fn resumptions(&self) -> Vec<DesiredOperation> {
        let Some(leader) = self.leader() else { return Vec::new() };
        let (state, view) = (leader.state(), leader.inventory().view());
        if state.epoch() > state.desired.resumed {
            return vec![DesiredOperation::Resume { host: None }];
        }
        let is_left = |host: &&Host| state.is_ahead(view, &host.name) || is_refused(leader, &host.name);
        let resume = |host: &Host| DesiredOperation::Resume { host: Some(host.name.clone()) };
        let is_told = |host: &&Host| host.configures || host.agent.is_some();
        self.hosts.iter().filter(is_told).filter(is_left).map(resume).collect()
    }

    /// What `host` does not have of what its providers say, or has although they do not.
    fn lacks(&self, host: &Host, state: &State) -> Option<String> {
        let key = host.key()?;
        if state.enrolment.pinned(&host.name) != Some(&key) || !state.enrolled(&host.name).takes_part() {
            return Some(format!("the key of {} is not approved", host.name));
        }
        self.plan.config.config_providers.iter().find_map(|provider| {
            let said = self.words.of(&provider.name, &host.name).filter(|_| provider.selects(&host.name));
            let name = provider.name.as_str();
            let has = host.contents.get(name).copied();
            let may_keep = keeps(provider, &host.name) || host.forgotten.contains(name);
            let is_right = has == said || said.is_none() && may_keep;
            (!is_right).then(|| format!("{} has {has:?} of {}, not {said:?}", host.name, provider.name))
        })
    }
}

/// Whether the host has refused the manifest that it was told last.
fn is_refused(leader: &Logic, host: &HostName) -> bool {
    leader.inventory().view().applied(host).is_some_and(|applied| applied.refused.is_some())
}
