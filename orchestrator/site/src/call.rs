//! A request on its way to the node, with the way back of its outcome.

use os_upgrade_kernel::Request;
use os_upgrade_shell::forward::Outcome;
use tokio::sync::oneshot;

/// A request on its way to the node.
#[derive(Debug)]
pub struct Call {
    /// What is asked.
    pub request: Request,
    /// Where a follower passes the request on: the revision of the lease at which it saw this process lead.
    pub forwarded_at: Option<u64>,
    /// Where the outcome goes.
    pub answer: oneshot::Sender<Outcome>,
}

impl Call {
    /// A call, and where its outcome will be.
    pub fn new(request: Request, forwarded_at: Option<u64>) -> (Self, oneshot::Receiver<Outcome>) {
        let (answer, outcome) = oneshot::channel();
        (Self { request, forwarded_at, answer }, outcome)
    }
}
