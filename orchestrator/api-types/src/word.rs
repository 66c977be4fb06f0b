//! Words of bodies that programs compare, with room for those of a newer version.

use std::fmt;

use os_upgrade_kernel::Enrolled;
use serde::de::value::{self, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer as _};
use serde::{Deserialize, Serialize};

/// A word of the set `T`, or one that only a newer server knows, which is shown as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Word<T> {
    Known(T),
    Other(String),
}

impl<T: Copy> Word<T> {
    /// The word, if this version knows it.
    pub const fn known(&self) -> Option<T> {
        match self {
            Self::Known(word) => Some(*word),
            Self::Other(_) => None,
        }
    }

    /// Whether this version knows the word, and `test` holds for it.
    pub fn is(&self, test: impl FnOnce(T) -> bool) -> bool {
        self.known().is_some_and(test)
    }
}

impl<T: DeserializeOwned> Word<T> {
    /// The word that `text` is.
    pub fn read(text: &str) -> Self {
        let word: StrDeserializer<'_, value::Error> = text.into_deserializer();
        T::deserialize(word).map_or_else(|_| Self::Other(text.to_owned()), Self::Known)
    }
}

impl<T> Default for Word<T> {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

impl<T: Copy + Into<&'static str>> Word<T> {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(word) => (*word).into(),
            Self::Other(word) => word,
        }
    }
}

impl<T: Copy + Into<&'static str>> fmt::Display for Word<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<T> From<T> for Word<T> {
    fn from(word: T) -> Self {
        Self::Known(word)
    }
}

/// Whether a host takes part in runs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Enrolment {
    Approved,
    Auto,
    Pending,
    Withdrawn,
}

impl Enrolment {
    pub const fn takes_part(self) -> bool {
        match self {
            Self::Approved | Self::Auto => true,
            Self::Pending | Self::Withdrawn => false,
        }
    }
}

/// Why something does not go on, as far as clients treat it differently from other causes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum WhyKind {
    AwaitsApproval,
    ClockBehind,
    ClockDisputed,
    ClockSkew,
    ClockStepped,
    ClockUnmeasured,
    HeartbeatAwaited,
    HostDeferred,
    HostWithdrawn,
    NoRun,
    NodeCordoned,
    NodeUnderWay,
    RebootUnderWay,
    Silent,
    SlotHeld,
    UpgradeTimeout,
}

impl WhyKind {
    /// Whether it is that the leader's clock cannot be relied on.
    pub const fn is_of_clock(self) -> bool {
        matches!(
            self,
            Self::ClockBehind
                | Self::ClockDisputed
                | Self::ClockSkew
                | Self::ClockStepped
                | Self::ClockUnmeasured
        )
    }
}

/// What was done to the strongbox.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum StrongboxStep {
    /// It got a new key.
    StrongboxMade,
    SecretKept,
    SecretRemoved,
}

/// How far what a provider gave for a host is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum ItemStep {
    /// The host is to have nothing.
    Nothing,
    Applied,
    /// The host has not said yet that it has it.
    Pending,
    /// The host still has what it is not to have.
    Revoking,
    /// The host could not do as it was told.
    Failed,
    /// The host is not told, until an operator resumes that.
    Withheld,
    /// No key is approved to which it could be sealed, or another one is announced.
    NoKey,
}

/// Whether a host that runs units is a machine, and gets units.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum MachineStep {
    /// It gets units.
    Open,
    /// It keeps the units that it has, and gets no further one.
    Closed,
    /// Its agent is silent: its units go elsewhere.
    Lost,
    /// Nobody has approved the machine that the host announces.
    Waiting,
    /// The host announces the id of another machine.
    Taken,
    /// The host announces no valid machine id.
    NoId,
    /// Another application of the host takes configuration.
    TwoReporters,
}

/// What would happen to a unit.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum UnitStep {
    /// It is new, or has other contents.
    UnitSubmitted,
    /// It is to be in another state.
    UnitWanted,
    UnitDestroyed,
    UnitPlaced,
    /// It is taken away from hosts.
    UnitTaken,
    /// It has stopped where it was taken away.
    UnitStopped,
}

/// What a provider says about a host when it is tested.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum TestOutcome {
    Content,
    /// That the host is to have nothing.
    Nothing,
    /// That the host keeps what it has.
    Unchanged,
    /// Nothing that counts.
    Failed,
}

/// Why a member of a call-back, or a device that it names, is refused.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum CallBackRefusal {
    /// The member cannot be read, or says something that is no `ON_CONFIG_UPDATE`.
    Invalid,
    /// The configuration is of another provider, or of none.
    NotItsOwn,
    /// The provider has no such device.
    UnknownDevice,
    /// No key of the device is approved yet, so the provider was never asked about it.
    NoKey,
}

/// For whom a slot is held.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Behalf {
    Run,
    RebootQueue,
    Client,
    Operator,
}

impl From<Enrolled<'_>> for Enrolment {
    fn from(enrolled: Enrolled<'_>) -> Self {
        match enrolled {
            Enrolled::Approved(_) => Self::Approved,
            Enrolled::Auto => Self::Auto,
            Enrolled::Pending => Self::Pending,
            Enrolled::Withdrawn(_) => Self::Withdrawn,
        }
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_kernel::fact::SecretFact;
    use os_upgrade_kernel::node::NodeStepKind;
    use os_upgrade_kernel::reboot_queue::{EntryStatus, EntryStep};
    use os_upgrade_kernel::run::{HostStep, StopKind, TriggerKind};
    use std::collections::BTreeSet;

    use os_upgrade_kernel::{Cause, ClockDoubt, HostStatus, RestoreSource, RunResult};
    use os_upgrade_protocol::Action;
    use serde_json::json;
    use strum::VariantNames;

    use super::*;

    fn round_trips<T>(words: impl IntoIterator<Item = T>)
    where
        T: fmt::Debug + Copy + PartialEq + Into<&'static str> + Serialize + DeserializeOwned,
    {
        for word in words {
            let text: &str = word.into();
            assert_eq!(serde_json::to_value(Word::from(word)).unwrap(), json!(text));
            assert_eq!(serde_json::from_value::<Word<T>>(json!(text)).unwrap(), Word::Known(word));
            assert_eq!(Word::read(text), Word::Known(word));
        }
        let newer: Word<T> = serde_json::from_value(json!("newer")).unwrap();
        assert_eq!((newer.known(), newer.to_string()), (None, "newer".to_owned()));
        assert_eq!(newer, Word::read("newer"));
    }

    #[test]
    fn words_are_read_as_they_are_written() {
        round_trips(HostStatus::ALL);
        round_trips(EntryStatus::ALL);
        round_trips(RunResult::ALL);
        round_trips(Action::ALL);
    }

    #[test]
    fn words_of_events_are_read() {
        fn all_known<T>()
        where
            T: fmt::Debug
                + Copy
                + PartialEq
                + Into<&'static str>
                + Serialize
                + DeserializeOwned
                + VariantNames,
        {
            let known = T::VARIANTS.iter().map(|word| Word::<T>::read(word).known().expect(word));
            round_trips(known);
        }
        all_known::<Behalf>();
        all_known::<CallBackRefusal>();
        all_known::<WhyKind>();
        all_known::<EntryStep>();
        all_known::<HostStep>();
        all_known::<ItemStep>();
        all_known::<MachineStep>();
        all_known::<TestOutcome>();
        all_known::<NodeStepKind>();
        all_known::<RestoreSource>();
        all_known::<StopKind>();
        all_known::<StrongboxStep>();
        all_known::<TriggerKind>();
        all_known::<UnitStep>();
    }

    #[test]
    fn words_are_those_of_the_kernel() {
        for kind in WhyKind::VARIANTS {
            assert!(Cause::kinds().any(|known| known == *kind), "{kind}");
        }
        let doubts: Vec<&str> = ClockDoubt::VARIANTS.to_vec();
        let of_clock = |kind: &&&str| Word::<WhyKind>::read(kind).is(WhyKind::is_of_clock);
        let known: BTreeSet<&str> = WhyKind::VARIANTS.iter().filter(of_clock).copied().collect();
        assert_eq!(known, doubts.into_iter().collect());
        assert_eq!(StrongboxStep::VARIANTS, SecretFact::VARIANTS);
    }
}
