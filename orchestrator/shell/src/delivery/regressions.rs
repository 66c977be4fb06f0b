//! What delivery once did wrong.

use std::time::Duration;

use chrono::DateTime;
use os_upgrade_kernel::fact::{ConfigFact, DesiredFact, EnrolmentFact};
use os_upgrade_kernel::{Config, Fact, Record, State, StoredItem, View};
use os_upgrade_protocol::{Announcement, ApplicationName, HostKey, HostName, ItemId};
use os_upgrade_provider_rules::{Outcome, Reply, Validator};

use super::{Deliver, Delivery, DesiredFenced, DesiredStored, ProviderQuestion};
use crate::clock::Now;
use crate::inventory::{Inventory, WorkerMessage};

const KEY: HostKey = HostKey::new([1; 32]);

fn host() -> HostName {
    HostName::new("h1").unwrap()
}

fn id(text: &str) -> ItemId {
    ItemId::new(text).unwrap()
}

fn validator(content: &str) -> Validator {
    Validator::new(content.as_bytes(), Some(b"\"e\""), None, None)
}

/// A leader of a site with one host and one provider, whose fence has the sequence 5.
struct Leader {
    delivery: Delivery,
    state: State,
    inventory: Inventory,
    seconds: u64,
}

impl Leader {
    fn new() -> Self {
        let mut leader = Self {
            delivery: Delivery::new("a1"),
            state: State::default(),
            inventory: Inventory::default(),
            seconds: 0,
        };
        leader.delivery.leadership_begins(leader.now());
        leader.announces();
        leader.commit(vec![approved(), pinned(), configured()]);
        let begun = leader.begin();
        assert!(matches!(begun[..], [Deliver::Fence { epoch: 1, .. }]), "{begun:?}");
        leader.fenced(1, 5);
        leader
    }

    fn now(&self) -> Now {
        let monotonic = Duration::from_secs(self.seconds);
        Now { wall: DateTime::UNIX_EPOCH + monotonic, monotonic }
    }

    fn announces(&mut self) {
        let application = ApplicationName::new("debian").unwrap();
        let mut announcement = Announcement::new(host(), application.clone());
        announcement.configures = Some(KEY);
        let (payload, at) = (announcement.to_payload().into(), DateTime::UNIX_EPOCH);
        let message = WorkerMessage::Announced { application, host: host(), payload, sequence: 1, at };
        self.inventory.apply(self.now(), message).unwrap();
    }

    fn commit(&mut self, facts: Vec<Fact>) {
        let (at, now) = (self.now().wall, self.now());
        for fact in &facts {
            self.state.apply(at, fact).unwrap();
        }
        self.delivery.committed(&Record { at, control: 0, facts }, now);
    }

    fn begin(&mut self) -> Vec<Deliver> {
        let view: View = self.inventory.view().clone();
        self.delivery.begin_due(&self.state, &view, 1, self.now())
    }

    fn fenced(&mut self, epoch: u64, sequence: u64) {
        let crossed = self.delivery.fenced(self.now(), epoch, DesiredFenced::Stored(sequence));
        assert_eq!(crossed, None);
    }

    /// The question that is asked within a day.
    fn question(&mut self) -> ProviderQuestion {
        for _ in 0..24 * 60 {
            self.seconds += 60;
            for begun in self.begin() {
                if let Deliver::Ask { question, .. } = begun {
                    return *question;
                }
            }
        }
        panic!("nothing is asked");
    }

    /// The provider gives `content`, of which the item `of` was made. Returns the fact that follows.
    fn given(&mut self, question: &ProviderQuestion, of: &str, content: &str) -> Fact {
        let item = StoredItem {
            id: id(of),
            bytes: 9,
            key: question.key,
            sealed: question.sealed,
            fingerprint: Some(content.to_owned()),
        };
        let fact = DesiredFact::ItemStored {
            host: host(),
            provider: question.provider.name.clone(),
            item: item.id.clone(),
            bytes: item.bytes,
            sealed: item.sealed,
            fingerprint: item.fingerprint.clone(),
        };
        let outcome = Outcome::Content { content: Some(item), validator: validator(content) };
        let reply = Reply { outcome, retry_after: None };
        assert!(self.delivery.answered(self.now(), 1, question.ticket, reply).is_some());
        fact.into()
    }

    /// The manifest that begins to be published now, if one does: its order, and from which sequence on items are kept.
    fn manifest(&mut self) -> Option<(Deliver, u64)> {
        self.begin().into_iter().find_map(|begun| match &begun {
            Deliver::Manifest { since, .. } => Some((begun.clone(), *since)),
            Deliver::Fence { .. } | Deliver::Ask { .. } => None,
        })
    }

    fn published(&mut self, manifest: Deliver, outcome: DesiredStored) {
        let Deliver::Manifest { epoch, order, .. } = manifest else { panic!("{manifest:?}") };
        let input = self.delivery.manifest_published(self.now(), epoch, order, outcome);
        assert_eq!(input.is_some(), matches!(outcome, DesiredStored::Stored(_)));
    }
}

fn approved() -> Fact {
    EnrolmentFact::HostsApproved { hosts: vec![host()], actor: "eve".to_owned() }.into()
}

fn pinned() -> Fact {
    EnrolmentFact::KeyPinned { host: host(), key: KEY, actor: None }.into()
}

fn withdrawn() -> Fact {
    let (actor, reason) = ("eve".to_owned(), "it is moved".to_owned());
    EnrolmentFact::HostWithdrawn { host: host(), actor, reason, forgotten: false }.into()
}

fn configured() -> Fact {
    let provider = r#"[{"name":"app","kind":"http","url":"https://files.example/{host}","poll-interval":"60s","on-removal":"remove"}]"#;
    let config = Config { config_providers: serde_json::from_str(provider).unwrap(), ..Config::default() };
    Fact::Config(ConfigFact::Replaced {
        config: Some(config),
        actor: "eve".to_owned(),
        difference: Vec::new(),
    })
}

/// Within one record nobody sees a host leave, or a provider go, and the provider says nothing new: the host would never get its item back.
#[test]
fn what_was_revoked_for_a_moment_is_asked_for_anew() {
    let without = || {
        let (actor, difference) = ("eve".to_owned(), Vec::new());
        Fact::Config(ConfigFact::Replaced { config: None, actor, difference })
    };
    for facts in [vec![withdrawn(), approved(), pinned()], vec![without(), configured()]] {
        let mut leader = Leader::new();
        let question = leader.question();
        let fact = leader.given(&question, "1", "a");
        leader.commit(vec![fact]);
        let question = leader.question();
        assert_eq!((question.validator, question.fingerprint.as_deref()), (Some(validator("a")), Some("a")));
        let unchanged =
            Reply { outcome: Outcome::Unchanged { validator: validator("a") }, retry_after: None };
        leader.delivery.answered(leader.now(), 1, question.ticket, unchanged);
        leader.commit(facts);
        let question = leader.question();
        assert_eq!((question.validator, question.fingerprint), (None, None));
    }
}

/// What the provider said before may still be on its way to the journal: what is in the state is no measure then.
#[test]
fn reply_is_not_compared_with_what_is_about_to_be_replaced() {
    let mut leader = Leader::new();
    let question = leader.question();
    let fact = leader.given(&question, "1", "a");
    leader.commit(vec![fact]);
    let question = leader.question();
    let second = leader.given(&question, "2", "b");
    // It has gone back to `a`, and `b` is not in the state yet.
    let question = leader.question();
    assert_eq!((question.validator.clone(), question.fingerprint.clone()), (None, None));
    leader.commit(vec![second]);
    let third = leader.given(&question, "3", "a");
    leader.commit(vec![third]);
    let question = leader.question();
    assert_eq!((question.validator, question.fingerprint.as_deref()), (Some(validator("a")), Some("a")));
}

/// An item whose fact is on its way was stored under the first fence. The manifest under the second one must not delete it.
#[test]
fn items_of_this_leadership_outlive_another_fence() {
    let mut leader = Leader::new();
    let question = leader.question();
    let fact = leader.given(&question, "1", "a");
    leader.commit(vec![fact]);
    let (manifest, since) = leader.manifest().unwrap();
    assert_eq!(since, 5);
    leader.published(manifest, DesiredStored::Unknown);
    leader.seconds += 1;
    assert!(matches!(leader.begin()[..], [Deliver::Fence { epoch: 2, .. }]));
    leader.fenced(2, 8);
    let (manifest, since) = leader.manifest().unwrap();
    assert_eq!(since, 5);
    leader.published(manifest, DesiredStored::Stored(9));
    // It is not published again before the journal says that it is stored.
    assert_eq!(leader.manifest(), None);
}
