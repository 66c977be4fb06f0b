//! Units on machines: how long it takes from the first request for one until the orchestrator says of each that it runs on its machine.
//!
//! Submission counts: units are placed and started while others are still submitted. The floor comes after the orchestrator, because it
//! publishes what that has stored, and it has no HTTP. What is promised whatever the machine is checked and not measured: each unit has a
//! machine of its own, and a site in which nothing changes appends nothing.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use async_nats::jetstream;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::{StreamExt as _, TryStreamExt as _};
use os_upgrade_platform::managed_nats::{self, ManagedNats};
use os_upgrade_platform::nats_server;
use os_upgrade_protocol::subject;
use serde_json::{Value, json};

use crate::extent::Extent;
use crate::instance::{KEPT, until};
use crate::report::{Pairs, Report, Target, Unit, progress};
use crate::site::{APPLICATION, Site};
use crate::unit_floor::{Stored, UnitFloor};
use crate::unit_machines::{Machines, Names};
use crate::workers::context;

/// Turns of a new site and of the floor.
const TURNS: usize = 3;
/// Limit of the time until each unit runs, relative to the floor.
const RUNS_MAX: f64 = 1.5;
/// The number of units that are submitted at once. One address may have no more than 128 connections.
const SUBMIT_AT_ONCE: usize = 64;
/// The file of each unit.
const CONTENTS: &str = "[Unit]\nDescription=An application\nAfter=network-online.target\n\n\
    [Service]\nExecStart=/usr/bin/app --listen 127.0.0.1:8080\nRestart=always\nRestartSec=5\n";
/// What is under way has ended when the journal has not grown for so long. The leader decides at least once a second.
const CALM: Duration = Duration::from_secs(2);
/// How long nothing may be stored then: longer than the 11 seconds after which a silent agent counts, and three heartbeats of each.
const QUIET: Duration = Duration::from_secs(15);

/// `units` units are submitted to a site with as many machines, in turns with the floor; then nothing is done for a while.
pub(crate) async fn measure(
    program: &Path,
    directory: &Path,
    units: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut times = Pairs::default();
    let mut last = None;
    for turn in 1..=TURNS {
        progress(format!("{units} units on {units} machines, {turn} of {TURNS}"));
        // It would go on sending heartbeats.
        drop(last.take());
        let mut site = UnitSite::start(program, &directory.join(turn.to_string()), units).await?;
        let before = site.await_calm().await?;
        let ours = site.run().await?;
        site.await_calm().await?;
        let stored = Stored::read(&site.jetstream, before.last_sequence).await?;
        times.push_times(site.floor.replay(&stored, units).await?, ours);
        last = Some(site);
    }
    let what = format!("{units} units on {units} machines, until each runs");
    report.push(what, Unit::Millis, times, Target::AtMost(RUNS_MAX));
    last.context("there was no turn")?.check_quiet().await
}

/// A site with machines and without units, and the floor on the same nats-server.
#[derive(Debug)]
struct UnitSite {
    site: Site,
    machines: Machines,
    floor: UnitFloor,
    /// The number of units, and of machines.
    units: usize,
    jetstream: jetstream::Context,
    _nats: ManagedNats,
}

impl UnitSite {
    /// Starts it, with all data in `directory`, and waits until each host is a machine.
    async fn start(program: &Path, directory: &Path, units: usize) -> anyhow::Result<Self> {
        let server = nats_server::find().await?;
        let options = managed_nats::Options { directory: directory.join("nats"), port: None };
        let nats = ManagedNats::start(server, &options).await?;
        let site = Site::start(program.to_owned(), directory.join("site"), &nats.url(), KEPT).await?;
        let mut machines = Machines::start(&nats.url(), Names::Orchestrator).await?;
        machines.announce(APPLICATION, units).await?;
        let floor = UnitFloor::start(&nats.url()).await?;
        let jetstream = context(managed_nats::connect(&nats.url()).await?);
        let started = Self { site, machines, floor, units, jetstream, _nats: nats };
        until("each host is a machine", async || {
            anyhow::Ok(started.list("machines", "machines").await?.len() == units)
        })
        .await?;
        Ok(started)
    }

    /// Submits the units, and waits until each runs. Returns how long that took.
    async fn run(&mut self) -> anyhow::Result<Duration> {
        let units = self.units;
        let begun = Instant::now();
        futures::stream::iter(0..units)
            .map(|number| self.submit(number))
            .buffer_unordered(SUBMIT_AT_ONCE)
            .try_collect::<()>()
            .await?;
        let submitted = begun.elapsed();
        // Only then is the orchestrator asked, so that it has nothing else to do meanwhile.
        self.machines.await_launched(units).await?;
        let reported = begun.elapsed();
        let mut states = Vec::new();
        until("each unit is known to run", async || {
            states = self.list("state", "states").await?;
            anyhow::Ok(states.iter().filter(|state| state["systemdSubState"] == "running").count() == units)
        })
        .await?;
        let took = begun.elapsed();
        progress(format!(
            "submitted after {submitted:.2?}, reported after {reported:.2?}, known after {took:.2?}"
        ));
        let machines: BTreeSet<&str> =
            states.iter().filter_map(|state| state["machineID"].as_str()).collect();
        ensure!(machines.len() == units, "{units} units are on {} machines", machines.len());
        Ok(took)
    }

    /// Asks for a unit that is to be launched.
    async fn submit(&self, number: usize) -> anyhow::Result<()> {
        let contents = BASE64_STANDARD.encode(CONTENTS);
        let body = json!({ "data": { "desiredState": "launched", "fileContents": contents } });
        let path = format!("/v1-alpha/units/app{number:05}.service");
        let instance = &self.site.instance;
        let put = instance.http().put(instance.path(&path)).json(&body).send().await?;
        ensure!(put.status().is_success(), "{path} was answered {}", put.status());
        Ok(())
    }

    /// All entities of a collection, page by page.
    async fn list(&self, collection: &str, field: &str) -> anyhow::Result<Vec<Value>> {
        let first = format!("/fleet/v1/{collection}");
        let mut page = self.site.instance.get(&first).await?;
        let mut entities = Vec::new();
        loop {
            let found = page[field].as_array().with_context(|| format!("{first} was answered {page}"))?;
            entities.extend(found.iter().cloned());
            let Some(token) = page["nextPageToken"].as_str() else { return Ok(entities) };
            page = self.site.instance.get(&format!("{first}?nextPageToken={token}")).await?;
        }
    }

    /// Waits until the journal has stopped growing, and returns how much it has.
    async fn await_calm(&self) -> anyhow::Result<Extent> {
        let read = || Extent::read(&self.jetstream, subject::JOURNAL_STREAM);
        let (mut last, mut since) = (read().await?, Instant::now());
        until("the journal has stopped growing", async || {
            let now = read().await?;
            if now != last {
                (last, since) = (now, Instant::now());
            }
            anyhow::Ok(since.elapsed() >= CALM)
        })
        .await?;
        Ok(last)
    }

    /// Fails if anything is stored although nothing changes.
    async fn check_quiet(&self) -> anyhow::Result<()> {
        progress(format!("{} units run, and nothing changes", self.units));
        let before = self.stored().await?;
        tokio::time::sleep(QUIET).await;
        let after = self.stored().await?;
        ensure!(before == after, "nothing changed: journal and items had {before:?}, now {after:?}");
        Ok(())
    }

    /// Journal and items.
    async fn stored(&self) -> anyhow::Result<[Extent; 2]> {
        let extent = |stream| Extent::read(&self.jetstream, stream);
        Ok([extent(subject::JOURNAL_STREAM).await?, extent(subject::DESIRED_STREAM).await?])
    }
}
