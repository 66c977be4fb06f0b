//! The command lines of APT and dpkg, and parsing their output.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use os_upgrade_systems::debian::package::{self, Package};
use os_upgrade_systems::debian::plan::Plan;
use os_upgrade_systems::debian::{database, failure, source};
use os_upgrade_systems::text::names;
use os_upgrade_worker_sdk::HandlerResult;
use tracing::{info, warn};

use crate::system::tools::{ToolOutput, Tools};

pub(super) const APT_GET: &str = "apt-get";
pub(super) const DPKG: &str = "dpkg";
const DPKG_QUERY: &str = "dpkg-query";
/// The directory of package lists in the cache directory.
pub(super) const LISTS: &str = "lists";

/// dpkg's options for configuration files: changed files of the host are kept, even if the package has a new version.
const KEEP_CONFIGURATION: [&str; 2] = ["--force-confdef", "--force-confold"];

/// APT with its own package lists and cache, so that exactly what was prepared is installed, whatever other users of APT
/// do in between.
#[derive(Debug)]
pub(super) struct Apt {
    /// The cache directory, as a path inside the root.
    cache: String,
    /// The cache directory, as a path outside of the root.
    directory: PathBuf,
}

impl Apt {
    pub(super) fn new(root: &Path, cache_dir: &Path) -> Self {
        let below = cache_dir.strip_prefix("/").unwrap_or(cache_dir);
        Self { cache: format!("/{}", below.display()), directory: root.join(below) }
    }

    /// The directory of lists and packages, as a path outside of the root.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Creates the directories that APT does not create itself.
    pub(super) fn create_directories(&self) -> io::Result<()> {
        for name in ["lists/partial", "archives/partial"] {
            fs::create_dir_all(self.directory.join(name))?;
        }
        Ok(())
    }

    /// The directory of lists, as a path inside the root.
    fn lists(&self) -> String {
        format!("{}/{LISTS}", self.cache)
    }

    /// Removes the lists that this output says APT cannot read, so that it asks for them again.
    pub(super) fn remove_unreadable_lists(&self, output: &str) {
        let directory = self.directory.join(LISTS);
        for name in source::unreadable_lists(output, &self.lists()) {
            match fs::remove_file(directory.join(name)) {
                Ok(()) => info!("{name} is removed from {}, because APT cannot read it", directory.display()),
                Err(error) => warn!("cannot remove {name} from {}: {error}", directory.display()),
            }
        }
    }

    /// The arguments of `apt-get`: the common options, then `more`.
    pub(super) fn arguments(&self, more: &[&str]) -> Vec<String> {
        let options = [
            "--quiet",
            "--assume-yes",
            &format!("--option=Dir::Cache={}", self.cache),
            // The host's configuration may have set it apart from `Dir::Cache`.
            &format!("--option=Dir::Cache::archives={}/archives", self.cache),
            &format!("--option=Dir::State::lists={}", self.lists()),
            // APT would use the files of a `file:` source in their place: an upgrade would install what has replaced
            // them, and `--no-download` cannot even do that. This copies them, as for any other source.
            "--option=Dir::Bin::Methods::file=copy",
            // One failed source is an error, not only the failure of all sources.
            "--option=APT::Update::Error-Mode=any",
            "--option=Acquire::Languages=none",
            // Otherwise APT would use a terminal for dpkg, but the output goes to a file.
            "--option=Dpkg::Use-Pty=0",
        ];
        options.iter().chain(more).map(|&word| word.to_owned()).collect()
    }

    /// Arguments for commands that do not change the system. They need no lock, because they write only to the worker's
    /// own directories. They also work after an interrupted dpkg, without repairing it.
    pub(super) fn read_only_arguments(&self, more: &[&str]) -> Vec<String> {
        // Without a planner log: only real changes should appear in APT's logs.
        let mut arguments =
            self.arguments(&["--option=Debug::NoLocking=true", "--option=Dir::Log::Planner="]);
        arguments.extend(more.iter().map(|&word| word.to_owned()));
        arguments
    }

    /// Arguments for commands that change the system, without downloads and with `APT::Status-Fd` on descriptor 3.
    pub(super) fn change_arguments(&self, more: &[&str]) -> Vec<String> {
        let mut arguments = self.arguments(&["--no-download", "--option=APT::Status-Fd=3"]);
        arguments.extend(KEEP_CONFIGURATION.map(|option| format!("--option=Dpkg::Options::={option}")));
        arguments.extend(more.iter().map(|&word| word.to_owned()));
        arguments
    }

    /// The plan of `command`.
    pub(super) async fn simulate(&self, tools: &Tools, command: &[&str]) -> HandlerResult<Plan> {
        let mut more = vec!["--simulate"];
        more.extend(command);
        let finished = tools.run(APT_GET, &self.read_only_arguments(&more)).await?;
        if !finished.status.success() {
            return Err(failed("the simulation of the upgrade", &finished).into());
        }
        Ok(Plan::parse(&finished.stdout))
    }
}

/// Checks that dpkg can read its database. Asking which package owns a file makes it read all of it, as an installation
/// does; listing packages does not.
pub(super) async fn check_database(tools: &Tools) -> HandlerResult {
    let finished = tools.run(DPKG_QUERY, &["--search", "--", "/nobody/owns/this"].map(str::to_owned)).await?;
    // 1: no package owns it.
    if !matches!(finished.status.code(), Some(0 | 1)) {
        return Err(failed("dpkg-query", &finished).into());
    }
    let output = finished.all();
    let missing = names(database::missing_lists(&output));
    if !missing.is_empty() {
        warn!("dpkg has lost the lists of files of packages; reinstall them: {missing}");
    }
    Ok(())
}

/// Every package that dpkg knows.
///
/// # Errors
/// There is none: a system without packages has lost dpkg's database.
pub(super) async fn packages(tools: &Tools) -> HandlerResult<Vec<Package>> {
    let arguments = ["--show".to_owned(), format!("--showformat={}", package::FORMAT)];
    let packages = package::parse(&tools.query(DPKG_QUERY, &arguments).await?);
    if packages.is_empty() { Err(database::EMPTY.into()) } else { Ok(packages) }
}

/// The packages that dpkg knows by these names and patterns; unknown names are ignored.
pub(super) async fn packages_named(tools: &Tools, names: &[String]) -> HandlerResult<Vec<Package>> {
    let mut arguments =
        vec!["--show".to_owned(), format!("--showformat={}", package::FORMAT), "--".to_owned()];
    arguments.extend_from_slice(names);
    let finished = tools.run(DPKG_QUERY, &arguments).await?;
    Ok(package::parse(&finished.stdout))
}

/// The arguments of `dpkg --configure --pending`.
pub(super) fn configure_arguments() -> Vec<String> {
    let mut arguments: Vec<String> = KEEP_CONFIGURATION.iter().map(|&word| word.to_owned()).collect();
    arguments.extend(["--configure".to_owned(), "--pending".to_owned()]);
    arguments
}

/// APT's configuration, as `apt-config dump` prints it.
pub(super) async fn configuration(tools: &Tools) -> HandlerResult<String> {
    tools.query("apt-config", &["dump".to_owned()]).await
}

/// Whether dpkg was interrupted before it could write its database.
pub(super) fn is_interrupted(root: &Path) -> bool {
    let journal = fs::read_dir(root.join("var/lib/dpkg/updates"));
    journal.is_ok_and(|mut entries| entries.next().is_some())
}

/// One line about a failed tool.
pub(super) fn failed(what: &str, finished: &ToolOutput) -> String {
    failure::describe(what, &finished.all(), "")
}
