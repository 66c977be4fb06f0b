//! An event as a sentence for people.

use os_upgrade_api_types::routes::events::SiteEvent;

/// What has happened, in a few words. It may contain what strangers chose, such as names.
pub(super) fn sentence(event: &SiteEvent) -> String {
    match event {
        SiteEvent::RunStarted { run, actor, hosts, skipped, .. } => {
            let by = actor.as_deref().unwrap_or("its maintenance window");
            let skipped = if *skipped == 0 { String::new() } else { format!(", {skipped} skipped") };
            format!("run {run} started by {by}: {hosts} hosts{skipped}")
        }
        SiteEvent::RunUpgrading { run } => format!("run {run}: every host is prepared"),
        SiteEvent::RunStopping { run, host: Some(host), .. } => {
            format!("run {run} starts no further host, because {host} failed")
        }
        SiteEvent::RunStopping { run, host: None, cause, actor } => {
            format!("run {run} starts no further host: {cause}{}", by(actor.as_deref()))
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
        SiteEvent::ConfigChanged { actor, deleted: false } => format!("configuration changed by {actor}"),
        SiteEvent::ConfigChanged { actor, deleted: true } => format!("configuration deleted by {actor}"),
        SiteEvent::SettingsChanged => "changed settings are in force".to_owned(),
        SiteEvent::HostsApproved { hosts, actor } => format!("{} approved by {actor}", hosts.join(", ")),
        SiteEvent::HostWithdrawn { host, actor, reason } => {
            format!("{host} withdrawn by {actor}{}", because(Some(reason)))
        }
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

fn by(actor: Option<&str>) -> String {
    actor.map_or_else(String::new, |actor| format!(" by {actor}"))
}

fn because(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |reason| format!(": {reason}"))
}
