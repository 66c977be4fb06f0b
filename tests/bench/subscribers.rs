//! Clients that follow the events of an instance, as fast as they come. What they would do with the events is not its cost, so
//! the kernel discards the bytes: clients elsewhere take no time of its machine.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd as _;

use anyhow::{Context as _, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use nix::sys::socket::{MsgFlags, recv};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Interest};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::instance::Instance;

/// How many of them share an address; an instance allows 64.
const OF_ADDRESS: usize = 60;
/// How many connect at once.
const CONNECT_AT_ONCE: usize = 50;
/// How much is discarded at once, in bytes.
const DISCARDED_MAX: usize = 1024 * 1024;

/// Clients that follow events until this is dropped.
#[derive(Debug)]
pub(crate) struct Subscribers(JoinSet<io::Result<()>>);

impl Subscribers {
    /// Connects `count` clients to `instance`, each once it has received where its stream begins.
    pub(crate) async fn connect(instance: &Instance, count: usize) -> anyhow::Result<Self> {
        let streams: Vec<TcpStream> = futures::stream::iter(0..count)
            .map(async |number| {
                let address = Ipv4Addr::new(127, 0, 0, u8::try_from(2 + number / OF_ADDRESS)?);
                follow(address, instance.address()).await.context("cannot follow the events")
            })
            .buffer_unordered(CONNECT_AT_ONCE)
            .try_collect()
            .await?;
        Ok(Self(streams.into_iter().map(discard).collect()))
    }

    /// Whether all of them still follow.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        ensure!(self.0.try_join_next().is_none(), "a stream of events has ended");
        Ok(())
    }
}

/// Asks for the events, and reads up to where the stream begins.
async fn follow(from: Ipv4Addr, to: SocketAddr) -> anyhow::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((from, 0).into())?;
    let mut stream = BufReader::new(socket.connect(to).await?);
    let request = format!(
        "GET /v1/state/os-upgrade/events HTTP/1.1\r\nHost: {to}\r\nAccept: text/event-stream\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut lines = (&mut stream).lines();
    let status = lines.next_line().await?.unwrap_or_default();
    ensure!(status.contains(" 200 "), "the answer is {status:?}");
    while !lines.next_line().await?.context("the stream has ended")?.starts_with("id: ") {}
    Ok(stream.into_inner())
}

/// Returns when the stream ends.
async fn discard(stream: TcpStream) -> io::Result<()> {
    // Nothing is written there, so it takes no memory.
    let mut unused = vec![0; DISCARDED_MAX];
    loop {
        stream.readable().await?;
        let received = stream
            .try_io(Interest::READABLE, || Ok(recv(stream.as_raw_fd(), &mut unused, MsgFlags::MSG_TRUNC)?));
        match received {
            Ok(0) => return Ok(()),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
}
