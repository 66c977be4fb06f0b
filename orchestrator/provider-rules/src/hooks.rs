//! Hooks, a protocol that was proposed for flightctl: a provider is told of events of devices, which are hosts here, and answers with
//! their configuration; it may call back when that changes.
//!
//! [`call_body`] writes what a provider is told, [`HookAnswer::interpret`] reads what it answers, and [`read_callback`] reads its
//! call-backs. When to call, and what becomes of a configuration, is up to others.

mod answer;
mod call;
mod callback;
mod configuration;
mod elements;
mod event;
mod given;
mod ignition;
mod member;
mod token;

pub use self::answer::{
    AskedMember, HookAnswer, HookOutcome, HookReply, MemberReply, POLL_INTERVAL_MAX, POLL_INTERVAL_MIN,
};
pub use self::call::{Call, DeviceMetadata, call_body, metadata_digest};
pub use self::callback::{
    CALLBACK_BYTES_MAX, CALLBACK_DEVICES_MAX, CALLBACK_MEMBERS_MAX, CallbackError, ConfigUpdate, UpdateError,
    read_callback,
};
pub use self::configuration::read_configuration;
pub use self::event::{HookEvent, event_uuid};
pub use self::given::{Given, GivenFile};
pub use self::ignition::FILES_MAX;
pub use self::token::{CALLBACK_TOKEN_BYTES, CallbackToken};
