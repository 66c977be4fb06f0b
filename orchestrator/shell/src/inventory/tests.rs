//! Reachability, announcements and what is told of them, by the clock.

use os_upgrade_kernel::{LockProvider, Slot, SlotState};
use os_upgrade_protocol::{GroupName, RunId};

use super::*;

fn host(name: &str) -> HostName {
    HostName::new(name).unwrap()
}

fn application(name: &str) -> ApplicationName {
    ApplicationName::new(name).unwrap()
}

fn at(secs: u64) -> Now {
    let monotonic = Duration::from_secs(secs);
    Now { wall: LATER + monotonic, monotonic }
}

/// Long after the announcements made at the epoch.
const LATER: DateTime<Utc> = DateTime::from_timestamp(1_000_000, 0).unwrap();

fn announce(inventory: &mut Inventory, app: &str, name: &str) {
    let announcement = Announcement::new(host(name), application(app));
    receive(inventory, at(0), app, name, &announcement.to_payload(), DateTime::UNIX_EPOCH);
}

fn receive(inventory: &mut Inventory, now: Now, app: &str, name: &str, payload: &[u8], at: DateTime<Utc>) {
    inventory.announced(now, &application(app), &host(name), payload, (1, at)).unwrap();
}

/// Announces a host that sends heartbeats. The announcement is read at `secs` and is `age` old by then.
fn announce_heartbeats(inventory: &mut Inventory, name: &str, secs: u64, age: TimeDelta) {
    let announcement = Announcement { heartbeats: true, ..Announcement::new(host(name), application("a")) };
    receive(inventory, at(secs), "a", name, &announcement.to_payload(), at(secs).wall - age);
}

/// Ticks every second from `from` to `to`.
fn tick(inventory: &mut Inventory, from: u64, to: u64, connected: bool) {
    (from..=to).for_each(|secs| inventory.tick(at(secs), connected));
}

fn reachability(inventory: &Inventory, name: &str) -> Option<Reachability> {
    inventory.view().hosts.get(&host(name)).map(|seen| seen.reachability)
}

#[test]
fn announcements_are_per_application() {
    let mut inventory = Inventory::default();
    announce(&mut inventory, "a", "h1");
    announce(&mut inventory, "b", "h1");
    announce(&mut inventory, "a", "h10");
    assert_eq!(inventory.view().hosts[&host("h1")].applications.len(), 2);
    assert_eq!(inventory.view().hosts[&host("h10")].applications.len(), 1);
    receive(&mut inventory, at(0), "a", "h1", b"", DateTime::UNIX_EPOCH);
    assert_eq!(inventory.view().hosts[&host("h1")].applications.len(), 1);
    receive(&mut inventory, at(0), "b", "h1", b"", DateTime::UNIX_EPOCH);
    assert_eq!(inventory.view().hosts.get(&host("h1")), None);
}

/// Files and consumers cannot be named after such a host, so a run with it would wait for nothing.
#[test]
fn hosts_with_too_long_names_are_not_there() {
    let mut inventory = Inventory::default();
    announce(&mut inventory, "a", &"x".repeat(223));
    let name = host(&"x".repeat(224));
    let payload = Announcement::new(name.clone(), application("a")).to_payload().into();
    let message = WorkerMessage::Announced {
        application: application("a"),
        host: name.clone(),
        payload,
        sequence: 2,
        at: DateTime::UNIX_EPOCH,
    };
    let (refused, error) = inventory.apply(at(0), message).unwrap_err();
    assert_eq!(refused, name);
    assert!(
        error.to_string().starts_with("the name of the host cannot be used: it takes 224 bytes"),
        "{error}"
    );
    assert_eq!((inventory.view().hosts.len(), inventory.unused().messages), (1, 1));
}

#[test]
fn empty_versions_remove_those_of_the_host() {
    let mut inventory = Inventory::default();
    let mut publish = |payload: &'static [u8]| {
        let (payload, at_time) = (Bytes::from_static(payload), DateTime::UNIX_EPOCH);
        inventory.apply(at(0), WorkerMessage::Versions { host: host("h1"), payload, at: at_time }).unwrap();
        inventory.versions().contains_key(&host("h1"))
    };
    assert!(publish(br#"{"linux":"6.1"}"#));
    assert!(!publish(b""));
}

#[test]
fn announcement_for_another_host_is_refused() {
    let mut inventory = Inventory::default();
    let payload = Announcement::new(host("h2"), application("a")).to_payload();
    let stored = (1, DateTime::UNIX_EPOCH);
    let result = inventory.announced(at(0), &application("a"), &host("h1"), &payload, stored);
    let error = result.unwrap_err();
    assert_eq!(error.to_string(), "the announcement on the subject of a on h1 is about a on h2");
    assert!(inventory.view().hosts.is_empty());
}

#[test]
fn workers_have_time_to_answer() {
    let mut inventory = Inventory::default();
    let mut tick_from = |from: u64, to: u64, connected: bool| {
        let heard = (from..=to).find(|secs| {
            inventory.tick(at(*secs), connected);
            inventory.control_read(connected);
            inventory.view().has_awaited_replies
        });
        (heard, inventory.view().has_awaited_replies)
    };
    assert_eq!(tick_from(0, 60, true), (Some(30), true));
    // The bus is away for a moment.
    assert_eq!(tick_from(61, 61, false), (None, false));
    assert_eq!(tick_from(62, 120, true), (Some(92), true));
    // This process was paused for an hour, and no answer has arrived since.
    assert_eq!(tick_from(3_720, 3_780, true), (Some(3_750), true));
    assert!(inventory.view().has_read_control);
    inventory.control_read(false);
    let view = inventory.view();
    assert!(!view.has_awaited_replies && !view.has_read_control, "another leadership begins");
    inventory.control_read(true);
    let view = inventory.view();
    assert!(!view.has_awaited_replies && view.has_read_control, "and has read what was there");
}

const AWAITED: Option<Reachability> = Some(Reachability::Awaited);
const REACHABLE: Option<Reachability> = Some(Reachability::Reachable);
const UNREACHABLE: Option<Reachability> = Some(Reachability::Unreachable);

#[test]
fn hosts_with_heartbeats_are_awaited() {
    let mut inventory = Inventory::default();
    let long_ago = TimeDelta::hours(8);
    for name in ["h1", "h2"] {
        announce_heartbeats(&mut inventory, name, 0, long_ago);
    }
    inventory.is_read = true;
    let both = |inventory: &Inventory| ["h1", "h2"].map(|name| reachability(inventory, name));
    // Time in which the bus is away or the process is paused does not count.
    tick(&mut inventory, 1_000, 1_100, false);
    tick(&mut inventory, 1_200, 1_228, true);
    assert_eq!(both(&inventory), [AWAITED; 2]);
    inventory.heartbeat(at(1_228), &host("h1"));
    inventory.tick(at(1_229), true);
    assert_eq!(both(&inventory), [REACHABLE, UNREACHABLE]);
    // An old announcement is no sign of life; a recent one is. Of a host that was never heard it does not bring the
    // time, so the heartbeat is still awaited.
    for (age, expected) in [(long_ago, UNREACHABLE), (TimeDelta::milliseconds(40), AWAITED)] {
        announce_heartbeats(&mut inventory, "h2", 1_230, age);
        assert_eq!(both(&inventory), [REACHABLE, expected]);
    }
    inventory.replied(at(1_231), &host("h2"), at(1_231).wall);
    assert_eq!(both(&inventory), [REACHABLE, AWAITED]);
    inventory.heartbeat(at(1_232), &host("h2"));
    assert_eq!(both(&inventory), [REACHABLE; 2]);
    tick(&mut inventory, 1_232, 1_262, true);
    assert_eq!(both(&inventory), [UNREACHABLE; 2]);
    announce_heartbeats(&mut inventory, "h2", 1_263, TimeDelta::milliseconds(40));
    assert_eq!(both(&inventory), [UNREACHABLE, REACHABLE]);
}

/// Only heartbeats bring the time, so nothing else may end the wait for them, nor prolong it for ever.
#[test]
fn host_without_heartbeats_is_not_awaited_for_ever() {
    let mut inventory = Inventory { is_read: true, ..Inventory::default() };
    inventory.tick(at(0), true);
    let given_up = (0..1_000).find(|secs| {
        let now = at(*secs);
        inventory.apply(now, WorkerMessage::ReportsLost).unwrap();
        announce_heartbeats(&mut inventory, "h1", *secs, TimeDelta::zero());
        inventory.replied(now, &host("h1"), now.wall);
        inventory.tick(now, true);
        reachability(&inventory, "h1") != AWAITED
    });
    assert_eq!(given_up, Some(329));
    assert_eq!(reachability(&inventory, "h1"), UNREACHABLE);
}

#[test]
fn reannouncing_does_not_prolong_awaiting() {
    let mut inventory = Inventory::default();
    // Even the host of a recent announcement may have been turned off since.
    announce_heartbeats(&mut inventory, "h1", 0, TimeDelta::seconds(1));
    assert_eq!(reachability(&inventory, "h1"), AWAITED);
    inventory.is_read = true;
    for secs in 1..=40 {
        if secs % 20 == 0 {
            receive(&mut inventory, at(secs), "a", "h1", b"", at(secs).wall);
            announce_heartbeats(&mut inventory, "h1", secs, TimeDelta::hours(8));
        }
        // The bus disconnects now and then, too.
        inventory.tick(at(secs), secs % 10 != 0);
    }
    assert_eq!(reachability(&inventory, "h1"), UNREACHABLE);
}

#[test]
fn hosts_are_awaited_after_an_absence_of_the_bus() {
    let mut inventory = Inventory::default();
    announce(&mut inventory, "a", "h1");
    inventory.tick(at(100), true);
    inventory.heartbeat(at(100), &host("h1"));
    tick(&mut inventory, 101, 3_700, false);
    assert_eq!(reachability(&inventory, "h1"), REACHABLE);
    inventory.tick(at(3_701), true);
    assert_eq!(reachability(&inventory, "h1"), AWAITED);
    tick(&mut inventory, 3_702, 3_728, true);
    assert_eq!(reachability(&inventory, "h1"), AWAITED);
    tick(&mut inventory, 3_729, 3_731, true);
    assert_eq!(reachability(&inventory, "h1"), UNREACHABLE, "only silence on a connected bus counts");
}

#[test]
fn silence_proves_nothing_while_heartbeats_are_lost() {
    let mut inventory = Inventory::default();
    for name in ["h1", "h2"] {
        announce(&mut inventory, "a", name);
    }
    inventory.tick(at(100), true);
    inventory.heartbeat(at(100), &host("h1"));
    tick(&mut inventory, 101, 131, true);
    assert_eq!(reachability(&inventory, "h1"), UNREACHABLE);
    inventory.heartbeat(at(131), &host("h2"));
    for secs in 132..300 {
        inventory.apply(at(secs), WorkerMessage::ReportsLost).unwrap();
        inventory.tick(at(secs), true);
    }
    assert_eq!(reachability(&inventory, "h2"), AWAITED);
    assert_eq!(reachability(&inventory, "h1"), UNREACHABLE, "it was before");
    tick(&mut inventory, 300, 327, true);
    assert_eq!(reachability(&inventory, "h2"), AWAITED);
    tick(&mut inventory, 328, 329, true);
    assert_eq!(reachability(&inventory, "h2"), UNREACHABLE);
    // A window does not wait for a host that has been silent for minutes, whatever is lost.
    inventory.heartbeat(at(329), &host("h2"));
    let given_up = (330..1_000).find(|secs| {
        inventory.apply(at(*secs), WorkerMessage::ReportsLost).unwrap();
        inventory.tick(at(*secs), true);
        reachability(&inventory, "h2") == UNREACHABLE
    });
    assert_eq!(given_up, Some(658));
}

#[test]
fn reachability_follows_heartbeats() {
    let mut inventory = Inventory::default();
    announce(&mut inventory, "a", "h1");
    assert_eq!(reachability(&inventory, "h1"), Some(Reachability::Unknown));
    inventory.tick(at(100), true);
    assert_eq!(reachability(&inventory, "h1"), Some(Reachability::Unknown));
    inventory.heartbeat(at(100), &host("h1"));
    tick(&mut inventory, 101, 129, true);
    assert_eq!(reachability(&inventory, "h1"), REACHABLE);
    inventory.tick(at(130), true);
    assert_eq!(reachability(&inventory, "h1"), UNREACHABLE);
    inventory.heartbeat(at(230), &host("h2"));
    announce(&mut inventory, "a", "h2");
    assert_eq!(reachability(&inventory, "h2"), REACHABLE);
    inventory.is_read = true;
    inventory.replied(at(231), &host("h1"), at(231).wall);
    assert_eq!(reachability(&inventory, "h1"), REACHABLE);
    tick(&mut inventory, 232, 261, true);
    inventory.replied(at(261), &host("h1"), at(231).wall);
    assert_eq!(reachability(&inventory, "h1"), UNREACHABLE, "an old reply proves nothing");
    inventory.replied(at(261), &host("h3"), at(261).wall);
    announce(&mut inventory, "a", "h3");
    assert_eq!(reachability(&inventory, "h3"), Some(Reachability::Unknown), "it sends no heartbeats");
    announce(&mut inventory, "a", "h2");
    inventory.heartbeat(at(230), &host("h2"));
    // A host that is never announced is forgotten.
    inventory.heartbeat(at(230), &host("nobody"));
    tick(&mut inventory, 231, 261, true);
    assert_eq!(inventory.life_signs.len(), 2);
}

#[test]
fn silence_begins_with_the_last_sign_of_life() {
    let mut inventory = Inventory::default();
    let silence = |inventory: &Inventory, name: &str| inventory.view().hosts[&host(name)].silence;
    announce_heartbeats(&mut inventory, "h1", 0, TimeDelta::hours(8));
    announce_heartbeats(&mut inventory, "h2", 0, TimeDelta::hours(8));
    inventory.heartbeat(at(5), &host("h1"));
    tick(&mut inventory, 0, 20, true);
    assert_eq!((silence(&inventory, "h1"), silence(&inventory, "h2")), (None, None));
    tick(&mut inventory, 21, 60, true);
    let [h1, h2] = ["h1", "h2"].map(|name| silence(&inventory, name).unwrap());
    assert_eq!((h1.heard_at, h2.heard_at), (Some(at(5).wall), None), "the other was never heard");
    assert_eq!(h1.since, at(35).wall);
    // An announcement that proves nothing, such as one that is read again, does not end it.
    announce_heartbeats(&mut inventory, "h1", 70, TimeDelta::hours(8));
    assert_eq!(silence(&inventory, "h1"), Some(h1));
    inventory.heartbeat(at(80), &host("h1"));
    assert_eq!(silence(&inventory, "h1"), None);
}

/// Announces a host whose agent runs units.
fn announce_agent(inventory: &mut Inventory, name: &str) {
    let announcement = Announcement { runs_units: true, ..Announcement::new(host(name), application("a")) };
    receive(inventory, at(0), "a", name, &announcement.to_payload(), DateTime::UNIX_EPOCH);
}

fn beat(inventory: &mut Inventory, secs: u64, name: &str, units: bool) {
    let heartbeat = WorkerMessage::Heartbeat { host: host(name), time: None, units };
    inventory.apply(at(secs), heartbeat).unwrap();
}

/// For how many seconds the view says that these agents have been silent.
fn silences<const N: usize>(inventory: &Inventory, names: [&str; N]) -> [u64; N] {
    names.map(|name| inventory.view().agent_silence(&host(name)).as_secs())
}

/// Only a heartbeat of the agent is a sign of life of it, and only time in which the bus is there counts.
#[test]
fn agents_are_silent_while_they_could_be_heard() {
    let mut inventory = Inventory::default();
    tick(&mut inventory, 0, 100, true);
    for name in ["h1", "h2"] {
        announce_agent(&mut inventory, name);
    }
    inventory.leadership_begins();
    let both = |inventory: &Inventory| silences(inventory, ["h1", "h2"]);
    assert_eq!(both(&inventory), [0, 0], "a leader that has just begun knows of no silence");
    for secs in 101..=129 {
        inventory.tick(at(secs), true);
        beat(&mut inventory, secs, "h1", true);
        beat(&mut inventory, secs, "h2", false);
    }
    assert_eq!(both(&inventory), [0, 11], "it has missed heartbeats");
    tick(&mut inventory, 130, 130, true);
    assert_eq!(both(&inventory), [0, 30], "it has been silent since the leadership began");
    // Time in which the bus is away or the process is paused does not count.
    tick(&mut inventory, 131, 1_000, false);
    tick(&mut inventory, 2_000, 2_000, true);
    assert_eq!(both(&inventory), [0, 30]);
    tick(&mut inventory, 2_001, 2_028, true);
    assert_eq!(both(&inventory), [30, 30]);
    tick(&mut inventory, 2_029, 2_058, true);
    assert_eq!(both(&inventory), [60, 60]);
    beat(&mut inventory, 2_059, "h1", true);
    assert_eq!(both(&inventory), [0, 60]);
    tick(&mut inventory, 2_059, 2_118, true);
    assert_eq!(both(&inventory), [60, 120]);
    let hears = |inventory: &Inventory| ["h1", "h2"].map(|name| inventory.view().hears_agent(&host(name)));
    beat(&mut inventory, 2_118, "h2", true);
    assert_eq!((both(&inventory), hears(&inventory)), ([60, 0], [false, true]));
    inventory.leadership_begins();
    assert_eq!((both(&inventory), hears(&inventory)), ([0, 0], [false; 2]), "another leadership begins");
    beat(&mut inventory, 2_118, "h1", true);
    assert_eq!(hears(&inventory), [true, false]);
}

/// While its host holds a slot an agent may be silent for long. Once the slot is released, its silence counts from then on.
#[test]
fn silence_counts_anew_once_a_slot_is_released() {
    let mut inventory = Inventory::default();
    for name in ["h1", "h2"] {
        announce_agent(&mut inventory, name);
    }
    let mut held = State::default();
    let slot = Slot {
        group: GroupName::new("default").unwrap(),
        provider: LockProvider::Embedded,
        state: SlotState::Held,
        since: LATER,
        held_since: None,
        refusal: None,
        in_doubt: false,
        unlocked_at: None,
        owner: RunId::new("r1").unwrap().into(),
        command: None,
        begun: false,
        failed: false,
        unsent_at_fence: None,
    };
    held.slots.insert(host("h1"), slot);
    tick(&mut inventory, 0, 600, true);
    inventory.graces_changed(&held, &held);
    assert_eq!(silences(&inventory, ["h1", "h2"]), [600, 600]);
    inventory.graces_changed(&State::default(), &held);
    assert_eq!(silences(&inventory, ["h1", "h2"]), [600, 600], "it may be silent for longer");
    inventory.graces_changed(&held, &State::default());
    assert_eq!(silences(&inventory, ["h1", "h2"]), [0, 600]);
    tick(&mut inventory, 601, 630, true);
    assert_eq!(silences(&inventory, ["h1", "h2"]), [30, 600]);
}

#[test]
fn unchanged_silence_leaves_the_view_as_it_is() {
    let mut inventory = Inventory::default();
    for name in ["h1", "h2"] {
        announce_agent(&mut inventory, name);
    }
    tick(&mut inventory, 0, 60, true);
    let before = inventory.view().agents.clone();
    for secs in 61..119 {
        inventory.tick(at(secs), true);
        assert!(inventory.view().agents.ptr_eq(&before), "at {secs}");
    }
    tick(&mut inventory, 119, 120, true);
    assert_eq!(silences(&inventory, ["h1", "h2"]), [120, 120]);
}

/// As with hosts: what may have been lost is no silence, unless it was silence before, and not for ever.
#[test]
fn lost_heartbeats_excuse_agents() {
    let mut inventory = Inventory::default();
    for name in ["h1", "h2"] {
        announce_agent(&mut inventory, name);
    }
    tick(&mut inventory, 0, 5, true);
    beat(&mut inventory, 5, "h2", true);
    tick(&mut inventory, 6, 31, true);
    assert_eq!(silences(&inventory, ["h1", "h2"]), [30, 11]);
    let given_up = (32..1_000).find(|secs| {
        inventory.apply(at(*secs), WorkerMessage::ReportsLost).unwrap();
        inventory.tick(at(*secs), true);
        silences(&inventory, ["h2"]) == [30]
    });
    assert_eq!(given_up, Some(5 + 300 + 29));
    assert_eq!(silences(&inventory, ["h1"]), [300]);
}

/// A host that takes back its announcement may still run units, so it goes on being silent. One of which nothing was read counts from the
/// beginning of the leadership, and what strangers send counts for nothing.
#[test]
fn agents_of_hosts_that_left_are_silent() {
    let mut inventory = Inventory::default();
    announce_agent(&mut inventory, "h1");
    tick(&mut inventory, 0, 10, true);
    inventory.leadership_begins();
    tick(&mut inventory, 11, 40, true);
    beat(&mut inventory, 40, "h1", true);
    beat(&mut inventory, 40, "stranger", true);
    receive(&mut inventory, at(40), "a", "h1", b"", DateTime::UNIX_EPOCH);
    assert_eq!(silences(&inventory, ["h1", "h2", "stranger"]), [0, 30, 30]);
    tick(&mut inventory, 41, 70, true);
    assert_eq!(silences(&inventory, ["h1", "h2", "stranger"]), [30, 60, 60]);
    assert!(!inventory.view().agents.contains_key(&host("stranger")));
}

#[test]
fn words_about_units_are_safe_to_show() {
    let mut inventory = Inventory::default();
    let long = "x".repeat(100);
    let payload = format!(
        r#"{{"site":"a","epoch":0,"sequence":1,"items":[{{"kind":"unit","name":"a.service","unit":{{"state":"loaded","load":"\n{long}","active":"b","sub":""}}}}]}}"#
    );
    let message = WorkerMessage::Applied { host: host("h1"), payload: payload.into() };
    inventory.apply(at(0), message).unwrap();
    let unit = inventory.view().applied(&host("h1")).unwrap().items[0].unit.clone().unwrap();
    assert_eq!((unit.load.len(), unit.active.as_str(), unit.sub.as_str()), (32, "b", ""));
    assert!(unit.load.starts_with("xxx"), "{unit:?}");
}

#[test]
fn progress_is_kept_for_announced_hosts() {
    let mut inventory = Inventory::default();
    let progress = |percent| Progress::new(7, percent, "unpacking");
    inventory.progress_reported(&host("h01"), &progress(1).to_payload()).unwrap();
    assert!(inventory.progress().is_empty());
    announce(&mut inventory, "a", "h01");
    for percent in [10, 20] {
        inventory.progress_reported(&host("h01"), &progress(percent).to_payload()).unwrap();
    }
    assert_eq!(inventory.progress().get(&host("h01")), Some(&progress(20)));
    assert!(inventory.progress_reported(&host("h01"), b"20 %").is_err());
    receive(&mut inventory, at(0), "a", "h01", b"", DateTime::UNIX_EPOCH);
    assert!(inventory.progress().is_empty());
}

#[test]
fn nodes_are_forgotten_unless_they_are_seen_again() {
    let mut inventory = Inventory::default();
    let all = |is_ready| OrdMap::unit(host("h1"), SeenNode { is_ready, ..SeenNode::default() });
    let see = |inventory: &mut Inventory, now, asked, nodes| {
        inventory.cluster_seen(at(now), Duration::from_secs(asked), nodes);
        inventory.view().nodes.clone()
    };
    tick(&mut inventory, 0, 10, true);
    assert_eq!(inventory.view().nodes, None);
    let first = see(&mut inventory, 11, 10, all(false)).unwrap();
    // Whether the bus is there does not matter.
    tick(&mut inventory, 11, 69, false);
    assert!(see(&mut inventory, 69, 65, all(false)).unwrap().ptr_eq(&first), "nothing has changed");
    tick(&mut inventory, 70, 124, true);
    assert_eq!(
        see(&mut inventory, 124, 64, all(true)),
        Some(first.clone()),
        "it has been on its way for too long"
    );
    assert_eq!(see(&mut inventory, 124, 80, all(true)), Some(all(true)));
    assert_eq!(see(&mut inventory, 124, 79, all(false)), Some(all(true)), "it is older than the last");
    tick(&mut inventory, 125, 139, true);
    assert_eq!(inventory.view().nodes, Some(all(true)));
    tick(&mut inventory, 140, 140, false);
    assert_eq!(inventory.view().nodes, None);
    // A cluster without nodes of hosts has been seen nevertheless.
    assert_eq!(see(&mut inventory, 141, 141, OrdMap::new()), Some(OrdMap::new()));
}
