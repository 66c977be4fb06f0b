//! A request on its way to the instance, with the channel for its outcome.

use os_upgrade_kernel::Request;
use os_upgrade_shell::forward::Outcome;
use tokio::sync::oneshot;

/// A request on its way to the instance.
#[derive(Debug)]
pub struct Call {
    pub request: Request,
    /// The lease revision at which a follower saw this process lead; `None` if the request was not forwarded.
    pub forwarded_at: Option<u64>,
    /// The channel for the outcome.
    pub answer: oneshot::Sender<Outcome>,
}

impl Call {
    /// A call, and the receiver of its outcome.
    pub fn new(request: Request, forwarded_at: Option<u64>) -> (Self, oneshot::Receiver<Outcome>) {
        let (answer, outcome) = oneshot::channel();
        (Self { request, forwarded_at, answer }, outcome)
    }
}
