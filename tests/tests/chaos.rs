//! The orchestrator, and now and then everything else, killed at random moments of one run.
//!
//! The seed decides the moments as far as the machine's timing lets it; `OS_UPGRADE_TEST_SEED` sets it.

use std::collections::BTreeMap;
use std::time::Duration;

use os_upgrade_tests::site::{Site, assert_one_by_one};
use os_upgrade_tests::wait::eventually;

const HOSTS: usize = 8;
const KILLS: u32 = 25;

/// Splitmix64: enough to choose moments.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

fn seed() -> u64 {
    let given = std::env::var("OS_UPGRADE_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| chrono::Utc::now().timestamp_micros().unsigned_abs());
    #[expect(clippy::print_stdout, reason = "shown when the test fails")]
    {
        println!("OS_UPGRADE_TEST_SEED={seed}");
    }
    seed
}

#[tokio::test]
async fn killed_at_random_again_and_again_every_host_is_upgraded_exactly_once() {
    let mut random = Random(seed());
    let mut site = Site::start().await;
    let rest = site.rest();
    let mut hosts: Vec<_> = (1..=HOSTS)
        .map(|number| {
            let host = site.host(&format!("h{number:02}"));
            if number % 2 == 0 { host.reboots() } else { host }
        })
        .collect();
    site.run(&mut hosts).await;
    let id = rest.started().await;
    for _ in 0..KILLS {
        // Chance, not waiting for something: the next kill comes at any moment.
        tokio::time::sleep(Duration::from_millis(random.below(700))).await;
        match random.below(10) {
            0 => {
                site.nats.kill();
                site.nats.start_again().await;
            }
            1 | 2 => hosts[usize::try_from(random.below(8)).expect("a small number")].kill_worker(),
            _ => site.orchestrator.kill_and_start().await,
        }
        if rest.run(&id).await.result().is_some() {
            break;
        }
    }
    site.orchestrator.ready().await;
    let run = rest.ended(&id).await;
    assert_eq!(run.result(), Some("completed"), "{}", run.0);
    let upgraded: BTreeMap<_, _> = hosts.iter().map(|host| (host.name(), "upgraded")).collect();
    assert_eq!(run.statuses(), upgraded);
    for host in &hosts {
        let said = host.said();
        let count = |what: &str| said.iter().filter(|said| *said == what).count();
        assert_eq!(count("upgrade-begins"), 1, "{}: {said:?}", host.name());
        // A script that was cut off right after its last line is run again, and told so.
        assert!(count("upgrade-ends") <= 1 + count("upgrade-resumed"), "{}: {said:?}", host.name());
        assert_eq!(host.version(), "2");
    }
    let mut commands = site.commands().await;
    let all = commands.len();
    commands.sort();
    commands.dedup();
    assert_eq!(commands.len(), all, "no command stands there twice");
    assert_one_by_one(&site.said());
    // The history is whole, and every slot is free again.
    let id = rest.started().await;
    eventually("a run after it", async || rest.run(&id).await.result().map(|_| ())).await;
    assert_eq!(rest.ended(&id).await.result(), Some("completed"));
}
