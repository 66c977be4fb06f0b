//! What counts as one client when connections, permits and tokens are shared out.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::fleet_socket::LocalUser;

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    /// A client that connects from this address.
    Address(SocketAddr),
    /// A program on this machine, at the Unix socket.
    User(LocalUser),
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            Self::User(user) => write!(f, "{user}"),
        }
    }
}

/// A client: one share of connections, permits and tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Client {
    /// Every program on this machine, because each can use all loopback addresses, and perhaps the Unix socket.
    Local,
    /// An IPv4 address, or an IPv6 network of 64 bits.
    Address(IpAddr),
    /// All clients beyond those that are tracked individually.
    Others,
}

impl Client {
    /// The client that `peer` belongs to.
    pub(super) fn of(peer: IpAddr) -> Self {
        let address = peer.to_canonical();
        if address.is_loopback() {
            return Self::Local;
        }
        Self::Address(network(address))
    }

    /// As [`Self::of`], but loopback addresses other than 127.0.0.1 are separate clients. For tests over real sockets.
    #[cfg(test)]
    pub(super) fn of_loopback(peer: IpAddr) -> Self {
        if peer == IpAddr::from([127, 0, 0, 1]) { Self::Local } else { Self::Address(peer) }
    }
}

/// The address of `peer`, or its IPv6 network of 64 bits: a host with one address of it can use all 2^64.
pub(super) fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_map_to_clients() {
        for local in
            ["127.0.0.1", "127.0.0.2", "127.255.255.254", "::1", "::ffff:127.0.0.1", "::ffff:127.9.0.1"]
        {
            assert_eq!(Client::of(local.parse().unwrap()), Client::Local, "{local}");
        }
        for (peer, expected) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("::2", "::"),
            // IPv6 addresses that only look like loopback.
            ("::127.0.0.1", "::"),
            ("64:ff9b::127.0.0.1", "64:ff9b::"),
        ] {
            let expected = Client::Address(expected.parse().unwrap());
            assert_eq!(Client::of(peer.parse().unwrap()), expected, "{peer}");
        }
    }
}
