//! Clients that others wrote for fleet's v1, unchanged: the Python packages `fleet` and `fleetpy`.

use std::path::Path;

use harness::site::Site;
use harness::unit_agent::{UnitAgent, UnitLog};
use harness::wait::eventually;
use tempfile::TempDir;
use tokio::process::Command;

use super::shared::{Fleet, agents};

const PACKAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../.tools/fleet-clients");
const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/it/units");
/// More units than a page has.
const UNITS: usize = 101;

/// A site whose API needs a token, unless it is asked over its Unix socket, with one machine.
struct Guarded {
    // First field: dropped before what it uses.
    site: Site,
    agents: [UnitAgent; 1],
    log: UnitLog,
    token: String,
    fleet: Fleet,
    directory: TempDir,
}

impl Guarded {
    async fn start() -> Self {
        let mut site = Site::start().await;
        let create = ["token", "create", "--file", "tokens.toml", "--role", "admin", "--name", "clients"];
        let (code, token, stderr) = site.orchestrator.run(&create, "").await;
        assert_eq!(code, Some(0), "{stderr}");
        let tokens = site.orchestrator.directory().join("tokens.toml");
        // `fleet` takes the path for a host name, and makes it lower case.
        let name = format!("fleet-{}-{}", std::process::id(), site.orchestrator.address().port());
        let directory = tempfile::Builder::new().prefix(&name).rand_bytes(0).tempdir().unwrap();
        let socket = directory.path().join("socket");
        for (variable, value) in [
            ("OS_UPGRADE_API__TOKENS", tokens.to_str().unwrap()),
            ("OS_UPGRADE_API__FLEET_SOCKET", socket.to_str().unwrap()),
            ("OS_UPGRADE_API__FLEET_SOCKET_ROLE", "admin"),
        ] {
            site.orchestrator.set_environment(variable, value);
        }
        site.orchestrator.terminate().await;
        site.orchestrator.start_ready().await;
        let log = UnitLog::default();
        let agents = agents(&site.nats.url(), ["h01"], &log);
        let fleet = Fleet::new(&site.rest().with_token(&token));
        fleet.await_machines(&agents).await;
        Self { site, agents, log, token, fleet, directory }
    }

    fn endpoint(&self) -> String {
        format!("http://{}", self.site.orchestrator.address())
    }

    async fn endpoint_of_socket(&self) -> String {
        let socket = self.directory.path().join("socket");
        eventually("the socket", async || socket.exists().then_some(())).await;
        format!("http+unix://{}", socket.to_str().unwrap().replace('/', "%2F"))
    }

    /// Runs a script, which checks what its client gets. It must succeed.
    async fn run(&self, script: &str, endpoint: &str, token: Option<&str>) {
        let is_installed = Path::new(PACKAGES).join("installed").is_file();
        assert!(is_installed, "the clients of fleet are missing: run `make tools`");
        let mut python = Command::new("python3");
        python.arg(format!("{SCRIPTS}/{script}")).args([endpoint, &self.agents[0].machine_id()]);
        python.env("PYTHONPATH", PACKAGES).env("no_proxy", "*").kill_on_drop(true);
        python.envs(token.map(|token| ("FLEET_TOKEN", token)));
        let output = python.output().await.unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {printed}");
    }
}

/// It builds each of its calls from the discovery document.
#[tokio::test]
async fn fleet_does_all_that_it_can() {
    let guarded = Guarded::start().await;
    for number in 0..UNITS {
        guarded.fleet.submit(&format!("many@{number}.service"), "inactive", &[]).await;
    }
    guarded.run("fleet_client.py", &guarded.endpoint(), Some(&guarded.token)).await;
    let line = |step: &str| format!("h01 {step} app@1.service");
    guarded.log.await_line(&line("stops")).await;
    assert_eq!(guarded.log.lines(), [line("starts"), line("stops")]);
}

#[tokio::test]
async fn fleet_needs_no_token_over_the_socket() {
    let guarded = Guarded::start().await;
    for number in 0..UNITS {
        guarded.fleet.submit(&format!("many@{number}.service"), "inactive", &[]).await;
    }
    guarded.run("fleet_client.py", &guarded.endpoint_of_socket().await, None).await;
    guarded.log.await_line("h01 stops app@1.service").await;
}

/// It cannot submit units under Python 3.
#[tokio::test]
async fn fleetpy_lists_starts_stops_and_destroys() {
    let guarded = Guarded::start().await;
    guarded.fleet.submit("app@1.service", "inactive", &[]).await;
    guarded.run("fleetpy_client.py", &guarded.endpoint(), Some(&guarded.token)).await;
    assert_eq!(guarded.log.lines(), ["h01 starts app@1.service", "h01 stops app@1.service"]);
    assert_eq!(guarded.fleet.unit("app@1.service").await, None);
}
