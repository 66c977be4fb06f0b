//! Races for slots: two orchestrators on one nats-server, asked at the same time by FleetLock clients that keep their
//! connections, each now by one orchestrator and now by the other.
//!
//! `RACE_ROUNDS` sets how many rounds each race has; a hundredth as often somebody is killed in the middle of one.

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
/// How long a client waits before it asks again for what it was not told the outcome of.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a client holds its slot.
const HOLDS: Duration = Duration::from_millis(10);
/// After how many grants in the middle of a race somebody is killed.
const GRANTS_BEFORE_A_KILL: u64 = 40;

fn rounds() -> u64 {
    random::from_variable("RACE_ROUNDS").unwrap_or(40)
}

fn show(race: &str, result: &str, begun: Instant) {
    #[expect(clippy::print_stdout, reason = "`make races` shows it")]
    {
        println!("{race}: {result}, in {:.1} s", begun.elapsed().as_secs_f64());
    }
}

/// Two orchestrators of a site, of which one leads, and their bus.
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
        second.follows(&first).await;
        Self { orchestrators: [first, second], nats }
    }

    /// Clients, each with connections of its own.
    fn clients(&self, count: usize) -> Vec<Client> {
        let rests = || self.orchestrators.each_ref().map(|it| Rest::new(it.address()));
        (0..count).map(|_| Client { rests: rests() }).collect()
    }

    /// Whoever leads, and the other.
    async fn by_role(&mut self) -> (&mut Orchestrator, &mut Orchestrator) {
        let [first, second] = &mut self.orchestrators;
        let first_leads = eventually("one of them to lead", async || {
            let roles = (first.role().await?.0, second.role().await?.0);
            (roles.0 != roles.1).then_some(roles.0 == "leader")
        });
        if first_leads.await { (first, second) } else { (second, first) }
    }

    /// Kills everything, and starts it again: as after a power cut.
    async fn cut_the_power(&mut self) {
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
    /// What the orchestrator with this number, of any size, answers.
    async fn ask(&self, orchestrator: u64, path: &str, group: &str, id: &str) -> Option<u16> {
        let even = orchestrator.is_multiple_of(2);
        self.rests[usize::from(!even)].try_fleet_lock(path, group, id).await
    }
}

#[tokio::test]
async fn of_two_who_ask_at_once_for_the_only_slot_one_is_granted_it() {
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
    show("two for 1 slot", &result, begun);
    assert_eq!((both, neither, errors), (0, 0, 0));
}

#[tokio::test]
async fn of_ten_who_ask_at_once_for_five_slots_five_are_granted_one() {
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
    show("ten for 5 slots", &result, begun);
    assert_eq!((exact, errors), (rounds(), 0));
}

#[tokio::test]
async fn two_holders_who_unlock_at_once_are_both_answered_and_both_slots_are_free() {
    let pair = Pair::start().await;
    let clients = pair.clients(2);
    let (begun, mut errors) = (Instant::now(), 0);
    for round in 0..rounds() {
        let ids = [format!("a{round}"), format!("b{round}")];
        for path in [LOCK, UNLOCK] {
            // Were a slot not free by now, one of the locks would be refused.
            let answers = tokio::join!(
                clients[0].ask(round, path, "two", &ids[0]),
                clients[1].ask(round / 2, path, "two", &ids[1]),
            );
            errors += u64::from(answers.0 != GRANTED) + u64::from(answers.1 != GRANTED);
        }
    }
    show("two unlock", &format!("{} rounds, errors {errors}", rounds()), begun);
    assert_eq!(errors, 0);
}

/// What clients know of the slots.
#[derive(Debug, Default)]
struct Known {
    /// Who was granted one, and has not asked to give it back.
    holding: Mutex<BTreeSet<String>>,
    /// Who may hold one without knowing.
    unsure: Mutex<BTreeSet<String>>,
    grants: AtomicU64,
    most: AtomicU64,
    enough: AtomicBool,
}

impl Known {
    fn granted(&self, id: &str) {
        let mut holding = self.holding.lock().unwrap();
        holding.insert(id.to_owned());
        self.most.fetch_max(holding.len() as u64, Ordering::Relaxed);
        drop(holding);
        self.grants.fetch_add(1, Ordering::Relaxed);
    }

    fn is_enough(&self) -> bool {
        self.enough.load(Ordering::Relaxed)
    }
}

/// Takes slots and gives them back, each time under another id, until it is enough; then it keeps what it has.
async fn contend(client: Client, number: u64, known: Arc<Known>) {
    for turn in 0.. {
        if known.is_enough() {
            return;
        }
        let id = format!("k{number}-{turn}");
        known.unsure.lock().unwrap().insert(id.clone());
        let answer = client.ask(number + turn, LOCK, "five", &id).await;
        if answer == GRANTED {
            known.granted(&id);
            tokio::time::sleep(HOLDS).await;
            if known.is_enough() {
                return;
            }
            known.holding.lock().unwrap().remove(&id);
        }
        // Also what may have been granted without its having been told.
        let mut again = turn;
        while answer != FULL && client.ask(number + again, UNLOCK, "five", &id).await != GRANTED {
            if known.is_enough() {
                return;
            }
            again += 1;
            tokio::time::sleep(PAUSE).await;
        }
        known.unsure.lock().unwrap().remove(&id);
    }
}

/// Who holds a slot, as an orchestrator shows it.
async fn shown(orchestrator: &Orchestrator) -> Option<BTreeSet<String>> {
    let (_, state) = orchestrator.rest.try_call(reqwest::Method::GET, "/v1/state/fleet-lock", "").await?;
    let group = state["groups"].as_array()?.iter().find(|group| group["group"] == "five")?;
    let ids = group["holders"].as_array()?.iter().map(|holder| holder["id"].as_str().map(str::to_owned));
    ids.collect()
}

/// Lets clients contend, and calls `kill` in the middle, again and again. Whoever was granted a slot still holds it,
/// nobody holds one who cannot have been granted it, and just what is left is granted to others.
async fn with_kills(name: &str, kill: impl AsyncFn(&mut Pair)) {
    let mut pair = Pair::start().await;
    let (begun, kills) = (Instant::now(), (rounds() / 100).max(1));
    let (mut grants, mut kept) = (0, 0);
    for round in 0..kills {
        let known = Arc::new(Known::default());
        let mut contenders = JoinSet::new();
        for (client, number) in pair.clients(CONTENDERS).into_iter().zip(0..) {
            contenders.spawn(contend(client, number, Arc::clone(&known)));
        }
        eventually("slots to be granted", async || {
            (known.grants.load(Ordering::Relaxed) >= GRANTS_BEFORE_A_KILL).then_some(())
        })
        .await;
        // Whoever is granted a slot from now on, be it at the very moment of the kill, keeps it.
        known.enough.store(true, Ordering::Relaxed);
        kill(&mut pair).await;
        contenders.join_all().await;
        let clients = pair.clients(CONTENDERS);
        for orchestrator in 0..2 {
            eventually("requests to be answered again", async || {
                (clients[0].ask(orchestrator, UNLOCK, "one", "nobody").await == GRANTED).then_some(())
            })
            .await;
        }

        let holding = known.holding.lock().unwrap().clone();
        let possible: BTreeSet<String> = holding.union(&known.unsure.lock().unwrap()).cloned().collect();
        let mut holders = BTreeSet::new();
        for orchestrator in &pair.orchestrators {
            holders = eventually("an orchestrator to show who was granted a slot", async || {
                shown(orchestrator).await.filter(|holders| holders.is_superset(&holding))
            })
            .await;
            assert!(holders.len() <= SLOTS && holders.is_subset(&possible), "{holders:?} of {possible:?}");
        }
        let most = known.most.load(Ordering::Relaxed);
        assert!(most <= SLOTS as u64, "{most} at once knew that they held one of {SLOTS} slots");
        let others = clients.iter().zip(0_u64..).map(async |(client, number)| {
            let id = format!("o{round}-{number}");
            (client.ask(number, LOCK, "five", &id).await == GRANTED).then_some(id)
        });
        let others: Vec<String> = join_all(others).await.into_iter().flatten().collect();
        assert_eq!(others.len(), SLOTS - holders.len(), "{others:?} beside {holders:?}");
        grants += known.grants.load(Ordering::Relaxed);
        kept += holding.len();
        for id in holders.iter().chain(&others) {
            assert_eq!(clients[0].ask(round, UNLOCK, "five", id).await, GRANTED);
        }
    }
    let result = format!("{kills} times, {grants} slots granted, {kept} held over the kill, none lost");
    show(name, &result, begun);
}

#[tokio::test]
async fn whoever_was_granted_a_slot_holds_it_when_another_takes_over() {
    with_kills("leader killed, another leads", async |pair| {
        let (leader, other) = pair.by_role().await;
        leader.kill().await;
        other.leads().await;
        leader.start();
    })
    .await;
}

#[tokio::test]
async fn whoever_was_granted_a_slot_holds_it_when_the_leader_is_started_again() {
    with_kills("leader killed, started at once", async |pair| pair.by_role().await.0.kill_and_start().await)
        .await;
}

#[tokio::test]
async fn whoever_was_granted_a_slot_holds_it_after_a_power_cut() {
    with_kills("everything killed, also NATS", async |pair| pair.cut_the_power().await).await;
}
