//! What an answer to calls means, without its transport: something about each call that was asked, whatever the answer is.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use os_upgrade_protocol::HostName;
use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::configuration::read_configuration;
use super::elements::{Position, for_each};
use super::event::HookEvent;
use super::given::Given;
use super::member::{Key, Member, MemberError};
use crate::answer::{failure_of, is_identity, requested_pause};
use crate::content::ContentBytes;
use crate::failure::{Failure, MemberProblem};
use crate::name::ProviderName;

/// The shortest poll interval that a provider can ask for.
pub const POLL_INTERVAL_MIN: Duration = Duration::from_mins(1);
/// The longest poll interval that a provider can ask for.
pub const POLL_INTERVAL_MAX: Duration = Duration::from_hours(7 * 24);

/// An HTTP answer to a request with calls: the parts that matter.
#[derive(Debug)]
pub struct HookAnswer<'a> {
    pub status: u16,
    pub date: Option<&'a [u8]>,
    pub retry_after: Option<&'a [u8]>,
    pub content_encoding: Option<&'a [u8]>,
    /// The body, or why it is not complete; it matters only for 200.
    pub body: Result<ContentBytes, Failure>,
}

/// A call of the request. No two of a request have the same UUID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedMember {
    pub event: HookEvent,
    pub uuid: Uuid,
    pub host: HostName,
}

/// What a provider says about a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookOutcome {
    /// The same as before.
    Unchanged,
    /// The host is to have this.
    Content(Given),
    /// The host is to have nothing (any more).
    Revoked,
    /// Nothing that can be used.
    Failed(Failure),
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberReply {
    pub outcome: HookOutcome,
    /// How often the provider wants to be asked about the host, in whole seconds from [`POLL_INTERVAL_MIN`] to [`POLL_INTERVAL_MAX`];
    /// `None` if it does not say.
    pub poll_interval: Option<Duration>,
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookReply {
    /// One for each call, in the order of the calls.
    pub members: Vec<MemberReply>,
    /// How many elements of the answer are about no call of the request.
    pub foreign: usize,
    /// How long the server wants no requests at all, about whatever host.
    pub retry_after: Option<Duration>,
}

impl From<HookOutcome> for MemberReply {
    fn from(outcome: HookOutcome) -> Self {
        Self { outcome, poll_interval: None }
    }
}

impl From<Failure> for MemberReply {
    fn from(failure: Failure) -> Self {
        HookOutcome::Failed(failure).into()
    }
}

impl From<MemberProblem> for MemberReply {
    fn from(why: MemberProblem) -> Self {
        Failure::BadMember { why }.into()
    }
}

impl From<MemberError> for MemberProblem {
    fn from(error: MemberError) -> Self {
        match error {
            MemberError::NotText => Self::Malformed,
            MemberError::NamesDiffer => Self::NamesDiffer,
        }
    }
}

impl HookAnswer<'_> {
    /// What the answer of `provider` to the calls `asked` means. `now` is when it arrived.
    pub fn interpret(self, provider: &ProviderName, asked: &[AskedMember], now: DateTime<Utc>) -> HookReply {
        let retry_after = requested_pause(self.status, self.retry_after, self.date, now);
        let read = match self.status {
            200 => self.read_members(provider, asked),
            204 => Err(Failure::NotAnArray { line: 1, column: 0 }),
            304 => Ok((vec![MemberReply::from(HookOutcome::Unchanged); asked.len()], 0)),
            status => Err(failure_of(status)),
        };
        let (members, foreign) =
            read.unwrap_or_else(|failure| (vec![MemberReply::from(failure); asked.len()], 0));
        HookReply { members, foreign, retry_after }
    }

    /// The replies to `asked`, and how many elements of the answer are about none of them.
    fn read_members(
        self,
        provider: &ProviderName,
        asked: &[AskedMember],
    ) -> Result<(Vec<MemberReply>, usize), Failure> {
        if self.content_encoding.is_some_and(|value| !is_identity(value)) {
            return Err(Failure::Encoded);
        }
        let body = self.body?;
        let mut matching = Matching::new(asked);
        for_each(body.as_slice(), |json| matching.take(provider, json))
            .map_err(|Position { line, column }| Failure::NotAnArray { line, column })?;
        Ok(matching.finish())
    }
}

/// Which calls have been answered.
struct Matching<'a> {
    asked: &'a [AskedMember],
    by_uuid: BTreeMap<Uuid, usize>,
    /// The call about each host; `None` if there are several.
    by_host: BTreeMap<&'a str, Option<usize>>,
    replies: Vec<Option<MemberReply>>,
    foreign: usize,
}

impl<'a> Matching<'a> {
    fn new(asked: &'a [AskedMember]) -> Self {
        let mut by_host = BTreeMap::new();
        for (index, member) in asked.iter().enumerate() {
            by_host.entry(member.host.as_str()).and_modify(|found| *found = None).or_insert(Some(index));
        }
        let by_uuid = asked.iter().enumerate().map(|(index, member)| (member.uuid, index)).collect();
        Self { asked, by_uuid, by_host, replies: vec![None; asked.len()], foreign: 0 }
    }

    /// Takes an element of the answer.
    fn take(&mut self, provider: &ProviderName, json: &RawValue) {
        let member = Member::read(json);
        let Some(index) = self.find(&member) else {
            self.foreign += 1;
            return;
        };
        let reply = if self.replies[index].is_some() {
            MemberReply::from(MemberProblem::Doubled)
        } else {
            read_member(&member, provider, &self.asked[index]).unwrap_or_else(MemberReply::from)
        };
        self.replies[index] = Some(reply);
    }

    /// The call that `member` is about, by its UUID, else by its host.
    fn find(&self, member: &Member<'_>) -> Option<usize> {
        if let Ok(Some(uuid)) = member.text(Key::EventUuid) {
            return self.by_uuid.get(&Uuid::parse_str(&uuid).ok()?).copied();
        }
        let host = member.text(Key::DeviceName).ok()??;
        self.by_host.get(host.as_str()).copied().flatten()
    }

    fn finish(self) -> (Vec<MemberReply>, usize) {
        let replies = self.replies.into_iter();
        (replies.map(|reply| reply.unwrap_or_else(|| Failure::NotAnswered.into())).collect(), self.foreign)
    }
}

/// What `member` says about the call that it answers.
fn read_member(
    member: &Member<'_>,
    provider: &ProviderName,
    asked: &AskedMember,
) -> Result<MemberReply, MemberProblem> {
    check(member, provider, asked)?;
    let poll_interval = member.json(Key::PollInterval).map(read_poll_interval).transpose()?.flatten();
    let outcome = match member.json(Key::Configuration) {
        None => HookOutcome::Unchanged,
        Some(json) if json.get() == "null" => HookOutcome::Revoked,
        Some(json) => match read_configuration(json) {
            Ok(given) => HookOutcome::Content(given),
            Err(why) => HookOutcome::Failed(Failure::BadConfiguration { why }),
        },
    };
    Ok(MemberReply { outcome, poll_interval })
}

/// Checks that `member` does not contradict the call that it answers.
fn check(member: &Member<'_>, provider: &ProviderName, asked: &AskedMember) -> Result<(), MemberProblem> {
    if member.is_malformed() {
        return Err(MemberProblem::Malformed);
    }
    // It is a text, or the call was found by its host.
    member.text(Key::EventUuid)?;
    let differs = |text: Option<String>, expected: &str| text.is_some_and(|text| text != expected);
    if differs(member.config_name()?, provider.as_str()) {
        return Err(MemberProblem::OtherName);
    }
    if differs(member.text(Key::DeviceName)?, asked.host.as_str()) {
        return Err(MemberProblem::OtherDevice);
    }
    if differs(member.text(Key::Event)?, asked.event.as_str()) {
        return Err(MemberProblem::OtherEvent);
    }
    Ok(())
}

/// A poll interval as it can be written.
#[derive(Deserialize)]
#[serde(untagged)]
enum PollInterval {
    Seconds(u64),
    Text(String),
}

/// The poll interval that `json` is, within its bounds; `None` for null.
fn read_poll_interval(json: &RawValue) -> Result<Option<Duration>, MemberProblem> {
    let interval =
        serde_json::from_str::<Option<PollInterval>>(json.get()).map_err(|_| MemberProblem::PollInterval)?;
    let interval = match interval {
        Some(PollInterval::Seconds(seconds)) => Duration::from_secs(seconds),
        Some(PollInterval::Text(text)) => {
            humantime::parse_duration(&text).map_err(|_| MemberProblem::PollInterval)?
        }
        None => return Ok(None),
    };
    Ok(Some(Duration::from_secs(interval.clamp(POLL_INTERVAL_MIN, POLL_INTERVAL_MAX).as_secs())))
}

#[cfg(test)]
mod tests;
