//! What a shell offers for the words of a command.

use harness::site::Site;
use harness::terminal::{Terminal, with_program};
use tokio::process::Command;

/// What bash offers for the last word of `line`, at a site whose API is at `url`. The last word has no `:` and no `=`.
async fn offered(url: &str, line: &str) -> Vec<String> {
    // Readline has split the words there.
    let pieces = line.replace(':', " : ").replace('=', " = ");
    let script = format!(
        "source <(os-upgrade completion bash); read -ra COMP_WORDS <<< '{pieces}'; [[ '{line}' = *' ' ]] && COMP_WORDS+=(''); \
         COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _clap_complete_os_upgrade os-upgrade \"${{COMP_WORDS[-1]}}\"; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let output = with_program(Command::new("bash").args(["-c", &script]), url).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
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
    assert_eq!(offered("http://127.0.0.1:1", &format!("os-upgrade hosts show --url={url} h")).await, both);
    assert_eq!(offered(&url, "os-upgrade run list --host=h").await, both);

    let mut terminal = Terminal::start("http://127.0.0.1:1").await;
    terminal.types(&format!("os-upgrade hosts show --url {url} h0\t\t"), "h01  h02").await;
    terminal.types("\x15os-upgrade status --output=js\t", "--output=json").await;
}

/// A silent instance keeps nobody's shell.
#[tokio::test]
async fn silent_instance_offers_nothing() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    assert_eq!(offered(&url, "os-upgrade hosts show ").await, Vec::<String>::new());
}
