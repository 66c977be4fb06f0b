//! The rule about the API servers of a cluster: while one is under way, no other node may be.

use imbl::OrdSet;
use os_upgrade_protocol::HostName;

/// Why a node must not be drained now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApiServerRule<'a> {
    /// This API server is under way.
    UnderWay(&'a HostName),
    /// It is an API server, and this node is under way.
    Waits(&'a HostName),
}

/// The API server that is under way.
pub(crate) fn server_under_way(
    is_server: impl Fn(&HostName) -> bool,
    under_way: &OrdSet<HostName>,
) -> Option<&HostName> {
    under_way.iter().find(|host| is_server(host))
}

/// What the rule says of draining the node of `host` while `under_way` are.
pub(crate) fn api_server_rule<'a>(
    is_server: impl Fn(&HostName) -> bool,
    under_way: &'a OrdSet<HostName>,
    host: &HostName,
) -> Option<ApiServerRule<'a>> {
    if let Some(server) = server_under_way(&is_server, under_way) {
        return Some(ApiServerRule::UnderWay(server));
    }
    under_way.get_min().filter(|_| is_server(host)).map(ApiServerRule::Waits)
}
