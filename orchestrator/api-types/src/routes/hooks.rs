//! `/v1/hooks/callback`: providers of kind `hooks` say that hosts are to have something else. An extension of the specification.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::openapi::schema::ArrayBuilder;
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::route::{Access, Answer, Method, Route, Shape, Tag, with_own};
use crate::text::CallBackRefusalWord;
use crate::word::{CallBackRefusal, Word};

/// All requests below this path are answered in the dialect of call-backs.
pub const PREFIX: &str = "/v1/hooks";

/// The path of call-backs below [`PREFIX`].
pub const BELOW_PREFIX: &str = "/callback";

/// The path of call-backs: that of `callback_endpoint`, which providers are sent.
pub const PATH: &str = "/v1/hooks/callback";

/// 202 once it is durable which hosts the provider is asked about again. A member that cannot be accepted spoils no other one: it is named
/// in the answer, which is 202 even if it names all of them.
pub const CALL_BACK: Route<ConfigUpdates> = Route::new(
    Method::Post,
    PATH,
    Access::CallBack,
    Tag::Configuration,
    "call-back",
    "Say, as a provider of kind `hooks`, that the configuration of hosts is to be asked for again",
)
.description(
    "The provider is told of `ON_DEVICE_SPEC_UPDATE` for each accepted host, whether or not it is told of that event otherwise. Members and \
     hosts that are not accepted are named, and the status is 202 all the same: sending them again would bring nothing.",
)
.body::<ConfigUpdates>(|| {
    json!([{
        "event": "ON_CONFIG_UPDATE",
        "event_uuid": "6f1c3d4e-7a0b-4a55-9f0e-2b8f3a1c5d77",
        "config_name": "app",
        "device_names": ["h01", "h99"],
    }])
})
.answers(&[
    Answer::accepted("what is asked for again, and what is not", Shape::of::<CallBackAnswer<'static>>(), || {
        json!({
            "accepted": [{"config-name": "app", "device-names": ["h01"]}],
            "refused": [{
                "member": 0,
                "device-name": "h99",
                "reason": "unknown-device",
                "detail": "provider app has no such device",
            }],
        })
    }),
    Answer::new(404, "the provider was removed meanwhile"),
    Answer::new(409, "the provider has become one of another kind meanwhile"),
    Answer::new(
        429,
        "too many requests come from this address, or too many call-backs from this provider; try again after `Retry-After`",
    ),
]);

/// What a provider says: the shape of the body.
#[derive(Debug)]
pub struct ConfigUpdates;

impl PartialSchema for ConfigUpdates {
    fn schema() -> RefOr<Schema> {
        let updates = ArrayBuilder::new().items(Ref::from_schema_name(ConfigUpdate::name()));
        updates.description(Some("What a provider says, in any order.")).into()
    }
}

impl ToSchema for ConfigUpdates {
    fn name() -> Cow<'static, str> {
        "ConfigUpdates".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        with_own::<ConfigUpdate>(schemas);
    }
}

/// That the configuration of devices, which are hosts, has changed. Unknown fields are ignored, and so is an `event_uuid`.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ConfigUpdate {
    /// `ON_CONFIG_UPDATE`.
    pub event: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_uuid: Option<String>,
    /// The name of the provider itself; `config-name` and `config_-_name` are read as well.
    pub config_name: String,
    /// The hosts.
    pub device_names: Vec<String>,
}

/// What became of a call-back.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct CallBackAnswer<'a> {
    /// What the provider is asked for again.
    pub accepted: Vec<AcceptedUpdate<'a>>,
    /// What it is not.
    pub refused: Vec<RefusedUpdate<'a>>,
}

/// The hosts about which a provider is asked again.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct AcceptedUpdate<'a> {
    /// The name of the provider.
    pub config_name: Cow<'a, str>,
    /// The hosts, by name, each of them once.
    pub device_names: Vec<Cow<'a, str>>,
}

/// A member that is refused, or one of its hosts.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RefusedUpdate<'a> {
    /// The place of the member in the body, from 0.
    pub member: usize,
    /// The host; absent if the whole member is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_name: Option<Cow<'a, str>>,
    #[schema(value_type = CallBackRefusalWord)]
    pub reason: Word<CallBackRefusal>,
    /// The sentence.
    pub detail: Cow<'a, str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_below_the_prefix() {
        assert_eq!(PATH, format!("{PREFIX}{BELOW_PREFIX}"));
    }
}
