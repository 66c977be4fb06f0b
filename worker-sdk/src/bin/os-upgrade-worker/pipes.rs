//! What a child process prints to its standard output and error. It is read until the child has exited: a process that
//! the child leaves behind, such as a daemon that a hook has started, may hold the pipes open for ever.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use os_upgrade_worker_sdk::limits::MESSAGE_BYTES_MAX;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Child;
use tokio::runtime::Handle;

/// How long output is read after the child has exited.
const DRAIN_MAX: Duration = Duration::from_secs(1);
/// How much is read at a time.
const CHUNK_BYTES: usize = 8 * 1024;

type Pipe = Box<dyn AsyncRead + Send + Sync + Unpin>;

/// Where a child has printed something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// One stream, and what was read of it.
#[derive(Default)]
struct Printed {
    /// `None` at its end.
    pipe: Option<Pipe>,
    /// Its beginning.
    kept: Vec<u8>,
    /// The beginning of a line whose end was not read yet, at most [`MESSAGE_BYTES_MAX`].
    line: Vec<u8>,
}

impl Printed {
    fn new(pipe: Option<impl AsyncRead + Send + Sync + Unpin + 'static>) -> Self {
        Self { pipe: pipe.map(|pipe| Box::new(pipe) as Pipe), ..Self::default() }
    }

    /// Reads more; `None` at the end. May be cancelled.
    async fn read(&mut self) -> Option<Vec<u8>> {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        match self.pipe.as_mut()?.read_buf(&mut chunk).await {
            Ok(0) | Err(_) => {
                self.pipe = None;
                None
            }
            Ok(_) => Some(chunk),
        }
    }
}

/// The pipes of a child.
pub(crate) struct Pipes {
    /// How many bytes of each stream are kept.
    bytes_max: usize,
    stdout: Printed,
    stderr: Printed,
}

impl fmt::Debug for Pipes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipes").field("bytes_max", &self.bytes_max).finish_non_exhaustive()
    }
}

impl Pipes {
    /// Takes the pipes of `child`, to keep the first `bytes_max` bytes of each.
    pub(crate) fn new(child: &mut Child, bytes_max: usize) -> Self {
        let stdout = Printed::new(child.stdout.take());
        let stderr = Printed::new(child.stderr.take());
        Self { bytes_max, stdout, stderr }
    }

    /// Waits until `child` has exited, and passes each line to `line` as it arrives, truncated to [`MESSAGE_BYTES_MAX`]. May be
    /// cancelled and called again.
    pub(crate) async fn wait(
        &mut self,
        child: &mut Child,
        mut line: impl FnMut(Stream, &str),
    ) -> io::Result<ExitStatus> {
        let status = loop {
            tokio::select! {
                status = child.wait() => break status?,
                Some((stream, chunk)) = self.read() => self.take(stream, &chunk, &mut line),
            }
        };
        let drained = async {
            while let Some((stream, chunk)) = self.read().await {
                self.take(stream, &chunk, &mut line);
            }
        };
        // A timeout means that somebody else still holds a pipe.
        let _ = tokio::time::timeout(DRAIN_MAX, drained).await;
        for (stream, printed) in [(Stream::Stdout, &mut self.stdout), (Stream::Stderr, &mut self.stderr)] {
            if !printed.line.is_empty() {
                line(stream, &String::from_utf8_lossy(&std::mem::take(&mut printed.line)));
            }
        }
        Ok(status)
    }

    /// Passes each line to `line` until this future is dropped.
    pub(crate) async fn follow(&mut self, mut line: impl FnMut(Stream, &str)) -> Infallible {
        while let Some((stream, chunk)) = self.read().await {
            self.take(stream, &chunk, &mut line);
        }
        std::future::pending().await
    }

    /// Takes the beginnings of standard output and standard error.
    pub(crate) fn take_kept(&mut self) -> (Vec<u8>, Vec<u8>) {
        (std::mem::take(&mut self.stdout.kept), std::mem::take(&mut self.stderr.kept))
    }

    /// Reads from either stream that has something; `None` once both have ended. May be cancelled. Neither comes first: a process
    /// left behind may fill one for ever, and the child would block on the other.
    async fn read(&mut self) -> Option<(Stream, Vec<u8>)> {
        let Self { stdout, stderr, .. } = self;
        loop {
            let (stream, chunk) = tokio::select! {
                chunk = stdout.read(), if stdout.pipe.is_some() => (Stream::Stdout, chunk),
                chunk = stderr.read(), if stderr.pipe.is_some() => (Stream::Stderr, chunk),
                else => return None,
            };
            if let Some(chunk) = chunk {
                return Some((stream, chunk));
            }
        }
    }

    fn take(&mut self, stream: Stream, chunk: &[u8], line: &mut impl FnMut(Stream, &str)) {
        let printed = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        append(&mut printed.kept, chunk, self.bytes_max);
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            let whole = piece.strip_suffix(b"\n");
            append(&mut printed.line, whole.unwrap_or(piece), MESSAGE_BYTES_MAX);
            if whole.is_some() {
                line(stream, &String::from_utf8_lossy(&printed.line));
                printed.line.clear();
            }
        }
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        // Whoever still holds a pipe would be killed by a closed one, or block on a full one.
        let Ok(runtime) = Handle::try_current() else { return };
        for mut pipe in [self.stdout.pipe.take(), self.stderr.pipe.take()].into_iter().flatten() {
            runtime.spawn(async move {
                let _ = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await;
            });
        }
    }
}

/// Appends as much of `bytes` as fits into `bytes_max`.
fn append(to: &mut Vec<u8>, bytes: &[u8], bytes_max: usize) {
    let room = bytes_max.saturating_sub(to.len());
    to.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;
    use std::time::Instant;

    use tokio::process::Command;

    use super::*;

    /// Runs a shell script; returns its lines, and the beginning of each stream.
    async fn printed(script: &str, bytes_max: usize) -> (Vec<(Stream, String)>, Vec<u8>, Vec<u8>) {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut pipes = Pipes::new(&mut child, bytes_max);
        let mut lines = Vec::new();
        let status = pipes.wait(&mut child, |stream, line| lines.push((stream, line.to_owned()))).await;
        assert!(status.unwrap().success());
        let (stdout, stderr) = pipes.take_kept();
        (lines, stdout, stderr)
    }

    #[tokio::test]
    async fn lines_and_beginnings_are_read() {
        let (lines, stdout, stderr) = printed(r"printf 'a\n\nb\r\nc\377'", 4).await;
        let expected = ["a", "", "b\r", "c\u{fffd}"].map(|line| (Stream::Stdout, line.to_owned()));
        assert_eq!(
            (lines.as_slice(), stdout.as_slice(), stderr.as_slice()),
            (&expected[..], &b"a\n\nb"[..], &b""[..])
        );
        let (lines, ..) = printed("head -c 3000000 /dev/zero | tr '\\0' x >&2", 0).await;
        assert_eq!(lines, [(Stream::Stderr, "x".repeat(MESSAGE_BYTES_MAX))]);
    }

    #[tokio::test]
    async fn processes_left_behind_are_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let (go, pid) = (directory.path().join("go"), directory.path().join("pid"));
        // It prints when nobody listens any more, which must not end it.
        let left = format!(
            "(until [ -e {go} ]; do sleep 0.02; done; echo more; echo done >{go}) & echo $! >{pid}; echo first; echo 2nd >&2",
            go = go.display(),
            pid = pid.display()
        );
        let begun = Instant::now();
        let (mut lines, stdout, _) = printed(&left, 100).await;
        assert!(begun.elapsed() < DRAIN_MAX * 5, "{:?}", begun.elapsed());
        lines.sort_by_key(|(stream, _)| *stream == Stream::Stderr);
        let expected = [(Stream::Stdout, "first".to_owned()), (Stream::Stderr, "2nd".to_owned())];
        assert_eq!((lines.as_slice(), stdout.as_slice()), (&expected[..], &b"first\n"[..]));
        std::fs::write(&go, "").unwrap();
        while std::fs::read_to_string(&go).unwrap() != "done\n" {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn full_stdout_does_not_starve_stderr() {
        let script = "yes & head -c 200000 /dev/zero >&2; kill $!";
        let ended = tokio::time::timeout(Duration::from_mins(1), printed(script, 300_000)).await;
        let (_, _, stderr) = ended.expect("standard error is read");
        assert_eq!(stderr.len(), 200_000);
    }
}
