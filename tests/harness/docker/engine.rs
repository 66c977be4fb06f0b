//! The container engine, used by its command line, and the objects of a site in it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::project::repository;

/// The label by which compose marks the objects of a project.
const LABEL: &str = "com.docker.compose.project";
/// Prefix of the names of all sites, before the process id of their test.
pub(super) const PREFIX: &str = "os-upgrade-test-";

/// A running engine.
#[derive(Debug, Clone)]
pub(super) struct Engine {
    client: PathBuf,
}

impl Engine {
    /// The engine of this machine, as `.ci/container-engine` finds it.
    pub(super) fn find() -> Self {
        let output = Command::new(repository().join(".ci/container-engine")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        Self { client: PathBuf::from(String::from_utf8(output.stdout).unwrap().trim()) }
    }

    /// A `docker` command with these arguments.
    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.client);
        command.args(words).env("DOCKER_BUILDKIT", "1").stdin(Stdio::null());
        command
    }

    /// Runs `docker`, and returns what it prints.
    pub(super) fn must(&self, words: &[&str]) -> String {
        succeeded(&mut self.command(words))
    }

    /// Makes an image of a directory, with Dockerfile instructions.
    pub(super) fn import(&self, image: &str, directory: &Path, changes: &[&str]) {
        let mut tar = Command::new("tar");
        let mut tar = tar.arg("-C").arg(directory).args(["-c", "."]).stdout(Stdio::piped()).spawn().unwrap();
        let mut import = self.command(&["import"]);
        for change in changes {
            import.args(["--change", change]);
        }
        succeeded(import.args(["-", image]).stdin(tar.stdout.take().unwrap()));
        assert!(tar.wait().unwrap().success(), "{}", directory.display());
    }

    /// Builds an image of a stage of `docker/Dockerfile`. Removes the cached layers: the next build has other programs, and
    /// cannot use them.
    pub(super) fn build(&self, image: &str, stage: &str, arguments: &[(&str, String)]) {
        let before = self.build_cache();
        let mut build =
            self.command(&["build", "--file", "docker/Dockerfile", "--target", stage, "--tag", image]);
        for (name, value) in arguments {
            build.args(["--build-arg", &format!("{name}={value}")]);
        }
        let output = build.arg(".").current_dir(repository()).output().unwrap();
        let left: Vec<String> = self.build_cache().difference(&before).cloned().collect();
        if !left.is_empty() {
            let ids = format!("id=^({})$", left.join("|"));
            self.must(&["builder", "prune", "--force", "--all", "--filter", &ids]);
        }
        assert!(output.status.success(), "{stage}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn build_cache(&self) -> BTreeSet<String> {
        let ids = self.must(&[
            "system",
            "df",
            "--verbose",
            "--format",
            "{{range .BuildCache}}{{println .ID}}{{end}}",
        ]);
        ids.split_whitespace().map(str::to_owned).collect()
    }

    /// Removes all objects of a site. After a failure the others are still removed; returns the errors.
    pub(super) fn remove(&self, site: &str) -> Result<(), String> {
        let label = format!("label={LABEL}={site}");
        let reference = format!("reference={site}/*");
        let steps: [(&[&str], &str, &[&str]); 4] = [
            (&["ps", "--all", "--quiet"], &label, &["rm", "--force", "--volumes"]),
            (&["network", "ls", "--quiet"], &label, &["network", "rm"]),
            (&["volume", "ls", "--quiet"], &label, &["volume", "rm"]),
            (&["images", "--format", "{{.Repository}}"], &reference, &["rmi"]),
        ];
        let mut errors = String::new();
        for (list, filter, remove) in steps {
            let mut run = |command: &mut Command| {
                let output = command.output().unwrap();
                errors.push_str(&String::from_utf8_lossy(&output.stderr));
                String::from_utf8_lossy(&output.stdout).into_owned()
            };
            let found = run(self.command(list).args(["--filter", filter]));
            let found: BTreeSet<&str> = found.split_whitespace().collect();
            if !found.is_empty() {
                run(self.command(remove).args(found));
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// Removes the sites of tests that were killed.
    pub(super) fn remove_leftovers(&self) {
        let label = format!("{{{{.Label \"{LABEL}\"}}}}");
        let lists: [&[&str]; 4] = [
            &["ps", "--all", "--format", &label],
            &["network", "ls", "--format", &label],
            &["volume", "ls", "--format", &label],
            &["images", "--format", "{{.Repository}}"],
        ];
        let found: String = lists.into_iter().map(|list| self.must(list)).collect();
        // Image names have a suffix after the site's name.
        let sites = found.lines().filter_map(|line| line.split('/').next()).filter(|site| is_leftover(site));
        for site in sites.collect::<BTreeSet<&str>>() {
            // Another starting test may be removing it, too.
            drop(self.remove(site));
        }
    }
}

/// Whether the process of a site's test has ended. Another program may have its process id by now.
fn is_leftover(site: &str) -> bool {
    let process = site.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
    process.is_some_and(|process| {
        let program = std::fs::read_link(Path::new("/proc").join(process).join("exe")).unwrap_or_default();
        !program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("system-"))
    })
}

/// Runs a command that must succeed, and returns its output.
pub(super) fn succeeded(command: &mut Command) -> String {
    let output: Output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
