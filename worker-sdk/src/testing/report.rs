//! The rules of a check and its report.

use std::fmt;

use serde::Serialize;

/// A rule of the protocol, in the order in which they are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    Announced,
    DurableConsumer,
    ExplicitAcks,
    OneAtATime,
    OwnSubject,
    UpgradeUnprepared,
    RebootNotDue,
    PrepareOfOthers,
    PrepareLate,
    Prepare,
    HintIdle,
    UnknownFields,
    UpgradeLate,
    Upgrade,
    DeliveredTwice,
    UpgradeTwice,
    RebootPending,
    RestartIsNoReboot,
    Rebooted,
    RebootTwice,
    RebootOnRequest,
    RebootOfOtherBoot,
    RestartRemembers,
    UpgradeCut,
    ConfigApplied,
    ConfigOlder,
    ConfigOtherSite,
    ConfigRepeated,
    ConfigReplaced,
    ConfigRevoked,
    ConfigErrors,
    ConfigEmptied,
    AckAfterReply,
    InProgress,
    Replies,
    Versions,
    Heartbeats,
    ConsumerRemade,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Self; 38] = [
        Self::Announced,
        Self::DurableConsumer,
        Self::ExplicitAcks,
        Self::OneAtATime,
        Self::OwnSubject,
        Self::UpgradeUnprepared,
        Self::RebootNotDue,
        Self::PrepareOfOthers,
        Self::PrepareLate,
        Self::Prepare,
        Self::HintIdle,
        Self::UnknownFields,
        Self::UpgradeLate,
        Self::Upgrade,
        Self::DeliveredTwice,
        Self::UpgradeTwice,
        Self::RebootPending,
        Self::RestartIsNoReboot,
        Self::Rebooted,
        Self::RebootTwice,
        Self::RebootOnRequest,
        Self::RebootOfOtherBoot,
        Self::RestartRemembers,
        Self::UpgradeCut,
        Self::ConfigApplied,
        Self::ConfigOlder,
        Self::ConfigOtherSite,
        Self::ConfigRepeated,
        Self::ConfigReplaced,
        Self::ConfigRevoked,
        Self::ConfigErrors,
        Self::ConfigEmptied,
        Self::AckAfterReply,
        Self::InProgress,
        Self::Replies,
        Self::Versions,
        Self::Heartbeats,
        Self::ConsumerRemade,
    ];

    /// Its name in rows and in the documentation.
    pub const fn name(self) -> &'static str {
        self.texts().0
    }

    /// What a worker that keeps the rule does.
    pub const fn expected(self) -> &'static str {
        self.texts().1
    }

    const fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Announced => ("announced", "announces the host that it serves"),
            Self::DurableConsumer => ("durable-consumer", "one durable pull consumer reads the commands"),
            Self::ExplicitAcks => ("explicit-acks", "the consumer requires explicit acks"),
            Self::OneAtATime => ("one-at-a-time", "max_ack_pending is 1"),
            Self::OwnSubject => ("own-subject", "the consumer's filter is the host's subject alone"),
            Self::UpgradeUnprepared => {
                ("upgrade-unprepared", "acknowledged, answered with an error or not at all")
            }
            Self::RebootNotDue => ("reboot-not-due", "answered immediately"),
            Self::PrepareOfOthers => ("prepare-of-others", "acknowledged, no reply"),
            Self::PrepareLate => ("prepare-late", "after its not-after: acknowledged, no reply"),
            Self::Prepare => ("prepare", "answered with done"),
            Self::HintIdle => ("hint-idle", "a hint when nothing is under way changes nothing"),
            Self::UnknownFields => ("unknown-fields", "ignored in a command"),
            Self::UpgradeLate => ("upgrade-late", "after the prepare's not-after: acknowledged, no reply"),
            Self::Upgrade => ("upgrade", "answered with done or reboot-required"),
            Self::DeliveredTwice => ("delivered-twice", "executed once, answered once"),
            Self::UpgradeTwice => ("upgrade-twice", "acknowledged, answered with an error or not at all"),
            Self::RebootPending => ("reboot-pending", "no reply and no ack before the reboot"),
            Self::RestartIsNoReboot => ("restart-is-no-reboot", "a restarted worker does not answer done"),
            Self::Rebooted => ("rebooted", "answered with done after the reboot"),
            Self::RebootTwice => ("reboot-twice", "answered immediately, without a reboot"),
            Self::RebootOnRequest => {
                ("reboot-on-request", "leaves the boot that is named, if it announces that it does")
            }
            Self::RebootOfOtherBoot => ("reboot-of-other-boot", "answered immediately, without a reboot"),
            Self::RestartRemembers => ("restart-remembers", "finished work is remembered after a restart"),
            Self::UpgradeCut => ("upgrade-cut", "answered despite a restart during the upgrade"),
            Self::ConfigApplied => ("config-applied", "if it takes configurations: applied and reported"),
            Self::ConfigRepeated => ("config-repeated", "a manifest that is read again changes nothing"),
            Self::ConfigOlder => ("config-older", "an older manifest is refused, nothing changes"),
            Self::ConfigOtherSite => {
                ("config-other-site", "another site's manifest is refused, nothing changes")
            }
            Self::ConfigReplaced => ("config-replaced", "a new item replaces the one in force"),
            Self::ConfigRevoked => ("config-revoked", "a name that is taken out is no longer reported"),
            Self::ConfigErrors => ("config-errors", "what cannot be opened is an error of that item alone"),
            Self::ConfigEmptied => ("config-emptied", "an empty manifest leaves nothing"),
            Self::AckAfterReply => ("ack-after-reply", "acknowledged after the stream has stored the reply"),
            Self::InProgress => ("in-progress", "in-progress acks prevent a redelivery"),
            Self::Replies => ("replies", "with action and result, and only where one is expected"),
            Self::Versions => ("versions", "a flat object, published when it has changed"),
            Self::Heartbeats => ("heartbeats", "every 10 s, if the worker sends any"),
            Self::ConsumerRemade => ("consumer-remade", "a deleted consumer is created again, skips nothing"),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The outcome of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The worker kept it.
    Holds,
    /// The worker broke it.
    Broken,
    /// It could not be checked; the row contains what that needs.
    Skipped,
}

/// A checked rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The rule, serialized as its name.
    #[serde(serialize_with = "by_name")]
    pub rule: Rule,
    /// The outcome.
    pub verdict: Verdict,
    /// What a worker should do; see [`Rule::expected`].
    pub expected: &'static str,
    /// What was observed, or what the check of this rule needs.
    pub seen: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
fn by_name<S: serde::Serializer>(rule: &Rule, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(rule.name())
}

/// One row per rule, in the order of the check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    pub rows: Vec<Row>,
}

impl Report {
    /// Whether every rule holds.
    pub fn all_hold(&self) -> bool {
        self.count(Verdict::Holds) == self.rows.len()
    }

    /// How many rules have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|row| row.verdict == verdict).count()
    }

    /// The row of a rule.
    pub fn row(&self, rule: Rule) -> Option<&Row> {
        self.rows.iter().find(|row| row.rule == rule)
    }
}

/// The rows as a table, for the message of a failed test.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Row { rule, verdict, expected, seen } in &self.rows {
            writeln!(f, "{rule:20}  {verdict:?}  expected: {expected}  seen: {seen}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn rule_names_are_unique() {
        let names: BTreeSet<_> = Rule::ALL.iter().map(|rule| rule.name()).collect();
        assert_eq!(names.len(), Rule::ALL.len());
    }
}
