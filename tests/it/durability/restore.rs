//! Restoring from the store after NATS has lost data.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use harness::host::Host;
use harness::orchestrator::Orchestrator;
use harness::site::Site;
use harness::wait::eventually;
use os_upgrade_protocol::subject;
use os_upgrade_recovery::RecoveryError;
use os_upgrade_recovery::plan::{Plan, Source, Work};
use os_upgrade_recovery::restore::{self, Step};
use os_upgrade_recovery::site::{HeldLease, Site as Exclusive};
use os_upgrade_settings::{self as settings, Settings};
use serde_json::{Value, json};

const FROM_STORE: &[&str] = &["restore", "--from-store", "--yes", "--output", "json"];

/// Runs the command, which must succeed, and parses its output.
async fn json_output(orchestrator: &Orchestrator, arguments: &[&str]) -> Value {
    let (code, printed, stderr) = orchestrator.command(arguments).await;
    assert_eq!(code, Some(0), "{stderr}");
    serde_json::from_str(&printed).unwrap()
}

/// A site during a run: h01 is done, h02 is held in its upgrade, h03 waits for its turn.
async fn site_during_run() -> (Site, Vec<Host>, String) {
    let site = Site::start().await;
    let mut hosts = vec![site.host("h01"), site.host("h02"), site.host("h03")];
    hosts[1].hold("upgrade");
    site.run(&mut hosts).await;
    let id = site.rest().start_run().await;
    hosts[1].await_script("upgrade-begins").await;
    site.rest().await_status("h02", "upgrading").await;
    eventually("the history to have it", async || {
        let run = site.rest().run(&id).await;
        run.events().iter().any(|event| event == "h02 command-sent upgrade").then_some(())
    })
    .await;
    (site, hosts, id)
}

/// Stops everything but the workers, and starts the bus without its data.
async fn restart_with_empty_bus(site: &mut Site) {
    site.orchestrator.kill().await;
    site.nats.kill();
    site.nats.delete_streams();
    site.nats.start_again().await;
}

fn saved_files(orchestrator: &Orchestrator) -> Vec<PathBuf> {
    let entries = fs::read_dir(orchestrator.directory().join("data")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.to_string_lossy().contains("/saved-")).collect()
}

/// After a restore during a run: the run is over, h02 keeps its slot until it answers `done`, and a new run upgrades all
/// hosts.
async fn assert_recovers(site: &mut Site, hosts: &[Host], id: &str, before: &[String]) {
    let rest = site.rest();
    site.orchestrator.start_ready().await;
    site.orchestrator.await_leading().await;
    let run = rest.await_end(id).await;
    assert_eq!(run.result(), Some("failed"));
    assert_eq!(
        run.statuses(),
        BTreeMap::from([("h01", "upgraded"), ("h02", "failed"), ("h03", "cancelled")])
    );
    let reason = "the site was restored by os-upgrade restore; what became of the host is not known";
    assert_eq!(run.reasons(), BTreeMap::from([("h02", reason), ("h03", reason)]));
    let events = run.events();
    assert_eq!(events[..before.len()], *before, "the history is kept");
    // The outcome of h02's command may already follow.
    let over = ["h02 failed", "h03 cancelled", "run-stopping", "run-ended"];
    assert_eq!(events[before.len()..][..over.len()], over);

    // The announcements were lost too; workers notice and repeat them.
    rest.await_scheduled(&["h01", "h02", "h03"]).await;
    assert_eq!(rest.trigger("").await.1["errors"][0]["error-info"]["kind"], "paused");
    assert_eq!(site.orchestrator.done(&["resume"]).await, "resumed");
    // h02 may be upgrading, and is: no other host gets its slot.
    let second = rest.start_run().await;
    eventually("all others to be prepared", async || {
        let (_, state) = rest.get("/v1/state/os-upgrade").await;
        let hosts = state["current-upgrade-info"]["hosts"].as_array()?.clone();
        let ready =
            |name: &str| hosts.iter().any(|host| host["hostname"] == name && host["status"] == "prepared");
        (ready("h01") && ready("h03")).then_some(())
    })
    .await;
    assert_eq!(hosts[1].script_log(), ["prepare", "upgrade-begins"]);
    assert_eq!(hosts[2].script_log(), ["prepare", "prepare"]);
    hosts[1].release("upgrade");
    let run = rest.await_end(&second).await;
    assert_eq!(run.result(), Some("completed"), "{:?}", run.reasons());
    let count = |host: &Host| host.script_log().iter().filter(|line| *line == "upgrade-begins").count();
    assert_eq!(hosts.iter().map(count).collect::<Vec<_>>(), [2, 2, 1]);
}

#[tokio::test]
async fn store_alone_restores_site() {
    let (mut site, hosts, id) = site_during_run().await;
    let before = site.rest().run(&id).await.events();
    let journal = site.last_sequence(subject::JOURNAL_STREAM).await;
    let control = site.last_sequence(subject::CONTROL_STREAM).await;
    restart_with_empty_bus(&mut site).await;

    let dry =
        json_output(&site.orchestrator, &["restore", "--from-store", "--dry-run", "--output", "json"]).await;
    assert_eq!(dry["outcome"], "planned");
    let plan = &dry["plan"];
    assert_eq!(plan["known-to"], journal);
    assert_eq!(plan["journal-from"], journal + 1);
    assert_eq!(plan["control-kept"], false);
    assert!(plan["control-from"].as_u64().unwrap() > control - 1, "{plan}");
    assert_eq!(plan["run-ended"], id.as_str());
    assert_eq!(plan["under-way"], json!(["h02"]));
    assert_eq!(plan["held"], json!(["h02"]));
    let because: Vec<_> =
        plan["because"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    assert_eq!(
        because[0],
        format!("the journal is not there, messages up to {journal} had been acknowledged")
    );
    assert!(because[2].contains(&format!("run {id} started by api")), "{because:?}");
    assert!(saved_files(&site.orchestrator).is_empty(), "nothing has been done");

    let done = json_output(&site.orchestrator, FROM_STORE).await;
    assert_eq!(done["outcome"], "restored");
    let saved = site.orchestrator.directory().join(done["saved"].as_str().unwrap());
    assert_eq!(saved_files(&site.orchestrator), [saved]);
    let again = json_output(&site.orchestrator, FROM_STORE).await;
    assert_eq!(again["outcome"], "nothing-missing");
    assert_recovers(&mut site, &hosts, &id, &before).await;
    // The journal is complete: an instance without a store reaches the same state.
    site.orchestrator.terminate().await;
    let state = site.rest();
    let mut other = Orchestrator::new(&site.nats.url(), "");
    other.start_ready().await;
    other.await_leading().await;
    drop(state);
    assert_eq!(other.rest.runs().await.len(), 2);
}

#[tokio::test]
async fn restore_keeps_control_stream_and_replies() {
    let site = Site::start().await;
    let mut hosts = vec![site.host("h01"), site.host("h02"), site.host("h03")];
    hosts[1].hold("upgrade");
    let mut site = site;
    site.run(&mut hosts).await;
    // Only the journal loses its last messages: its old files are restored, the control stream's are not.
    site.nats.kill();
    let saved = site.nats.save_stream(subject::JOURNAL_STREAM);
    site.nats.start_again().await;
    site.orchestrator.ready().await;
    let id = site.rest().start_run().await;
    hosts[1].await_script("upgrade-begins").await;
    eventually("the history to have it", async || {
        let run = site.rest().run(&id).await;
        run.events().iter().any(|event| event == "h02 command-sent upgrade").then_some(())
    })
    .await;
    let before = site.rest().run(&id).await.events();
    site.orchestrator.kill().await;
    site.nats.kill();
    site.nats.restore_stream(subject::JOURNAL_STREAM, &saved);
    site.nats.start_again().await;
    let control = site.last_sequence(subject::CONTROL_STREAM).await;

    let done = json_output(&site.orchestrator, FROM_STORE).await;
    assert_eq!(done["plan"]["control-kept"], true, "{done}");
    // A worker may have repeated an answer whose acknowledgement was lost.
    assert!(done["plan"]["control-from"].as_u64().unwrap() > control, "{done}");
    assert_eq!(done["plan"]["held"], json!(["h02"]));
    assert_recovers(&mut site, &hosts, &id, &before).await;
}

/// The settings of an instance, for functions called without its process.
fn settings(orchestrator: &Orchestrator) -> Settings {
    let directory = orchestrator.directory();
    let environment = [("OS_UPGRADE_STORE__PATH".into(), directory.join("data").into_os_string())];
    settings::load(Some(&directory.join("os-upgrade.toml")), environment).unwrap()
}

/// A restoration of `site` that is planned, with the lease held.
async fn planned(site: &Site) -> (Exclusive, HeldLease, Box<Plan>) {
    let exclusive = Exclusive::open(settings(&site.orchestrator)).await.unwrap();
    let instance = exclusive.directory.instance();
    let lease = HeldLease::take(&exclusive.bus, &exclusive.layout(), instance).await.unwrap();
    let planned = Plan::make(&exclusive, &Source::Store, Some(&lease)).await.unwrap();
    let Work::Restore(plan) = planned else { panic!("there is something to do") };
    (exclusive, lease, plan)
}

/// The restore is interrupted after each of its steps, as by kill -9 or a power cut, and run again.
#[tokio::test]
async fn interrupted_restore_finishes_when_repeated() {
    for cut_after in 0..5 {
        let (mut site, hosts, id) = site_during_run().await;
        let before = site.rest().run(&id).await.events();
        restart_with_empty_bus(&mut site).await;
        let (exclusive, lease, plan) = Box::pin(planned(&site)).await;
        let mut steps: Vec<Step> = Vec::new();
        let cut = restore::carry_out(&exclusive, &plan, &lease, |step| {
            steps.push(step.clone());
            if steps.len() > cut_after { Err(RecoveryError::LeaseLost) } else { Ok(()) }
        });
        assert!(cut.await.is_err());
        assert_eq!(steps.len(), cut_after + 1);
        drop(lease);
        exclusive.close().await;

        // Incomplete streams are never accepted, with this store or with none.
        if cut_after >= 1 {
            let mut other = Orchestrator::new(&site.nats.url(), "");
            other.start();
            let (code, stderr) = other.exited().await;
            assert_eq!(code, Some(1));
            let text = "error: the stream os-upgrade:control has not been restored to its end: run `os-upgrade restore` \
                        again, as before";
            assert!(stderr.contains(text), "{stderr}");
        }
        let done = json_output(&site.orchestrator, FROM_STORE).await;
        let expected = if cut_after == 4 { "finished" } else { "restored" };
        assert_eq!(done["outcome"], expected, "{steps:?}: {done}");
        assert_recovers(&mut site, &hosts, &id, &before).await;
    }
}

/// An orchestrator comes to the empty streams while a restoration is planned. It does not lead, and what it has made there is
/// replaced.
#[tokio::test]
async fn nobody_leads_between_plan_and_restoration() {
    let (mut site, hosts, id) = site_during_run().await;
    let before = site.rest().run(&id).await.events();
    restart_with_empty_bus(&mut site).await;
    let (exclusive, lease, plan) = Box::pin(planned(&site)).await;
    let mut other = Orchestrator::new(&site.nats.url(), "");
    other.start();
    eventually("the other to see the restoration", async || {
        (other.readiness().await? == "the streams are being restored").then_some(())
    })
    .await;
    restore::carry_out(&exclusive, &plan, &lease, |_| Ok(())).await.unwrap();
    lease.release().await;
    exclusive.close().await;
    eventually("the other to notice that its streams are gone", async || {
        other.log().contains("halted").then_some(())
    })
    .await;
    assert!(!other.log().contains("leading"), "{}", other.log());
    assert_recovers(&mut site, &hosts, &id, &before).await;
}

/// The control stream is emptied and the journal not replaced yet: with both, the site would wait for commands that are gone.
#[tokio::test]
async fn restore_interrupted_between_streams_is_repeated() {
    let (mut site, hosts, id) = site_during_run().await;
    let before = site.rest().run(&id).await.events();
    site.orchestrator.kill().await;
    site.jetstream().delete_stream(subject::CONTROL_STREAM).await.unwrap();
    let (exclusive, lease, plan) = Box::pin(planned(&site)).await;
    let cut = restore::carry_out(&exclusive, &plan, &lease, |step| {
        if *step == Step::ControlReady { Err(RecoveryError::LeaseLost) } else { Ok(()) }
    });
    assert!(cut.await.is_err());
    lease.release().await;
    exclusive.close().await;

    let journal = site.last_sequence(subject::JOURNAL_STREAM).await;
    site.orchestrator.start();
    let (code, stderr) = site.orchestrator.exited().await;
    assert_eq!(code, Some(1));
    assert!(stderr.contains("the stream os-upgrade:control has not been restored to its end"), "{stderr}");
    assert_eq!(site.last_sequence(subject::JOURNAL_STREAM).await, journal);
    let done = json_output(&site.orchestrator, FROM_STORE).await;
    assert_eq!(done["outcome"], "restored", "{done}");
    assert_eq!(done["plan"]["held"], json!(["h02"]));
    assert_recovers(&mut site, &hosts, &id, &before).await;
}

/// The store is from before a run whose command is in the control stream. The host at work is of another group than the
/// default one.
#[tokio::test]
async fn command_of_lost_run_holds_slot_of_announced_group() {
    let mut site = Site::start_with("[fleet-lock.groups]\ndefault = 1\nedge = 1").await;
    let mut hosts = vec![site.host("h01").of_group("edge")];
    hosts[0].hold("upgrade");
    site.run(&mut hosts).await;
    site.orchestrator.terminate().await;
    let copy = tempfile::tempdir().unwrap();
    copy_store(&site.orchestrator, copy.path(), true);
    site.orchestrator.start_ready().await;
    site.orchestrator.await_leading().await;
    site.rest().start_run().await;
    hosts[0].await_script("upgrade-begins").await;
    site.orchestrator.kill().await;
    copy_store(&site.orchestrator, copy.path(), false);
    site.jetstream().delete_stream(subject::JOURNAL_STREAM).await.unwrap();

    let done = json_output(&site.orchestrator, FROM_STORE).await;
    assert_eq!(done["plan"]["control-kept"], true, "{done}");
    assert_eq!(done["plan"]["held"], json!(["h01"]));
    site.orchestrator.start_ready().await;
    site.orchestrator.await_leading().await;
    let (_, slots) = site.rest().get("/v1/state/fleet-lock").await;
    let held = |group: &str| {
        let groups = slots["groups"].as_array().unwrap();
        groups.iter().find(|it| it["group"] == group).map(|it| it["held"].clone())
    };
    assert_eq!((held("default"), held("edge")), (Some(json!(0)), Some(json!(1))), "{slots}");
}

/// Copies the files of the store, which is not in use, to `directory`, or back.
fn copy_store(orchestrator: &Orchestrator, directory: &Path, save: bool) {
    for name in ["os-upgrade.db", "os-upgrade.db-wal", "os-upgrade.db-shm"] {
        let (file, copy) = (orchestrator.store_file().with_file_name(name), directory.join(name));
        let (from, to) = if save { (&file, &copy) } else { (&copy, &file) };
        let _ = fs::remove_file(to);
        // There is no log after an orderly end.
        let _ = fs::copy(from, to);
    }
}

#[tokio::test]
async fn restore_refused_while_running_or_unconfirmed() {
    let mut site = Site::start().await;
    let refused = async |orchestrator: &Orchestrator| {
        let (code, _, stderr) = orchestrator.command(FROM_STORE).await;
        assert_eq!(code, Some(5), "{stderr}");
        stderr
    };
    let stderr = refused(&site.orchestrator).await;
    assert_eq!(stderr, "error: the data directory data is in use by another orchestrator");
    let mut other = Orchestrator::new(&site.nats.url(), "");
    other.start();
    other.await_following(&site.orchestrator).await;
    site.orchestrator.terminate().await;
    other.await_leading().await;
    let stderr = refused(&site.orchestrator).await;
    assert!(
        stderr.starts_with(&format!("error: instance {} holds the lease: ", other.instance())),
        "{stderr}"
    );
    other.terminate().await;

    let (code, printed, _) = site.orchestrator.command(&["restore", "--from-store"]).await;
    let text = "nothing is missing: the journal has everything that the store has, up to message ";
    assert_eq!(code, Some(0));
    assert!(printed.starts_with(text), "{printed}");
    site.nats.kill();
    site.nats.delete_streams();
    site.nats.start_again().await;
    let (code, _, stderr) = site.orchestrator.command(&["restore", "--from-store"]).await;
    assert_eq!(code, Some(2));
    assert!(stderr.contains("  slots stay held for: none"), "{stderr}");
    assert!(stderr.ends_with("error: without a terminal, confirm with --yes"), "{stderr}");

    // Without a store there is nothing to restore from.
    let empty = Orchestrator::new(&site.nats.url(), "");
    assert_eq!(refused(&empty).await, "error: there is no data directory data: check [store] path");
    fs::create_dir(empty.directory().join("data")).unwrap();
    let stderr = refused(&empty).await;
    assert!(stderr.starts_with("error: the store data/os-upgrade.db is empty or missing"), "{stderr}");
}

/// The store is always a little behind the journal. Where the journal is complete, its newer facts are kept too.
#[tokio::test]
async fn lost_control_stream_keeps_newer_journal() {
    let mut site = Site::start().await;
    site.rest().configure("os-upgrade-test").await;
    site.orchestrator.terminate().await;
    let copy = tempfile::tempdir().unwrap();
    copy_store(&site.orchestrator, copy.path(), true);
    site.orchestrator.start_ready().await;
    site.orchestrator.await_leading().await;
    assert_eq!(site.rest().try_fleet_lock("/v1/pre-reboot", "default", "node-7").await, Some(200));
    site.orchestrator.kill().await;
    copy_store(&site.orchestrator, copy.path(), false);
    site.jetstream().delete_stream(subject::CONTROL_STREAM).await.unwrap();

    // A dry run reads the newer facts too, and leaves the store as it is.
    let kept = fs::read(site.orchestrator.store_file()).unwrap();
    let dry =
        json_output(&site.orchestrator, &["restore", "--from-store", "--dry-run", "--output", "json"]).await;
    assert_eq!(fs::read(site.orchestrator.store_file()).unwrap(), kept);

    let done = json_output(&site.orchestrator, FROM_STORE).await;
    assert_eq!((&done["plan"], dry["outcome"].as_str()), (&dry["plan"], Some("planned")));
    assert!(done.to_string().contains("the control stream"), "{done}");
    site.orchestrator.start_ready().await;
    site.orchestrator.await_leading().await;
    assert_eq!(site.rest().try_fleet_lock("/v1/pre-reboot", "default", "node-8").await, Some(409));
    assert_eq!(site.rest().try_fleet_lock("/v1/pre-reboot", "default", "node-7").await, Some(200));
}
