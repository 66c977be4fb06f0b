//! `os-upgrade hosts uncordon`: the Kubernetes node of a host that failed.

use clap::Args;
use os_upgrade_api_types::body::HostWithReason;
use os_upgrade_api_types::routes::hosts as routes;
use os_upgrade_protocol::HostName;

use crate::Failure;
use crate::remote::completion;
use crate::remote::options::Remote;

#[derive(Debug, Args)]
pub(crate) struct Uncordon {
    /// The host
    #[arg(value_name = "NAME", add = completion::hosts())]
    host: HostName,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    remote: Remote,
}

/// Has the node of a host that failed uncordoned.
pub(super) async fn uncordon(Uncordon { host, reason, remote }: Uncordon) -> Result<(), Failure> {
    let body = HostWithReason { host: host.clone(), reason };
    remote.client()?.call_with_body(&routes::UNCORDON, &body).await?;
    // The cluster may take its time, or not answer.
    remote.output.done("being uncordoned", &[host.as_str()])
}
