//! One run over two guests.

use std::fs;
use std::time::{Duration, Instant};

use futures::future::join_all;
use harness::rest::{Rest, Run};
use harness::site::Site;
use harness::vm::accelerator::Accelerator;
use harness::vm::guest::Guest;
use harness::vm::{self, HOST};
use harness::wait;

use crate::cut::Cut;
use crate::outcome::{Outcome, upgradable};

/// The application of the worker's package.
const APPLICATION: &str = "os-upgrade-debian";
/// The guests' names. The first is upgraded first.
const NAMES: [&str; 2] = ["v1", "v2"];
/// How long a run may take, emulated and beside other work.
const RUN_WAIT: Duration = Duration::from_hours(2);
/// The worker's package, and its settings, in a guest.
const PACKAGE: &str = "/var/tmp/os-upgrade-worker.deb";
const SETTINGS: &str = "/etc/os-upgrade-worker/worker.env";

/// Two guests and their site.
#[derive(Debug)]
pub(crate) struct Scenario {
    site: Site,
    guests: Vec<Guest>,
}

impl Scenario {
    /// Boots both guests, and waits until the site knows their workers.
    pub(crate) async fn begin(accelerator: Accelerator, package: &[u8]) -> Self {
        let site = Site::start().await;
        site.rest().configure(APPLICATION).await;
        let (image, directory) = (vm::image(), vm::directory());
        let mut guests: Vec<Guest> =
            NAMES.iter().map(|name| Guest::new(name, &image, &directory, accelerator)).collect();
        let start = Instant::now();
        for guest in &mut guests {
            guest.power_on();
        }
        let nats = site.nats.address().port();
        join_all(guests.iter().map(async |guest| {
            guest.up().await;
            install(guest, package, nats).await;
        }))
        .await;
        site.rest().await_scheduled(&NAMES).await;
        println!("  both guests have booted and announced themselves after {} s", start.elapsed().as_secs());
        Self { site, guests }
    }

    /// Executes a run with a fault for each guest, at a percentage of its upgrade. Returns the problems. All guests must end
    /// with the packages of `reference`, which the first guest sets.
    pub(crate) async fn run(&mut self, faults: &[(Cut, u64)], reference: &mut Option<String>) -> Vec<String> {
        let before = self.outcomes().await;
        let rest = self.site.rest();
        let start = Instant::now();
        let id = rest.start_run().await;
        for (index, (cut, moment)) in faults.iter().enumerate() {
            self.inject(index, *cut, *moment, &rest).await;
        }
        let run = wait::within(RUN_WAIT, "the end of the run", async || {
            let run = rest.run(&id).await;
            run.result().is_some().then_some(run)
        })
        .await;
        println!("  {:?} after {} s: {:?}", run.result(), start.elapsed().as_secs(), run.events());
        for guest in &self.guests {
            guest.up().await;
        }
        let after = self.outcomes().await;
        self.keep_logs().await;
        let mut wrong = wrong_run(&run);
        for left in join_all(self.guests.iter().map(upgradable)).await {
            wrong.extend(left.lines().map(|line| format!("not upgraded: {line}")));
        }
        for (after, before) in after.iter().zip(&before) {
            println!(
                "  {}: {} packages changed, {} to {}, dpkg at work from {} to {}",
                after.name,
                after.changed(before),
                before.kernel,
                after.kernel,
                after.work.0,
                after.work.1
            );
            wrong.extend(after.problems(before));
            if *reference.get_or_insert_with(|| after.packages.clone()) != after.packages {
                wrong.push(format!(
                    "{}: its packages differ from the others':\n{}",
                    after.name, after.packages
                ));
            }
        }
        if after[0].work.1 > after[1].work.0 {
            wrong.push("both were upgraded at once".to_owned());
        }
        wrong
    }

    async fn outcomes(&self) -> Vec<Outcome> {
        join_all(self.guests.iter().map(Outcome::of)).await
    }

    /// Waits for the moment of the fault, and injects it.
    async fn inject(&mut self, index: usize, cut: Cut, moment: u64, rest: &Rest) {
        match cut {
            Cut::Nothing => return,
            Cut::Rebooting => self.await_shutdown(index, rest).await,
            Cut::Unpacking | Cut::Configuring | Cut::Bus => self.await_progress(index, moment, rest).await,
        }
        if cut == Cut::Bus {
            self.without_bus(index).await;
            return;
        }
        let victim = &mut self.guests[index];
        victim.cut_power().await;
        victim.power_on();
        victim.up().await;
    }

    /// Waits until the upgrade of a guest has reached this percentage.
    async fn await_progress(&self, index: usize, moment: u64, rest: &Rest) {
        let name = NAMES[index];
        let step = wait::within(RUN_WAIT, &format!("{name} to be in its upgrade"), async || {
            let host = rest.try_host(name).await?;
            let (percent, text) = (host["progress"]["percent"].as_u64()?, host["progress"]["text"].as_str()?);
            let is_at = host["status"] == "upgrading" && percent >= moment;
            is_at.then(|| format!("{percent} %, {text}"))
        })
        .await;
        println!("  {name}: cut off at {step}");
    }

    /// Waits until a guest shuts down.
    async fn await_shutdown(&self, index: usize, rest: &Rest) {
        let (name, guest) = (NAMES[index], &self.guests[index]);
        let rebooting = async || (rest.try_host(name).await?["status"] == "rebooting").then_some(());
        wait::within(RUN_WAIT, &format!("{name} to be told to reboot"), rebooting).await;
        // From here on its console shows how services stop.
        let before = guest.console().len();
        let stopping = async || guest.console()[before..].contains("Stopped ").then_some(());
        wait::within(RUN_WAIT, &format!("{name} to go down"), stopping).await;
        println!("  {name}: cut off while shutting down");
    }

    /// Stops the bus until the upgrade of a guest is done.
    async fn without_bus(&mut self, index: usize) {
        let start = Instant::now();
        self.site.nats.kill();
        let agent = &self.guests[index].agent;
        let log = "journalctl --unit=os-upgrade-worker --output=cat --no-pager --grep='a reboot is required'";
        wait::within(RUN_WAIT, "the upgrade to finish without a bus", async || {
            (agent.try_run(log).await?.status == Some(0)).then_some(())
        })
        .await;
        self.site.nats.start_again().await;
        println!("  no bus for {} s", start.elapsed().as_secs());
    }

    /// Copies the workers' logs beside the guests' disks.
    async fn keep_logs(&self) {
        for guest in &self.guests {
            let log = guest.agent.must("journalctl --unit=os-upgrade-worker --no-pager").await;
            fs::write(vm::directory().join(guest.name()).join("worker.log"), log).unwrap();
        }
    }
}

/// Installs the worker as an operator does.
async fn install(guest: &Guest, package: &[u8], nats: u16) {
    let agent = &guest.agent;
    agent.must(&format!("hostnamectl hostname {}", guest.name())).await;
    agent.write(PACKAGE, package).await;
    agent.must(&format!("apt-get --quiet --yes install {PACKAGE}")).await;
    let url = format!("nats://{HOST}:{nats}");
    agent.must(&format!("sed -i 's|^OS_UPGRADE_NATS_URL=.*|OS_UPGRADE_NATS_URL={url}|' {SETTINGS}")).await;
    // From now on the log of dpkg has only the upgrade.
    agent.must(": >/var/log/dpkg.log; systemctl enable --now os-upgrade-worker").await;
}

/// The problems of a run that should have upgraded both guests, one by one.
fn wrong_run(run: &Run) -> Vec<String> {
    let mut wrong = Vec::new();
    if run.result() != Some("completed") {
        wrong.push(format!("the run: {:?}, {:?}", run.result(), run.reasons()));
    }
    let mut holder: Option<String> = None;
    for event in run.events() {
        let Some((host, what)) = event.split_once(' ') else { continue };
        match what {
            "slot-granted" => {
                if let Some(other) = holder.replace(host.to_owned()) {
                    wrong.push(format!("{host} had a slot at the same time as {other}"));
                }
            }
            "slot-released" if holder.as_deref() == Some(host) => holder = None,
            _ => {}
        }
    }
    if let Some(host) = holder {
        wrong.push(format!("the slot of {host} was not released"));
    }
    wrong
}
