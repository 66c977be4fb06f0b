//! Events. Their sentences may contain what strangers chose, such as names.

use std::fmt::{self, Formatter};

use os_upgrade_api_types::body::{Stamp, Why};
use os_upgrade_api_types::routes::events::SiteEvent;
use os_upgrade_api_types::word::{Behalf, Word};
use os_upgrade_kernel::node::NodeStepKind;
use os_upgrade_kernel::reboot_queue::EntryStep;
use os_upgrade_kernel::run::HostStep;

use crate::config::number_of;
use crate::describe::Describe;
use crate::progress::with_counts;
use crate::start::too_little_left;

impl Describe for SiteEvent {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&sentence(self))
    }
}

#[allow(clippy::too_many_lines, reason = "one table")]
fn sentence(event: &SiteEvent) -> String {
    match event {
        SiteEvent::RunStarted { run, actor, reason, hosts, skipped, targeted, .. } => {
            let by = actor.as_deref().unwrap_or("its maintenance window");
            let chosen = if *targeted { " for chosen hosts" } else { "" };
            let hosts = number_of(usize::try_from(*hosts).unwrap_or(usize::MAX));
            let skipped = if *skipped == 0 { String::new() } else { format!(", {skipped} skipped") };
            format!("run {run} started by {by}{chosen} ({hosts}{skipped}){}", because(reason.as_deref()))
        }
        SiteEvent::RunUpgrading { run } => format!("run {run}: every host is prepared"),
        SiteEvent::RunStopping { run, host: Some(host), .. } => {
            format!("run {run} starts no further host, because {host} failed")
        }
        SiteEvent::RunStopping { run, host: None, cause, actor, reason } => {
            let by = by(actor.as_deref());
            format!("run {run} starts no further host, {cause}{by}{}", because(reason.as_deref()))
        }
        SiteEvent::RunEnded { run, result, counts } => format!("run {run} {result}{}", with_counts(counts)),
        SiteEvent::RunMissed { window_start, latest_start, window_end, why, unrecorded } => {
            let more = unrecorded.map_or_else(String::new, |more| format!(", and {more} runs before it"));
            let left = too_little_left(*latest_start, *window_end);
            format!("the run of the window at {window_start} was missed{more}: {}{left}", why.text)
        }
        SiteEvent::Host {
            host,
            step: Word::Known(HostStep::CommandSent),
            action: Some(action),
            attempt,
            ..
        } => match attempt.filter(|attempt| *attempt > 1) {
            Some(attempt) => format!("{host}: {action} sent (attempt {attempt})"),
            None => format!("{host}: {action} sent"),
        },
        SiteEvent::Host { host, step, status, why, actor, .. } => {
            let what = step.known().and_then(host_step).unwrap_or(status.as_str());
            format!("{host} {what}{}{}", by(actor.as_deref()), because(text(why.as_ref())))
        }
        SiteEvent::SlotHeld { group, holder, behalf, actor, reason } => {
            let by = if behalf.is(is_operator) { by(Some(actor)) } else { String::new() };
            format!("slot of group {group} held for {holder}{by}{}", because(reason.as_deref()))
        }
        SiteEvent::SlotReleased { holder, actor, reason, behalf, .. } => {
            let by = if behalf.is(is_operator) { by(actor.as_deref()) } else { String::new() };
            format!("slot of {holder} released{by}{}", because(reason.as_deref()))
        }
        SiteEvent::SlotNotGranted { host, why, .. } => format!("no slot for {host}: {}", why.text),
        SiteEvent::SlotNotReleased { host, why, .. } => {
            format!("slot of {host} not released: {}", why.text)
        }
        SiteEvent::ConfigChanged { actor, deleted: true, .. } => format!("configuration deleted by {actor}"),
        SiteEvent::ConfigChanged { actor, deleted: false, changed, changed_more } => {
            config_changed(actor, changed, changed_more.unwrap_or(0))
        }
        SiteEvent::SettingsChanged => "changed settings are in force".to_owned(),
        SiteEvent::HostsApproved { hosts, actor } => format!("{} approved by {actor}", hosts.join(", ")),
        SiteEvent::KeyPinned { host, key, actor } => {
            format!("key {key} of {host} approved{}", by(actor.as_deref()))
        }
        SiteEvent::ItemStored { host, provider } => format!("{host} is to have what {provider} gives now"),
        SiteEvent::ItemRevoked { host, provider } => {
            format!("{host} is to have nothing of {provider} any more")
        }
        SiteEvent::PollRequested { provider, host, actor } => {
            let about = host.as_ref().map(|host| format!(" about {host}")).unwrap_or_default();
            format!("provider {provider} asked{about} for {actor}")
        }
        SiteEvent::DeliveryResumed { host, actor } => {
            format!("delivery to {} resumed by {actor}", host.as_deref().unwrap_or("all hosts"))
        }
        SiteEvent::UnknownItemsFound { hosts } => {
            format!("{} to have nothing: what they have is unknown here", first_and_more(hosts))
        }
        SiteEvent::ProviderFailed { provider, host, failure } => {
            format!("provider {provider} fails for every host, as for {host}: {failure}")
        }
        SiteEvent::ProviderRecovered { provider } => format!("provider {provider} answers again"),
        SiteEvent::HookTokenDrawn { provider } => {
            format!("provider {provider} gets a token for call-backs")
        }
        SiteEvent::HookTokensRevoked { provider, actor } => {
            format!("tokens for call-backs of provider {provider} revoked by {actor}")
        }
        SiteEvent::HookMetadataChanged { provider, hosts } => {
            format!("provider {provider} is to be told of new metadata of {}", first_and_more(hosts))
        }
        SiteEvent::CallbackReceived { provider, hosts } => {
            format!("provider {provider} has called back about {}", first_and_more(hosts))
        }
        SiteEvent::UnitSubmitted { unit, desired, actor } => {
            format!("unit {unit} submitted by {actor}, to be {desired}")
        }
        SiteEvent::UnitWanted { unit, state, actor } => format!("unit {unit} is to be {state}, says {actor}"),
        SiteEvent::UnitDestroyed { unit, actor } => format!("unit {unit} destroyed by {actor}"),
        SiteEvent::MachineJoined { host, machine, actor } => {
            format!("{host} approved as machine {machine}{}", by(actor.as_deref()))
        }
        SiteEvent::MachineLost { host } => format!("machine {host} lost: its agent is silent"),
        SiteEvent::MachineFound { host } => format!("machine {host} found: its agent is heard again"),
        SiteEvent::UnitPlaced { unit, hosts } => {
            format!("unit {unit} placed on {}", first_of(hosts, 0).unwrap_or_default())
        }
        SiteEvent::UnitTaken { unit, hosts, reason } => {
            format!("unit {unit} taken from {}: {reason}", first_of(hosts, 0).unwrap_or_default())
        }
        SiteEvent::UnitStopped { unit, host } => format!("unit {unit} stopped on {host}"),
        SiteEvent::HostRemoved { host, actor, reason } => {
            format!("{host} removed by {actor}{}", because(Some(reason)))
        }
        SiteEvent::HostWithdrawn { host, actor, reason } => {
            format!("{host} withdrawn by {actor}{}", because(Some(reason)))
        }
        SiteEvent::HostDeferred { host, actor, reason, until } => {
            format!("{host} deferred by {actor}{}{}", for_now(*until), because(Some(reason)))
        }
        SiteEvent::DeferralEnded { host, actor: None, .. } => format!("the deferral of {host} is over"),
        SiteEvent::DeferralEnded { host, actor: Some(actor), reason } => {
            format!("deferral of {host} ended by {actor}{}", because(reason.as_deref()))
        }
        SiteEvent::RebootsQueued { hosts, actor, reason } => {
            let hosts = first_of(hosts, 0).unwrap_or_default();
            format!("reboot of {hosts} queued by {actor}{}", because(reason.as_deref()))
        }
        SiteEvent::Reboot { index, host, step, why, reason, actor, .. } => {
            let what = step.known().and_then(entry_step).unwrap_or(step.as_str());
            let (by, why) = (by(actor.as_deref()), because(text(why.as_ref()).or(reason.as_deref())));
            format!("{host} (reboot queue, entry {index}) {what}{by}{why}")
        }
        SiteEvent::Node { host, step, why, reason, actor, run: _ } => {
            let (by, why) = (by(actor.as_deref()), because(text(why.as_ref()).or(reason.as_deref())));
            let what = step.known().and_then(node_step).unwrap_or(step.as_str());
            format!("node of {host} {what}{by}{why}")
        }
        SiteEvent::RebootQueueSwitched { enabled, actor, reason } => {
            let switched = if *enabled { "enabled" } else { "disabled" };
            format!("reboot queue {switched} by {actor}{}", because(reason.as_deref()))
        }
        SiteEvent::SitePaused { actor, reason, until } => {
            format!("site paused by {actor}{}{}", for_now(*until), because(reason.as_deref()))
        }
        SiteEvent::SiteResumed { actor: None, .. } => "the pause of the site is over".to_owned(),
        SiteEvent::SiteResumed { actor: Some(actor), reason } => {
            format!("site resumed by {actor}{}", because(reason.as_deref()))
        }
        SiteEvent::RebootBackoffReset { actor } => format!("backoff of the reboot queue reset by {actor}"),
        SiteEvent::SecretStored { name, actor } => format!("secret {name} stored by {actor}"),
        SiteEvent::SecretRemoved { name, actor } => format!("secret {name} removed by {actor}"),
        SiteEvent::StrongboxKeySet => "the strongbox got a new key".to_owned(),
        SiteEvent::Restored { source, actor } => format!("site restored from a {source} by {actor}"),
        SiteEvent::Progress { host, action, percent, text, .. } => {
            let percent = percent.map_or_else(String::new, |percent| format!(" {percent} %"));
            format!("{host} {action}{percent} {text}")
        }
        SiteEvent::Reset { .. } => "events are missing here: they are no longer kept".to_owned(),
    }
}

/// The first of `hosts`, and how many others there are.
fn first_and_more(hosts: &[String]) -> String {
    let first = hosts.first().map_or("none", String::as_str);
    if hosts.len() > 1 { format!("{first} and {} more", hosts.len() - 1) } else { first.to_owned() }
}

fn config_changed(actor: &str, changed: &[String], more: u64) -> String {
    if changed == [""] {
        return format!("configuration created by {actor}");
    }
    let fields = first_of(changed, usize::try_from(more).unwrap_or(usize::MAX));
    format!("configuration changed by {actor}{}", because(fields.as_deref()))
}

/// Until when a pause or a deferral lasts, if it ends by itself.
fn for_now(until: Option<Stamp>) -> String {
    until.map_or_else(String::new, |until| format!(" until {until}"))
}

/// What a host of a run does; `None` if its status says so.
const fn host_step(step: HostStep) -> Option<&'static str> {
    match step {
        HostStep::SlotGranted => Some("got its slot"),
        HostStep::RebootRequired => Some("needs a reboot"),
        HostStep::TurnLost => Some("lost its turn"),
        HostStep::Overdue => Some("is overdue"),
        HostStep::PrepareBegan => Some("is prepared next"),
        HostStep::PrepareFailed => Some("failed to prepare, and is prepared again"),
        HostStep::CommandSent
        | HostStep::Prepared
        | HostStep::Waiting
        | HostStep::Drained
        | HostStep::BackedOff
        | HostStep::Recovering
        | HostStep::Upgraded
        | HostStep::Failed
        | HostStep::TimedOut
        | HostStep::Skipped
        | HostStep::Cancelled
        | HostStep::NotReached => None,
    }
}

/// What happens to the host of an entry; `None` if the step's word says so.
const fn entry_step(step: EntryStep) -> Option<&'static str> {
    match step {
        EntryStep::Started => Some("starts"),
        EntryStep::RebootBegan => Some("is told to reboot"),
        EntryStep::CommandSent => Some("reboot sent"),
        EntryStep::Failed => Some("did not reboot well"),
        EntryStep::Booted => Some("is back"),
        EntryStep::NotRebooted => Some("has not rebooted, and is not to any more"),
        EntryStep::Waiting
        | EntryStep::BackedOff
        | EntryStep::AttemptDue
        | EntryStep::AttemptBegan
        | EntryStep::AttemptSucceeded
        | EntryStep::AttemptUnknown
        | EntryStep::Cancelled
        | EntryStep::GivenUp
        | EntryStep::Removed
        | EntryStep::Rebooted => None,
    }
}

/// What happens to a node; `None` if the step's word says so.
const fn node_step(step: NodeStepKind) -> Option<&'static str> {
    match step {
        NodeStepKind::Cordoned => Some("is cordoned"),
        NodeStepKind::EvictionBegan => Some("is being drained"),
        NodeStepKind::RecheckBegan => Some("is drained once more before the reboot"),
        NodeStepKind::Waiting => Some("waits"),
        NodeStepKind::Drained => Some("is drained"),
        NodeStepKind::UncordonDue => Some("is being uncordoned"),
        NodeStepKind::UncordonRequested => Some("is to be uncordoned"),
        NodeStepKind::Uncordoned => None,
    }
}

fn is_operator(behalf: Behalf) -> bool {
    behalf == Behalf::Operator
}

/// The most names that are said.
const NAMES_MAX: usize = 4;

/// The first of `names`, such as changed fields or hosts, of which `unlisted` more are not given, as in `start-jitter and 2 more`;
/// `None` if there are none.
pub fn first_of<S: AsRef<str>>(names: &[S], unlisted: usize) -> Option<String> {
    let first: Vec<&str> = names.iter().map(AsRef::as_ref).take(NAMES_MAX).collect();
    match (names.len() - first.len()).saturating_add(unlisted) {
        0 if first.is_empty() => None,
        0 => Some(first.join(", ")),
        more => Some(format!("{} and {more} more", first.join(", "))),
    }
}

fn by(actor: Option<&str>) -> String {
    actor.map_or_else(String::new, |actor| format!(" by {actor}"))
}

fn text(why: Option<&Why>) -> Option<&str> {
    why.map(|why| why.text.as_str())
}

fn because(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |reason| format!(": {reason}"))
}
