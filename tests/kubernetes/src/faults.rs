//! Faults that a test switches on.

use std::time::Duration;

use serde_json::json;

use crate::access::Call;
use crate::failure::Failure;

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is refused with this status and an error that blames the server.
    Status(u16),
    /// An admission policy of the cluster refuses it.
    DeniedByPolicy,
    /// An admission plugin of the server refuses it.
    DeniedByPlugin,
    /// It is throttled, which is told in plain text.
    Throttled,
    /// It is refused as if the object had been modified.
    Conflict,
    /// It is carried out this much later, and not at all if the client has gone by then.
    Slow(Duration),
    /// It is carried out at once and answered this much later.
    LateAnswer(Duration),
    /// The connection ends before it is carried out.
    CutBefore,
    /// The connection ends after it is carried out, without an answer.
    CutAfter,
    /// The answer has a resource version that the object had once, or never.
    WrongVersion,
}

impl Fault {
    /// The answer, if the fault is one.
    pub(crate) fn failure(self, call: &Call) -> Option<Failure> {
        match self {
            Self::Status(code) => {
                let message =
                    format!("Internal error occurred: {} of {} fails", call.verb, call.full_resource());
                let reason = match code {
                    403 => "Forbidden",
                    503 => "ServiceUnavailable",
                    _ => "InternalError",
                };
                Some(Failure::new(code, reason, message))
            }
            Self::DeniedByPolicy => {
                let cause = json!({ "causes": [{ "message": "not on Fridays" }] });
                Some(denied(call).details(cause))
            }
            Self::DeniedByPlugin => Some(denied(call)),
            Self::Throttled => Some(Failure::throttled()),
            Self::Conflict => {
                let message = "Operation cannot be fulfilled: the object has been modified; please apply your changes \
                               to the latest version and try again";
                Some(Failure::new(409, "Conflict", message))
            }
            Self::Slow(_) | Self::LateAnswer(_) | Self::CutBefore | Self::CutAfter | Self::WrongVersion => {
                None
            }
        }
    }
}

fn denied(call: &Call) -> Failure {
    let name = call.name.as_deref().unwrap_or_default();
    let message = format!("{} \"{name}\" is forbidden: not on Fridays", call.resource);
    Failure::new(403, "Forbidden", message).details(json!({ "name": name, "kind": call.resource }))
}

#[derive(Debug)]
struct Planned {
    fault: Fault,
    verb: String,
    resource: String,
    left: usize,
}

/// The faults to come.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Planned>);

impl Faults {
    /// Plans a fault for the next calls of this verb and resource (as in `pods/eviction`); `*` stands for any.
    pub(crate) fn plan(&mut self, fault: Fault, verb: &str, resource: &str, times: usize) {
        let planned = Planned { fault, verb: verb.to_owned(), resource: resource.to_owned(), left: times };
        self.0.push(planned);
    }

    /// Forgets those to come.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The fault of a call, which counts as one time.
    pub(crate) fn take(&mut self, call: &Call) -> Option<Fault> {
        let is_meant = |asked: &str, actual: &str| asked == "*" || asked == actual;
        let planned = self.0.iter_mut().find(|planned| {
            planned.left > 0
                && is_meant(&planned.verb, call.verb)
                && is_meant(&planned.resource, &call.full_resource())
        })?;
        planned.left = planned.left.saturating_sub(1);
        Some(planned.fault)
    }
}
