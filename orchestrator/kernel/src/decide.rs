//! Decisions: what follows from an input, given the state.
//!
//! Each subject decides what is asked of it, in its folder. [`STEPS`] has what follows from the state itself. A decision is a list
//! of facts; each applies to the state after the facts before it.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{HostName, Revision, RunId};
use os_upgrade_provider_rules::ProviderName;
use os_upgrade_provider_rules::hooks::HookEvent;

use crate::config::Settings;
use crate::control::{self, ControlMessage};
use crate::desired::{AnsweredEvent, StoredItem};
use crate::fact::{ConfigFact, Fact};
use crate::job::{self, JobDone};
use crate::request::{self, Answer, Request};
use crate::start::{self, BlockedStart};
use crate::state::State;
use crate::unit::{UnitFact, UnitOperation, UnitRefusal};
use crate::view::View;
use crate::{desired, enrolment, node, pause, reboot_queue, run, slot, unit};

/// Looks whether something follows from the state, from time, or from what is seen; `None` if nothing does.
type Step = fn(&State, &View, DateTime<Utc>) -> Option<Vec<Fact>>;

/// What follows from the state itself, in order: the first step from which something follows is taken, and this repeats until
/// nothing follows from any.
const STEPS: [Step; 18] = [
    pause::end,
    enrolment::end_deferrals,
    // A run whose last reply is read after its deadline is complete all the same.
    run::finish,
    run::expire,
    run::time_out_replies,
    run::stop,
    run::leave_out_late,
    run::begin_upgrades,
    run::prepare_next,
    run::leave_out_unconfigured,
    node::time_out_drains,
    reboot_queue::cancel_unneeded,
    reboot_queue::remove_cancelled,
    reboot_queue::begin,
    reboot_queue::advance_attempts,
    slot::admit,
    slot::release_unsent,
    slot::release_again,
];

/// Something that may lead to facts.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A request, whose sender waits for an [`Answer`].
    Request(Request),
    /// A message of the control stream, in order.
    Control {
        sequence: u64,
        /// Its content.
        message: ControlMessage,
    },
    /// A job in a system outside of the bus has finished.
    JobDone(JobDone),
    /// A command of an ended run, or of a host that was given up, was deleted, or found to be already delivered to a
    /// worker.
    Retracted {
        /// The host it was sent to.
        host: HostName,
        /// The command's sequence in the control stream.
        sequence: u64,
        /// Whether it was deleted.
        deleted: bool,
    },
    /// What was stored of a removed host has been deleted.
    Purged {
        host: HostName,
        /// The sequence of its last announcement before it was removed.
        announced: u64,
    },
    /// A provider gave something for a host, which is sealed and stored.
    ItemStored { host: HostName, provider: ProviderName, item: StoredItem },
    /// A provider has nothing for a host any more.
    ItemRevoked { host: HostName, provider: ProviderName },
    /// The manifest of a host is stored, and what it no longer names is deleted.
    ManifestStored { host: HostName, revision: Revision },
    /// The leader drew a token with which a provider may call back.
    HookTokenDrawn {
        provider: ProviderName,
        /// The token's SHA-256, in hex.
        digest: String,
    },
    /// A provider has answered to an event of a host, and what follows from the answer for the host has been decided.
    HookAnswered {
        provider: ProviderName,
        host: HostName,
        event: HookEvent,
        /// Why it was told of the event.
        cause: u64,
        /// The digest of the host's metadata that it was told.
        metadata: u64,
        /// How often it wants to be asked, in seconds; absent if it has not said that.
        poll_interval: Option<u64>,
    },
    /// A leadership has begun.
    LeadershipBegan,
    /// This leader's fence has been stored.
    FenceStored {
        /// Its sequence in the control stream.
        sequence: u64,
        /// The leading instance.
        leader: String,
    },
    /// This leader's own settings.
    Settings(Settings),
    /// A run may be due to start automatically.
    Due {
        /// The id that the run gets if it starts.
        run: RunId,
    },
    /// Runs may have been missed.
    Missed {
        /// What this leader last saw a run blocked by.
        blocked: Option<BlockedStart>,
    },
    /// The nodes of the cluster have been listed, and the view has them.
    NodesSeen,
    /// Nothing but time has passed, or the view has changed.
    Tick,
}

/// What follows from an input.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decision {
    /// What becomes true, in order.
    pub facts: Vec<Fact>,
    /// What the requester is answered once the facts are durable; for requests only.
    pub answer: Option<Answer>,
}

impl Decision {
    fn facts(facts: Vec<Fact>) -> Self {
        Self { facts, answer: None }
    }
}

/// Decides `input` at `now`: the facts that follow from the input, then those that follow from the resulting state.
pub fn decide(state: &State, view: &View, input: &Input, now: DateTime<Utc>) -> Decision {
    decide_on(&mut state.clone(), state, view, input, now)
}

/// Like [`decide`], and folds the facts into `state`, which is ahead of the `committed` one, to which the view belongs.
pub(crate) fn decide_on(
    state: &mut State,
    committed: &State,
    view: &View,
    input: &Input,
    now: DateTime<Utc>,
) -> Decision {
    let mut facts = match input {
        // These apply to the site as it is at `now`: a run past its deadline is no longer active.
        Input::Request(_) | Input::Due { .. } => settle(state, view, now),
        Input::Control { .. }
        | Input::JobDone(_)
        | Input::Retracted { .. }
        | Input::Purged { .. }
        | Input::ItemStored { .. }
        | Input::ItemRevoked { .. }
        | Input::ManifestStored { .. }
        | Input::HookTokenDrawn { .. }
        | Input::HookAnswered { .. }
        | Input::LeadershipBegan
        | Input::FenceStored { .. }
        | Input::Settings(_)
        | Input::Missed { .. }
        | Input::NodesSeen
        | Input::Tick => Vec::new(),
    };
    let reaction = react(state, committed, view, input, now);
    fold(state, now, &reaction.facts);
    facts.extend(reaction.facts);
    facts.extend(settle(state, view, now));
    Decision { facts, answer: reaction.answer }
}

/// Takes every step that follows from `state`, and folds its facts into it.
fn settle(state: &mut State, view: &View, now: DateTime<Utc>) -> Vec<Fact> {
    let mut settled = Vec::new();
    loop {
        let facts = STEPS.iter().find_map(|step| step(state, view, now)).unwrap_or_default();
        if facts.is_empty() {
            return settled;
        }
        fold(state, now, &facts);
        settled.extend(facts);
    }
}

/// What follows for units and machines at a tick, each step on the state after those before it. These are none of [`STEPS`]: placing looks at
/// every unit and every machine, and once a second is often enough.
fn settle_units(state: &State, committed: &State, view: &View, now: DateTime<Utc>) -> Vec<Fact> {
    type UnitStep<'a> = &'a dyn Fn(&State) -> Vec<Fact>;
    let mut state = state.clone();
    let mut settled = Vec::new();
    let steps: [UnitStep<'_>; 4] = [
        &|state| unit::join_first(state, view),
        &|state| unit::judge_machines(state, committed, view),
        &|state| unit::find_stopped(state, view),
        &|state| unit::place(state, view),
    ];
    for step in steps {
        let facts = step(&state);
        fold(&mut state, now, &facts);
        settled.extend(facts);
    }
    settled
}

/// What an operation on units leads to if it is carried out at `now`: its own facts, and what the next tick does with units, these and
/// others. Where a unit has to stop first, it is placed later, which is not shown.
///
/// # Errors
/// The operation is refused.
pub fn dry_run(
    state: &State,
    view: &View,
    operation: &UnitOperation,
    now: DateTime<Utc>,
) -> Result<Vec<UnitFact>, UnitRefusal> {
    let mut facts = unit::request::decide(state, operation, "")?.facts;
    let mut after = state.clone();
    fold(&mut after, now, &facts);
    facts.extend(settle_units(&after, state, view, now));
    let of_unit = |fact| if let Fact::Unit(fact) = fact { Some(fact) } else { None };
    Ok(facts.into_iter().filter_map(of_unit).collect())
}

fn fold(state: &mut State, now: DateTime<Utc>, facts: &[Fact]) {
    for fact in facts {
        state.apply(now, fact).expect("a decided fact applies to the state it was decided on");
    }
}

fn react(state: &State, committed: &State, view: &View, input: &Input, now: DateTime<Utc>) -> Decision {
    match input {
        Input::Request(request) => {
            let (facts, answer) = request::decide(state, view, request, now);
            Decision { facts, answer: Some(answer) }
        }
        Input::Control { sequence, .. } if *sequence <= state.control => Decision::default(),
        Input::Control { sequence, message } => {
            Decision::facts(control::messages::decide(state, *sequence, message, now))
        }
        Input::JobDone(done) => Decision::facts(done.decide(state, view, now)),
        Input::Retracted { host, sequence, deleted } => {
            Decision::facts(control::retracted(state, host, *sequence, *deleted))
        }
        Input::Purged { host, announced } => Decision::facts(enrolment::purged(state, host, *announced)),
        Input::ItemStored { host, provider, item } => {
            Decision::facts(desired::item_stored(state, host, provider, item))
        }
        Input::ItemRevoked { host, provider } => {
            Decision::facts(desired::item_revoked(state, host, provider))
        }
        Input::ManifestStored { host, revision } => {
            Decision::facts(desired::manifest_stored(state, host, *revision))
        }
        Input::HookTokenDrawn { provider, digest } => {
            Decision::facts(desired::hook_token_drawn(state, provider, digest))
        }
        Input::HookAnswered { provider, host, event, cause, metadata, poll_interval } => {
            let answered = AnsweredEvent {
                event: *event,
                cause: *cause,
                metadata: *metadata,
                poll_interval: *poll_interval,
            };
            Decision::facts(desired::hook_answered(state, provider, host, answered))
        }
        Input::LeadershipBegan => Decision::facts(job::leadership_began(state)),
        Input::FenceStored { sequence, leader } => {
            Decision::facts(control::fence_stored(state, *sequence, leader))
        }
        Input::Settings(settings) if *settings == *state.settings => Decision::default(),
        Input::Settings(settings) => {
            Decision::facts(vec![Fact::Config(ConfigFact::SettingsAdopted { settings: settings.clone() })])
        }
        Input::Due { run } => Decision::facts(start::due(state, view, run, now)),
        Input::Missed { blocked } => {
            Decision::facts(start::record_missed(state, view, blocked.as_ref(), now))
        }
        Input::NodesSeen => Decision::facts(node::sweep(state, view)),
        Input::Tick => {
            let mut facts = start::leave_out_unreachable(state, view);
            facts.extend(enrolment::pin_first(state, view));
            facts.extend(desired::steps::find_unknown(state, view));
            facts.extend(desired::steps::judge_providers(state, view));
            facts.extend(desired::steps::find_changed_metadata(state, view, now));
            facts.extend(reboot_queue::queue_required(state, view, now));
            facts.extend(settle_units(state, committed, view, now));
            Decision::facts(facts)
        }
    }
}
