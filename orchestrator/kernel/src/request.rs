//! Requests, by family. Each subject has a file `request.rs` with its operations, its refusals and its decision.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::answer::Accepted;
use crate::config::{ConfigOperation, ConfigRefusal};
use crate::desired::{DesiredOperation, DesiredRefusal};
use crate::enrolment::{EnrolmentOperation, EnrolmentRefusal};
use crate::fact::Fact;
use crate::node::{NodeOperation, NodeRefusal};
use crate::pause::{PauseOperation, PauseRefusal};
use crate::reboot_queue::{RebootOperation, RebootRefusal};
use crate::run::{RunOperation, RunRefusal};
use crate::secrets::{SecretOperation, SecretRefusal};
use crate::slot::{Denied, LockOperation, SlotOperation, SlotRefusal};
use crate::state::State;
use crate::unit::{UnitOperation, UnitRefusal};
use crate::view::View;
use crate::{config, desired, enrolment, node, pause, reboot_queue, run, secrets, slot, unit};

/// A request for an operation `O`: of one family, or of any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Request<O = Operation> {
    /// Who makes the request.
    pub actor: String,
    /// Whether to validate only: nothing is changed.
    pub validate: bool,
    /// The requested operation.
    pub operation: O,
}

impl<O> Request<O> {
    /// A request by `actor` to carry out `operation`.
    pub fn new(actor: impl Into<String>, operation: O) -> Self {
        Self { actor: actor.into(), validate: false, operation }
    }
}

impl<O: Family> From<Request<O>> for Request {
    fn from(Request { actor, validate, operation }: Request<O>) -> Self {
        Self { actor, validate, operation: operation.into() }
    }
}

/// The answer to a request.
pub type Answer<R = Refusal> = Result<Accepted, R>;

/// The operations of a family.
pub trait Family: Into<Operation> {
    /// Why they are refused.
    type Refusal: TryFrom<Refusal, Error = Refusal>;
}

macro_rules! families {
    ($(#[doc = $doc:literal] $family:ident($operation:ty) refused as $refusal:ty,)*) => {
        /// An operation that operators or FleetLock clients may request.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Operation {
            $(#[doc = $doc] $family($operation),)*
        }

        /// Why a request is refused.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Refusal {
            $(#[doc = $doc] $family($refusal),)*
        }

        $(
            impl From<$operation> for Operation {
                fn from(operation: $operation) -> Self {
                    Self::$family(operation)
                }
            }

            impl From<$refusal> for Refusal {
                fn from(refusal: $refusal) -> Self {
                    Self::$family(refusal)
                }
            }

            impl TryFrom<Refusal> for $refusal {
                type Error = Refusal;

                fn try_from(refusal: Refusal) -> Result<Self, Refusal> {
                    if let Refusal::$family(refusal) = refusal { Ok(refusal) } else { Err(refusal) }
                }
            }

            impl Family for $operation {
                type Refusal = $refusal;
            }
        )*
    };
}

families! {
    /// About runs.
    Run(RunOperation) refused as RunRefusal,
    /// About the pause of the site.
    Pause(PauseOperation) refused as PauseRefusal,
    /// About the configuration.
    Config(ConfigOperation) refused as ConfigRefusal,
    /// About enrolment: which hosts take part.
    Enrolment(EnrolmentOperation) refused as EnrolmentRefusal,
    /// About what hosts are to have.
    Desired(DesiredOperation) refused as DesiredRefusal,
    /// About slots, by operators.
    Slot(SlotOperation) refused as SlotRefusal,
    /// About slots, by external FleetLock clients.
    Lock(LockOperation) refused as Denied,
    /// About the reboot queue.
    Reboot(RebootOperation) refused as RebootRefusal,
    /// About the Kubernetes nodes of hosts.
    Node(NodeOperation) refused as NodeRefusal,
    /// About secrets.
    Secret(SecretOperation) refused as SecretRefusal,
    /// About units.
    Unit(UnitOperation) refused as UnitRefusal,
}

/// The facts of a request and the answer to it. A request that is only validated is decided like any other, without
/// its facts.
pub(crate) fn decide(
    state: &State,
    view: &View,
    request: &Request,
    now: DateTime<Utc>,
) -> (Vec<Fact>, Answer) {
    let actor = request.actor.as_str();
    let decided = match &request.operation {
        Operation::Run(operation) => {
            run::request::decide(state, view, operation, actor, now).map_err(Refusal::Run)
        }
        Operation::Pause(operation) => {
            pause::request::decide(state, operation, actor, now).map_err(Refusal::Pause)
        }
        Operation::Config(operation) => {
            config::request::decide(state, view, operation, actor, now).map_err(Refusal::Config)
        }
        Operation::Enrolment(operation) => {
            enrolment::request::decide(state, view, operation, actor, now).map_err(Refusal::Enrolment)
        }
        Operation::Desired(operation) => {
            desired::request::decide(state, view, operation, actor).map_err(Refusal::Desired)
        }
        Operation::Reboot(operation) => {
            reboot_queue::request::decide(state, view, operation, actor).map_err(Refusal::Reboot)
        }
        Operation::Node(operation) => node::request::decide(state, operation, actor).map_err(Refusal::Node),
        Operation::Slot(operation) => {
            slot::request::decide(state, view, operation, actor).map_err(Refusal::Slot)
        }
        Operation::Secret(operation) => {
            secrets::request::decide(state, operation, actor).map_err(Refusal::Secret)
        }
        Operation::Unit(operation) => unit::request::decide(state, operation, actor).map_err(Refusal::Unit),
        Operation::Lock(operation) => {
            let (facts, answer) = slot::lock_clients::decide(state, operation, actor, now);
            return strip_if_validated(request, facts, answer.map_err(Refusal::Lock));
        }
    };
    match decided {
        Ok(granted) => strip_if_validated(request, granted.facts, Ok(granted.accepted)),
        Err(refusal) => (Vec::new(), Err(refusal)),
    }
}

fn strip_if_validated(request: &Request, facts: Vec<Fact>, answer: Answer) -> (Vec<Fact>, Answer) {
    if request.validate { (Vec::new(), answer.map(|_| Accepted::Valid)) } else { (facts, answer) }
}
