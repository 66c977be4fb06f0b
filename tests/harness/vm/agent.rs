//! Requests to a guest from outside, by QEMU's guest agent in it: JSON over a socket, which is a serial port in the guest.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// Timeout of an answer, emulated and beside other work.
const ANSWER_WAIT: Duration = Duration::from_secs(30);
/// Timeout of a command.
const COMMAND_WAIT: Duration = Duration::from_mins(10);
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Size of the chunks in which a file is sent, in bytes.
const PIECE_BYTES: usize = 1024 * 1024;

/// The result of a command in a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutput {
    /// Its exit code; `None` when a signal ended it.
    pub status: Option<i64>,
    /// Its output, standard error last.
    pub text: String,
}

/// The agent of one guest. Any request may fail, because the guest may be down.
#[derive(Debug)]
pub struct Agent(PathBuf);

impl Agent {
    /// The agent behind this socket.
    pub const fn new(socket: PathBuf) -> Self {
        Self(socket)
    }

    /// Sends a request; `None` without an answer, or after an error.
    async fn request(&self, what: &str, arguments: &Value) -> Option<Value> {
        tokio::time::timeout(ANSWER_WAIT, self.request_without_timeout(what, arguments)).await.ok().flatten()
    }

    async fn request_without_timeout(&self, what: &str, arguments: &Value) -> Option<Value> {
        let mut socket = BufReader::new(UnixStream::connect(&self.0).await.ok()?);
        // Our own id distinguishes our answers from those to earlier requests in the port.
        let id = uuid::Uuid::new_v4().as_u128() & u128::from(u32::MAX);
        let id = u64::try_from(id).unwrap_or_default();
        let sync = json!({ "execute": "guest-sync", "arguments": { "id": id } });
        let request = json!({ "execute": what, "arguments": arguments });
        socket.write_all(format!("{sync}\n").as_bytes()).await.ok()?;
        while answer(&mut socket).await?.get("return") != Some(&json!(id)) {}
        socket.write_all(format!("{request}\n").as_bytes()).await.ok()?;
        answer(&mut socket).await?.get("return").cloned()
    }

    /// Whether the guest is up.
    pub async fn answers(&self) -> bool {
        self.request("guest-ping", &json!({})).await.is_some()
    }

    /// Runs a shell command line, and waits for its end; `None` if the guest goes down in the meantime.
    pub async fn try_run(&self, line: &str) -> Option<CommandOutput> {
        let environment = [
            "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
            "LC_ALL=C.UTF-8",
            "HOME=/root",
            "DEBIAN_FRONTEND=noninteractive",
        ];
        let words = json!({
            "path": "/bin/sh", "arg": ["-c", line], "env": environment, "capture-output": true
        });
        let started = self.request("guest-exec", &words).await?;
        let start = Instant::now();
        while start.elapsed() < COMMAND_WAIT {
            let status = self.request("guest-exec-status", &started).await?;
            if status["exited"] == true {
                let text = |key: &str| decoded(&status[key]);
                return Some(CommandOutput {
                    status: status["exitcode"].as_i64(),
                    text: format!("{}{}", text("out-data"), text("err-data")),
                });
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        None
    }

    /// Runs a shell command line that must succeed, and returns its output.
    pub async fn must(&self, line: &str) -> String {
        let output = self.try_run(line).await.unwrap_or_else(|| panic!("no answer to: {line}"));
        assert_eq!(output.status, Some(0), "{line}: {}", output.text);
        output.text
    }

    /// Writes a file.
    pub async fn write(&self, path: &str, content: &[u8]) {
        let opened = self.request("guest-file-open", &json!({ "path": path, "mode": "w" })).await;
        let handle = opened.unwrap_or_else(|| panic!("{path} cannot be written"));
        for piece in content.chunks(PIECE_BYTES) {
            let arguments = json!({ "handle": handle, "buf-b64": STANDARD.encode(piece) });
            let written = self.request("guest-file-write", &arguments).await.unwrap();
            assert_eq!(written["count"], piece.len(), "{path}");
        }
        self.request("guest-file-close", &json!({ "handle": handle })).await.unwrap();
    }
}

async fn answer(socket: &mut BufReader<UnixStream>) -> Option<Value> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if socket.read_until(b'\n', &mut line).await.ok()? == 0 {
            return None;
        }
        if let Ok(value) = serde_json::from_slice(&line) {
            return Some(value);
        }
    }
}

fn decoded(value: &Value) -> String {
    let bytes = STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
