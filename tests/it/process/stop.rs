//! Stopping instances: within 5 s, whatever hangs, with a true answer to every pending request, and with the lease
//! released.

use std::collections::BTreeSet;
use std::fs;
use std::future::Future;
use std::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use async_nats::jetstream::kv::Operation;
use futures::StreamExt;
use harness::orchestrator::Orchestrator;
use harness::site::Site;
use harness::wait::{Stopwatch, eventually};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use os_upgrade_adapters::fleet_lock_client::{FleetLockClient, Timeouts};
use os_upgrade_kernel::LockOutcome;
use os_upgrade_protocol::{GroupName, HostName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How long stopping may take.
const LIMIT: Duration = Duration::from_secs(5);
/// A group with slots for all clients.
const LOAD: &str = "[fleet-lock.groups]\ndefault = 1\nload = 10000";

/// Stops it with SIGTERM; it must end in time and with success.
async fn stop(orchestrator: &mut Orchestrator) {
    let elapsed = Stopwatch::start();
    orchestrator.signal(Signal::SIGTERM);
    let (code, log) = orchestrator.exited().await;
    assert_eq!(code, Some(0), "{log}");
    elapsed.assert_below(LIMIT);
}

/// A client of the FleetLock endpoint at `address`.
fn locks(address: SocketAddr) -> FleetLockClient {
    FleetLockClient::new(&format!("http://{address}/").parse().unwrap(), Timeouts::default(), None).unwrap()
}

/// Takes one slot after another until one is not granted. Returns the granted ids, and the last answer.
fn take_slots(
    address: SocketAddr,
    worker: usize,
) -> impl Future<Output = (Vec<String>, String, LockOutcome)> {
    let client = locks(address);
    async move {
        let group = GroupName::new("load").unwrap();
        let mut granted = Vec::new();
        loop {
            let id = format!("client-{worker}-{}", granted.len());
            let outcome = client.lock(&group, &HostName::new(&id).unwrap()).await;
            if outcome != LockOutcome::Granted {
                return (granted, id, outcome);
            }
            granted.push(id);
        }
    }
}

#[tokio::test]
async fn stop_answers_pending_calls_truly() {
    let mut site = Site::start_with(LOAD).await;
    let hosts = site.hosts(2).await;
    hosts[0].hold("upgrade");
    let id = site.rest().start_run().await;
    hosts[0].await_script("upgrade-begins").await;
    let (mut all_granted, mut refused) = (BTreeSet::new(), 0);
    for round in 0..5 {
        let address = site.orchestrator.address();
        let workers: Vec<_> =
            (0..16).map(|worker| tokio::spawn(take_slots(address, round * 16 + worker))).collect();
        eventually("slots to be taken", async || {
            let state = site.journal().await;
            let taken = |number| state.iter().any(|fact| fact["id"] == format!("client-{number}-3"));
            (0..16).all(|worker| taken(round * 16 + worker)).then_some(())
        })
        .await;
        stop(&mut site.orchestrator).await;
        let facts = site.journal().await;
        let locked: BTreeSet<_> = facts
            .iter()
            .filter(|fact| fact["type"] == "lock-granted")
            .map(|fact| fact["id"].as_str().unwrap().to_owned())
            .collect();
        for worker in workers {
            let (granted, last, outcome) = worker.await.unwrap();
            for id in granted {
                assert!(locked.contains(&id), "{id} was granted a slot");
                all_granted.insert(id);
            }
            match &outcome {
                LockOutcome::Denied { lock_kind, value } => {
                    assert_eq!(lock_kind, "backend_unavailable", "{value}");
                    assert!(!locked.contains(&last), "{last} was answered: {value}");
                    refused += 1;
                }
                LockOutcome::Unreachable { .. } => {
                    assert!(!locked.contains(&last), "{last} was not connected");
                }
                LockOutcome::Granted | LockOutcome::Protocol { .. } => panic!("{outcome:?}"),
            }
        }
        site.orchestrator.start_ready().await;
    }
    hosts[0].release("upgrade");
    assert_eq!(site.rest().await_end(&id).await.result(), Some("completed"));
    for host in &hosts {
        assert_eq!(host.script_log(), ["prepare", "upgrade-begins", "upgrade-ends"]);
    }
    println!("{} grants, all there; {refused} refusals", all_granted.len());
}

#[tokio::test]
async fn stop_releases_lease() {
    let mut site = Site::start().await;
    let mut second = Orchestrator::new(&site.nats.url(), "");
    second.start();
    second.await_following(&site.orchestrator).await;
    let hosts = site.hosts(2).await;
    hosts[0].hold("upgrade");
    let id = site.rest().start_run().await;
    hosts[0].await_script("upgrade-begins").await;
    let leases = site.jetstream().get_key_value("os-upgrade-lease").await.unwrap();
    for _ in 0..3 {
        let mut changes = leases.watch("leader").await.unwrap();
        stop(&mut site.orchestrator).await;
        second.await_leading().await;
        // The lease was released before it expired: an expiry would leave no message, a renewal would.
        let mut seen = Vec::new();
        while seen.last() != Some(&Operation::Delete) {
            seen.push(changes.next().await.unwrap().unwrap().operation);
            assert!(seen.len() < 10, "{seen:?}");
        }
        site.orchestrator.start();
        site.orchestrator.await_following(&second).await;
        std::mem::swap(&mut site.orchestrator, &mut second);
    }
    hosts[0].release("upgrade");
    assert_eq!(site.rest().await_end(&id).await.result(), Some("completed"));
    for host in &hosts {
        assert_eq!(host.script_log(), ["prepare", "upgrade-begins", "upgrade-ends"]);
    }
}

#[tokio::test]
async fn hung_bus_does_not_delay_stop() {
    let mut site = Site::start_with(LOAD).await;
    site.nats.signal(Signal::SIGSTOP);
    let lock = tokio::spawn(take_slots(site.orchestrator.address(), 1));
    // The journal does not answer, so the request is pending.
    eventually("the request to be pending", async || {
        site.orchestrator.readiness().await?.starts_with("the journal does not answer").then_some(())
    })
    .await;
    stop(&mut site.orchestrator).await;
    let (granted, _, outcome) = lock.await.unwrap();
    assert_eq!(granted, [""; 0]);
    let LockOutcome::Denied { lock_kind, value } = &outcome else { panic!("{outcome:?}") };
    assert_eq!(lock_kind, "outcome_unknown", "{value}");
    site.nats.signal(Signal::SIGCONT);
    site.orchestrator.start_ready().await;
}

#[tokio::test]
async fn hung_managed_bus_is_killed() {
    let mut orchestrator = Orchestrator::managed();
    orchestrator.start_ready().await;
    let directory = orchestrator.directory().join("data/nats");
    let ports = |name: String| name.strip_prefix("nats-server_")?.strip_suffix(".ports")?.parse().ok();
    let mut names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let pid: i32 = names.find_map(|name| ports(name.into_string().unwrap())).unwrap();
    kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    stop(&mut orchestrator).await;
    assert!(kill(Pid::from_raw(pid), None).is_err(), "the nats-server is gone");
    orchestrator.start_ready().await;
    stop(&mut orchestrator).await;
}

#[tokio::test]
async fn idle_connections_do_not_delay_stop() {
    let mut site = Site::start().await;
    let mut connections = Vec::new();
    let lock =
        "POST /v1/pre-reboot HTTP/1.1\r\nHost: x\r\nfleet-lock-protocol: true\r\nContent-Length: 99\r\n\r\n{";
    for request in ["", "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", "GET /heal", lock] {
        let mut connection = TcpStream::connect(site.orchestrator.address()).await.unwrap();
        connection.write_all(request.as_bytes()).await.unwrap();
        if request.ends_with("\r\n\r\n") {
            let mut answer = [0; 64];
            assert_ne!(connection.read(&mut answer).await.unwrap(), 0);
        }
        connections.push(connection);
    }
    stop(&mut site.orchestrator).await;
}

#[tokio::test]
async fn starting_instance_stops_promptly() {
    // A listener that accepts connections and sends nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("nats://{}", silent.local_addr().unwrap());
    let mut orchestrator = Orchestrator::new(&url, "");
    orchestrator.start();
    let _connection = silent.accept().await.unwrap();
    stop(&mut orchestrator).await;
}

/// The lines in the notifications of a service to systemd.
#[tokio::test]
async fn systemd_is_told_each_state() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_nonblocking(true).unwrap();
    let heard = |messages: &mut Vec<String>| {
        let mut buffer = [0; 4096];
        while let Ok(length) = socket.recv(&mut buffer) {
            let text = String::from_utf8(buffer[..length].to_vec()).unwrap();
            messages.extend(text.lines().map(str::to_owned));
        }
    };
    let mut site = Site::start().await;
    stop(&mut site.orchestrator).await;
    site.orchestrator.set_environment("NOTIFY_SOCKET", path.to_str().unwrap());
    site.orchestrator.set_environment("WATCHDOG_USEC", "400000");
    site.orchestrator.start_ready().await;
    let mut messages = Vec::new();
    eventually("several watchdog messages", async || {
        heard(&mut messages);
        (messages.iter().filter(|line| *line == "WATCHDOG=1").count() >= 5).then_some(())
    })
    .await;
    assert_eq!(messages.iter().filter(|line| *line == "READY=1").count(), 1, "{messages:?}");
    assert!(messages.contains(&"STATUS=ready".to_owned()), "{messages:?}");
    // A bus that is away is reported, and does not let the watchdog expire.
    site.nats.kill();
    messages.clear();
    eventually("the loss to be reported", async || {
        heard(&mut messages);
        let reported = messages.iter().position(|line| line == "STATUS=NATS is unreachable")?;
        messages[reported..].iter().any(|line| line == "WATCHDOG=1").then_some(())
    })
    .await;
    site.nats.start_again().await;
    messages.clear();
    eventually("its return to be reported", async || {
        heard(&mut messages);
        messages.contains(&"STATUS=ready".to_owned()).then_some(())
    })
    .await;
    assert!(!messages.contains(&"READY=1".to_owned()), "it is said once: {messages:?}");
    messages.clear();
    stop(&mut site.orchestrator).await;
    heard(&mut messages);
    assert_eq!(messages.iter().filter(|line| *line == "STOPPING=1").count(), 1, "{messages:?}");
    assert_eq!(messages.last().map(String::as_str), Some("STATUS=stopping"));
}
