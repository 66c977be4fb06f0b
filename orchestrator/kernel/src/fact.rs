//! Facts: the content of the journal. A fact states what has become true, never what was requested.
//!
//! Each family has a subject's folder, where `fact.rs` has its facts with what they are about, and `fold.rs` what they change. Their
//! JSON is an on-disk format: a `type`, which no two families share, and the fields. Fields and variants may be added; none may be
//! renamed or change its meaning.

use os_upgrade_protocol::{HostName, RunId};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use strum::VariantNames as _;

pub use crate::about::{About, AboutCommand, AuditList, OwnerRef, Part};
pub use crate::config::ConfigFact;
pub use crate::control::{ControlFact, IgnoreCause};
pub use crate::desired::DesiredFact;
pub use crate::enrolment::EnrolmentFact;
pub use crate::node::NodeFact;
pub use crate::pause::PauseFact;
use crate::reboot_queue::EntryEvent;
pub use crate::reboot_queue::QueueFact;
pub use crate::restoration::RestorationFact;
use crate::run::HostEvent;
pub use crate::run::RunFact;
pub use crate::secrets::SecretFact;
pub use crate::slot::{LockFact, SlotFact};
pub use crate::unit::UnitFact;

/// One entry for each family: what it is about, its name, and its facts.
macro_rules! families {
    ($($(#[doc = $about:literal])* $family:ident($facts:ident);)*) => {
        /// Something that has become true.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        #[serde(untagged)]
        pub enum Fact {
            $($(#[doc = $about])* $family($facts),)*
        }

        impl<'de> Deserialize<'de> for Fact {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let fact = Value::deserialize(deserializer)?;
                let name = fact.get("type").and_then(Value::as_str).ok_or_else(|| D::Error::missing_field("type"))?;
                $(if $facts::VARIANTS.contains(&name) {
                    return $facts::deserialize(fact).map(Self::$family).map_err(D::Error::custom);
                })*
                Err(D::Error::custom(format_args!("unknown fact `{name}`")))
            }
        }

        impl Fact {
            /// The fact's name: the `type` in its JSON.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$family(fact) => fact.into(),)*
                }
            }

            /// Every name.
            pub fn names() -> impl Iterator<Item = &'static str> {
                [$($facts::VARIANTS,)*].into_iter().flatten().copied()
            }

            /// What it is about.
            pub fn about(&self) -> About<'_> {
                match self {
                    $(Self::$family(fact) => fact.about(),)*
                }
            }

            /// Whether `part` must be derived again after this fact.
            pub fn affects(&self, part: Part) -> bool {
                let parts = match self {
                    $(Self::$family(fact) => fact.affects(),)*
                };
                parts.contains(&part)
            }
        }

        $(impl From<$facts> for Fact {
            fn from(fact: $facts) -> Self {
                Self::$family(fact)
            }
        })*
    };
}

families! {
    /// A run and its hosts.
    Run(RunFact);
    /// The slot of a host.
    Slot(SlotFact);
    /// A slot of an embedded semaphore that a FleetLock client or an operator holds.
    Lock(LockFact);
    /// The reboot queue.
    Queue(QueueFact);
    /// The Kubernetes node of a host.
    Node(NodeFact);
    /// Which hosts take part.
    Enrolment(EnrolmentFact);
    /// What hosts are to have.
    Desired(DesiredFact);
    /// The pause of the site.
    Pause(PauseFact);
    /// The configuration and the settings.
    Config(ConfigFact);
    /// The strongbox.
    Secret(SecretFact);
    /// Units and machines.
    Unit(UnitFact);
    /// The control stream.
    Control(ControlFact);
    /// The restoration of the site after the bus had lost data.
    Restoration(RestorationFact);
}

impl Fact {
    /// The fact that `event` happened to `host` in `run`.
    pub fn of_host(run: &RunId, host: &HostName, event: HostEvent) -> Self {
        RunFact::Host { run: run.clone(), host: host.clone(), event }.into()
    }

    /// The fact that `event` happened to the entry at `index` of the reboot queue, which is for `host`.
    pub fn of_entry(index: u64, host: &HostName, event: EntryEvent) -> Self {
        QueueFact::Reboot { index, host: host.clone(), event }.into()
    }
}

/// `facts`, if there are any.
pub(crate) fn non_empty(facts: Vec<Fact>) -> Option<Vec<Fact>> {
    (!facts.is_empty()).then_some(facts)
}
