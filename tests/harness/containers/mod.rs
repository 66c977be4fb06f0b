//! The containers of a compose file without an engine: each a small Debian system with what its image has, its volumes, a
//! network namespace, a name of its own, and no more rights than it asks for. What starts them reads the same file as an
//! engine would, by way of `docker compose config`.
//!
//! It has to run in namespaces of its own for networks, mounts and processes, so that everything ends with it.

mod image;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use os_upgrade_platform::child::{self, Child};
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinHandle;

pub use image::{Dockerfile, Start};

use crate::debian::Tree;
use crate::wait::{PATIENCE, eventually};

/// What brings a container of an image that is not built here.
pub type Brought = fn(&Tree) -> Start;

/// All services of a compose file that run here.
pub struct Containers {
    running: BTreeMap<String, Container>,
    names: BTreeMap<String, Ipv4Addr>,
    services: BTreeMap<String, Value>,
    volumes: TempDir,
    dockerfile: Dockerfile,
    repository: PathBuf,
    brought: BTreeMap<String, Brought>,
}

/// One of them.
struct Container {
    tree: Arc<Tree>,
    /// Words that run a command in it, its own one following.
    enter: Vec<String>,
    health: Option<Vec<String>>,
    starts: Arc<AtomicU32>,
    /// Ends with its last process, with that one's exit status.
    supervisor: JoinHandle<ExitStatus>,
}

/// The stage of the Dockerfile that `image` is built of, if one of `services` builds it.
pub fn stage_of<'a>(services: &'a BTreeMap<String, Value>, image: &str) -> Option<&'a str> {
    let mut built = services.values().filter(|service| service["image"] == image);
    built.find_map(|service| service["build"]["target"].as_str())
}

impl Containers {
    /// Those of `config`, as `docker compose config` says it; images that it does not build are `brought`.
    pub fn new(config: &Value, repository: &Path, brought: BTreeMap<String, Brought>) -> Self {
        let services: BTreeMap<String, Value> = serde_json::from_value(config["services"].clone()).unwrap();
        // In the namespaces of the machine this would mount over its /run and add to its network.
        assert_eq!(std::process::id(), 1, "not the first process of a PID namespace of its own");
        must("mount", &["-t", "tmpfs", "tmpfs", "/run"]);
        must("ip", &["link", "set", "lo", "up"]);
        must("ip", &["link", "add", "name", "site", "type", "bridge"]);
        must("ip", &["addr", "add", "10.77.0.254/24", "dev", "site"]);
        must("ip", &["link", "set", "site", "up"]);
        let names =
            services.keys().zip(1..).map(|(name, last)| (name.clone(), Ipv4Addr::new(10, 77, 0, last)));
        Self {
            names: names.collect(),
            running: BTreeMap::new(),
            services,
            volumes: tempfile::tempdir().unwrap(),
            dockerfile: Dockerfile::read(&repository.join("docker/Dockerfile")),
            repository: repository.to_owned(),
            brought,
        }
    }

    /// The address of a service, as this process reaches it.
    pub fn address(&self, service: &str) -> IpAddr {
        IpAddr::V4(self.names[service])
    }

    /// How often its process has been started.
    pub fn starts(&self, service: &str) -> u32 {
        self.running[service].starts.load(Ordering::Relaxed)
    }

    /// Runs a service that ends by itself, and takes it away, as `docker compose run --rm` does.
    pub async fn run(&mut self, service: &str) -> ExitStatus {
        self.start(service);
        let status = self.ended(service).await;
        self.running.remove(service);
        must("ip", &["netns", "delete", service]);
        status
    }

    async fn ended(&mut self, service: &str) -> ExitStatus {
        let supervisor = &mut self.running.get_mut(service).unwrap().supervisor;
        let status = tokio::time::timeout(PATIENCE, supervisor).await;
        let status =
            status.unwrap_or_else(|_| panic!("{service} does not come to its end: {}", self.log(service)));
        status.unwrap_or_else(|error| panic!("{service}: {error}"))
    }

    /// Starts every service without a profile once what it depends on is there. The processes of `hanging` do nothing: they
    /// are not started, though nobody who asks for their start notices that.
    pub async fn start_all_but(&mut self, hanging: &[&str]) {
        let mut waiting: Vec<String> = self.services.keys().cloned().collect();
        waiting.retain(|service| {
            self.services[service].get("profiles").is_none() && !hanging.contains(&service.as_str())
        });
        let mut ended = Vec::new();
        while !waiting.is_empty() {
            let before = waiting.len();
            for service in waiting.clone() {
                let needed = self.services[&service]["depends_on"].as_object().cloned().unwrap_or_default();
                if needed.keys().any(|name| waiting.contains(name)) {
                    continue;
                }
                for (name, needed) in needed {
                    match needed["condition"].as_str().unwrap() {
                        "service_started" => {}
                        "service_healthy" => self.is_well(&name).await,
                        "service_completed_successfully" if ended.contains(&name) => {}
                        "service_completed_successfully" => {
                            assert!(self.ended(&name).await.success(), "{name}: {}", self.log(&name));
                            ended.push(name);
                        }
                        other => panic!("{other} is not known here"),
                    }
                }
                self.start(&service);
                waiting.retain(|name| *name != service);
            }
            assert!(waiting.len() < before, "{waiting:?} wait for each other");
        }
    }

    /// Waits until all that have been started are well.
    pub async fn all_are_well(&self) {
        for (service, _) in self.running.iter().filter(|(_, container)| container.health.is_some()) {
            self.is_well(service).await;
        }
    }

    /// What a service has said.
    pub fn log(&self, service: &str) -> String {
        fs::read_to_string(self.log_file(service)).unwrap_or_default()
    }

    fn log_file(&self, service: &str) -> PathBuf {
        self.volumes.path().join(format!("{service}.log"))
    }

    /// Waits until a service is well, by its own command.
    pub async fn is_well(&self, service: &str) {
        let container = &self.running[service];
        let health = container.health.as_ref().unwrap_or_else(|| panic!("{service} has no health check"));
        eventually(&format!("{service} to be well"), async || {
            assert!(!container.supervisor.is_finished(), "{service} has ended: {}", self.log(service));
            let output = Command::new("ip").args(&container.enter).args(health).output().unwrap();
            output.status.success().then_some(())
        })
        .await;
    }

    /// Runs a command in a service, as `docker compose exec` does, and returns what it prints.
    pub fn exec(&self, service: &str, words: &[&str]) -> String {
        let output = Command::new("ip").args(&self.running[service].enter).args(words).output().unwrap();
        assert!(output.status.success(), "{service}: {words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts a service.
    pub fn start(&mut self, service: &str) {
        let wanted = self.services[service].clone();
        let mut tree = Tree::new();
        let image = wanted["image"].as_str().unwrap();
        let start = match stage_of(&self.services, image) {
            Some(stage) => self.dockerfile.build(stage, &tree, &self.repository),
            None => self.brought[image](&tree),
        };
        self.network(service, &wanted, &tree);
        tree.mount_proc();
        self.mount_volumes(&wanted, &tree);
        if wanted["read_only"] == true {
            must("mount", &["-o", "remount,ro,bind", &tree.root().display().to_string()]);
        }

        let mut environment = start.environment;
        environment.insert("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
        for (name, value) in wanted["environment"].as_object().into_iter().flatten() {
            environment.insert(name.clone(), value.as_str().unwrap().to_owned());
        }
        let host = wanted["hostname"].as_str().unwrap_or(service);
        let user = wanted["user"].as_str().or(start.user.as_deref()).unwrap_or("0:0").to_owned();
        let mut enter = words(&["netns", "exec", service, "unshare", "--uts", "sh", "-c"]);
        enter.extend(words(&["echo \"$0\" >/proc/sys/kernel/hostname; exec \"$@\"", host, "chroot"]));
        enter.push(tree.root().display().to_string());
        let (id, group) = user.split_once(':').unwrap();
        enter.extend(words(&["setpriv", "--reuid", id, "--regid", group, "--clear-groups"]));
        if wanted["cap_drop"][0] == "ALL" {
            enter.extend(words(&["--bounding-set", "-all", "--inh-caps", "-all"]));
        }
        if wanted["security_opt"][0] == "no-new-privileges:true" {
            enter.push("--no-new-privs".to_owned());
        }
        let directory = wanted["working_dir"].as_str().or(start.directory.as_deref()).unwrap_or("/");
        enter.extend(words(&["env", "-i", "-C", directory]));
        enter.extend(environment.iter().map(|(name, value)| format!("{name}={value}")));

        let or = |key: &str, initial: Vec<String>| {
            wanted[key]
                .as_array()
                .map_or(initial, |words| words.iter().map(|word| word.as_str().unwrap().to_owned()).collect())
        };
        // An entrypoint of one's own takes the image's command away.
        let command = or("command", if wanted["entrypoint"].is_array() { Vec::new() } else { start.command });
        let words: Vec<String> =
            enter.iter().cloned().chain(or("entrypoint", start.entrypoint)).chain(command).collect();
        let check = &wanted["healthcheck"];
        let health = if check["disable"] == true {
            None
        } else if let Some(test) = check["test"].as_array() {
            assert_eq!(test[0], "CMD");
            Some(test[1..].iter().map(|word| word.as_str().unwrap().to_owned()).collect())
        } else {
            start.health
        };
        let tree = Arc::new(tree);
        let starts = Arc::new(AtomicU32::new(0));
        let restart = wanted["restart"].as_str().unwrap_or("no").to_owned();
        let supervisor = tokio::spawn(supervise(words, self.log_file(service), restart, Arc::clone(&starts)));
        self.running.insert(service.to_owned(), Container { tree, enter, health, starts, supervisor });
    }

    /// A namespace with one interface in the network of all, which knows them by their names.
    fn network(&self, service: &str, wanted: &Value, tree: &Tree) {
        must("ip", &["netns", "add", service]);
        must("ip", &["-n", service, "link", "set", "lo", "up"]);
        let mut hosts = "127.0.0.1 localhost\n".to_owned();
        if wanted["network_mode"] != "none" {
            // Names of interfaces are short.
            let own = format!("port{}", self.names[service].octets()[3]);
            must("ip", &["link", "add", &own, "type", "veth", "peer", "name", "eth0", "netns", service]);
            must("ip", &["link", "set", &own, "master", "site", "up"]);
            let address = format!("{}/24", self.names[service]);
            must("ip", &["-n", service, "addr", "add", &address, "dev", "eth0"]);
            must("ip", &["-n", service, "link", "set", "eth0", "up"]);
            for (name, address) in &self.names {
                let _ = writeln!(hosts, "{address} {name}");
            }
        }
        tree.write("/etc/hosts", &hosts);
    }

    fn mount_volumes(&self, wanted: &Value, tree: &Tree) {
        for volume in wanted["volumes"].as_array().into_iter().flatten() {
            let (source, target) = (volume["source"].as_str().unwrap(), volume["target"].as_str().unwrap());
            let at = tree.path(target);
            let from = if volume["type"] == "volume" {
                let kept = self.volumes.path().join(source);
                fs::create_dir_all(&at).unwrap();
                if !kept.exists() {
                    // A new one is as the directory is that it covers.
                    must("cp", &["-a", &at.display().to_string(), &kept.display().to_string()]);
                }
                kept
            } else {
                PathBuf::from(source)
            };
            if from.is_dir() {
                fs::create_dir_all(&at).unwrap();
            } else {
                assert!(from.is_file(), "{} is not there", from.display());
                tree.write(target, "");
            }
            let (from, at) = (from.display().to_string(), at.display().to_string());
            must("mount", &["--bind", &from, &at]);
            if volume["read_only"] == true {
                must("mount", &["-o", "remount,ro,bind", &at]);
            }
        }
        for target in wanted["tmpfs"].as_array().into_iter().flatten() {
            let at = tree.path(target.as_str().unwrap());
            must("mount", &["-t", "tmpfs", "-o", "mode=1777", "tmpfs", &at.display().to_string()]);
        }
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        for (service, container) in &self.running {
            container.supervisor.abort();
            container.tree.kill_all();
            if std::thread::panicking() {
                #[expect(clippy::print_stderr, reason = "the test has failed; this says why")]
                {
                    eprintln!("--- {service}\n{}", self.log(service));
                }
            }
        }
    }
}

/// Starts the process again as `restart` has it, without the pauses of an engine.
async fn supervise(words: Vec<String>, log: PathBuf, restart: String, starts: Arc<AtomicU32>) -> ExitStatus {
    loop {
        let log = fs::File::options().create(true).append(true).open(&log).unwrap();
        let mut command = child::command("ip");
        command.args(&words).stdout(log.try_clone().unwrap()).stderr(log);
        starts.fetch_add(1, Ordering::Relaxed);
        let status = Child::start(command).unwrap().exited().await;
        match restart.as_str() {
            "unless-stopped" => {}
            "on-failure" if !status.success() => {}
            "on-failure" | "no" => return status,
            other => panic!("{other} is not known here"),
        }
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn must(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}
