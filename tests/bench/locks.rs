//! FleetLock under load: clients on connections that stay open, each taking and giving back slots under fresh ids.
//!
//! The clients write and read HTTP by hand, so that on a machine they share with the server they cost as little as can
//! be. The floor of a slot taken or given back is what a server that journals every request by itself could do at most:
//! as many publishers, each waiting for the acknowledgement of one message before it sends the next. The floor of a
//! refusal is one without a crowd: nothing waits for a disk there.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use async_nats::jetstream::{self, stream};
use futures::future::try_join_all;
use hdrhistogram::Histogram;
use os_upgrade_platform::managed_nats;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::workers::context;

/// The group whose slots are taken and given back.
pub(crate) const GROUP: &str = "bench";
/// Its slots: more than workers.
pub(crate) const SLOTS: u32 = 1_000;
/// The group whose only slot many clients want.
pub(crate) const CROWDED: &str = "crowded";
/// The group whose only slot few clients want.
pub(crate) const QUIET: &str = "quiet";

const LOCK: &str = "/v1/pre-reboot";
const UNLOCK: &str = "/v1/steady-state";
/// Most bytes of an answer.
const ANSWER_MAX: usize = 16 * 1_024;
/// Connections over which refused clients ask.
const REFUSED_AT_ONCE: usize = 32;
/// The floor's stream, and its subject.
const JOURNAL: &str = "floor-journal";
/// About what a granted slot takes in the journal.
const FLOOR_PAYLOAD: &[u8] = &[b'x'; 160];

/// How fast requests were answered.
#[derive(Debug)]
pub(crate) struct Load {
    /// Requests a second.
    pub(crate) rate: f64,
    /// The time within which 99 of 100 were answered.
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
                    let status = client.ask(path, GROUP, &id).await?;
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

    /// `publishers` append for `time`, each with one message on its way at a time.
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

/// Takes the only slot of `group`, from then on to be refused to everybody else.
pub(crate) async fn hold(server: SocketAddr, group: &str) -> anyhow::Result<()> {
    let status = Client::connect(server).await?.ask(LOCK, group, "holder").await?;
    ensure!(status == 200, "the holder was answered {status}");
    Ok(())
}

/// `clients` ask for a slot of `group`, `requests` times in all, on few connections, and are refused.
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
            let status = client.ask(LOCK, group, &format!("waiter-{waiter}")).await?;
            ensure!(status == 409, "waiter {waiter} was answered {status}");
            times.record(u64::try_from(asked.elapsed().as_micros())?)?;
        }
        anyhow::Ok(times)
    });
    let parts = try_join_all(work).await?;
    load(parts, begun.elapsed())
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

/// A connection that stays open.
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

    /// Asks, and returns the answer's status.
    async fn ask(&mut self, path: &str, group: &str, id: &str) -> anyhow::Result<u16> {
        use std::io::Write as _;
        let length = r#"{"client_params":{"id":"","group":""}}"#.len() + id.len() + group.len();
        self.request.clear();
        write!(
            self.request,
            "POST {path} HTTP/1.1\r\nhost: bench\r\nfleet-lock-protocol: true\r\ncontent-length: {length}\r\n\r\n\
             {{\"client_params\":{{\"id\":\"{id}\",\"group\":\"{group}\"}}}}"
        )?;
        self.stream.write_all(&self.request).await?;
        self.answer.clear();
        loop {
            let read = self.stream.read_buf(&mut self.answer).await?;
            ensure!(read > 0, "the server closed the connection");
            if let Some(status) = whole(&self.answer)? {
                return Ok(status);
            }
            ensure!(self.answer.len() < ANSWER_MAX, "an answer without end");
        }
    }
}

/// The status, when all of the answer is there.
fn whole(answer: &[u8]) -> anyhow::Result<Option<u16>> {
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
