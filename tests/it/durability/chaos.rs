//! The orchestrator, and sometimes everything else, is killed at random moments of one run.
//!
//! `OS_UPGRADE_TEST_SEED` sets the seed, which decides the moments as far as the machine's timing allows.

use std::collections::BTreeMap;
use std::time::Duration;

use harness::host::Host;
use harness::lock_server::{LockServer, Mode};
use harness::orchestrator::Orchestrator;
use harness::random::Random;
use harness::rest::Run;
use harness::site::{Site, assert_one_by_one};
use harness::streams;
use harness::wait::eventually;
use nix::sys::signal::Signal;

const HOSTS: usize = 8;
const KILLS: u32 = 25;

/// Hosts, every other of which reboots.
async fn hosts(site: &Site) -> Vec<Host> {
    let names = (1..=HOSTS).map(|number| (number, format!("h{number:02}")));
    let mut hosts: Vec<_> = names
        .map(|(number, name)| if number % 2 == 0 { site.host(&name).reboots() } else { site.host(&name) })
        .collect();
    site.run(&mut hosts).await;
    hosts
}

/// The run completed; every host was upgraded exactly once, one by one, and no command was sent twice.
async fn assert_once(site: &Site, hosts: &[Host], run: &Run) {
    assert_eq!(run.result(), Some("completed"), "{}", run.0);
    let upgraded: BTreeMap<_, _> = hosts.iter().map(|host| (host.name(), "upgraded")).collect();
    assert_eq!(run.statuses(), upgraded);
    for host in hosts {
        let lines = host.script_log();
        let count = |what: &str| lines.iter().filter(|line| *line == what).count();
        assert_eq!(count("upgrade-begins"), 1, "{}: {lines:?}", host.name());
        // A script that was killed right after its last line is run again, as resumed.
        assert!(count("upgrade-ends") <= 1 + count("upgrade-resumed"), "{}: {lines:?}", host.name());
        assert_eq!(host.version(), "2");
    }
    streams::assert_no_command_twice(site.jetstream()).await;
    assert_one_by_one(&site.script_log());
}

/// A random pause, so that the next fault comes at any moment.
async fn random_pause(random: &mut Random, millis_max: u64) {
    tokio::time::sleep(Duration::from_millis(random.below(millis_max))).await;
}

/// Too slow for `make test`: `make test-at-length` runs these, and so does `make soak`.
mod at_length {
    use super::*;

    #[tokio::test]
    async fn random_kills_upgrade_each_host_once() {
        let mut random = Random::from_environment();
        let mut site = Site::start().await;
        let rest = site.rest();
        let hosts = hosts(&site).await;
        let id = rest.start_run().await;
        for _ in 0..KILLS {
            random_pause(&mut random, 450).await;
            match random.below(10) {
                0 => {
                    site.nats.kill();
                    site.nats.start_again().await;
                }
                1 | 2 => hosts[random.index(HOSTS)].kill_worker(),
                _ => site.orchestrator.kill_and_start().await,
            }
            if rest.run(&id).await.result().is_some() {
                break;
            }
        }
        site.orchestrator.ready().await;
        let run = rest.await_end(&id).await;
        assert_once(&site, &hosts, &run).await;
        // All slots are free.
        let id = rest.start_run().await;
        assert_eq!(rest.await_end(&id).await.result(), Some("completed"));
    }

    #[tokio::test]
    async fn failing_lock_server_upgrades_each_host_once() {
        let mut random = Random::from_environment();
        let mut locks = LockServer::start(Mode::OneSlot).await;
        let mut site = Site::start_with(&locks.config()).await;
        let mut second = Orchestrator::new(&site.nats.url(), &locks.config());
        second.start();
        let hosts = hosts(&site).await;
        let id = site.rest().start_run().await;
        for _ in 0..KILLS {
            random_pause(&mut random, 450).await;
            match random.below(8) {
                0 => {
                    locks.stop().await;
                    random_pause(&mut random, 300).await;
                    locks.start_again().await;
                }
                1 => {
                    locks.set_mode(Mode::Page);
                    random_pause(&mut random, 300).await;
                    locks.set_mode(Mode::OneSlot);
                }
                2 => {
                    site.nats.kill();
                    site.nats.start_again().await;
                }
                3 => {
                    site.orchestrator.signal(Signal::SIGSTOP);
                    random_pause(&mut random, 1_000).await;
                    site.orchestrator.signal(Signal::SIGCONT);
                }
                4 | 5 => second.kill_and_start().await,
                _ => site.orchestrator.kill_and_start().await,
            }
            if site.rest().run(&id).await.result().is_some() {
                break;
            }
        }
        let run = site.rest().await_end(&id).await;
        assert_once(&site, &hosts, &run).await;
        eventually("the slot to be free", async || locks.holder().is_none().then_some(())).await;
        eventually("the same history", async || {
            (second.rest.run(&id).await == site.rest().run(&id).await).then_some(())
        })
        .await;
    }
}
