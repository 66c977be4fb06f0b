//! The reboot queue with real workers, by the command line.

use harness::host::Host;
use harness::orchestrator::Orchestrator;
use harness::site::Site;
use harness::wait::eventually;
use serde_json::Value;

async fn entries(program: &Orchestrator) -> Vec<Value> {
    let printed = program.done(&["rq", "list", "-o", "json"]).await;
    serde_json::from_str(&printed).unwrap()
}

/// Waits until the entries have these hosts and statuses.
async fn await_entries(program: &Orchestrator, expected: &[(&str, &str)]) {
    eventually(&format!("the entries {expected:?}"), async || {
        let entries = entries(program).await;
        let found =
            entries.iter().map(|entry| (entry["node"].as_str().unwrap(), entry["status"].as_str().unwrap()));
        found.eq(expected.iter().copied()).then_some(())
    })
    .await;
}

/// Waits until hosts have announced that their workers reboot them on request.
async fn await_reboots_on_request(site: &Site, hosts: &[Host]) {
    eventually("workers that reboot on request", async || {
        let (_, shown) = site.rest().get("/v1/state/os-upgrade/hosts").await;
        let can = shown.as_array()?.iter().filter(|host| host["reboots-on-request"] == true);
        (can.count() == hosts.len()).then_some(())
    })
    .await;
}

async fn with_hosts(count: usize) -> (Site, Vec<Host>) {
    let site = Site::start().await;
    let hosts = site.hosts(count).await;
    await_reboots_on_request(&site, &hosts).await;
    (site, hosts)
}

fn reboots(host: &Host) -> usize {
    host.script_log().iter().filter(|line| *line == "reboot").count()
}

#[tokio::test]
async fn queued_hosts_reboot_one_after_the_other() {
    let (mut site, hosts) = with_hosts(2).await;
    hosts[0].hold("reboot");
    let program = &site.orchestrator;
    let printed = program.done(&["reboot-queue", "add", "h01", "h02", "--reason", "a new kernel"]).await;
    assert_eq!(printed, "queued: h01, as entry 0\nqueued: h02, as entry 1");
    hosts[0].await_script("reboot").await;
    await_entries(program, &[("h01", "rebooting"), ("h02", "queued")]).await;
    let (_, status, _) = program.ask(&["status", "--utc"], "").await;
    assert!(
        status.contains("REBOOT QUEUE\n  enabled: 1 queued, 1 rebooting")
            && status.contains("entry 0, h01 rebooting"),
        "{status}"
    );
    let (_, slots, _) = program.ask(&["lock", "list"], "").await;
    assert!(slots.contains("rebooting for entry 0 of the reboot queue"), "{slots}");

    site.orchestrator.kill_and_start().await;
    site.orchestrator.ready().await;
    hosts[0].release("reboot");
    let program = &site.orchestrator;
    await_entries(program, &[]).await;
    assert_eq!((reboots(&hosts[0]), reboots(&hosts[1])), (1, 1));
    let log = site.script_log();
    let order: Vec<&str> = log.iter().filter(|line| line.ends_with(" reboot")).map(String::as_str).collect();
    assert_eq!(order, ["h01 reboot", "h02 reboot"]);
    let history = program.done(&["rq", "history"]).await;
    assert!(history.contains("a new kernel") && history.matches("rebooted").count() == 2, "{history}");
    let events = program.done(&["events", "--host", "h02"]).await;
    assert!(events.contains("h02 (reboot queue, entry 1) rebooted"), "{events}");
    assert_eq!(program.done(&["lock", "list", "-o", "name"]).await, "");
}

#[tokio::test]
async fn disabled_queue_starts_nothing() {
    let (site, hosts) = with_hosts(2).await;
    let program = &site.orchestrator;
    let enabled = async || program.done(&["rq", "is-enabled"]).await;
    assert_eq!(enabled().await, "true");
    program.done(&["rq", "disable", "--reason", "a freeze"]).await;
    assert_eq!(enabled().await, "false");
    let (_, printed, _) = program.ask(&["rq", "add", "-"], "h01\n\th02\n").await;
    assert!(printed.ends_with("nothing starts now: the queue is disabled"), "{printed}");
    await_entries(program, &[("h01", "queued"), ("h02", "queued")]).await;
    assert_eq!(program.done(&["rq", "cancel", "0"]).await, "cancelled: 0");
    await_entries(program, &[("h02", "queued")]).await;
    let simple = program.done(&["rq", "list", "-o", "simple"]).await;
    assert!(simple.starts_with("Index Node Status") && simple.contains("\n1     h02  queued"), "{simple}");
    program.done(&["rq", "enable"]).await;
    await_entries(program, &[]).await;
    assert_eq!((reboots(&hosts[0]), reboots(&hosts[1])), (0, 1));
}

/// What an operator may get wrong: nothing is queued, and the exit code says so.
#[tokio::test]
async fn bad_input_queues_nothing() {
    let (site, _hosts) = with_hosts(1).await;
    site.announce("os-upgrade-test", "mute").await;
    eventually("the other host", async || site.rest().try_host("mute").await.map(drop)).await;
    let program = &site.orchestrator;
    let write = |name: &str, bytes: &[u8]| std::fs::write(program.directory().join(name), bytes).unwrap();
    write("empty", b"");
    write("binary", b"\x7fELF\x02\x00\xff");
    write("large", &vec![b'h'; 2 << 20]);
    write("nodes", b"h01 h99\n");
    std::fs::create_dir(program.directory().join("folder")).unwrap();
    for (arguments, expected, message) in [
        (&["h99"][..], 5, "h99 has announced no worker at this site; nothing is queued"),
        (&["h01", "h01"], 5, "h01 is named twice; nothing is queued"),
        (
            &["h01", "mute"],
            5,
            "mute has no worker, or one that does not reboot it on request; nothing is queued",
        ),
        (&["nodes"], 5, "h99 has announced no worker"),
        (&["empty"], 2, "empty: it names no host"),
        (&["binary"], 2, "binary: it is not text in UTF-8"),
        (&["large"], 2, "large: it has more than 1048576 bytes"),
        (&["--file", "folder"], 2, "folder: it cannot be read"),
        (&["./folder"], 2, "folder: it cannot be read"),
        (&["--file", "nothing"], 2, "cannot read nothing"),
        (&["h01", "--required"], 2, "cannot be used with"),
        (&[], 2, "required arguments were not provided"),
    ] {
        let arguments = [&["rq", "add"], arguments].concat();
        let (code, printed, stderr) = program.ask(&arguments, "").await;
        assert!(
            code == Some(expected) && stderr.contains(message),
            "{arguments:?}: {code:?} {printed} {stderr}"
        );
    }
    for (arguments, expected) in
        [(&["rq", "cancel", "7"], 5), (&["rq", "show", "7"], 1), (&["rq", "show", "x"], 2)]
    {
        assert_eq!(program.ask(arguments, "").await.0, Some(expected), "{arguments:?}");
    }
    assert_eq!(entries(program).await, [Value::Null; 0]);
    let (code, printed, stderr) = program.ask(&["rq", "add", "--required"], "").await;
    assert_eq!((code, printed.as_str()), (Some(0), ""));
    assert!(stderr.contains("no host needs a reboot that is not queued"), "{stderr}");
}

/// Its slot stays held until an operator says that the host is off.
#[tokio::test]
async fn silent_host_is_given_up() {
    let (site, hosts) = with_hosts(2).await;
    let program = &site.orchestrator;
    hosts[0].hold("reboot");
    program.done(&["rq", "add", "h01"]).await;
    hosts[0].await_script("reboot").await;
    let cancelled = program.done(&["rq", "cancel", "0"]).await;
    assert!(cancelled.contains("The entry stays until the host is back"), "{cancelled}");
    let shown = program.done(&["rq", "show", "0"]).await;
    assert!(
        shown.contains("rebooting, then cancelled") && shown.contains("has not answered reboot"),
        "{shown}"
    );
    let printed = program.done(&["rq", "give-up", "0", "--reason", "no power"]).await;
    assert!(printed.contains("it keeps its slot of group default"), "{printed}");
    await_entries(program, &[]).await;
    program.done(&["rq", "add", "h02"]).await;
    let (_, status, _) = program.ask(&["status"], "").await;
    assert!(status.contains("h01 holds a slot of group default: taken for entry 0"), "{status}");
    await_entries(program, &[("h02", "queued")]).await;
    program.done(&["lock", "release", "--id", "h01", "--reason", "it is off"]).await;
    await_entries(program, &[]).await;
    assert_eq!(reboots(&hosts[1]), 1);
    hosts[0].release("reboot");
}

#[tokio::test]
async fn host_of_a_run_is_not_rebooted_meanwhile() {
    let (site, hosts) = with_hosts(1).await;
    let program = &site.orchestrator;
    hosts[0].hold("upgrade");
    let run = site.rest().start_run().await;
    hosts[0].await_script("upgrade-begins").await;
    program.done(&["rq", "add", "h01"]).await;
    let entry = &entries(program).await[0];
    assert_eq!((entry["status"].as_str(), entry["why"]["kind"].as_str()), (Some("queued"), Some("in-run")));
    assert_eq!(reboots(&hosts[0]), 0);
    hosts[0].release("upgrade");
    assert_eq!(site.rest().await_end(&run).await.result(), Some("completed"));
    await_entries(program, &[]).await;
    let log = hosts[0].script_log();
    let at = |what: &str| log.iter().position(|line| line == what);
    assert!(at("upgrade-ends") < at("reboot") && reboots(&hosts[0]) == 1, "{log:?}");
}
