//! What a shell offers for the words of a command.

use std::process::Stdio;

use harness::programs;
use harness::site::Site;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

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

/// `shell` with the program on its path, and what it is about in pipes.
fn with_program<'a>(shell: &'a mut Command, url: &str) -> &'a mut Command {
    let program = programs::path(programs::ORCHESTRATOR);
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    shell.env("PATH", path).env("OS_UPGRADE_URL", url).env("TERM", "dumb").kill_on_drop(true);
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped())
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

    let mut terminal = Terminal::start("http://127.0.0.1:1");
    terminal.types("", "ready> ").await;
    terminal.types(&format!("os-upgrade hosts show --url {url} h0\t\t"), "h01  h02").await;
    terminal.types("\x15os-upgrade status --output=js\t", "--output=json").await;
}

/// A shell on a terminal.
struct Terminal {
    stdin: ChildStdin,
    stdout: ChildStdout,
    _shell: Child,
    _directory: TempDir,
}

impl Terminal {
    fn start(url: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("bashrc");
        std::fs::write(&file, "source <(os-upgrade completion bash); PS1='ready> '\n").unwrap();
        let mut script = Command::new("script");
        let bash = format!("bash --rcfile '{}' -i", file.display());
        with_program(script.args(["-qec", &bash, "/dev/null"]), url);
        let mut shell = script.spawn().unwrap();
        Self {
            stdin: shell.stdin.take().unwrap(),
            stdout: shell.stdout.take().unwrap(),
            _shell: shell,
            _directory: directory,
        }
    }

    /// Types `keys`, and waits until the terminal shows `text` after that.
    async fn types(&mut self, keys: &str, text: &str) {
        self.stdin.write_all(keys.as_bytes()).await.unwrap();
        let mut shown = Vec::new();
        while !String::from_utf8_lossy(&shown).contains(text) {
            let more = self.stdout.read_buf(&mut shown).await.unwrap();
            assert!(more > 0, "{keys:?}: {}", String::from_utf8_lossy(&shown));
        }
    }
}

/// A silent instance keeps nobody's shell.
#[tokio::test]
async fn silent_instance_offers_nothing() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    assert_eq!(offered(&url, "os-upgrade hosts show ").await, Vec::<String>::new());
}
