//! A TCP proxy that can be cut and healed, like an interrupted network.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::orchestrator::own_address;

const CHUNK_BYTES: usize = 64 * 1_024;

/// The state of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line {
    open: bool,
    /// Connections of an earlier epoch are closed.
    epoch: u64,
}

/// A proxy in front of one address.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    line: watch::Sender<Line>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Starts a proxy to `target`, which need not listen yet.
    pub async fn start(target: SocketAddr) -> Self {
        let address = own_address();
        let listener = TcpListener::bind(address).await.unwrap();
        let line = watch::Sender::new(Line { open: true, epoch: 0 });
        let task = tokio::spawn(serve(listener, target, line.clone()));
        Self { address, line, task }
    }

    /// The address of the proxy.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it has connections.
    pub fn is_in_use(&self) -> bool {
        self.line.receiver_count() > 0
    }

    /// Passes no more data in either direction. Connections stay open.
    pub fn cut(&self) {
        self.line.send_modify(|line| line.open = false);
    }

    /// Passes data again, including what was sent in the meantime.
    pub fn heal(&self) {
        self.line.send_modify(|line| line.open = true);
    }

    /// Passes new connections, and closes the existing ones: data in flight is lost.
    pub fn heal_with_new_connections(&self) {
        self.line.send_modify(|line| *line = Line { open: true, epoch: line.epoch + 1 });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, target: SocketAddr, line: watch::Sender<Line>) {
    // Dropped with this task, and all connections with it.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted.unwrap();
                connections.spawn(connection(stream, target, line.subscribe()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(client: TcpStream, target: SocketAddr, mut line: watch::Receiver<Line>) {
    let epoch = line.borrow().epoch;
    let mut closed = line.clone();
    let pass = async {
        if line.wait_for(|line| line.open).await.is_err() {
            return;
        }
        let Ok(server) = TcpStream::connect(target).await else { return };
        // Proxied messages are small, and batching them would slow the tests down.
        drop((client.set_nodelay(true), server.set_nodelay(true)));
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        // When one direction ends, so does the connection.
        tokio::select! {
            () = pump(from_client, to_server, line.clone()) => {}
            () = pump(from_server, to_client, line.clone()) => {}
        }
    };
    tokio::select! {
        () = pass => {}
        _ = closed.wait_for(|line| line.epoch != epoch) => {}
    }
}

async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut line: watch::Receiver<Line>) {
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(read) = from.read(&mut chunk).await {
        let lost = read == 0 || line.wait_for(|line| line.open).await.is_err();
        if lost || to.write_all(&chunk[..read]).await.is_err() {
            return;
        }
    }
}
