//! A site, from its images to its removal, and the faults of its containers.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reqwest::Method;
use tempfile::TempDir;

use super::engine::{Engine, PREFIX, succeeded};
use super::images::Images;
use super::project::{repository, tool};
use crate::rest::Rest;
use crate::wait::eventually;

/// The orchestrators of the compose file.
pub const ORCHESTRATORS: [&str; 2] = ["orchestrator1", "orchestrator2"];
/// The override file of the compose file.
const OVERRIDE: &str = "tests/harness/docker/site.yaml";

/// A fault of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Its first process is killed; the engine restarts the container.
    Killed,
    /// Its processes are paused.
    Paused,
    /// It has no network.
    CutOff,
}

/// A site, which is removed completely when dropped.
#[derive(Debug)]
pub struct Site {
    engine: Engine,
    name: String,
    /// The directory of the compose file.
    directory: TempDir,
}

impl Site {
    /// A site without images, keys or containers. Removes what killed tests have left.
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let engine = Engine::find();
        engine.remove_leftovers();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("site")).unwrap();
        fs::copy(repository().join("docker/setup"), directory.path().join("setup")).unwrap();
        Self { engine, name, directory }
    }

    /// Makes the image of the orchestrators.
    pub fn make_orchestrator(&self) {
        self.images().make_orchestrator();
    }

    /// Makes the image of the nats-servers.
    pub async fn make_nats(&self) {
        self.images().make_nats().await;
    }

    /// Makes the image of a demo host.
    pub fn make_demo_host(&self) {
        self.images().make_demo_host();
    }

    /// Makes the image of a Debian host with packages of version 1.0, and an archive with 2.0 of each.
    pub fn make_debian_host(&self) {
        self.images().make_debian_host();
    }

    fn images(&self) -> Images {
        Images::new(&self.engine, &self.name)
    }

    /// A file beside the compose file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A `docker compose` command with these arguments.
    fn compose(&self, words: &[&str]) -> Command {
        let mut command = tool("docker-compose");
        command.arg("--project-name").arg(&self.name).arg("--project-directory").arg(self.directory.path());
        for file in ["docker/compose.yaml", OVERRIDE] {
            command.arg("--file").arg(repository().join(file));
        }
        command.args(words).stdin(Stdio::null());
        command
    }

    /// Runs the service `setup`, which makes keys, credentials and a token.
    pub fn set_up(&self) -> Output {
        self.compose(&["run", "--rm", "--quiet-pull", "setup"]).output().unwrap()
    }

    /// Starts services and their dependencies, and waits until they are healthy.
    pub fn start(&self, services: &[&str]) {
        succeeded(self.compose(&["up", "--detach", "--wait"]).args(services));
    }

    /// Starts services without dependencies, and does not wait.
    pub fn start_alone(&self, services: &[&str]) {
        succeeded(self.compose(&["up", "--detach", "--no-deps"]).args(services));
    }

    /// The only container of a service.
    fn container(&self, service: &str) -> String {
        format!("{}-{service}-1", self.name)
    }

    /// Runs a command in a service, which must succeed, and returns what it prints.
    pub fn exec(&self, service: &str, words: &[&str]) -> String {
        succeeded(self.engine.command(&["exec", &self.container(service)]).args(words))
    }

    /// How often the engine has restarted a container.
    pub fn restarts(&self, service: &str) -> u32 {
        self.inspect(service, "{{.RestartCount}}").parse().unwrap()
    }

    fn inspect(&self, service: &str, format: &str) -> String {
        self.engine.must(&["inspect", "--format", format, &self.container(service)]).trim().to_owned()
    }

    /// An operator's client of an orchestrator. Its port changes at each start of its container.
    pub fn rest(&self, orchestrator: &str) -> Rest {
        self.try_rest(orchestrator).unwrap_or_else(|| panic!("{orchestrator} does not run"))
    }

    /// The same for one that may be starting; `None` before it runs.
    fn try_rest(&self, orchestrator: &str) -> Option<Rest> {
        let ports =
            self.engine.command(&["port", &self.container(orchestrator), "8646/tcp"]).output().unwrap();
        let address = String::from_utf8(ports.stdout).unwrap().trim().parse().ok()?;
        let token = fs::read_to_string(self.path("site/operator/token")).unwrap();
        Some(Rest::new(address).with_token(token.trim()))
    }

    /// Waits until one of these orchestrators leads, and returns its name.
    pub async fn leader_among(&self, orchestrators: &[&'static str]) -> &'static str {
        eventually("an orchestrator to lead", async || {
            for &name in orchestrators {
                let Some(rest) = self.try_rest(name) else { continue };
                let answer = rest.try_call(Method::GET, "/readyz", "").await;
                if answer.is_some_and(|(status, body)| status == 200 && body["role"] == "leader") {
                    return Some(name);
                }
            }
            None
        })
        .await
    }

    /// Waits until an orchestrator accepts writes.
    pub async fn ready(&self, orchestrator: &str) {
        eventually(&format!("{orchestrator} to be ready"), async || {
            let answer = self.try_rest(orchestrator)?.try_call(Method::GET, "/readyz", "").await;
            answer.is_some_and(|(status, _)| status == 200).then_some(())
        })
        .await;
    }

    /// Waits until services are healthy, also if they were unhealthy for so long that `start` has given up.
    pub async fn healthy(&self, services: &[&str]) {
        for service in services {
            let look =
                async || (self.inspect(service, "{{.State.Health.Status}}") == "healthy").then_some(());
            eventually(&format!("{service} to be healthy"), look).await;
        }
    }

    /// Waits until a command in a service succeeds.
    pub async fn succeeds(&self, service: &str, words: &[&str]) {
        let succeeds = async || {
            let output = self.engine.command(&["exec", &self.container(service)]).args(words).output();
            output.unwrap().status.success().then_some(())
        };
        eventually(&format!("{words:?} in {service}"), succeeds).await;
    }

    /// Injects a fault into a container.
    pub fn fault(&self, service: &str, fault: Fault) {
        match fault {
            // After `docker kill` the engine would not restart it.
            Fault::Killed => {
                kill(Pid::from_raw(self.process(service)), Signal::SIGKILL).unwrap();
            }
            Fault::Paused => drop(self.engine.must(&["pause", &self.container(service)])),
            Fault::CutOff => self.set_link(service, "down"),
        }
    }

    /// Undoes a fault.
    pub fn heal(&self, service: &str, fault: Fault) {
        match fault {
            Fault::Killed => {}
            Fault::Paused => drop(self.engine.must(&["unpause", &self.container(service)])),
            Fault::CutOff => self.set_link(service, "up"),
        }
    }

    /// Pulls or plugs the network cable: `docker network connect` would bring the container back with another address.
    fn set_link(&self, service: &str, state: &str) {
        let process = self.process(service).to_string();
        let mut command = Command::new("nsenter");
        succeeded(command.args(["--net", "--target", &process, "ip", "link", "set", "eth0", state]));
    }

    /// The first process of a container.
    fn process(&self, service: &str) -> i32 {
        let process = self.inspect(service, "{{.State.Pid}}").parse().unwrap();
        assert_ne!(process, 0, "{service} does not run");
        process
    }
}

impl Default for Site {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Site {
    #[expect(clippy::print_stderr, reason = "says why a test has failed, or what it leaves behind")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let logs = self.compose(&["--profile", "*", "logs", "--no-color", "--tail", "30"]).output();
            eprintln!(
                "{}",
                logs.map(|logs| String::from_utf8_lossy(&logs.stdout).into_owned()).unwrap_or_default()
            );
        }
        if let Err(errors) = self.engine.remove(&self.name) {
            eprintln!("{} is not removed: {errors}", self.name);
        }
    }
}
