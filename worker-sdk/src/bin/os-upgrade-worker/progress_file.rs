//! The progress that a script reports: the last line of a file. A pipe instead would break a script whose worker has been
//! killed.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use os_upgrade_worker_sdk::Context;
use tracing::warn;

/// How often the file is read.
const POLL_EVERY: Duration = Duration::from_millis(200);
/// How much of its end is read; longer than the longest text that is shown.
const TAIL_BYTES: u64 = 1024;
/// Where a script writes when the file cannot be created.
const NOWHERE: &str = "/dev/null";

/// The progress file.
#[derive(Debug)]
pub(crate) struct ProgressFile {
    path: PathBuf,
}

impl ProgressFile {
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Empties the file for the next script, and returns the path for it to write to.
    pub(crate) fn begin(&self) -> String {
        match File::create(&self.path) {
            Ok(_) => self.path.display().to_string(),
            Err(error) => {
                warn!("the script's progress is lost: {}: {error}", self.path.display());
                NOWHERE.to_owned()
            }
        }
    }

    /// Reports new lines of the file to operators.
    pub(crate) async fn follow(&self, context: &Context) -> Infallible {
        let mut reported = None;
        loop {
            tokio::time::sleep(POLL_EVERY).await;
            // Errors are ignored: the script may have removed the file.
            let last = self.tail().ok().as_deref().and_then(last_line);
            if last.is_some() && last != reported {
                match last.as_ref() {
                    Some((Some(percent), text)) => context.progress(*percent, text),
                    Some((None, text)) => context.step(text),
                    None => {}
                }
                reported = last;
            }
        }
    }

    fn tail(&self) -> io::Result<String> {
        let mut file = File::open(&self.path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The last complete, non-blank line: the percentage, if the line begins with one, and the text.
fn last_line(tail: &str) -> Option<(Option<u8>, String)> {
    let (whole, _) = tail.rsplit_once('\n')?;
    let line = whole.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let percent = first.strip_suffix('%').unwrap_or(first).parse().ok().filter(|percent| *percent <= 100);
    Some(match percent {
        Some(percent) => (Some(percent), rest.trim().to_owned()),
        None => (None, line.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_complete_line_is_parsed() {
        let long = format!("{}\n50\n", "x".repeat(9000));
        for (tail, expected) in [
            ("", None),
            ("40 unpack", None),
            ("\n  \n", None),
            ("10\n40 unpacking linux\n\n50 conf", Some((Some(40), "unpacking linux"))),
            ("40% unpacking\r\n", Some((Some(40), "unpacking"))),
            ("  7  \n", Some((Some(7), ""))),
            ("configuring\n", Some((None, "configuring"))),
            ("101 dalmatians\n", Some((None, "101 dalmatians"))),
            ("-1 below\n", Some((None, "-1 below"))),
            (&long, Some((Some(50), ""))),
        ] {
            let expected = expected.map(|(percent, text): (Option<u8>, &str)| (percent, text.to_owned()));
            assert_eq!(last_line(tail), expected, "{tail:?}");
        }
    }

    #[test]
    fn only_end_of_long_file_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let file = ProgressFile::new(directory.path().join("progress"));
        assert_eq!(file.begin(), file.path.display().to_string());
        std::fs::write(&file.path, "1 begins\n".repeat(1000) + "99 ends\n").unwrap();
        assert_eq!(last_line(&file.tail().unwrap()), Some((Some(99), "ends".to_owned())));
        file.begin();
        assert_eq!(file.tail().unwrap(), "");
        assert_eq!(ProgressFile::new(directory.path().join("no/progress")).begin(), NOWHERE);
    }
}
