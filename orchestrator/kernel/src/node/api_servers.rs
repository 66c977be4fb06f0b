//! The rule about the API servers of a cluster: one that is under way is so alone.

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

/// What the rule says of draining `host` while `under_way` are; without a host, of any that is no API server.
pub(crate) fn api_server_rule<'a>(
    is_server: impl Fn(&HostName) -> bool,
    under_way: &'a OrdSet<HostName>,
    host: Option<&HostName>,
) -> Option<ApiServerRule<'a>> {
    let server = under_way.iter().find(|other| is_server(other)).map(ApiServerRule::UnderWay);
    let waits = || {
        let other = under_way.get_min().filter(|_| host.is_some_and(&is_server))?;
        Some(ApiServerRule::Waits(other))
    };
    server.or_else(waits)
}
