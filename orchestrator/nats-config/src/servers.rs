//! Configurations of nats-server, and the addresses of servers.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::str::FromStr;

/// The port for clients, unless another is given.
const CLIENT_PORT: u16 = 4222;
/// The port for the other servers of a cluster, unless another is given.
const CLUSTER_PORT: u16 = 6222;

/// A nats-server: its name or address, and its ports, `HOST[:PORT[:CLUSTER-PORT]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its name or IPv4 address, as clients and the other servers reach it.
    pub host: String,
    /// The port for clients.
    pub client_port: u16,
    /// The port for other servers.
    pub cluster_port: u16,
}

impl FromStr for Server {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || format!("expected HOST, HOST:PORT or HOST:PORT:CLUSTER-PORT, found {text:?}");
        let mut parts = text.split(':');
        let host = parts.next().unwrap_or_default();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
        if host.is_empty() || !host.bytes().all(plain) {
            return Err(wanted());
        }
        let mut port = |initial| match parts.next() {
            None => Ok(initial),
            Some(port) => port.parse().ok().filter(|port| *port != 0).ok_or_else(wanted),
        };
        let (client_port, cluster_port) = (port(CLIENT_PORT)?, port(CLUSTER_PORT)?);
        if parts.next().is_some() {
            return Err(wanted());
        }
        Ok(Self { host: host.to_owned(), client_port, cluster_port })
    }
}

impl Server {
    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("tls://{}:{}", self.host, self.client_port)
    }
}

/// What the servers of a site have in common.
#[derive(Debug)]
pub(super) struct Common<'a> {
    pub(super) servers: &'a [Server],
    /// The address that each server listens on.
    pub(super) listen: IpAddr,
    /// The directory of a server's configuration and certificate on its machine.
    pub(super) etc: &'a Path,
    /// The directory of a server's streams and accounts on its machine.
    pub(super) data: &'a Path,
    pub(super) operator_jwt: &'a str,
    /// The system account: its public key and its JWT.
    pub(super) system: (&'a str, &'a str),
    /// The orchestrators' account: its public key and its JWT.
    pub(super) site: (&'a str, &'a str),
}

impl Common<'_> {
    /// The configuration of one of the servers.
    pub(super) fn configuration(&self, server: &Server) -> String {
        let tls = |more: &str| {
            format!(
                "tls {{\n    cert_file: {}\n    key_file: {}\n    ca_file: {}\n{more}    timeout: 5\n}}",
                quoted(&self.etc.join("server.pem")),
                quoted(&self.etc.join("server.key")),
                quoted(&self.etc.join("ca.pem")),
            )
        };
        let indented = |text: String| text.replace('\n', "\n    ");
        let mut text = format!(
            "# Written by `os-upgrade nats-config`. Needs nats-server 2.11 or newer.\n\n\
             server_name: \"{host}-{port}\"\n\
             listen: \"{listen}\"\n\
             # The address that other servers and clients learn: it must have the name in the certificate.\n\
             client_advertise: \"{host}:{port}\"\n\n\
             # A client that does not respond is disconnected after ping_interval * ping_max.\n\
             ping_interval: \"20s\"\n\
             ping_max: 3\n\n\
             {tls}\n\n\
             jetstream {{\n    \
                 store_dir: {store}\n    \
                 # Acknowledged messages are on disk. The default syncs every two minutes.\n    \
                 sync_interval: always\n    \
                 max_file_store: 10GB\n    \
                 max_memory_store: 256MB\n\
             }}\n\n\
             # Accounts define who may do what: one for the orchestrators, one for each host. They are signed by this\n\
             # operator, and `os-upgrade nats-config push` sends them to running servers.\n\
             operator: \"{operator}\"\n\
             system_account: {system}\n\
             resolver {{\n    type: full\n    dir: {accounts}\n    allow_delete: false\n    interval: \"2m\"\n}}\n\
             resolver_preload {{\n    {system}: \"{system_jwt}\"\n    {site}: \"{site_jwt}\"\n}}\n",
            host = server.host,
            port = server.client_port,
            listen = SocketAddr::new(self.listen, server.client_port),
            tls = tls(""),
            store = quoted(self.data),
            accounts = quoted(&self.data.join("accounts")),
            operator = self.operator_jwt,
            system = self.system.0,
            system_jwt = self.system.1,
            site = self.site.0,
            site_jwt = self.site.1,
        );
        if self.servers.len() > 1 {
            let mut routes = String::new();
            for other in self.servers {
                let _ = writeln!(routes, "        \"nats-route://{}:{}\"", other.host, other.cluster_port);
            }
            let _ = write!(
                text,
                "\ncluster {{\n    name: \"os-upgrade\"\n    listen: \"{}\"\n    advertise: \"{}:{}\"\n    \
                 # Only servers with a certificate of the same authority.\n    {}\n    routes: [\n{routes}    ]\n}}\n",
                SocketAddr::new(self.listen, server.cluster_port),
                server.host,
                server.cluster_port,
                indented(tls("    verify: true\n")),
            );
        }
        text
    }
}

/// `path` as a string of a nats-server configuration.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_parsed() {
        let server = |host: &str, client_port, cluster_port| {
            Ok(Server { host: host.to_owned(), client_port, cluster_port })
        };
        for (text, expected) in [
            ("bus.example", server("bus.example", 4222, 6222)),
            ("10.0.0.1:5", server("10.0.0.1", 5, 6222)),
            ("b:5:6", server("b", 5, 6)),
        ] {
            assert_eq!(text.parse(), expected);
        }
        for wrong in ["", ":4222", "b:", "b:x", "b:0", "b:1:2:3", "a b", "a\"b", "[::1]:4222"] {
            assert!(wrong.parse::<Server>().is_err(), "{wrong}");
        }
    }
}
