//! `os-upgrade dev`: a whole site on one machine, of which nothing is left behind.

use std::path::Path;
use std::process::{Command, Stdio};

use os_upgrade_orchestrator::child::{self, Child};
use os_upgrade_tests::orchestrator::own_address;
use os_upgrade_tests::programs;
use os_upgrade_tests::rest::Rest;
use os_upgrade_tests::wait::eventually;

fn dev(command: &mut Command, listen: &str, data: &Path, more: &[&str]) {
    command.args(["dev", "--hosts", "2", "--listen", listen, "--data-dir"]).arg(data).args(more);
    command.current_dir(data).env_remove("RUST_LOG");
}

/// Processes whose arguments name this directory.
fn processes(directory: &Path) -> Vec<String> {
    let directory = directory.to_str().expect("a path in UTF-8");
    let entries = std::fs::read_dir("/proc").expect("a /proc").flatten();
    let arguments = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let lines = arguments.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(directory)).collect()
}

#[tokio::test]
async fn dev_once_upgrades_its_hosts_and_leaves_no_process_behind() {
    let data = tempfile::tempdir().expect("a directory");
    let listen = own_address().to_string();
    for _ in 0..2 {
        let mut command = tokio::process::Command::new(programs::path(programs::ORCHESTRATOR));
        dev(command.as_std_mut(), &listen, data.path(), &["--once"]);
        let output = command.kill_on_drop(true).stdin(Stdio::null()).output().await.expect("started");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{out}\n{err}");
        assert!(out.contains("h01") && out.contains("h02"), "{out}");
        assert_eq!(processes(data.path()), [""; 0]);
    }
}

#[tokio::test]
async fn dev_that_is_killed_leaves_no_process_behind() {
    let data = tempfile::tempdir().expect("a directory");
    let address = own_address();
    let mut command = child::command(programs::path(programs::ORCHESTRATOR));
    dev(&mut command, &address.to_string(), data.path(), &[]);
    let child = Child::start(command).expect("started");
    let rest = Rest::new(address);
    eventually("the hosts", async || {
        let (_, state) = rest.try_call(reqwest::Method::GET, "/v1/state/os-upgrade", "").await?;
        (state["scheduled-workers"].as_array()?.len() == 2).then_some(())
    })
    .await;
    assert!(processes(data.path()).len() >= 4, "{:?}", processes(data.path()));
    child.kill().await;
    eventually("all processes to be gone", async || processes(data.path()).is_empty().then_some(())).await;
}
