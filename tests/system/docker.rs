//! What is in `docker/`, by the tools that read it, and its compose file as a site: the containers that it describes are
//! made of namespaces here, as no engine is needed for that, and upgrade their hosts. Images are not built.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::containers::{Brought, Containers, Dockerfile, Start, stage_of};
use harness::debian::Tree;
use harness::rest::Rest;
use harness::wait::eventually;
use os_upgrade_orchestrator::config;
use os_upgrade_platform::child::{self, Child};
use os_upgrade_platform::nats_server;
use reqwest::Method;
use serde_json::{Value, json};

const ORCHESTRATORS: [&str; 2] = ["orchestrator1", "orchestrator2"];
const HOSTS: [&str; 3] = ["h01", "h02", "h03"];
const SERVERS: [&str; 3] = ["nats1", "nats2", "nats3"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A program that `make tools` fetches.
fn tool(name: &str) -> Command {
    let path = repository().join(".tools/docker/bin").join(name);
    assert!(path.is_file(), "{} is missing: run `make tools`", path.display());
    Command::new(path)
}

/// What `docker compose` makes of the compose file in `directory`.
fn compose(directory: &Path) -> Value {
    let file = directory.join("compose.yaml");
    let mut command = tool("docker-compose");
    command.arg("--file").arg(file).args(["--profile", "*", "config", "--format", "json"]);
    let output = command.env_clear().env("HOME", directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "it warns of nothing");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_dockerfile_has_nothing_that_hadolint_finds() {
    let output = tool("hadolint").arg(repository().join("docker/Dockerfile")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn what_the_dockerfile_copies_is_there_and_not_left_out() {
    let text = fs::read_to_string(repository().join("docker/Dockerfile")).unwrap();
    let ignored = fs::read_to_string(repository().join(".dockerignore")).unwrap();
    let copies = text.lines().filter_map(|line| line.strip_prefix("COPY "));
    for source in copies
        .filter(|rest| !rest.starts_with("--from="))
        .filter_map(|rest| rest.split(' ').find(|word| !word.starts_with("--")))
    {
        assert!(repository().join(source).exists(), "{source}");
        assert!(!ignored.lines().any(|line| source.starts_with(line)), "{source}");
    }
    for script in [".ci/worker-static", "docker/setup", "docker/demo-host"] {
        let mode = fs::metadata(repository().join(script)).unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0o111, "{script} can be run");
    }
}

#[test]
fn the_compose_file_says_what_the_programs_understand() {
    let found = compose(&repository().join("docker"));
    let services: BTreeMap<String, Value> = serde_json::from_value(found["services"].clone()).unwrap();
    let mut expected: Vec<&str> = HOSTS.into_iter().chain(SERVERS).chain(ORCHESTRATORS).collect();
    let all: Vec<&str> =
        services.keys().map(String::as_str).filter(|name| !["setup", "accounts"].contains(name)).collect();
    expected.sort_unstable();
    assert_eq!(all, expected);

    let dockerfile = Dockerfile::read(&repository().join("docker/Dockerfile"));
    let settings: Vec<String> =
        config::SECTIONS.iter().flat_map(|section| section.keys).map(config::Key::variable).collect();
    let worker =
        Command::new(harness::programs::path("os-upgrade-worker")).args(["exec", "--help"]).output().unwrap();
    let worker = String::from_utf8(worker.stdout).unwrap();
    for (name, service) in &services {
        let image = service["image"].as_str().unwrap();
        let stage = stage_of(&services, image);
        let builders = services.values().filter(|it| it["image"] == image && it["build"].is_object()).count();
        assert!(stage.is_none_or(|stage| builders == 1 && dockerfile.stages().contains(&stage)), "{name}");
        for variable in service["environment"].as_object().into_iter().flatten().map(|(variable, _)| variable)
        {
            let known = match stage {
                Some("orchestrator") => settings.contains(variable),
                _ => worker.contains(&format!("[env: {variable}")),
            };
            assert!(known, "{name}: {variable}");
        }
        for volume in service["volumes"].as_array().into_iter().flatten().filter(|it| it["type"] == "volume")
        {
            assert!(found["volumes"].get(volume["source"].as_str().unwrap()).is_some(), "{name}: {volume}");
        }
        // Who reaches these ports needs a token, which is sent in the clear: nobody but this machine does.
        for port in service["ports"].as_array().into_iter().flatten() {
            assert_eq!((&port["host_ip"], &port["target"]), (&json!("127.0.0.1"), &json!(8646)), "{name}");
        }
        if name != "setup" {
            assert_eq!(
                (&service["read_only"], &service["cap_drop"]),
                (&json!(true), &json!(["ALL"])),
                "{name}"
            );
        }
    }
}

/// What the image of NATS has that is used: the server, and its wget, which a few lines of bash play here.
fn nats(tree: &Tree) -> Start {
    let found =
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(nats_server::find()));
    fs::copy(found.unwrap().path, tree.path("/usr/local/bin/nats-server")).unwrap();
    tree.write(
        "/usr/local/bin/wget",
        "#!/bin/bash\n[[ \"$*\" =~ http://([^:/]+):([0-9]+)(/.*)$ ]] || exit 2\n\
         exec 3<>/dev/tcp/${BASH_REMATCH[1]}/${BASH_REMATCH[2]} || exit 1\n\
         printf 'GET %s HTTP/1.0\\r\\n\\r\\n' \"${BASH_REMATCH[3]}\" >&3\nread -r _ status _ <&3\n[ \"$status\" = 200 ]\n",
    );
    tree.must(&["chmod", "0755", "/usr/local/bin/wget"]);
    Start { entrypoint: vec!["nats-server".to_owned()], ..Start::default() }
}

#[test]
fn the_site_of_the_compose_file_upgrades_its_hosts() {
    // Networks, mounts and processes of its own, all of which end with it.
    let mut command = child::command("unshare");
    command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", "a_site_in_namespaces", "--ignored", "--nocapture"]);
    let log = tempfile::NamedTempFile::new().unwrap();
    let appending = || fs::File::options().append(true).open(log.path()).unwrap();
    command.stdout(appending()).stderr(appending());
    let ended = tokio::runtime::Runtime::new().unwrap().block_on(Child::start(command).unwrap().exited());
    assert!(ended.success(), "{}", fs::read_to_string(log.path()).unwrap());
}

/// Run by the test above, in namespaces of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the namespaces of `the_site_of_the_compose_file_upgrades_its_hosts`"]
async fn a_site_in_namespaces() {
    let directory = tempfile::tempdir().unwrap();
    let docker = directory.path().join("docker");
    fs::create_dir_all(docker.join("site")).unwrap();
    for name in ["compose.yaml", "setup"] {
        fs::copy(repository().join("docker").join(name), docker.join(name)).unwrap();
    }
    let text = fs::read_to_string(docker.join("compose.yaml")).unwrap();
    let with_domain = text.replace("[h01, h02, h03]", "[h01, h02, h03, h4.example.com]");
    fs::write(docker.join("compose.yaml"), with_domain).unwrap();
    // Whose clone it is reads these files, and nobody else.
    for (name, mode) in [("compose.yaml", 0o600), ("setup", 0o700)] {
        std::os::unix::fs::chown(docker.join(name), Some(4711), Some(4711)).unwrap();
        fs::set_permissions(docker.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let brought = BTreeMap::from([("nats:2-alpine".to_owned(), nats as Brought)]);
    let mut site = Containers::new(&compose(&docker), &repository(), brought);

    // Setup ends while it writes the token, as on a full disk, and is run again.
    let token = docker.join("site/operator/token");
    fs::create_dir(token.parent().unwrap()).unwrap();
    symlink("/dev/full", &token).unwrap();
    assert!(!site.run("setup").await.success());
    assert!(site.log("setup").contains("nobody knows the secret of operator"), "{}", site.log("setup"));
    fs::remove_file(&token).unwrap();
    let status = site.run("setup").await;
    assert!(status.success(), "{}", site.log("setup"));
    assert!(docker.join("site/hosts/h4.example.com/nats.creds").is_file());

    // One of three nats-servers keeps no host from being let in.
    site.start_all_but(&["nats3"]).await;
    for host in HOSTS {
        site.is_well(host).await;
    }
    site.start("nats3");
    site.all_are_well().await;

    let token = fs::read_to_string(token).unwrap();
    let [first, second] = ORCHESTRATORS
        .map(|name| Rest::new(SocketAddr::new(site.address(name), 8646)).with_token(token.trim()));
    let body = json!({ "worker-applications": [{ "name": "os-upgrade-demo" }] }).to_string();
    let created = first.try_call(Method::PUT, "/v1/config/os-upgrade", &body).await.unwrap();
    assert_eq!(created.0, 201, "{created:?}");
    second.await_scheduled(&HOSTS).await;
    let run = second.ended(&second.started().await).await;
    assert_eq!(run.result(), Some("completed"), "{:?}", run.0);
    assert_eq!(run.statuses(), HOSTS.map(|host| (host, "upgraded")).into());
    for host in HOSTS {
        assert_eq!(site.exec(host, &["cat", "current/version"]).trim(), "1.1.0", "{host}");
        assert_eq!(site.starts(host), 2, "{host} has rebooted");
        eventually("the new version", async || {
            let known = first.try_host(host).await?;
            known.to_string().contains("1.1.0").then_some(())
        })
        .await;
    }
}
