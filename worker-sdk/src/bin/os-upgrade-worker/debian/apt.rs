//! The command lines of APT and dpkg, and reading what they answer.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use os_upgrade_systems::debian::failure;
use os_upgrade_systems::debian::package::{self, Package};
use os_upgrade_systems::debian::plan::Plan;
use os_upgrade_worker_sdk::HandlerResult;

use crate::system::tools::{Said, Tools};

pub(super) const APT_GET: &str = "apt-get";
pub(super) const DPKG: &str = "dpkg";
const DPKG_QUERY: &str = "dpkg-query";

/// What dpkg is told about configuration files: those of the host stay, also where the package has another default.
const KEEP_CONFIGURATION: [&str; 2] = ["--force-confdef", "--force-confold"];

/// APT with package lists and packages of its own, so that what was prepared is what is installed, whatever other
/// users of APT do in between.
#[derive(Debug)]
pub(super) struct Apt {
    /// As it is called in the root.
    cache: String,
    /// As it is called from outside.
    directory: PathBuf,
}

impl Apt {
    pub(super) fn new(root: &Path, cache_dir: &Path) -> Self {
        let below = cache_dir.strip_prefix("/").unwrap_or(cache_dir);
        Self { cache: format!("/{}", below.display()), directory: root.join(below) }
    }

    /// Where lists and packages are, from outside.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes the directories that APT does not make itself.
    pub(super) fn make_directories(&self) -> io::Result<()> {
        for name in ["lists/partial", "archives/partial"] {
            fs::create_dir_all(self.directory.join(name))?;
        }
        Ok(())
    }

    /// The words for `apt-get`, after which its command follows.
    pub(super) fn words(&self, more: &[&str]) -> Vec<String> {
        let options = [
            "--quiet",
            "--assume-yes",
            &format!("--option=Dir::Cache={}", self.cache),
            &format!("--option=Dir::State::lists={}/lists", self.cache),
            // Any source that fails is an error, not only when all do.
            "--option=APT::Update::Error-Mode=any",
            "--option=Acquire::Languages=none",
            // Its output is a file, and it would want a terminal for dpkg.
            "--option=Dpkg::Use-Pty=0",
        ];
        options.iter().chain(more).map(|&word| word.to_owned()).collect()
    }

    /// The same for what only reads, which needs no lock: what it writes is in directories of its own. It also works
    /// where a dpkg was cut off, and leaves it so.
    pub(super) fn words_to_read(&self, more: &[&str]) -> Vec<String> {
        // Nor is what it would do noted beside what was done.
        let mut words = self.words(&["--option=Debug::NoLocking=true", "--option=Dir::Log::Planner="]);
        words.extend(more.iter().map(|&word| word.to_owned()));
        words
    }

    /// The same for what changes the system: from what was downloaded, `APT::Status-Fd` on the third descriptor.
    pub(super) fn words_to_change(&self, more: &[&str]) -> Vec<String> {
        let mut words = self.words(&["--no-download", "--option=APT::Status-Fd=3"]);
        words.extend(KEEP_CONFIGURATION.map(|option| format!("--option=Dpkg::Options::={option}")));
        words.extend(more.iter().map(|&word| word.to_owned()));
        words
    }

    /// What `command` would do.
    pub(super) async fn simulate(&self, tools: &Tools, command: &[&str]) -> HandlerResult<Plan> {
        let mut more = vec!["--simulate"];
        more.extend(command);
        let said = tools.run(APT_GET, &self.words_to_read(&more)).await?;
        if !said.status.success() {
            return Err(failed("the simulation of the upgrade", &said).into());
        }
        Ok(Plan::parse(&said.stdout))
    }
}

/// Every package that dpkg knows.
pub(super) async fn packages(tools: &Tools) -> HandlerResult<Vec<Package>> {
    let arguments = ["--show".to_owned(), format!("--showformat={}", package::FORMAT)];
    Ok(package::parse(&tools.query(DPKG_QUERY, &arguments).await?))
}

/// The packages that dpkg knows by these names and patterns; those that it does not know are left out.
pub(super) async fn packages_named(tools: &Tools, names: &[String]) -> HandlerResult<Vec<Package>> {
    let mut arguments =
        vec!["--show".to_owned(), format!("--showformat={}", package::FORMAT), "--".to_owned()];
    arguments.extend_from_slice(names);
    let said = tools.run(DPKG_QUERY, &arguments).await?;
    Ok(package::parse(&said.stdout))
}

/// `dpkg --configure --pending`
pub(super) fn configure_words() -> Vec<String> {
    let mut words: Vec<String> = KEEP_CONFIGURATION.iter().map(|&word| word.to_owned()).collect();
    words.extend(["--configure".to_owned(), "--pending".to_owned()]);
    words
}

/// Whether a dpkg was cut off before it could write its database.
pub(super) fn is_interrupted(root: &Path) -> bool {
    let journal = fs::read_dir(root.join("var/lib/dpkg/updates"));
    journal.is_ok_and(|mut entries| entries.next().is_some())
}

/// One line about a tool that failed.
pub(super) fn failed(what: &str, said: &Said) -> String {
    failure::trouble(what, &said.all(), "")
}
