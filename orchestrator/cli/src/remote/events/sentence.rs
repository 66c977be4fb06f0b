//! An event as a sentence for people.

use os_upgrade_api_types::routes::events::SiteEvent;

/// What has happened, in a few words. It may contain what strangers chose, such as names.
pub(super) fn sentence(event: &SiteEvent) -> String {
    match event {
        SiteEvent::RunStarted { run, actor, reason, hosts, skipped, .. } => {
            let by = actor.as_deref().unwrap_or("its maintenance window");
            let skipped = if *skipped == 0 { String::new() } else { format!(", {skipped} skipped") };
            format!("run {run} started by {by} ({hosts} hosts{skipped}){}", because(reason.as_deref()))
        }
        SiteEvent::RunUpgrading { run } => format!("run {run}: every host is prepared"),
        SiteEvent::RunStopping { run, host: Some(host), .. } => {
            format!("run {run} starts no further host, because {host} failed")
        }
        SiteEvent::RunStopping { run, host: None, cause, actor, reason } => {
            let by = by(actor.as_deref());
            format!("run {run} starts no further host, {cause}{by}{}", because(reason.as_deref()))
        }
        SiteEvent::RunEnded { run, result } => format!("run {run} {result}"),
        SiteEvent::RunMissed { window_start, reason, unrecorded, .. } => {
            let more = unrecorded.map_or_else(String::new, |more| format!(", and {more} runs before it"));
            format!("the run of the window at {window_start} was missed{more}: {reason}")
        }
        SiteEvent::Host { host, step, action: Some(action), attempt, .. } if step == "command-sent" => {
            let again = attempt.filter(|attempt| *attempt > 1);
            format!(
                "{host}: {action} sent{}",
                again.map_or_else(String::new, |attempt| format!(" (attempt {attempt})"))
            )
        }
        SiteEvent::Host { host, step, status, reason, actor, .. } => {
            let what = match step.as_str() {
                "slot-granted" => "got its slot",
                "reboot-required" => "needs a reboot",
                "turn-lost" => "lost its turn",
                _ => status,
            };
            format!("{host} {what}{}{}", by(actor.as_deref()), because(reason.as_deref()))
        }
        SiteEvent::SlotHeld { group, holder, behalf, actor, reason } => {
            let on_behalf = if behalf == "operator" { by(Some(actor)) } else { String::new() };
            format!("slot of group {group} held for {holder}{on_behalf}{}", because(reason.as_deref()))
        }
        SiteEvent::SlotReleased { holder, actor, reason, behalf, .. } => {
            let by = if behalf == "operator" { by(actor.as_deref()) } else { String::new() };
            format!("slot of {holder} released{by}{}", because(reason.as_deref()))
        }
        SiteEvent::SlotNotReleased { host, reason, .. } => format!("slot of {host} not released: {reason}"),
        SiteEvent::ConfigChanged { actor, deleted: true, .. } => format!("configuration deleted by {actor}"),
        SiteEvent::ConfigChanged { actor, deleted: false, changed, changed_more } => {
            if changed.as_slice() == [""] {
                return format!("configuration created by {actor}");
            }
            let more = usize::try_from(changed_more.unwrap_or(0)).unwrap_or(usize::MAX);
            let fields = changed_fields(changed, more);
            format!("configuration changed by {actor}{}", because(fields.as_deref()))
        }
        SiteEvent::SettingsChanged => "changed settings are in force".to_owned(),
        SiteEvent::HostsApproved { hosts, actor } => format!("{} approved by {actor}", hosts.join(", ")),
        SiteEvent::HostRemoved { host, actor, reason } => {
            format!("{host} removed by {actor}{}", because(Some(reason)))
        }
        SiteEvent::HostWithdrawn { host, actor, reason } => {
            format!("{host} withdrawn by {actor}{}", because(Some(reason)))
        }
        SiteEvent::RebootsQueued { hosts, actor, reason } => {
            let hosts = changed_fields(hosts, 0).unwrap_or_default();
            format!("reboot of {hosts} queued by {actor}{}", because(reason.as_deref()))
        }
        SiteEvent::Reboot { index, host, step, reason, actor, .. } => {
            let what = match step.as_str() {
                "started" => "starts",
                "reboot-began" => "is told to reboot",
                "command-sent" => "reboot sent",
                "failed" => "did not reboot well",
                "booted" => "is back",
                "rebooted" => "rebooted",
                "not-rebooted" => "has not rebooted, and is not to any more",
                other => other,
            };
            let (by, why) = (by(actor.as_deref()), because(reason.as_deref()));
            format!("{host} (reboot queue, entry {index}) {what}{by}{why}")
        }
        SiteEvent::Node { host, step, reason, actor, run: _ } => {
            let (by, why) = (by(actor.as_deref()), because(reason.as_deref()));
            format!("node of {host} {}{by}{why}", node_step(step))
        }
        SiteEvent::RebootQueueSwitched { enabled, actor, reason } => {
            let switched = if *enabled { "enabled" } else { "disabled" };
            format!("reboot queue {switched} by {actor}{}", because(reason.as_deref()))
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

/// What happens to a node, by the word of its step.
fn node_step(step: &str) -> &str {
    match step {
        "cordoned" => "is cordoned",
        "eviction-began" => "is being drained",
        "recheck-began" => "is drained once more before the reboot",
        "waiting" => "waits",
        "drained" => "is drained",
        "uncordon-due" => "is being uncordoned",
        "uncordon-requested" => "is to be uncordoned",
        other => other,
    }
}

/// The most changed fields that are named.
const FIELDS_NAMED_MAX: usize = 4;

/// The changed fields of a configuration, by their paths, of which `unlisted` more are not given, such as `start-jitter and 2
/// more`; `None` if there are none.
pub(crate) fn changed_fields<S: AsRef<str>>(paths: &[S], unlisted: usize) -> Option<String> {
    let named: Vec<&str> = paths.iter().map(AsRef::as_ref).take(FIELDS_NAMED_MAX).collect();
    let more = (paths.len() - named.len()).saturating_add(unlisted);
    match (named.as_slice(), more) {
        ([], 0) => None,
        ([""], 0) => Some("created".to_owned()),
        (_, 0) => Some(named.join(", ")),
        (_, more) => Some(format!("{} and {more} more", named.join(", "))),
    }
}

fn by(actor: Option<&str>) -> String {
    actor.map_or_else(String::new, |actor| format!(" by {actor}"))
}

fn because(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |reason| format!(": {reason}"))
}
