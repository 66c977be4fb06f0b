//! Shells, and the programs that people run in them.

use std::process::Stdio;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::programs;

/// `shell` with the program on its path, and the API at `url` for it; its input and output are pipes.
pub fn with_program<'a>(shell: &'a mut Command, url: &str) -> &'a mut Command {
    let program = programs::path(programs::ORCHESTRATOR);
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    shell.env("PATH", path).env("OS_UPGRADE_URL", url).env("TERM", "dumb").kill_on_drop(true);
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped())
}

/// A shell on a terminal, which completes the program's commands.
pub struct Terminal {
    stdin: ChildStdin,
    stdout: ChildStdout,
    _shell: Child,
    _directory: TempDir,
}

impl Terminal {
    /// What it shows when the shell can be typed to.
    pub const PROMPT: &str = "ready> ";

    /// Waits until it shows the prompt.
    pub async fn start(url: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("bashrc");
        let settings = format!("source <(os-upgrade completion bash); PS1='{}'\n", Self::PROMPT);
        std::fs::write(&file, settings).unwrap();
        let mut script = Command::new("script");
        let bash = format!("bash --rcfile '{}' -i", file.display());
        with_program(script.args(["-qec", &bash, "/dev/null"]), url);
        let mut shell = script.spawn().unwrap();
        let (stdin, stdout) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
        let mut terminal = Self { stdin, stdout, _shell: shell, _directory: directory };
        terminal.types("", Self::PROMPT).await;
        terminal
    }

    /// Types `keys`, and waits until the terminal shows `text` after that; what it has shown.
    pub async fn types(&mut self, keys: &str, text: &str) -> String {
        self.stdin.write_all(keys.as_bytes()).await.unwrap();
        let mut shown = Vec::new();
        while !String::from_utf8_lossy(&shown).contains(text) {
            let more = self.stdout.read_buf(&mut shown).await.unwrap();
            assert!(more > 0, "{keys:?}: {}", String::from_utf8_lossy(&shown));
        }
        String::from_utf8_lossy(&shown).into_owned()
    }
}
