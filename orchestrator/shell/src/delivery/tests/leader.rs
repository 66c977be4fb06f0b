//! A leader with two hosts, for the tests of delivery.

use chrono::DateTime;
use os_upgrade_kernel::config::Rollout;
use os_upgrade_kernel::fact::{ConfigFact, EnrolmentFact};
use os_upgrade_kernel::{
    Config, Configures, Decision, Enlisted, SeenHost, Settings, StoredItem, Trigger, decide,
};
use os_upgrade_protocol::{ApplicationName, GroupName, HostKey, ItemId, Manifest, RunId};
use os_upgrade_provider_rules::{Reply, Validator};

use super::super::*;

pub(super) fn at(seconds: u64) -> Now {
    let wall = DateTime::from_timestamp(1_700_000_000 + seconds.cast_signed(), 0).unwrap();
    Now { wall, monotonic: Duration::from_secs(seconds) }
}

pub(super) fn host(name: &str) -> HostName {
    HostName::new(name).unwrap()
}

pub(super) fn key(number: u8) -> HostKey {
    HostKey::new([number; 32])
}

/// A leader with its fence in the control stream, and delivery as it has it.
pub(super) struct Leader {
    pub(super) state: State,
    pub(super) view: View,
    pub(super) delivery: Delivery,
    pub(super) now: u64,
}

impl Leader {
    /// A site where h1 and h2 announce the keys that are approved.
    pub(super) fn new(providers: &str) -> Self {
        let settings = Settings { site: "hall-1".to_owned(), auto_approve: true, ..Settings::default() };
        let mut leader =
            Self { state: State::default(), view: View::default(), delivery: Delivery::new("a1"), now: 100 };
        leader.commit(ConfigFact::SettingsAdopted { settings }.into());
        for name in ["h1", "h2"] {
            let application = ApplicationName::new("app").unwrap();
            let configures = Some(Configures { application, key: key(1) });
            leader.view.hosts.insert(host(name), SeenHost { configures, ..SeenHost::default() });
            leader.commit(EnrolmentFact::KeyPinned { host: host(name), key: key(1), actor: None }.into());
        }
        leader.configure(providers);
        leader.delivery.leadership_begins(at(leader.now));
        leader
    }

    pub(super) fn configure(&mut self, providers: &str) {
        let config_providers = serde_json::from_str(providers).unwrap();
        let config = Config { config_providers, ..Config::default() };
        let (actor, difference) = ("eve".to_owned(), Vec::new());
        self.commit(ConfigFact::Replaced { config: Some(config), actor, difference }.into());
    }

    pub(super) fn commit(&mut self, fact: Fact) {
        self.commit_all(vec![fact]);
    }

    /// Commits one record.
    pub(super) fn commit_all(&mut self, facts: Vec<Fact>) {
        let record = Record { at: at(self.now).wall, control: 0, facts };
        self.state.apply_record(&record).unwrap();
        self.delivery.committed(&record, at(self.now));
    }

    /// What follows from an input is decided and committed. Returns the names of the facts.
    pub(super) fn decide(&mut self, input: &Input) -> Vec<&'static str> {
        let Decision { facts, .. } = decide(&self.state, &self.view, input, at(self.now).wall);
        let names = facts.iter().map(Fact::name).collect();
        for fact in facts {
            self.commit(fact);
        }
        names
    }

    /// What begins after so many seconds.
    pub(super) fn after(&mut self, seconds: u64) -> Vec<Deliver> {
        self.now += seconds;
        self.delivery.begin_due(&self.state, &self.view, 7, at(self.now))
    }

    /// The fence that is due is stored with this sequence.
    pub(super) fn fence(&mut self, sequence: u64) {
        let begun = self.after(0);
        let [Deliver::Fence { epoch, fence }] = &begun[..] else { panic!("{begun:?}") };
        assert_eq!((fence.site.as_str(), fence.leader.as_str()), ("hall-1", "a1"));
        assert_eq!(fence.revision, Revision { epoch: 0, sequence: 7 });
        let stored = DesiredFenced::Stored(sequence);
        assert_eq!(self.delivery.fenced(at(self.now), *epoch, stored), None);
    }

    /// The questions that begin after so many seconds.
    pub(super) fn asked(&mut self, seconds: u64) -> Vec<(u64, ProviderQuestion)> {
        let begun = self.after(seconds).into_iter();
        let asked = begun.filter_map(|deliver| match deliver {
            Deliver::Ask { epoch, question, .. } => Some((epoch, *question)),
            Deliver::Fence { .. }
            | Deliver::Manifest { .. }
            | Deliver::DrawToken { .. }
            | Deliver::Call { .. } => None,
        });
        asked.collect()
    }

    /// The question about h1 that is asked within a day, and the epoch of the fence.
    pub(super) fn question(&mut self) -> (u64, ProviderQuestion) {
        for _ in 0..24 * 60 {
            let asked = self.asked(60);
            if let Some(question) = asked.into_iter().find(|(_, question)| question.host == host("h1")) {
                return question;
            }
        }
        panic!("nothing is asked");
    }

    /// The one manifest that begins now. No units go with it.
    pub(super) fn manifest(&mut self) -> (u64, ManifestOrder, Manifest) {
        let (epoch, order, manifest, units) = self.manifest_with_units();
        assert_eq!(units, []);
        (epoch, order, manifest)
    }

    /// The one manifest that begins now, and the units that go with it.
    pub(super) fn manifest_with_units(&mut self) -> (u64, ManifestOrder, Manifest, Vec<(ItemId, Bytes)>) {
        let begun = self.after(0);
        let mut manifests = begun.into_iter().filter_map(|deliver| match deliver {
            Deliver::Manifest { epoch, order, manifest, units, .. } => Some((epoch, order, manifest, units)),
            Deliver::Fence { .. }
            | Deliver::Ask { .. }
            | Deliver::DrawToken { .. }
            | Deliver::Call { .. } => None,
        });
        let manifest = manifests.next().unwrap();
        assert!(manifests.next().is_none());
        manifest
    }

    /// What is to be decided after a reply. It is decided for the rest of delivery at once.
    pub(super) fn answer(&mut self, epoch: u64, ticket: Ticket, reply: ProviderReply) -> Option<Input> {
        let mut inputs = self.delivery.answered(at(self.now), epoch, (ticket, reply), &self.state);
        self.delivery.replies_decided(at(self.now), &[ticket]);
        assert!(inputs.len() <= 1, "{inputs:?}");
        inputs.pop()
    }
}

pub(super) const APP: &str =
    r#"[{"name":"app","kind":"http","url":"https://files.example/{host}","selector":{"names":["h1"]}}]"#;

/// The item `id` was made of what a provider gave, whose fingerprint and validator are `id` as well.
pub(super) fn given(id: &str, question: &ProviderQuestion) -> ProviderReply {
    let item = StoredItem {
        id: ItemId::new(id).unwrap(),
        bytes: 9,
        key: question.key,
        sealed: question.sealed,
        fingerprint: Some(id.to_owned()),
        hash: None,
    };
    let validator = Validator::new(id.as_bytes(), None, None, None);
    said(Outcome::Content { content: Some(item), validator })
}

/// A reply that says nothing of when to ask again.
pub(super) fn said(outcome: Outcome<Option<StoredItem>>) -> ProviderReply {
    Reply { outcome, retry_after: None, poll_interval: None }
}

/// A run that waits for providers has started with this host.
pub(super) fn run_started(name: &str) -> Fact {
    let enlisted = Enlisted {
        host: host(name),
        application: ApplicationName::new("app").unwrap(),
        group: GroupName::new("default").unwrap(),
        skipped: None,
        unheard: false,
    };
    let rollout = Rollout { provider_wait: Some("15m".parse().unwrap()), ..Rollout::default() };
    let trigger = Trigger::Operator { actor: "eve".to_owned(), reason: None, targeted: false };
    let (run, not_after) = (RunId::new("r1").unwrap(), at(9_000).wall);
    RunFact::Started { run, trigger, not_after, rollout, hosts: vec![enlisted] }.into()
}
