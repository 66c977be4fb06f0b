//! A site of one test: a nats-server, an orchestrator, and the hosts that the test adds.

use std::fs;
use std::path::PathBuf;

use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::{self};
use os_upgrade_protocol::{Announcement, ApplicationName, HostName, subject};
use serde_json::Value;
use tempfile::TempDir;

use crate::clock::Clock;
use crate::host::{APPLICATION, Host};
use crate::nats_server::{NatsServer, Saved};
use crate::orchestrator::Orchestrator;
use crate::rest::Rest;
use crate::streams;

fn announcement(application: &str, host: &str) -> Announcement {
    let (host, application) = (HostName::new(host).unwrap(), ApplicationName::new(application).unwrap());
    Announcement::new(host, application)
}

/// A site with a running orchestrator.
#[derive(Debug)]
pub struct Site {
    // First field: dropped before what it uses.
    /// The orchestrator.
    pub orchestrator: Orchestrator,
    /// Its bus.
    pub nats: NatsServer,
    directory: TempDir,
    jetstream: jetstream::Context,
}

impl Site {
    /// Starts a site with embedded locks.
    pub async fn start() -> Self {
        Self::start_with("").await
    }

    /// Starts a site with `more` in its orchestrator's configuration. It is ready, and upgrades hosts with [`APPLICATION`].
    pub async fn start_with(more: &str) -> Self {
        let nats = NatsServer::start().await;
        let orchestrator = Orchestrator::new(&nats.url(), more);
        Self::of(nats, orchestrator).await
    }

    /// Starts a site whose orchestrator and nats-server have clocks of their own.
    pub async fn start_by(orchestrators: &Clock, servers: &Clock) -> Self {
        let mut nats = NatsServer::stopped("").with_program(servers.nats_server().await);
        nats.start_again().await;
        let mut orchestrator = Orchestrator::new(&nats.url(), "");
        orchestrator.set_program(orchestrators.orchestrator());
        Self::of(nats, orchestrator).await
    }

    async fn of(nats: NatsServer, mut orchestrator: Orchestrator) -> Self {
        orchestrator.start_ready().await;
        orchestrator.rest.configure(APPLICATION).await;
        let jetstream = jetstream::new(nats.client().await);
        Self { orchestrator, nats, directory: tempfile::tempdir().unwrap(), jetstream }
    }

    /// Kills nats-server and orchestrator.
    async fn cut_power(&mut self) {
        self.orchestrator.kill().await;
        self.nats.kill();
    }

    async fn start_again(&mut self) {
        self.nats.start_again().await;
        self.orchestrator.start_ready().await;
        self.orchestrator.await_leading().await;
    }

    /// Copies everything that nats-server and orchestrator have on their disks, both of which are killed for it and
    /// started again.
    pub async fn save_machine(&mut self) -> SavedMachine {
        self.cut_power().await;
        let saved = SavedMachine { streams: self.nats.save(), data: tempfile::tempdir().unwrap() };
        self.orchestrator.save_data(saved.data.path());
        self.start_again().await;
        saved
    }

    /// Kills nats-server and orchestrator, and starts them as they were then. The hosts go on.
    pub async fn put_machine_back(&mut self, saved: &SavedMachine) {
        self.cut_power().await;
        self.nats.restore_streams(&saved.streams);
        self.orchestrator.restore_data(saved.data.path());
        self.start_again().await;
    }

    /// A client of the orchestrator's API.
    pub fn rest(&self) -> Rest {
        self.orchestrator.rest.clone()
    }

    /// The test's own JetStream client.
    pub const fn jetstream(&self) -> &jetstream::Context {
        &self.jetstream
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("said")
    }

    /// A host of this site, whose worker does not run yet.
    pub fn host(&self, name: &str) -> Host {
        Host::new(&self.nats.url(), &self.log(), name)
    }

    /// Starts the workers of these hosts, and waits until exactly they would take part in a run.
    pub async fn run(&self, hosts: &mut [Host]) {
        for host in hosts.iter_mut() {
            host.start();
        }
        let names: Vec<&str> = hosts.iter().map(Host::name).collect();
        self.rest().await_scheduled(&names).await;
    }

    /// Hosts `h01`, `h02` and so on, running.
    pub async fn hosts(&self, count: usize) -> Vec<Host> {
        let mut hosts: Vec<Host> = (1..=count).map(|number| self.host(&format!("h{number:02}"))).collect();
        self.run(&mut hosts).await;
        hosts
    }

    /// Announces a host that has no worker.
    pub async fn announce(&self, application: &str, host: &str) {
        self.publish(&announcement(application, host)).await;
    }

    /// Announces a host that has no worker, as if one rebooted it on request.
    pub async fn announce_rebooting(&self, application: &str, host: &str) {
        let boot_id = Some("boot-1".to_owned());
        let announcement = announcement(application, host);
        self.publish(&Announcement { boot_id, reboots_on_request: true, ..announcement }).await;
    }

    async fn publish(&self, announcement: &Announcement) {
        let to = subject::worker(&announcement.application, &announcement.host);
        self.jetstream.publish(to, announcement.to_payload().into()).await.unwrap().await.unwrap();
    }

    /// The log of all hosts' scripts, in order.
    pub fn script_log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.log()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The messages of the control stream that match `filter`.
    pub async fn control(&self, filter: &str) -> Vec<StreamMessage> {
        streams::stored(&self.jetstream, subject::CONTROL_STREAM, filter).await
    }

    /// Every fact in the journal, as JSON.
    pub async fn journal(&self) -> Vec<Value> {
        let records = self.records().await.into_iter();
        records.flat_map(|(_, record)| record["facts"].as_array().unwrap().clone()).collect()
    }

    /// The messages of hosts that changed nothing, as the journal has them: the host, and why.
    pub async fn ignored(&self) -> Vec<(String, String)> {
        let journal = self.journal().await.into_iter();
        let ignored = journal.filter(|fact| fact["type"] == "ignored" && fact["host"].is_string());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        ignored.map(|fact| (text(&fact["host"]), text(&fact["why"]["kind"]))).collect()
    }

    /// Every record in the journal, with its sequence.
    pub async fn records(&self) -> Vec<(u64, Value)> {
        streams::records(&self.jetstream, &mut 1).await
    }

    /// The sequence of the last message of a stream.
    pub async fn last_sequence(&self, stream: &str) -> u64 {
        self.jetstream.get_stream(stream).await.unwrap().cached_info().state.last_sequence
    }

    /// The commands in the control stream, such as `h01 upgrade`, in order.
    pub async fn commands(&self) -> Vec<String> {
        streams::commands(&self.jetstream).await
    }

    /// The commands in the control stream with this action.
    pub async fn commands_to(&self, action: &str) -> Vec<String> {
        let suffix = format!(" {action}");
        let commands = self.commands().await.into_iter();
        commands.filter_map(|command| command.strip_suffix(&suffix).map(str::to_owned)).collect()
    }
}

/// What nats-server and orchestrator of a site had on their disks.
#[derive(Debug)]
pub struct SavedMachine {
    streams: Saved,
    data: TempDir,
}

/// Fails if the upgrades of two hosts overlap, each from its begin to its end or reboot.
pub fn assert_one_by_one(log: &[String]) {
    let mut upgrading: Option<&str> = None;
    for line in log {
        let (host, what) = line.split_once(' ').unwrap();
        match what {
            "upgrade-begins" => {
                assert_eq!(upgrading, None, "{host} begins: {log:?}");
                upgrading = Some(host);
            }
            "upgrade-resumed" | "reboot" => assert!(upgrading.is_none_or(|other| other == host), "{log:?}"),
            "upgrade-ends" => {
                assert_eq!(upgrading, Some(host), "{host} ends: {log:?}");
                upgrading = None;
            }
            _ => {}
        }
    }
}
