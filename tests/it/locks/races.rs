//! Races for slots: FleetLock clients send concurrent requests to two orchestrators on one nats-server, alternating
//! between them, over persistent connections.
//!
//! `RACE_ROUNDS` sets the number of rounds of each race; the races with kills have a hundredth of that.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::join_all;
use harness::nats_server::NatsServer;
use harness::orchestrator::Orchestrator;
use harness::random;
use harness::rest::Rest;
use harness::wait::eventually;
use tokio::task::JoinSet;

const LOCK: &str = "/v1/pre-reboot";
const UNLOCK: &str = "/v1/steady-state";
const GROUPS: &str = "[fleet-lock.groups]\ndefault = 1\none = 1\ntwo = 2\nfive = 5";
const GRANTED: Option<u16> = Some(200);
const FULL: Option<u16> = Some(409);
const CONTENDERS: usize = 10;
const SLOTS: usize = 5;
/// How long a client waits before it repeats a request without an answer.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a client holds its slot.
const HOLDS: Duration = Duration::from_millis(10);
/// Number of grants before the kill in a race.
const GRANTS_BEFORE_A_KILL: u64 = 40;

fn rounds() -> u64 {
    random::from_variable("RACE_ROUNDS").unwrap_or(40)
}

fn print_result(race: &str, result: &str, begun: Instant) {
    #[expect(clippy::print_stdout, reason = "`make races` shows it")]
    {
        println!("{race}: {result}, in {:.1} s", begun.elapsed().as_secs_f64());
    }
}

/// Two orchestrators of a site, one of which leads, and their bus.
struct Pair {
    orchestrators: [Orchestrator; 2],
    nats: NatsServer,
}

impl Pair {
    async fn start() -> Self {
        let nats = NatsServer::start().await;
        let [mut first, mut second] = [(); 2].map(|()| Orchestrator::new(&nats.url(), GROUPS));
        first.start_ready().await;
        second.start();
        second.await_following(&first).await;
        Self { orchestrators: [first, second], nats }
    }

    /// Clients, each with its own connections.
    fn clients(&self, count: usize) -> Vec<Client> {
        let rests = || self.orchestrators.each_ref().map(|it| Rest::new(it.address()));
        (0..count).map(|_| Client { rests: rests() }).collect()
    }

    /// The leader and the follower.
    async fn by_role(&mut self) -> (&mut Orchestrator, &mut Orchestrator) {
        let [first, second] = &mut self.orchestrators;
        let first_leads = eventually("one of them to lead", async || {
            let roles = (first.role().await?.0, second.role().await?.0);
            (roles.0 != roles.1).then_some(roles.0 == "leader")
        });
        if first_leads.await { (first, second) } else { (second, first) }
    }

    /// Kills everything and starts it again, as in a power cut.
    async fn cut_power(&mut self) {
        let [first, second] = &mut self.orchestrators;
        tokio::join!(first.kill(), second.kill());
        self.nats.kill();
        self.nats.start_again().await;
        for orchestrator in &mut self.orchestrators {
            orchestrator.start();
        }
    }
}

/// A FleetLock client.
#[derive(Clone)]
struct Client {
    rests: [Rest; 2],
}

impl Client {
    /// Sends a request to the first orchestrator for even numbers, to the second for odd ones. Returns the status.
    async fn ask(&self, orchestrator: u64, path: &str, group: &str, id: &str) -> Option<u16> {
        let even = orchestrator.is_multiple_of(2);
        self.rests[usize::from(!even)].try_fleet_lock(path, group, id).await
    }
}

#[tokio::test]
async fn two_racing_for_one_slot() {
    let pair = Pair::start().await;
    let clients = pair.clients(2);
    let (begun, mut both, mut neither, mut errors) = (Instant::now(), 0, 0, 0);
    for round in 0..rounds() {
        let ids = [format!("a{round}"), format!("b{round}")];
        let answers = tokio::join!(
            clients[0].ask(round, LOCK, "one", &ids[0]),
            clients[1].ask(round / 2, LOCK, "one", &ids[1]),
        );
        let winner = match answers {
            (GRANTED, FULL) => 0,
            (FULL, GRANTED) => 1,
            other => {
                match other {
                    (GRANTED, GRANTED) => both += 1,
                    (FULL, FULL) => neither += 1,
                    _ => errors += 1,
                }
                break;
            }
        };
        errors += u64::from(clients[winner].ask(round / 4, UNLOCK, "one", &ids[winner]).await != GRANTED);
    }
    let result = format!("{} rounds, both granted {both}, neither {neither}, errors {errors}", rounds());
    print_result("two for 1 slot", &result, begun);
    assert_eq!((both, neither, errors), (0, 0, 0));
}

#[tokio::test]
async fn ten_racing_for_five_slots() {
    let pair = Pair::start().await;
    let clients = pair.clients(CONTENDERS);
    let (begun, mut exact, mut errors) = (Instant::now(), 0, 0);
    for round in 0..rounds() {
        let asked = clients.iter().zip(0_u64..).map(async |(client, number)| {
            let id = format!("c{round}-{number}");
            let answer = client.ask(round + number, LOCK, "five", &id).await;
            (client, number, id, answer)
        });
        let answered = join_all(asked).await;
        let granted: Vec<_> = answered.iter().filter(|(.., answer)| *answer == GRANTED).collect();
        let refused = answered.iter().filter(|(.., answer)| *answer == FULL).count();
        exact += u64::from(granted.len() == SLOTS && refused == CONTENDERS - SLOTS);
        errors += (CONTENDERS - granted.len() - refused) as u64;
        let unlocked = granted
            .iter()
            .map(async |(client, number, id, _)| client.ask(round / 2 + number, UNLOCK, "five", id).await);
        let unlocked = join_all(unlocked).await;
        errors += unlocked.iter().filter(|answer| **answer != GRANTED).count() as u64;
    }
    let result = format!("{} rounds, exactly 5 granted in {exact}, errors {errors}", rounds());
    print_result("ten for 5 slots", &result, begun);
    assert_eq!((exact, errors), (rounds(), 0));
}

#[tokio::test]
async fn simultaneous_unlocks_free_both_slots() {
    let pair = Pair::start().await;
    let clients = pair.clients(2);
    let (begun, mut errors) = (Instant::now(), 0);
    for round in 0..rounds() {
        let ids = [format!("a{round}"), format!("b{round}")];
        for path in [LOCK, UNLOCK] {
            // If a slot were not free by now, one of the locks would be refused.
            let answers = tokio::join!(
                clients[0].ask(round, path, "two", &ids[0]),
                clients[1].ask(round / 2, path, "two", &ids[1]),
            );
            errors += u64::from(answers.0 != GRANTED) + u64::from(answers.1 != GRANTED);
        }
    }
    print_result("two unlock", &format!("{} rounds, errors {errors}", rounds()), begun);
    assert_eq!(errors, 0);
}

/// The clients' record of the slots.
#[derive(Debug, Default)]
struct Ledger {
    /// Ids with a granted slot, not yet being released.
    holding: Mutex<BTreeSet<String>>,
    /// Ids that may hold a slot without the client knowing.
    unsure: Mutex<BTreeSet<String>>,
    grants: AtomicU64,
    most: AtomicU64,
    stopped: AtomicBool,
}

impl Ledger {
    fn granted(&self, id: &str) {
        let mut holding = self.holding.lock().unwrap();
        holding.insert(id.to_owned());
        self.most.fetch_max(holding.len() as u64, Ordering::Relaxed);
        drop(holding);
        self.grants.fetch_add(1, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// Takes and releases slots, each time with a new id, until stopped; a slot held then is kept.
async fn contend(client: Client, number: u64, ledger: Arc<Ledger>) {
    for turn in 0.. {
        if ledger.is_stopped() {
            return;
        }
        let id = format!("k{number}-{turn}");
        ledger.unsure.lock().unwrap().insert(id.clone());
        let answer = client.ask(number + turn, LOCK, "five", &id).await;
        if answer == GRANTED {
            ledger.granted(&id);
            tokio::time::sleep(HOLDS).await;
            if ledger.is_stopped() {
                return;
            }
            ledger.holding.lock().unwrap().remove(&id);
        }
        // Also releases a slot that may have been granted without an answer.
        let mut again = turn;
        while answer != FULL && client.ask(number + again, UNLOCK, "five", &id).await != GRANTED {
            if ledger.is_stopped() {
                return;
            }
            again += 1;
            tokio::time::sleep(PAUSE).await;
        }
        ledger.unsure.lock().unwrap().remove(&id);
    }
}

/// The holders of slots, as an orchestrator shows them.
async fn shown_holders(orchestrator: &Orchestrator) -> Option<BTreeSet<String>> {
    let (_, state) = orchestrator.rest.try_call(reqwest::Method::GET, "/v1/state/fleet-lock", "").await?;
    let group = state["groups"].as_array()?.iter().find(|group| group["group"] == "five")?;
    let ids = group["holders"].as_array()?.iter().map(|holder| holder["id"].as_str().map(str::to_owned));
    ids.collect()
}

/// Lets clients compete, and calls `kill` during that, repeatedly. Every granted slot is still held, no slot is held that
/// cannot have been granted, and exactly the remaining ones are granted to others.
async fn race_with_kills(name: &str, kill: impl AsyncFn(&mut Pair)) {
    let mut pair = Pair::start().await;
    let (begun, kills) = (Instant::now(), (rounds() / 100).max(1));
    let (mut grants, mut kept) = (0, 0);
    for round in 0..kills {
        let ledger = Arc::new(Ledger::default());
        let mut contenders = JoinSet::new();
        for (client, number) in pair.clients(CONTENDERS).into_iter().zip(0..) {
            contenders.spawn(contend(client, number, Arc::clone(&ledger)));
        }
        eventually("slots to be granted", async || {
            (ledger.grants.load(Ordering::Relaxed) >= GRANTS_BEFORE_A_KILL).then_some(())
        })
        .await;
        // A slot granted from now on, even at the moment of the kill, is kept.
        ledger.stopped.store(true, Ordering::Relaxed);
        kill(&mut pair).await;
        contenders.join_all().await;
        let clients = pair.clients(CONTENDERS);
        for orchestrator in 0..2 {
            eventually("requests to be answered again", async || {
                (clients[0].ask(orchestrator, UNLOCK, "one", "nobody").await == GRANTED).then_some(())
            })
            .await;
        }

        let holding = ledger.holding.lock().unwrap().clone();
        let possible: BTreeSet<String> = holding.union(&ledger.unsure.lock().unwrap()).cloned().collect();
        let mut holders = BTreeSet::new();
        for orchestrator in &pair.orchestrators {
            holders = eventually("an orchestrator to show all granted slots", async || {
                shown_holders(orchestrator).await.filter(|holders| holders.is_superset(&holding))
            })
            .await;
            assert!(holders.len() <= SLOTS && holders.is_subset(&possible), "{holders:?} of {possible:?}");
        }
        let most = ledger.most.load(Ordering::Relaxed);
        assert!(most <= SLOTS as u64, "{most} clients held one of {SLOTS} slots at once");
        let others = clients.iter().zip(0_u64..).map(async |(client, number)| {
            let id = format!("o{round}-{number}");
            (client.ask(number, LOCK, "five", &id).await == GRANTED).then_some(id)
        });
        let others: Vec<String> = join_all(others).await.into_iter().flatten().collect();
        assert_eq!(others.len(), SLOTS - holders.len(), "{others:?} beside {holders:?}");
        grants += ledger.grants.load(Ordering::Relaxed);
        kept += holding.len();
        for id in holders.iter().chain(&others) {
            assert_eq!(clients[0].ask(round, UNLOCK, "five", id).await, GRANTED);
        }
    }
    let result = format!("{kills} times, {grants} slots granted, {kept} held over the kill, none lost");
    print_result(name, &result, begun);
}

#[tokio::test]
async fn granted_slots_survive_failover() {
    race_with_kills("leader killed, another leads", async |pair| {
        let (leader, other) = pair.by_role().await;
        leader.kill().await;
        other.await_leading().await;
        leader.start();
    })
    .await;
}

#[tokio::test]
async fn granted_slots_survive_restart() {
    race_with_kills("leader killed, started at once", async |pair| {
        pair.by_role().await.0.kill_and_start().await;
    })
    .await;
}

#[tokio::test]
async fn granted_slots_survive_power_loss() {
    race_with_kills("everything killed, also NATS", async |pair| pair.cut_power().await).await;
}
