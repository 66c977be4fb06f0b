//! What a shell offers for the words of a command.

use harness::programs;
use harness::site::Site;
use tokio::process::Command;

/// What bash offers for the last word of `line`, at a site whose API is at `url`.
async fn offered(url: &str, line: &str) -> Vec<String> {
    let script = format!(
        "source <(os-upgrade completion bash); IFS=' ' read -ra COMP_WORDS <<< '{line}'; [[ '{line}' = *' ' ]] && COMP_WORDS+=(''); \
         COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _clap_complete_os_upgrade os-upgrade \"${{COMP_WORDS[-1]}}\"; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let program = programs::path(programs::ORCHESTRATOR);
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).env("PATH", path).env("OS_UPGRADE_URL", url).kill_on_drop(true);
    let output = bash.output().await.unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    printed.lines().filter(|word| !word.starts_with("--")).map(ToOwned::to_owned).collect()
}

#[tokio::test]
async fn names_of_hosts_and_runs_are_offered() {
    let site = Site::start().await;
    let _hosts = site.hosts(2).await;
    let url = format!("http://{}", site.orchestrator.address());
    site.orchestrator.done(&["run", "start", "--watch"]).await;
    let id = site.orchestrator.done(&["run", "list", "-o", "name"]).await;
    let (nobody, both) = (Vec::<String>::new(), ["h01", "h02"]);
    assert_eq!(offered(&url, "os-upgrade hosts show ").await, both);
    assert_eq!(offered(&url, "os-upgrade hosts defer h01 h02").await, ["h02"]);
    assert_eq!(offered(&url, "os-upgrade --utc run list --host ").await, both);
    assert_eq!(offered(&url, "os-upgrade run show ").await, ["last", &id]);
    assert_eq!(offered(&url, "os-upgrade run show last h").await, both);
    assert_eq!(offered(&url, "os-upgrade run give").await, ["give-up"]);
    // The words may name another instance, which need not answer.
    assert_eq!(offered("http://127.0.0.1:1", &format!("os-upgrade hosts show --url {url} ")).await, both);
    assert_eq!(offered("http://127.0.0.1:1", "os-upgrade hosts show ").await, nobody);
}
