//! What is checked, and what came of it.

use std::fmt;

use serde::Serialize;

/// One rule of the protocol, in the order in which a check comes to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "`expected` says of each what it is")]
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
    RestartRemembers,
    UpgradeCut,
    AckAfterReply,
    InProgress,
    Replies,
    Versions,
    Heartbeats,
    ConsumerRemade,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Self; 28] = [
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
        Self::RestartRemembers,
        Self::UpgradeCut,
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

    /// What a worker that keeps it does.
    pub const fn expected(self) -> &'static str {
        self.texts().1
    }

    const fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Announced => ("announced", "says that it serves the host"),
            Self::DurableConsumer => ("durable-consumer", "one durable pull consumer reads the commands"),
            Self::ExplicitAcks => ("explicit-acks", "the consumer wants explicit acks"),
            Self::OneAtATime => ("one-at-a-time", "max_ack_pending is 1"),
            Self::OwnSubject => ("own-subject", "the consumer's filter is the host's subject, and no more"),
            Self::UpgradeUnprepared => {
                ("upgrade-unprepared", "acknowledged, answered with an error or not at all")
            }
            Self::RebootNotDue => ("reboot-not-due", "answered at once"),
            Self::PrepareOfOthers => ("prepare-of-others", "acknowledged, no reply"),
            Self::PrepareLate => ("prepare-late", "past its not-after: acknowledged, no reply"),
            Self::Prepare => ("prepare", "answered with done"),
            Self::HintIdle => ("hint-idle", "a hint when nothing is under way changes nothing"),
            Self::UnknownFields => ("unknown-fields", "ignored in a command"),
            Self::UpgradeLate => ("upgrade-late", "past the prepare's not-after: acknowledged, no reply"),
            Self::Upgrade => ("upgrade", "answered with done or reboot-required"),
            Self::DeliveredTwice => ("delivered-twice", "executed once, answered once"),
            Self::UpgradeTwice => ("upgrade-twice", "acknowledged, answered with an error or not at all"),
            Self::RebootPending => ("reboot-pending", "no reply and no ack before the reboot"),
            Self::RestartIsNoReboot => ("restart-is-no-reboot", "a restarted worker does not answer done"),
            Self::Rebooted => ("rebooted", "answered with done after the reboot"),
            Self::RebootTwice => ("reboot-twice", "answered at once, without a reboot"),
            Self::RestartRemembers => ("restart-remembers", "what was done is known after a restart"),
            Self::UpgradeCut => ("upgrade-cut", "answered, though the worker was restarted in it"),
            Self::AckAfterReply => ("ack-after-reply", "acknowledged once the stream has the reply"),
            Self::InProgress => ("in-progress", "in-progress acks keep it from coming again"),
            Self::Replies => ("replies", "action and result, and none where none is due"),
            Self::Versions => ("versions", "a flat object, published when it has changed"),
            Self::Heartbeats => ("heartbeats", "every 10 s, if the worker sends any"),
            Self::ConsumerRemade => ("consumer-remade", "a deleted consumer is made again, skips nothing"),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What came of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The worker was seen to keep it.
    Holds,
    /// The worker was seen to break it.
    Broken,
    /// It could not be seen; the row says what that needs.
    Skipped,
}

/// A rule that was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Its name.
    #[serde(serialize_with = "by_name")]
    pub rule: Rule,
    /// What came of it.
    pub verdict: Verdict,
    /// What was expected.
    pub expected: &'static str,
    /// What was seen, or what seeing it needs.
    pub seen: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn by_name<S: serde::Serializer>(rule: &Rule, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(rule.name())
}

/// One row per rule, in the order in which they were checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The rows.
    pub rows: Vec<Row>,
}

impl Report {
    /// Whether every rule was seen to be kept.
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

/// The rows as a table, for the message of a test that fails.
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
    fn every_rule_has_a_name_of_its_own() {
        let names: BTreeSet<_> = Rule::ALL.iter().map(|rule| rule.name()).collect();
        assert_eq!(names.len(), Rule::ALL.len());
    }
}
