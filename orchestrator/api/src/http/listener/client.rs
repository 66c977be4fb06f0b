//! Who counts as one client where connections, places and tokens are shared.

use std::net::{IpAddr, Ipv6Addr};

/// Who shares one allowance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Client {
    /// Everybody on this machine: whoever may run a program on it has all addresses of loopback.
    Local,
    /// An IPv4 address, or a network of 64 bits of IPv6.
    Address(IpAddr),
    /// Everybody who is not told apart.
    Others,
}

impl Client {
    /// The client that `peer` belongs to.
    pub(super) fn of(peer: IpAddr) -> Self {
        let address = peer.to_canonical();
        if address.is_loopback() {
            return Self::Local;
        }
        match address {
            IpAddr::V4(_) => Self::Address(address),
            // Whoever has one IPv6 address has the 2^64 of its network.
            IpAddr::V6(address) => {
                let network = address.to_bits() >> 64 << 64;
                Self::Address(Ipv6Addr::from_bits(network).into())
            }
        }
    }

    /// The same with addresses of loopback for clients elsewhere, all but 127.0.0.1, for tests over real sockets.
    #[cfg(test)]
    pub(super) fn of_loopback(peer: IpAddr) -> Self {
        if peer == IpAddr::from([127, 0, 0, 1]) { Self::Local } else { Self::Address(peer) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_shares_an_allowance() {
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
            // What only looks like loopback.
            ("::127.0.0.1", "::"),
            ("64:ff9b::127.0.0.1", "64:ff9b::"),
        ] {
            let expected = Client::Address(expected.parse().unwrap());
            assert_eq!(Client::of(peer.parse().unwrap()), expected, "{peer}");
        }
    }
}
