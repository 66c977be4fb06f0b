//! FleetLock under load: clients with persistent connections, which take and release slots, each time with a new id.
//!
//! The clients speak HTTP without a library, so that they take as little as possible of the machine that they share with the
//! server. The floor of taking and releasing slots is the most that a server could do which journals each request alone:
//! as many publishers, each waiting for the acknowledgement of one message before it sends the next. The floor of a refusal
//! is one without a crowd, which waits for no disk.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use async_nats::jetstream::{self, stream};
use futures::future::try_join_all;
use hdrhistogram::Histogram;
use os_upgrade_platform::managed_nats;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::workers::context;

/// The group whose slots are taken and released.
pub(crate) const GROUP: &str = "bench";
/// Its number of slots, more than clients.
pub(crate) const SLOTS: u32 = 1_000;
/// The group with many clients for its only slot.
pub(crate) const CROWDED: &str = "crowded";
/// The group with few clients for its only slot.
pub(crate) const QUIET: &str = "quiet";

const LOCK: &str = "/v1/pre-reboot";
const UNLOCK: &str = "/v1/steady-state";
/// Maximum size of an answer in bytes.
const ANSWER_MAX: usize = 16 * 1_024;
/// Number of connections of the refused clients.
const REFUSED_AT_ONCE: usize = 32;
/// The floor's stream, and its subject.
const JOURNAL: &str = "floor-journal";
/// The size of a granted slot in the journal, about, in bytes.
const FLOOR_PAYLOAD: &[u8] = &[b'x'; 160];

/// The speed of answers.
#[derive(Debug)]
pub(crate) struct Load {
    /// Requests a second.
    pub(crate) rate: f64,
    /// The 99th percentile of the answer times.
    pub(crate) p99: Duration,
}

/// `workers` clients lock and unlock for `time`. Every answer has to be 200.
pub(crate) async fn lock_and_unlock(
    server: SocketAddr,
    workers: usize,
    time: Duration,
) -> anyhow::Result<Load> {
    let begun = Instant::now();
    let work = (0..workers).map(|worker| async move {
        tokio::spawn(async move {
            let mut client = Client::connect(server).await?;
            let mut times = Histogram::<u64>::new(3)?;
            let mut round = 0_u64;
            while begun.elapsed() < time {
                let id = format!("{}-{worker}-{round}", begun.elapsed().as_nanos());
                for path in [LOCK, UNLOCK] {
                    let asked = Instant::now();
                    let status = client.send(path, GROUP, &id).await?;
                    ensure!(status == 200, "{path} for {id} was answered {status}");
                    times.record(u64::try_from(asked.elapsed().as_micros())?)?;
                }
                round += 1;
            }
            anyhow::Ok(times)
        })
        .await?
    });
    let parts = try_join_all(work).await?;
    load(parts, begun.elapsed())
}

/// The floor: a stream to which publishers append, with the same durability.
#[derive(Debug)]
pub(crate) struct Journal {
    jetstream: jetstream::Context,
}

impl Journal {
    pub(crate) async fn new(nats: &str) -> anyhow::Result<Self> {
        let jetstream = context(managed_nats::connect(nats).await?);
        let stream = stream::Config {
            name: JOURNAL.to_owned(),
            subjects: vec![JOURNAL.to_owned()],
            storage: stream::StorageType::File,
            ..stream::Config::default()
        };
        jetstream.create_stream(stream).await?;
        Ok(Self { jetstream })
    }

    /// `publishers` append for `time`, each with one unacknowledged message at a time.
    pub(crate) async fn append(&self, publishers: usize, time: Duration) -> anyhow::Result<Load> {
        let begun = Instant::now();
        let work = (0..publishers).map(|_| async move {
            let mut times = Histogram::<u64>::new(3)?;
            while begun.elapsed() < time {
                let asked = Instant::now();
                self.jetstream.publish(JOURNAL, FLOOR_PAYLOAD.into()).await?.await?;
                times.record(u64::try_from(asked.elapsed().as_micros())?)?;
            }
            anyhow::Ok(times)
        });
        let parts = try_join_all(work).await?;
        load(parts, begun.elapsed())
    }
}

/// Takes the only slot of `group`, so that all other clients are refused.
pub(crate) async fn hold(server: SocketAddr, group: &str) -> anyhow::Result<()> {
    let status = Client::connect(server).await?.send(LOCK, group, "holder").await?;
    ensure!(status == 200, "the holder was answered {status}");
    Ok(())
}

/// `clients` request a slot of `group`, `requests` times in total over few connections, and are refused.
pub(crate) async fn refused(
    server: SocketAddr,
    group: &str,
    clients: usize,
    requests: usize,
) -> anyhow::Result<Load> {
    let begun = Instant::now();
    let work = (0..REFUSED_AT_ONCE).map(|first| async move {
        let mut client = Client::connect(server).await?;
        let mut times = Histogram::<u64>::new(3)?;
        for number in (first..requests).step_by(REFUSED_AT_ONCE) {
            let asked = Instant::now();
            let waiter = number % clients;
            let status = client.send(LOCK, group, &format!("waiter-{waiter}")).await?;
            ensure!(status == 409, "waiter {waiter} was answered {status}");
            times.record(u64::try_from(asked.elapsed().as_micros())?)?;
        }
        anyhow::Ok(times)
    });
    let parts = try_join_all(work).await?;
    load(parts, begun.elapsed())
}

/// Clients that wait for the only slot of [`CROWDED`], which is held: they ask for it again and again, as Zincati does, each
/// over a new connection. Dropping them ends them.
#[derive(Debug)]
pub(crate) struct Waiting {
    clients: JoinSet<anyhow::Result<()>>,
}

impl Waiting {
    /// `clients` clients, each of which asks once in `interval`.
    pub(crate) fn start(server: SocketAddr, clients: usize, interval: Duration) -> Self {
        Self { clients: (0..clients).map(|client| wait_for_slot(server, client, interval)).collect() }
    }

    /// Fails if a client was granted the slot.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        self.clients.try_join_next().map_or(Ok(()), |ended| ended?)
    }
}

async fn wait_for_slot(server: SocketAddr, client: usize, interval: Duration) -> anyhow::Result<()> {
    let id = format!("waiter-{client}");
    let mut due = tokio::time::interval(interval);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        due.tick().await;
        // While nobody leads, there are other answers than a refusal, or none.
        let Ok(mut connection) = Client::connect(server).await else { continue };
        let status = connection.send(LOCK, CROWDED, &id).await.ok();
        ensure!(status != Some(200), "{id} was granted a slot that is held");
    }
}

fn load(parts: Vec<Histogram<u64>>, took: Duration) -> anyhow::Result<Load> {
    let mut times = Histogram::<u64>::new(3)?;
    for part in parts {
        times.add(part)?;
    }
    let requests = u32::try_from(times.len())?;
    let p99 = Duration::from_micros(times.value_at_quantile(0.99));
    Ok(Load { rate: f64::from(requests) / took.as_secs_f64(), p99 })
}

/// A persistent connection.
struct Client {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Client {
    async fn connect(server: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, request: Vec::new(), answer: Vec::new() })
    }

    /// Sends a request, and returns the answer's status.
    async fn send(&mut self, path: &str, group: &str, id: &str) -> anyhow::Result<u16> {
        use std::io::Write as _;
        let length = r#"{"client_params":{"id":"","group":""}}"#.len() + id.len() + group.len();
        self.request.clear();
        write!(
            self.request,
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nfleet-lock-protocol: true\r\ncontent-length: {length}\r\n\r\n\
             {{\"client_params\":{{\"id\":\"{id}\",\"group\":\"{group}\"}}}}"
        )?;
        self.stream.write_all(&self.request).await?;
        self.answer.clear();
        loop {
            let read = self.stream.read_buf(&mut self.answer).await?;
            ensure!(read > 0, "the server closed the connection");
            if let Some(status) = complete_status(&self.answer)? {
                return Ok(status);
            }
            ensure!(self.answer.len() < ANSWER_MAX, "an answer without end");
        }
    }
}

/// The status, once the answer is complete.
fn complete_status(answer: &[u8]) -> anyhow::Result<Option<u16>> {
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&answer[..end])?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).context("no status")?.parse()?;
    let length = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let Some((_, length)) = length else { bail!("an answer without a length: {head}") };
    let length: usize = length.trim().parse()?;
    Ok((answer.len() >= end + 4 + length).then_some(status))
}
