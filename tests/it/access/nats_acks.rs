//! Acknowledgements whose subjects name JetStream domain and account. nats-server gives them with the feature flag
//! `js_ack_fc_v2`, which is to become its default.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use async_nats::jetstream;
use futures::StreamExt as _;
use harness::host::{APPLICATION, Host};
use harness::nats_server::NatsServer;
use harness::orchestrator::Orchestrator;
use harness::secured_nats::{SecuredNats, Settings};
use os_upgrade_platform::{managed_nats, nats_server};
use os_upgrade_protocol::{HostName, subject};
use tempfile::TempDir;

const LONG: Settings = Settings { long_acks: true, domain: None };

const FORM: &str = "ok       acknowledgements: taken at $JS.ACK.<domain>.<account>.<stream>.<consumer>...\n";
const RIGHTS: &str = "ok       rights of hosts: those of this version\n";

/// A site with the host `h01`.
struct Site {
    host: Host,
    orchestrator: Orchestrator,
    /// A client that may do everything of an orchestrator.
    client: async_nats::Client,
    _directory: TempDir,
}

impl Site {
    async fn secured(nats: &SecuredNats) -> Self {
        let mut orchestrator = nats.orchestrator();
        orchestrator.start_ready().await;
        let directory = tempfile::tempdir().unwrap();
        let host = nats.host(&directory.path().join("said"), "h01").await;
        let client = nats.client(&nats.issued().orchestrator_credentials()).await;
        Self { host, orchestrator, client, _directory: directory }.with_host().await
    }

    /// With a nats-server that the orchestrator starts, and which gives the long form.
    async fn managed() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("nats-server");
        let program = nats_server::find().await.unwrap().path;
        let text = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] || echo 'feature_flags {{ js_ack_fc_v2: true }}' >>\"$2\"\nexec {} \"$@\"\n",
            program.display()
        );
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
        let mut orchestrator = Orchestrator::managed();
        orchestrator.set_environment(nats_server::ENV, script.to_str().unwrap());
        orchestrator.start_ready().await;
        let url = orchestrator.managed_nats();
        let host = Host::new(&url, &directory.path().join("said"), "h01");
        let client = managed_nats::connect(&url).await.unwrap();
        Self { host, orchestrator, client, _directory: directory }.with_host().await
    }

    async fn with_host(mut self) -> Self {
        self.orchestrator.rest.configure(APPLICATION).await;
        self.host.start();
        self.orchestrator.rest.await_scheduled(&["h01"]).await;
        self
    }

    /// Runs a run, and returns what the host has sent about its commands: subjects and payloads.
    async fn run(&self) -> Vec<(String, String)> {
        let client = &self.client;
        let mut acks = client.subscribe("$JS.ACK.>").await.unwrap();
        client.flush().await.unwrap();
        let rest = &self.orchestrator.rest;
        let run = rest.await_end(&rest.start_run().await).await;
        assert_eq!(run.result(), Some("completed"));
        client.publish("$JS.ACK.end", "end".into()).await.unwrap();
        let mut sent = Vec::new();
        loop {
            let ack = acks.next().await.unwrap();
            if ack.payload == "end" {
                return sent;
            }
            sent.push((ack.subject.to_string(), String::from_utf8(ack.payload.to_vec()).unwrap()));
        }
    }

    async fn doctor(&self) -> (Option<i32>, String) {
        let (code, printed, _) = self.orchestrator.command(&["doctor"]).await;
        (code, printed)
    }

    /// How many commands the host was given since its consumer was created, those included that it was given again.
    async fn delivered(&self) -> u64 {
        let control = jetstream::new(self.client.clone()).get_stream(subject::CONTROL_STREAM).await.unwrap();
        let consumer = subject::consumer(&HostName::new("h01").unwrap());
        control.consumer_info(&consumer).await.unwrap().delivered.consumer_sequence
    }
}

/// Whether each acknowledgement of a run's two commands was sent once, through subjects that begin with `prefix`.
fn all_begin(sent: &[(String, String)], prefix: &str) -> bool {
    sent.len() == 2 && sent.iter().all(|(subject, ack)| subject.starts_with(prefix) && ack == "+ACK")
}

#[tokio::test]
async fn long_acknowledgements_are_let_through() {
    for domain in [None, Some("hub")] {
        let nats = SecuredNats::start_with(1, Settings { domain, ..LONG }).await;
        let site = Site::secured(&nats).await;
        let sent = site.run().await;
        let prefix = format!("$JS.ACK.{}.", domain.unwrap_or("_"));
        assert!(all_begin(&sent, &prefix), "{sent:?}");
        assert_eq!(site.delivered().await, 2, "no command was given twice");
        assert!(!site.host.log().contains("WARN"), "{}", site.host.log());
        let (code, printed) = site.doctor().await;
        assert!(code == Some(0) && printed.contains(FORM) && printed.contains(RIGHTS), "{printed}");
    }
}

#[tokio::test]
async fn managed_servers_may_give_long_acknowledgements() {
    let site = Site::managed().await;
    let sent = site.run().await;
    assert!(all_begin(&sent, "$JS.ACK._."), "{sent:?}");
    assert_eq!(site.delivered().await, 2, "no command was given twice");
    let (code, printed) = site.doctor().await;
    assert!(code == Some(0) && printed.contains(FORM) && !printed.contains("rights of hosts"), "{printed}");
}

/// The accounts were made before hosts had the right to the long form.
#[tokio::test]
async fn acknowledgements_need_no_new_rights() {
    let mut nats = SecuredNats::start_with(1, LONG).await;
    let mut site = Site::secured(&nats).await;
    nats.take_right("long-acknowledgements").await;
    let (code, printed) = site.doctor().await;
    let problem = "problem  rights of hosts: those of an older version of `os-upgrade nats-config`: ";
    assert!(code == Some(1) && printed.contains(problem), "{printed}");
    site.host.hold("prepare");
    let client = &site.client;
    let mut progress = client.subscribe("$JS.ACK.os-upgrade:control.worker-h01.>").await.unwrap();
    client.flush().await.unwrap();
    let under_way = async {
        assert_eq!(progress.next().await.unwrap().payload, "+WPI");
        site.host.release("prepare");
    };
    let (mut sent, ()) = tokio::join!(site.run(), under_way);
    sent.retain(|(_, ack)| ack != "+WPI");
    assert!(all_begin(&sent, "$JS.ACK.os-upgrade:control.worker-h01."), "{sent:?}");
    assert_eq!(site.delivered().await, 2, "no command was given twice");
    let log = site.host.log();
    assert_eq!(log.matches("`os-upgrade nats-config init` and `push`").count(), 1, "{log}");

    nats.renew_rights().await;
    let (code, printed) = site.doctor().await;
    assert!(code == Some(0) && printed.contains(RIGHTS), "{printed}");
    site.host.stop().await;
    // The older accounts in the server's configuration do not replace the new ones.
    nats.kill(0);
    nats.start_again(0).await;
    site.host.start();
    site.orchestrator.ready().await;
    site.orchestrator.rest.await_scheduled(&["h01"]).await;
    let sent = site.run().await;
    assert!(all_begin(&sent, "$JS.ACK._."), "{sent:?}");
}

/// A NATS of another design, in which nobody may acknowledge.
#[tokio::test]
async fn refused_acknowledgements_are_found() {
    let users = r#"
        authorization { users: [
            { user: any, password: x, permissions: { publish: { deny: "$JS.ACK.>" } } },
        ] }
        no_auth_user: any"#;
    let nats = NatsServer::start_with(users).await;
    let mut orchestrator = Orchestrator::new(&nats.url(), "");
    orchestrator.start_ready().await;
    let (code, printed, _) = orchestrator.command(&["doctor"]).await;
    let problem = "problem  acknowledgements: not taken at $JS.ACK.<stream>.<consumer>...: ";
    assert!(code == Some(1) && printed.contains(problem), "{printed}");
}
