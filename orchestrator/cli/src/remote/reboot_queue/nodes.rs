//! Which hosts are to reboot: named as arguments, in a file, or on standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use os_upgrade_api_types::route::Dialect;
use os_upgrade_kernel::reboot_queue::ENTRIES_MAX;
use os_upgrade_protocol::HostName;
use reqwest::StatusCode;

use crate::Failure;
use crate::failure::Refused;
use crate::remote::completion;
use crate::text_file;

/// The largest file, in bytes: the API reads no larger body.
const FILE_BYTES_MAX: usize = Dialect::Specification.body_bytes_max();
/// What stands for standard input.
const STANDARD_INPUT: &str = "-";

#[derive(Debug, Args)]
pub(super) struct Selection {
    /// The hosts, or one file of names, or - for standard input
    #[arg(value_name = "NODE|FILE|-", required_unless_present_any = ["file", "required"], add = completion::hosts())]
    nodes: Vec<String>,
    /// A file of names, separated by white space; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "nodes")]
    file: Option<String>,
    /// Every host that needs a reboot, as its worker says, takes part in runs, and has no entry
    #[arg(long, conflicts_with_all = ["nodes", "file"])]
    required: bool,
}

impl Selection {
    /// Whether the only argument is the name of a host, and could have been meant for a file.
    pub(super) fn may_be_file(&self) -> bool {
        matches!(self.nodes.as_slice(), [one] if !is_file(one))
    }

    /// The hosts that are named; `None` if those are meant that need a reboot.
    ///
    /// # Errors
    /// A file cannot be used, or has no names; or something is no name.
    pub(super) fn given(&self) -> Result<Option<Vec<HostName>>, Failure> {
        let unusable = |error: anyhow::Error| Failure::unusable(&error);
        match (&self.file, self.nodes.as_slice()) {
            _ if self.required => Ok(None),
            (Some(file), _) => read(file).map_err(unusable).map(Some),
            (None, [one]) if is_file(one) => read(one).map_err(unusable).map(Some),
            (None, nodes) if nodes.iter().any(|node| node == STANDARD_INPUT) => {
                Err(Failure::Usage("- is standard input, and stands alone".to_owned()))
            }
            (None, nodes) => {
                let names = nodes.iter().map(|node| HostName::new(node));
                let names: Result<_, _> = names.collect();
                names.map(Some).map_err(|error| Failure::Usage(format!("{error}")))
            }
        }
    }
}

/// A refusal because there is no host of a name that stands alone says that there is no file of that name either.
pub(super) fn neither_host_nor_file(error: anyhow::Error, hosts: &[HostName]) -> anyhow::Error {
    match (error.downcast(), hosts) {
        (Ok(Refused { status, message, of_change }), [one]) if status == StatusCode::NOT_FOUND => {
            let message = format!("{message}; and there is no file {one}");
            Refused { status, message, of_change }.into()
        }
        (Ok(refused), _) => refused.into(),
        (Err(error), _) => error,
    }
}

/// Whether an argument that stands alone is a file of names. Hosts have no slash in their names, or else those are passed on
/// standard input.
fn is_file(argument: &str) -> bool {
    let is_there = || Path::new(argument).metadata().is_ok_and(|file| !file.is_dir());
    argument == STANDARD_INPUT || argument.contains('/') || is_there()
}

fn read(file: &str) -> anyhow::Result<Vec<HostName>> {
    if file == STANDARD_INPUT {
        return names(io::stdin().lock()).context("standard input");
    }
    let opened = File::open(file).with_context(|| format!("cannot read {file}"))?;
    names(opened).with_context(|| file.to_owned())
}

/// The names in `source`, in order.
fn names(source: impl Read) -> anyhow::Result<Vec<HostName>> {
    let mut bytes = Vec::new();
    source.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).context("it cannot be read")?;
    if bytes.len() > FILE_BYTES_MAX {
        bail!("it has more than {FILE_BYTES_MAX} bytes");
    }
    let text = text_file::text(bytes).map_err(anyhow::Error::msg)?;
    let name = |(at, word): (usize, &str)| {
        // A file that is no list has words that nobody wants to see.
        HostName::new(word).map_err(|error| anyhow!("word {} is not the name of a host: {error}", at + 1))
    };
    let names: Vec<HostName> =
        text.split_whitespace().enumerate().map(name).collect::<anyhow::Result<_>>()?;
    match names.len() {
        0 => bail!("it names no host"),
        count if count > ENTRIES_MAX => {
            bail!("it names {count} hosts, and the queue holds {ENTRIES_MAX} entries")
        }
        _ => Ok(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(source: &[u8]) -> Result<Vec<String>, String> {
        let names = names(source).map_err(|error| format!("{error:#}"))?;
        Ok(names.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn names_are_separated_by_white_space() {
        let names = ["h01", "10.0.0.7", "ä"].map(ToOwned::to_owned).to_vec();
        assert_eq!(told("\n h01\t10.0.0.7\r\n\nä".as_bytes()), Ok(names));
    }

    #[test]
    fn what_is_no_list_of_names_is_refused() {
        let many = "h ".repeat(ENTRIES_MAX + 1);
        let large = "h".repeat(FILE_BYTES_MAX + 1);
        for (source, expected) in [
            (&b""[..], "it names no host"),
            (b" \n\t", "it names no host"),
            (b"\x7fELF\x02\x01\x00\xff", "it is not text in UTF-8"),
            (b"h01 h\x0002", "word 2 is not the name of a host: "),
            (many.as_bytes(), "it names 20001 hosts, and the queue holds 20000 entries"),
            (large.as_bytes(), "it has more than 1048576 bytes"),
        ] {
            let error = told(source).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn file_that_is_not_there_is_named() {
        let refused = |status| {
            let message = "nodes.txt has announced no worker at this site; nothing is queued".to_owned();
            anyhow::Error::from(Refused { status, message, of_change: true })
        };
        let hosts =
            |names: &[&str]| names.iter().map(|name| HostName::new(name).unwrap()).collect::<Vec<_>>();
        let told = |status, names: &[&str]| neither_host_nor_file(refused(status), &hosts(names)).to_string();
        let expected = "nodes.txt has announced no worker at this site; nothing is queued; and there is no file nodes.txt";
        assert_eq!(told(StatusCode::NOT_FOUND, &["nodes.txt"]), expected);
        for (status, names) in [(StatusCode::CONFLICT, &["h1"][..]), (StatusCode::NOT_FOUND, &["h1", "h2"])] {
            assert_eq!(told(status, names), refused(status).to_string());
        }
    }

    #[test]
    fn one_argument_may_be_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("nodes");
        std::fs::write(&file, "h01 h02\n").unwrap();
        let given = |nodes: &[&str], file: Option<&str>| {
            let nodes = nodes.iter().map(|node| (*node).to_owned()).collect();
            let nodes = Selection { nodes, file: file.map(ToOwned::to_owned), required: false };
            nodes.given().map(|hosts| hosts.unwrap().iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let (file, directory) = (file.to_str().unwrap(), directory.path().to_str().unwrap());
        assert_eq!(given(&[file], None).unwrap(), ["h01", "h02"]);
        assert_eq!(given(&[], Some(file)).unwrap(), ["h01", "h02"]);
        assert_eq!(given(&["h01", "nodes"], None).unwrap(), ["h01", "nodes"]);
        // A directory is no file, unless somebody means it.
        assert_eq!(given(&["src"], None).unwrap(), ["src"]);
        for unusable in [given(&[directory], None), given(&[], Some("src")), given(&["./nothing"], None)] {
            assert!(matches!(unusable, Err(Failure::Unusable { .. })), "{unusable:?}");
        }
        for wrong in [given(&["h01", "-"], None), given(&["h\n01"], None)] {
            assert!(matches!(wrong, Err(Failure::Usage(_))), "{wrong:?}");
        }
    }
}
