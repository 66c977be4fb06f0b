//! The reboot queue with an operator's command in place of workers: a script of the shell, run by a real orchestrator.

use std::fs;
use std::path::PathBuf;

use harness::orchestrator::Orchestrator;
use harness::site::Site;
use harness::wait::eventually;
use os_upgrade_test_kubernetes::resource::{NODES, PODS};
use os_upgrade_test_kubernetes::{ApiServer, Pod};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The operator's commands, and what they write down.
struct Commands(TempDir);

impl Commands {
    /// `reboot` is a line of shell, in which `$1` is the node.
    fn new(reboot: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let commands = Self(directory);
        let folder = commands.0.path().display();
        fs::write(commands.file("reboot"), format!("cd {folder}; echo \"$@\" >> calls; {reboot}\n")).unwrap();
        fs::write(commands.file("check"), format!("cd {folder}; echo \"$@\" >> checks; cat booted\n"))
            .unwrap();
        commands
    }

    /// The keys of `[reboot]`.
    fn settings(&self) -> String {
        format!("reboot-command = \"sh {}\"\ncommand-timeout = \"1h\"\n", self.file("reboot").display())
    }

    fn check(&self) -> String {
        format!("boot-check-command = \"sh {}\"\n", self.file("check").display())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.file(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    async fn await_lines(&self, name: &str, count: usize) -> Vec<String> {
        eventually(&format!("{count} lines in {name}"), async || {
            let lines = self.lines(name);
            (lines.len() >= count).then_some(lines)
        })
        .await
    }
}

async fn entries(program: &Orchestrator) -> Vec<Value> {
    serde_json::from_str(&program.done(&["rq", "list", "-o", "json"]).await).unwrap()
}

/// Waits until the first entry is kept by this, and returns the sentence.
async fn await_why(program: &Orchestrator, kind: &str) -> String {
    eventually(&format!("an entry with {kind}"), async || {
        let entries = entries(program).await;
        let entry = entries.first()?;
        (entry["why"]["kind"] == kind).then(|| entry["why"]["text"].as_str().unwrap().to_owned())
    })
    .await
}

async fn await_empty(program: &Orchestrator) {
    eventually("an empty queue", async || entries(program).await.is_empty().then_some(())).await;
}

/// An ended process may stay a zombie, as containers often have no init process.
fn is_running(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// It is drained, rebooted once, and uncordoned when its kubelet is ready in another boot.
#[tokio::test]
async fn node_without_a_worker_reboots_by_command() {
    let commands = Commands::new("exit 0");
    let cluster = ApiServer::start().await;
    cluster.add_namespace("shop", &json!({}));
    cluster.add_node("node-9");
    cluster.edit(NODES, "", "node-9", |node| node["status"]["nodeInfo"]["bootID"] = json!("boot-1"));
    cluster.add_pod(&Pod::new("shop", "web").on("node-9").owned_by("ReplicaSet", "web"));
    let kubeconfig = commands.file("kubeconfig");
    fs::write(&kubeconfig, cluster.kubeconfig(cluster.admin_token()).to_string()).unwrap();
    let site = Site::start_with(&format!(
        "[site]\nname = \"hall-1\"\n[kubernetes]\nkubeconfig = \"{}\"\nnode-from = \"mapping\"\n[kubernetes.nodes]\n\
         h9 = \"node-9\"\n[reboot]\n{}",
        kubeconfig.display(),
        commands.settings()
    ))
    .await;
    let program = &site.orchestrator;
    // Until the cluster has been seen, nobody knows that.
    eventually("a cluster that was seen", async || {
        let (code, _, stderr) = program.ask(&["rq", "add", "h8"], "").await;
        assert_ne!(code, Some(0), "{stderr}");
        stderr.contains("h8 is no node of the cluster").then_some(())
    })
    .await;
    program.done(&["rq", "add", "h9"]).await;
    await_why(program, "boot-awaited").await;
    assert_eq!(commands.lines("calls"), ["node-9"]);
    assert_eq!(cluster.object(NODES, "", "node-9").unwrap()["spec"]["unschedulable"], true);
    assert!(cluster.object(PODS, "shop", "web").is_none());

    cluster.reboot_node("node-9");
    await_empty(program).await;
    assert_ne!(cluster.object(NODES, "", "node-9").unwrap()["spec"]["unschedulable"], true);
    assert_eq!(commands.lines("calls"), ["node-9"]);
    assert_eq!(program.done(&["lock", "list", "-o", "name"]).await, "");
}

/// The command dies with its leader. The next one does not take it for done, nor run it again, and asks whether the host has booted.
#[tokio::test]
async fn command_ends_with_its_leader() {
    let commands = Commands::new("echo $$ > pid; exec sleep 600");
    let settings = format!("[reboot]\n{}{}", commands.settings(), commands.check());
    let mut site = Site::start_with(&settings).await;
    let _hosts = site.hosts(1).await;
    site.orchestrator.done(&["rq", "add", "h01"]).await;
    let pid = commands.await_lines("pid", 1).await.remove(0);
    await_why(&site.orchestrator, "command-runs").await;
    let (code, _, stderr) =
        site.orchestrator.ask(&["rq", "give-up", "0", "--reason", "it takes long"], "").await;
    assert!(code != Some(0) && stderr.contains("the reboot command is being run for h01"), "{stderr}");

    site.orchestrator.kill_and_start().await;
    site.orchestrator.ready().await;
    let program = &site.orchestrator;
    let why = await_why(program, "retry-awaited").await;
    assert!(why.contains("it is run again from"), "{why}");
    assert!(!is_running(&pid), "the command goes on");
    let checks = commands.await_lines("checks", 1).await;
    let since = entries(program).await[0]["last_transition_time"].as_str().unwrap().to_owned();
    let since = chrono::DateTime::parse_from_rfc3339(&since).unwrap().timestamp();
    // Rounded up, which the entry's time is not.
    assert!(
        [since, since + 1].map(|since| format!("h01 {since}")).contains(&checks[0]),
        "{checks:?} {since}"
    );
    fs::write(commands.file("booted"), "true\n").unwrap();
    await_empty(program).await;
    assert_eq!(commands.lines("calls"), ["h01"]);
}

/// It is tried again as often as the settings say, and then stays for a person to look at.
#[tokio::test]
async fn failing_command_is_tried_again_and_shown() {
    let commands = Commands::new("env > environment; echo no route to host >&2; exit 3");
    let settings = format!("[reboot]\ncommand-retries = 2\n{}", commands.settings());
    let site = Site::start_with(&settings).await;
    let _hosts = site.hosts(1).await;
    let program = &site.orchestrator;
    program.done(&["rq", "add", "h01"]).await;
    let why = await_why(program, "failed").await;
    assert!(why.contains("exit status 3;") && why.contains("give-up"), "{why}");
    // What the command has printed is for operators, and not in a sentence that viewers see.
    let shown = program.done(&["rq", "show", "0"]).await;
    assert!(!why.contains("no route to host") && shown.contains("no route to host"), "{why}\n{shown}");
    assert_eq!(commands.lines("calls"), ["h01"; 3]);
    // What the orchestrator has for itself, it keeps: the test has set one of these for it.
    let environment = commands.lines("environment");
    assert!(environment.iter().any(|line| line.starts_with("PATH=")), "{environment:?}");
    assert!(!environment.iter().any(|line| line.starts_with("OS_UPGRADE_")), "{environment:?}");
    let metrics = site.rest().get_as("/metrics", "text/plain").await;
    assert!(metrics.contains("os_upgrade_reboot_queue_failed 1"), "{metrics}");
    program.done(&["rq", "give-up", "0", "--reason", "broken"]).await;
    await_empty(program).await;
    let history = program.done(&["rq", "history", "-o", "json"]).await;
    assert!(history.contains("no route to host"), "{history}");
}
