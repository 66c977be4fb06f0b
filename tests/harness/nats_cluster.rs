//! A cluster of three nats-servers of one test. Each pair is connected through a proxy, so that a server can be cut off
//! from the others.

use std::fmt::Write as _;
use std::net::SocketAddr;

use async_nats::jetstream;
use futures::future::join_all;
use nix::sys::signal::Signal;
use os_upgrade_protocol::subject;

use crate::nats_server::NatsServer;
use crate::orchestrator::own_address;
use crate::proxy::Proxy;
use crate::wait::eventually;

/// Number of servers in the cluster.
pub const SERVERS: usize = 3;

/// The cluster.
#[derive(Debug)]
pub struct NatsCluster {
    servers: Vec<NatsServer>,
    /// The proxies from each server to each other.
    routes: Vec<((usize, usize), Proxy)>,
}

impl NatsCluster {
    /// Starts a cluster without streams, and waits until it has a leader.
    pub async fn start() -> Self {
        let listens: Vec<SocketAddr> = (0..SERVERS).map(|_| own_address()).collect();
        let mut routes = Vec::new();
        for from in 0..SERVERS {
            for to in (0..SERVERS).filter(|to| *to != from) {
                routes.push(((from, to), Proxy::start(listens[to]).await));
            }
        }
        let servers = (0..SERVERS).map(|server| {
            let lines = routes.iter().filter(|((from, _), _)| *from == server);
            let mut solicited = String::new();
            for (_, proxy) in lines {
                write!(solicited, "\"nats-route://{}\",", proxy.address()).unwrap();
            }
            // Servers advertise their addresses, which would bypass the proxies: an address without a listener is
            // advertised instead.
            NatsServer::stopped(&format!(
                "server_name: n{server}\ncluster {{ name: site, listen: \"{}\", advertise: \"127.0.0.1:9\", \
                 no_advertise: true, routes: [{solicited}] }}",
                listens[server]
            ))
        });
        let mut cluster = Self { servers: servers.collect(), routes };
        join_all(cluster.servers.iter_mut().map(NatsServer::start_again)).await;
        let jetstream = jetstream::new(cluster.client().await);
        eventually("the cluster to have a leader", async || jetstream.query_account().await.ok()).await;
        cluster
    }

    /// The servers' addresses for clients.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.servers.iter().map(NatsServer::address).collect()
    }

    /// The URLs of all servers, separated by commas.
    pub fn urls(&self) -> String {
        self.servers.iter().map(NatsServer::url).collect::<Vec<_>>().join(",")
    }

    /// A client that connects to any reachable server.
    pub async fn client(&self) -> async_nats::Client {
        let servers: Vec<async_nats::ServerAddr> =
            self.servers.iter().map(|server| server.url().parse().unwrap()).collect();
        let options = async_nats::ConnectOptions::new()
            .max_reconnects(None)
            .ping_interval(std::time::Duration::from_secs(2))
            .reconnect_delay_callback(|_| std::time::Duration::from_millis(100));
        options.connect(servers).await.unwrap()
    }

    /// The server that leads the journal's stream, if one does.
    pub async fn journal_leader(&self, jetstream: &jetstream::Context) -> Option<usize> {
        let stream = jetstream.get_stream(subject::JOURNAL_STREAM).await.ok()?;
        let leader = stream.cached_info().cluster.as_ref()?.leader.clone()?;
        (0..SERVERS).find(|server| leader == format!("n{server}"))
    }

    /// Kills a server.
    pub fn kill(&mut self, server: usize) {
        self.servers[server].kill();
    }

    /// Kills a server, and starts it again with a further line in its configuration.
    pub async fn restart_adding(&mut self, server: usize, line: &str) {
        self.servers[server].restart_adding(line).await;
    }

    /// Starts a killed server.
    pub async fn start_again(&mut self, server: usize) {
        self.servers[server].start_again().await;
    }

    /// Sends a server a signal.
    pub fn signal(&self, server: usize, signal: Signal) {
        self.servers[server].signal(signal);
    }

    /// The proxies between a server and the others.
    pub fn lines(&self, server: usize) -> impl Iterator<Item = &Proxy> {
        let touches = move |pair: &(usize, usize)| pair.0 == server || pair.1 == server;
        self.routes.iter().filter(move |(pair, _)| touches(pair)).map(|(_, proxy)| proxy)
    }
}
