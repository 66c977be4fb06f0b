//! The language of the stories: one input in each line, after `> `. Its outcome follows below it.
//!
//! `missed` and `due` are decided as by a leader, which remembers what blocked a run until a `takeover`.
//! `host`, `gone`, `clock`, `step`, `sealed` and `wait` change the view and the time, and are no inputs themselves.

use std::collections::BTreeMap;

use std::fmt::Write as _;

use chrono::TimeDelta;
use chrono_tz::Tz;
use os_upgrade_calendar::Duration;
use os_upgrade_kernel::fact::RunFact;
use os_upgrade_kernel::start::StartTimer;
use os_upgrade_kernel::{
    ApiServerOrder, Backoff, ClockDoubt, CommandJob, CommandOutcome, ConfigOperation, ControlMessage, Effect,
    EnrolmentOperation, Expected, Explainer, Fact, InReplyTo, Input, Job, JobDone, KubernetesSettings,
    LockOperation, LockOutcome, LockProvider, NoAnswer, NodeFence, NodeJob, NodeOperation, NodeOutcome,
    OnFailure, Operation, Order, PauseOperation, Pod, PodObstacle, Pods, Reachability, RebootCommandSettings,
    RebootOperation, RebootSettings, Reclaim, Request, RunOperation, Sealed, SecretName, SeenMark, SeenNode,
    Settings, SlotOperation, SlotOrder, Subject, Targets, Volumes, forecast,
};
use os_upgrade_protocol::{Action, CommandId, Outcome, Reply};

use serde_json::{Value, json};

use super::{Outputs, Site, application, client, group, host, render, run, seen, slot_done};

/// Plays a story and returns it with the outcome of every input. Lines that are not inputs or comments are ignored.
pub(crate) fn play(story: &str) -> String {
    let mut site = Site::default();
    let mut played = String::new();
    for line in story.lines() {
        if let Some(input) = line.strip_prefix("> ") {
            let before = site.effects();
            writeln!(played, "{line}").unwrap();
            for output in perform(&mut site, input) {
                writeln!(played, "  {output}").unwrap();
            }
            let after = site.effects();
            if before != after {
                writeln!(played, "  ! {}", render::effects(&after)).unwrap();
            }
        } else if line.starts_with('#') || line.is_empty() {
            writeln!(played, "{line}").unwrap();
        }
    }
    played
}

/// The words of an input: those without `=` in order, and the others by name.
struct Words<'a> {
    line: &'a str,
    plain: Vec<&'a str>,
}

impl<'a> Words<'a> {
    fn at(&self, index: usize) -> &'a str {
        self.plain.get(index).unwrap_or_else(|| panic!("{:?} needs {index} words", self.line))
    }

    fn has(&self, word: &str) -> bool {
        self.plain.contains(&word)
    }

    fn named(&self, name: &str) -> Option<&'a str> {
        self.line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.named(name).map(|number| number.parse().unwrap())
    }

    fn rest(&self, words: usize) -> &'a str {
        self.line.splitn(words + 1, ' ').nth(words).unwrap_or_default()
    }
}

pub(crate) fn perform(site: &mut Site, line: &str) -> Vec<String> {
    let words = Words { line, plain: line.split(' ').filter(|word| !word.contains('=')).collect() };
    match words.at(0) {
        "host" | "gone" | "node" | "no-nodes" | "clock" | "step" | "sealed" | "control-read"
        | "control-unread" | "wait" => {
            change_view(site, &words);
            Vec::new()
        }
        "state" => render::state(&site.state),
        "queue" => render::queue(&site.state, &site.view, site.now),
        "explain" => {
            let forecast = forecast(&site.state, &site.view, site.now);
            let explainer = Explainer::new(&site.state, &site.view, site.now);
            let name = host(words.at(1));
            let in_run = site.state.run.as_ref().and_then(|run| explainer.in_run(run, &name));
            vec![render::explanation(&explainer.explain(&forecast, &name), in_run.as_ref())]
        }
        "takeover" => {
            site.start_timer = StartTimer::default();
            Vec::new()
        }
        "missed" => {
            let blocked = site.start_timer.blocked().cloned();
            let has_missed = site.start_timer.has_missed(&site.state, &site.view, site.now);
            let outputs = site.input(Input::Missed { blocked });
            let is_missed = |fact: &Fact| matches!(fact, Fact::Run(RunFact::Missed(_)));
            assert_eq!(has_missed, outputs.facts.iter().any(is_missed));
            render_outputs(&outputs)
        }
        "due" => {
            // It remembers what blocks the run.
            site.start_timer.due(&site.state, &site.view, site.now);
            render_outputs(&site.input(Input::Due { run: run(words.at(1)) }))
        }
        "fence" => site.fence().iter().map(|fact| format!("+ {}", render::fact(fact))).collect(),
        "deliver" => deliver(site),
        "sent" => render_outputs(&sent(site, &words)),
        "reply" => render_outputs(&reply(site, &words)),
        "garbage" | "unknown" | "foreign" => {
            let message = match words.at(0) {
                "garbage" => ControlMessage::Reply {
                    host: host(words.at(1)),
                    reply: Err("payload is not a valid message".to_owned()),
                    in_reply_to: in_reply_to(&words),
                },
                "unknown" => ControlMessage::Unknown { subject: words.at(1).to_owned() },
                _ => ControlMessage::Command { host: host(words.at(1)), id: None },
            };
            render_outputs(&site.control(message))
        }
        "cluster" => render_outputs(&cluster(site, &words)),
        "command" => render_outputs(&command(site, &words)),
        _ => {
            let input = input(&words);
            render_outputs(&site.input(input))
        }
    }
}

/// The job of a system about the host that is named, which must be wanted.
fn wanted<T: Clone>(site: &Site, words: &Words<'_>, of_system: impl Fn(&Job) -> Option<&T>) -> T {
    let subject = Subject::Host(host(words.at(1)));
    let mut jobs = site.effects().into_iter().filter_map(|effect| {
        let Effect::Job(job) = effect else { return None };
        of_system(&job).filter(|_| job.subject() == subject).cloned()
    });
    jobs.next().unwrap_or_else(|| panic!("{:?}: no such job is wanted", words.line))
}

/// `cluster h1 drained boot=a1`: the cluster's answer to the job about a host that is wanted.
fn cluster(site: &mut Site, words: &Words<'_>) -> Outputs {
    let job = wanted(site, words, NodeJob::of);
    let detail = || words.rest(3).to_owned();
    let number = |at| words.at(at).parse().unwrap();
    let pod = |name: &&str| Pod {
        namespace: "shop".to_owned(),
        name: (*name).to_owned(),
        owner: None,
        obstacle: PodObstacle::Budget { budgets: vec!["db".to_owned()] },
        since: site.now,
    };
    let pending = |name: &&str| {
        let message = "the budget db is being processed".to_owned();
        let until = site.now + TimeDelta::seconds(10);
        Pod { obstacle: PodObstacle::BudgetPending { message, until }, ..pod(name) }
    };
    let outcome = match words.at(2) {
        "clear" => NodeOutcome::Clear,
        "held" => NodeOutcome::Held,
        "unmarked" => NodeOutcome::Unmarked,
        "superseded" => NodeOutcome::Superseded { fence: NodeFence { restored: 0, sequence: number(3) } },
        "drained" => NodeOutcome::Drained { boot_id: words.named("boot").map(ToOwned::to_owned) },
        "remaining" => {
            let is_silent = words.has("kubelet-silent");
            let names = words.plain[3..].iter().filter(|name| **name != "kubelet-silent");
            let first: Vec<Pod> = names.map(pod).collect();
            NodeOutcome::Remaining { pods: Pods { count: first.len(), first, kubelet_silent: is_silent } }
        }
        "pending" => {
            let first: Vec<Pod> = words.plain[3..].iter().map(pending).collect();
            NodeOutcome::Remaining { pods: Pods { count: first.len(), first, kubelet_silent: false } }
        }
        "volumes" => {
            let first: Vec<String> = words.plain[3..].iter().map(|name| (*name).to_owned()).collect();
            NodeOutcome::VolumesInUse { volumes: Volumes { count: first.len(), first, staying: 0 } }
        }
        "lost" => NodeOutcome::CordonLost { detail: detail() },
        "uncordoned" => NodeOutcome::Uncordoned,
        "not-ready" => NodeOutcome::NotReady,
        "unreachable" => NodeOutcome::Unreachable { why: NoAnswer::TimedOut },
        "refused" => NodeOutcome::Refused { detail: detail() },
        other => panic!("there is no outcome {other:?}"),
    };
    let outcome = if words.has("admin-cordon") {
        NodeOutcome::FoundUnschedulable { outcome: Box::new(outcome) }
    } else {
        outcome
    };
    site.input(Input::JobDone(JobDone::Cluster(job, outcome)))
}

/// `command h1 failed exit status 1`: what came of the operator's command that is wanted about a host.
fn command(site: &mut Site, words: &Words<'_>) -> Outputs {
    let job = wanted(site, words, CommandJob::of);
    let detail = words.rest(3).to_owned();
    let outcome = match words.at(2) {
        "succeeded" => CommandOutcome::Succeeded,
        "failed" => CommandOutcome::Failed { detail, output: "printed".to_owned() },
        "not-started" => CommandOutcome::NotStarted { detail },
        "unknown" => CommandOutcome::Unknown { detail, output: "printed".to_owned() },
        "booted" => CommandOutcome::Booted,
        "not-booted" => CommandOutcome::NotBooted,
        other => panic!("there is no outcome {other:?}"),
    };
    site.input(Input::JobDone(JobDone::RebootCommand(job, outcome)))
}

fn render_outputs(outputs: &Outputs) -> Vec<String> {
    let facts = outputs.facts.iter().map(|fact| format!("+ {}", render::fact(fact)));
    let answer = outputs.answer.iter().map(|answer| format!("= {}", render::answer(answer)));
    let hint = outputs.hint.iter().map(|(hint, hosts)| format!("~ {}", render::hint(hint, hosts)));
    facts.chain(answer).chain(hint).collect()
}

fn change_view(site: &mut Site, words: &Words<'_>) {
    match words.at(0) {
        "host" => {
            let mut host_seen = seen(words.named("group"));
            if let Some(applications) = words.named("applications") {
                host_seen.applications = applications.split(',').map(application).collect();
            }
            if let Some(refused) = words.named("refused") {
                host_seen.refused = refused.split(',').map(application).collect();
            }
            if words.has("unreachable") {
                host_seen.reachability = Reachability::Unreachable;
            }
            if words.has("reachable") {
                host_seen.reachability = Reachability::Reachable;
            }
            if words.has("awaited") {
                host_seen.reachability = Reachability::Awaited;
            }
            host_seen.reboot_required = words.named("required").map(ToOwned::to_owned);
            host_seen.boot_id = words.named("boot").map(ToOwned::to_owned);
            host_seen.reboots_on_request = host_seen.boot_id.is_some() && !words.has("specification-only");
            host_seen.clock_skew_secs = words.named("skew").map(|seconds| seconds.parse().unwrap());
            site.view.hosts.insert(host(words.at(1)), host_seen);
            site.view.left.remove(&host(words.at(1)));
        }
        "node" => {
            let node = SeenNode {
                name: format!("node-{}", words.at(1)),
                boot_id: words.named("boot").map(ToOwned::to_owned),
                is_ready: !words.has("not-ready"),
                is_api_server: words.has("api-server"),
                is_unschedulable: words.has("unschedulable"),
                mark: words.named("mark").map(|sequence| SeenMark {
                    fence: NodeFence { restored: 0, sequence: sequence.parse().unwrap() },
                    is_of_other_journal: words.has("of-other-journal"),
                }),
            };
            site.view.nodes.get_or_insert_default().insert(host(words.at(1)), node);
        }
        "no-nodes" => site.view.nodes = None,
        "gone" => {
            site.view.hosts.remove(&host(words.at(1)));
            site.view.left.insert(host(words.at(1)));
        }
        "sealed" => {
            site.view.sealed = match words.at(1) {
                "no-key" => Some(Sealed::NoKey),
                "no-secret" => Some(Sealed::NoSecret { name: SecretName::new(words.at(2)).unwrap() }),
                _ => None,
            };
        }
        "control-unread" | "control-read" => {
            let is_read = words.at(0) == "control-read";
            (site.view.has_read_control, site.view.has_awaited_replies) = (is_read, is_read);
        }
        "clock" => {
            site.view.clock.doubt = match words.at(1) {
                "trusted" => None,
                "unmeasured" => Some(ClockDoubt::ClockUnmeasured),
                "disputed" => Some(ClockDoubt::ClockDisputed { differ: 2, hosts: 3 }),
                "stepped" => Some(ClockDoubt::ClockStepped),
                "behind" => Some(ClockDoubt::ClockBehind { newest: site.now + TimeDelta::hours(3) }),
                seconds => Some(ClockDoubt::ClockSkew { seconds: seconds.parse().unwrap() }),
            };
        }
        "step" => {
            let step = words.at(1).parse().unwrap();
            site.now += TimeDelta::seconds(step);
            site.view.clock.steady_since = Some(site.now);
        }
        _ => {
            let time = words.at(1).parse::<Duration>().map(Duration::to_delta);
            site.now += time.unwrap_or_else(|_| TimeDelta::seconds(words.at(1).parse().unwrap()));
        }
    }
}

/// Every unsent command appears in the control stream.
fn deliver(site: &mut Site) -> Vec<String> {
    let mut lines = Vec::new();
    for effect in site.effects() {
        if let Effect::Send(Order { id, .. }) = effect {
            lines.extend(render_outputs(&site.command(id)));
        }
    }
    lines
}

fn action(word: &str) -> Action {
    Action::ALL.into_iter().find(|action| action.as_str() == word).unwrap()
}

fn sent(site: &mut Site, words: &Words<'_>) -> Outputs {
    let active = || site.state.run.as_ref().unwrap().id.clone();
    site.command(CommandId {
        run: words.named("run").map_or_else(active, run),
        host: host(words.at(1)),
        action: action(words.at(2)),
        attempt: words.number("attempt").map_or(1, |attempt| u32::try_from(attempt).unwrap()),
    })
}

fn reply(site: &mut Site, words: &Words<'_>) -> Outputs {
    let skipped = 3 + ["to", "run"].iter().filter(|name| words.named(name).is_some()).count();
    let result = Outcome::from(words.rest(skipped).to_owned());
    let reply = Reply { action: action(words.at(2)), result };
    let in_reply_to = in_reply_to(words);
    site.control(ControlMessage::Reply { host: host(words.at(1)), reply: Ok(reply), in_reply_to })
}

fn in_reply_to(words: &Words<'_>) -> InReplyTo {
    InReplyTo { sequence: words.number("to"), run: words.named("run").map(run) }
}

fn input(words: &Words<'_>) -> Input {
    let actor = words.named("by").unwrap_or("admin").to_owned();
    let validate = words.has("validate");
    let request = |operation: Operation| Input::Request(Request { actor, validate, operation });
    match words.at(0) {
        "tick" => Input::Tick,
        "put-config" => {
            let config = serde_json::from_value(configuration(words)).unwrap();
            request(ConfigOperation::Put { config, expected: expected(words) }.into())
        }
        "delete-config" => request(ConfigOperation::Delete { expected: expected(words) }.into()),
        "trigger" => {
            let hosts = words.named("hosts").map(|names| names.split(',').map(host).collect());
            let retry = words.named("retry").map(|retry| serde_json::from_value(json!(retry)).unwrap());
            let targets = Targets { hosts: hosts.unwrap_or_default(), retry };
            let timeout = words.named("timeout").or_else(|| targets.is_all().then_some("4h"));
            let timeout = timeout.map(|timeout| timeout.parse().unwrap());
            let reason = words.named("reason").map(ToOwned::to_owned);
            request(RunOperation::Trigger { run: run(words.at(1)), timeout, targets, reason }.into())
        }
        "cancel" => {
            request(RunOperation::Cancel { reason: words.named("reason").map(ToOwned::to_owned) }.into())
        }
        "lock" => request(LockOperation::Lock { group: group(words.at(1)), id: client(words.at(2)) }.into()),
        "unlock" => {
            request(LockOperation::Unlock { group: group(words.at(1)), id: client(words.at(2)) }.into())
        }
        "hold" | "release" | "reclaim" => {
            let (group, id) = (group(words.at(1)), client(words.at(2)));
            let reason = words.rest(3).to_owned();
            let operation = match words.at(0) {
                "hold" => SlotOperation::Hold { group, id, reason },
                "release" => SlotOperation::Release { group, id, reason },
                _ => SlotOperation::Reclaim { group, id },
            };
            request(operation.into())
        }
        "approve" => {
            let names = words.plain[1..].iter().filter(|word| **word != "validate");
            request(
                EnrolmentOperation::Approve {
                    hosts: names.map(|name| host(name)).collect(),
                    keys: BTreeMap::new(),
                    machines: BTreeMap::new(),
                }
                .into(),
            )
        }
        "withdraw" => {
            let reason = words.named("why").unwrap_or("moved").to_owned();
            request(EnrolmentOperation::Withdraw { host: host(words.at(1)), reason }.into())
        }
        "defer" => {
            let reason = words.named("why").unwrap_or("the quarter closes").to_owned();
            let until = words.named("until").map(|time| time.parse().unwrap());
            request(EnrolmentOperation::Defer { host: host(words.at(1)), reason, until }.into())
        }
        "end-deferral" => {
            request(EnrolmentOperation::EndDeferral { host: host(words.at(1)), reason: None }.into())
        }
        "remove" => {
            let reason = words.named("why").unwrap_or("scrapped").to_owned();
            request(EnrolmentOperation::Remove { host: host(words.at(1)), reason }.into())
        }
        "give-up" => {
            let reason = words.named("why").unwrap_or("no power").to_owned();
            request(RunOperation::GiveUpHost { host: host(words.at(1)), reason }.into())
        }
        "pause" => {
            let reason = words.named("why").unwrap_or("the fair is on").to_owned();
            let until = words.named("until").map(|time| time.parse().unwrap());
            request(PauseOperation::Pause { reason, until }.into())
        }
        "resume" => {
            request(PauseOperation::Resume { reason: words.named("why").map(ToOwned::to_owned) }.into())
        }
        "rq" => request(reboot(words).into()),
        "uncordon" => {
            let reason = words.named("why").unwrap_or("mended").to_owned();
            request(NodeOperation::Uncordon { host: host(words.at(1)), reason }.into())
        }
        "nodes-seen" => Input::NodesSeen,
        "settings" => Input::Settings(settings(words)),
        "purged" => Input::Purged { host: host(words.at(1)), announced: 0 },
        "leadership-began" => Input::LeadershipBegan,
        "fence-stored" => {
            Input::FenceStored { sequence: words.number("at").unwrap(), leader: words.at(1).to_owned() }
        }
        "leader" => Input::Control { sequence: words.number("at").unwrap(), message: ControlMessage::Leader },
        "locked" => slot_done(SlotOrder::Lock, host(words.at(1)), outcome(words.at(2))),
        "unlocked" => slot_done(SlotOrder::Unlock, host(words.at(1)), outcome(words.at(2))),
        "retracted" => Input::Retracted {
            host: host(words.at(1)),
            sequence: words.number("at").unwrap(),
            deleted: words.has("deleted"),
        },
        other => panic!("there is no input {other:?}"),
    }
}

/// `rq add h1 h2`, `rq cancel 0`, `rq give-up 0`
fn reboot(words: &Words<'_>) -> RebootOperation {
    let reason = || words.named("why").map(ToOwned::to_owned);
    let index = || words.at(2).parse().unwrap();
    match words.at(1) {
        "add" => {
            let names = words.plain[2..].iter().filter(|word| **word != "validate");
            RebootOperation::Add { hosts: names.map(|name| host(name)).collect(), reason: reason() }
        }
        "cancel" => RebootOperation::Cancel { index: index(), reason: reason() },
        "cancel-all" => RebootOperation::CancelAll { reason: reason() },
        "give-up" => {
            let reason = reason().unwrap_or_else(|| "no power".to_owned());
            RebootOperation::GiveUp { index: index(), reason }
        }
        "reset-backoff" => RebootOperation::ResetBackoff,
        "enable" => RebootOperation::Enable { reason: reason() },
        "disable" => RebootOperation::Disable { reason: reason() },
        other => panic!("the reboot queue has no {other:?}"),
    }
}

/// `put-config debian,web rollout/max-concurrent=2 start-jitter=1h maintenance-windows=Friday~01:00~4h;Sunday~02:00~1h`:
/// the applications, or `none`, and any field by its path.
fn configuration(words: &Words<'_>) -> Value {
    let names = words.at(1).split(',').filter(|name| *name != "none");
    let mut config =
        json!({ "worker-applications": names.map(|name| json!({ "name": name })).collect::<Vec<_>>() });
    let settings = words.line.split(' ').filter_map(|word| word.split_once('='));
    for (path, text) in settings.filter(|(path, _)| !["by", "expect"].contains(path)) {
        let value = match path {
            "maintenance-windows" | "deny-windows" => text.split(';').map(window).collect(),
            _ => text.parse::<u32>().map_or_else(|_| json!(text), |number| json!(number)),
        };
        *path.split('/').fold(&mut config, |within, name| &mut within[name]) = value;
    }
    config
}

/// `Friday,Saturday~01:00~4h`, followed by `~` and a zone if it is not the site's.
fn window(text: &str) -> Value {
    let parts: Vec<&str> = text.split('~').collect();
    let [days, time, duration] = parts[..3] else { panic!("{text}") };
    let zone = parts.get(3).unwrap_or(&"site-local");
    json!({ "days-of-week": days, "start-time": time, "duration": duration, "timezone": zone })
}

/// `expect=none`, `expect=some`, `expect=<tag>,<tag>`
fn expected(words: &Words<'_>) -> Expected {
    match words.named("expect") {
        None => Expected::Anything,
        Some("some") => Expected::Present,
        Some("none") => Expected::Absent,
        Some(tags) => Expected::Tags(tags.split(',').map(ToOwned::to_owned).collect()),
    }
}

/// `settings external release waiting default:1 edge:2`
fn settings(words: &Words<'_>) -> Settings {
    // `default:1` or, with a slot of a failed host that does not count, `default:1+1`.
    let groups = words.plain.iter().filter_map(|word| word.split_once(':'));
    let groups = groups.map(|(name, slots)| (group(name), slots.split_once('+').unwrap_or((slots, "0"))));
    let number = |text: &str| text.parse::<u32>().unwrap();
    Settings {
        site: words.named("site").unwrap_or_default().to_owned(),
        timezone: words.named("zone").map_or(Tz::UTC, |zone| zone.parse().unwrap()),
        provider: if words.has("external") { LockProvider::External } else { LockProvider::Embedded },
        default_group: group("default"),
        on_failure: if words.has("release") { OnFailure::Release } else { OnFailure::Hold },
        groups: groups.clone().map(|(name, (slots, _))| (name, number(slots))).collect(),
        failed: groups.map(|(name, (_, failed))| (name, number(failed))).filter(|(_, it)| *it > 0).collect(),
        reclaim: if words.has("reclaim") { Reclaim::Inventory } else { Reclaim::Never },
        auto_approve: !words.has("waiting"),
        reboot: RebootSettings {
            max_concurrent: words.number("reboots").map_or(1, |number| u32::try_from(number).unwrap()),
            unreachable_max: words.number("unreachable").map_or(0, |number| u32::try_from(number).unwrap()),
            in_windows: words.has("in-windows"),
            queue_required: words.has("queue-required"),
            api_servers: if words.has("servers-last") { ApiServerOrder::Last } else { ApiServerOrder::First },
            backoff: if words.has("kubernetes") {
                Backoff { jitter: Duration::from_secs(0), ..Backoff::DEFAULT }
            } else {
                Backoff::DEFAULT
            },
            command: words.named("command").map(|within| RebootCommandSettings {
                within: within.parse().unwrap(),
                checks_boot: words.has("boot-check"),
            }),
        },
        kubernetes: words.has("kubernetes").then(|| KubernetesSettings {
            drain_timeout: Duration::from_secs(600),
            uncordon_failed: words.has("uncordon-failed"),
            hosts: None,
        }),
        ..Settings::default()
    }
}

fn outcome(word: &str) -> LockOutcome {
    match word {
        "granted" => LockOutcome::Granted,
        "denied" => LockOutcome::Denied {
            lock_kind: "failed_lock_semaphore_full".to_owned(),
            value: "semaphore currently full, all slots are locked already".to_owned(),
        },
        "unreachable" => {
            LockOutcome::Unreachable { why: NoAnswer::Failed { detail: "connection reset".to_owned() } }
        }
        "timeout" => LockOutcome::Unreachable { why: NoAnswer::TimedOut },
        "not-sent" => {
            LockOutcome::Unreachable { why: NoAnswer::NotSent { detail: "connection refused".to_owned() } }
        }
        "protocol" => LockOutcome::Protocol { detail: "200 with a body of HTML".to_owned() },
        other => panic!("there is no outcome {other:?}"),
    }
}
