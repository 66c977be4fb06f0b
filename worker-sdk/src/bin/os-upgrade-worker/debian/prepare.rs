//! `prepare`: checks and downloads everything, without changing the system.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, access};
use os_upgrade_systems::debian::plan::Plan;
use os_upgrade_systems::debian::size::Sizes;
use os_upgrade_systems::debian::space::{Place, boot_needed, shortage};
use os_upgrade_systems::debian::{decide, package, source};
use os_upgrade_systems::text::names;
use os_upgrade_worker_sdk::{Context, HandlerResult};
use tracing::{info, warn};

use super::Debian;
use super::apt::{self, APT_GET, LISTS};

/// The command that is prepared, and carried out by the upgrade. It also installs missing dependencies.
pub(super) const DIST_UPGRADE: [&str; 2] = ["--fix-broken", "dist-upgrade"];

impl Debian {
    pub(super) async fn prepare_all(&self, context: &Context) -> HandlerResult {
        match fs::remove_file(self.prepared()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(self.cannot_write(&error).into());
            }
            Ok(()) | Err(_) => {}
        }
        apt::check_database(&self.parts.tools).await?;
        self.apt.create_directories().map_err(|error| self.cannot_write(&error))?;
        context.progress(0, "reading the sources");
        self.update(context).await?;
        context.progress(20, "simulating the upgrade");
        let plan = self.checked_plan().await?;
        info!("{}", plan.summary());
        if !plan.is_empty() {
            self.check_space(&plan).await?;
            context.progress(40, "downloading packages");
            self.download(context).await?;
        }
        let additions: Vec<&str> = plan.additions().map(|install| install.name.as_str()).collect();
        fs::write(self.prepared(), additions.join("\n")).map_err(|error| self.cannot_write(&error))?;
        Ok(())
    }

    /// Updates all package lists.
    async fn update(&self, context: &Context) -> HandlerResult {
        let arguments = self.apt.arguments(&["update"]);
        let mut wait = self.parts.tools.lock_wait();
        loop {
            let finished =
                self.parts.tools.run_recorded(APT_GET, &arguments, context.output(), |_| ()).await?;
            let output = finished.all();
            if finished.status.success() {
                return source::describe_misread(&output).map_or(Ok(()), |refusal| Err(refusal.into()));
            }
            if wait.is_over(&output).await? {
                self.apt.remove_unreadable_lists(&output);
                let lists = self.apt.directory().join(LISTS).display().to_string();
                return Err(source::describe_update(&output, &lists).into());
            }
        }
    }

    /// The upgrade's plan, if it is allowed.
    pub(super) async fn checked_plan(&self) -> HandlerResult<Plan> {
        let packages = apt::packages(&self.parts.tools).await?;
        let unfinished = package::unfinished(&packages);
        if !unfinished.is_empty() || apt::is_interrupted(self.parts.tools.root()) {
            warn!(
                "an earlier installation did not finish; the upgrade finishes it first: {}",
                names(unfinished)
            );
        }
        let held: Vec<&str> = decide::held(&packages).collect();
        if !held.is_empty() {
            warn!("packages on hold stay as they are: {}", names(held));
        }
        let plan = self.apt.simulate(&self.parts.tools, &DIST_UPGRADE).await?;
        if let Some(refusal) = decide::refusal(&plan, &packages, self.allowed()) {
            return Err(refusal.into());
        }
        self.check_writable(&plan).await?;
        Ok(plan)
    }

    /// Checks that dpkg can write where the plan makes it write.
    async fn check_writable(&self, plan: &Plan) -> HandlerResult {
        let tools = &self.parts.tools;
        for place in plan.written_directories() {
            match access(&tools.root().join(place), AccessFlags::W_OK) {
                Ok(()) | Err(Errno::ENOENT) => {}
                Err(error) => {
                    let configuration = apt::configuration(tools).await?;
                    let place = format!("/{place}");
                    if let Some(refusal) = decide::unwritable(&place, error.desc(), &configuration) {
                        return Err(refusal.into());
                    }
                    info!("{place} is expected to be mounted writable by APT's configuration");
                }
            }
        }
        Ok(())
    }

    /// Checks that there is enough space for the downloads and the installation.
    async fn check_space(&self, plan: &Plan) -> HandlerResult {
        let mut arguments = self.apt.read_only_arguments(&DIST_UPGRADE);
        // APT prints the sizes only before its confirmation prompt.
        arguments.retain(|argument| argument != "--assume-yes");
        arguments.push("--assume-no".to_owned());
        let finished = self.parts.tools.run(APT_GET, &arguments).await?;
        let sizes = Sizes::parse(&finished.stdout);
        let root = self.parts.tools.root();
        let boot = root.join("boot");
        let places = [
            (self.apt.directory().to_owned(), sizes.download),
            (root.to_owned(), sizes.installed),
            (boot.clone(), boot_needed(&files(&boot), plan.new_kernels())),
        ];
        let places = places.into_iter().filter_map(|(path, needed)| place(&path, needed));
        let places: Vec<Place> = places.collect();
        match shortage(&places, self.settings.free_space.saturating_mul(1_000_000)) {
            Some(shortage) => Err(shortage.into()),
            None => Ok(()),
        }
    }

    async fn download(&self, context: &Context) -> HandlerResult {
        let mut more = vec!["--download-only"];
        more.extend(DIST_UPGRADE);
        let finished = self
            .parts
            .tools
            .run_recorded(APT_GET, &self.apt.read_only_arguments(&more), context.output(), |_| ())
            .await?;
        if finished.status.success() {
            Ok(())
        } else {
            Err(source::describe_download(&finished.all()).into())
        }
    }

    fn cannot_write(&self, error: &io::Error) -> String {
        format!("cannot write in {}: {error}", self.apt.directory().display())
    }
}

/// A directory with the free space of its filesystem; `None` if it does not exist.
fn place(path: &PathBuf, needed: u64) -> Option<Place> {
    let filesystem = fs::metadata(path).ok()?.dev();
    let numbers = statvfs(path).ok()?;
    let free = numbers.blocks_available().saturating_mul(numbers.fragment_size());
    Some(Place { name: path.display().to_string(), filesystem, free, needed })
}

/// The files of a directory and their sizes; empty if it does not exist.
fn files(directory: &Path) -> Vec<(String, u64)> {
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    entries
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.metadata().ok()?.len())))
        .collect()
}
