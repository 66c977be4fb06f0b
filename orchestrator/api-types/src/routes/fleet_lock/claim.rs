//! The body of a FleetLock request.

use os_upgrade_kernel::{ClientId, ClientIdError};
use os_upgrade_protocol::{GroupName, NameError, json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::route::Dialect;
use crate::text::{ClientText, GroupText};

/// Largest body of a request, in bytes.
pub const REQUEST_BYTES_MAX: usize = Dialect::FleetLock.body_bytes_max();

/// A request to take or release a slot of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The group.
    pub group: GroupName,
    /// The client that holds or takes the slot.
    pub id: ClientId,
}

/// Why a body is not a claim.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// It is too large.
    #[error("the body exceeds {REQUEST_BYTES_MAX} bytes")]
    TooLarge,
    /// It is not JSON of the protocol's shape.
    #[error("the body is not {{\"client_params\": {{\"id\": \"...\", \"group\": \"...\"}}}}: {0}")]
    Body(serde_json::Error),
    /// The id is invalid.
    #[error("client_params.id: {0}")]
    Id(ClientIdError),
    /// The group is invalid.
    #[error("client_params.group: {0}")]
    Group(NameError),
}

/// A request to take or release a slot. Unknown fields are ignored.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ClaimBody {
    client_params: ClientParams,
    #[serde(flatten)]
    #[schema(ignore)]
    more: More,
}

/// The client, and the group of its slot.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
struct ClientParams {
    #[schema(value_type = ClientText)]
    id: String,
    #[schema(value_type = GroupText)]
    group: String,
    #[serde(flatten)]
    #[schema(ignore)]
    more: More,
}

/// Unknown fields, which are ignored. Flattening this also keeps serde from accepting a list of the fields in order.
#[derive(Debug, Serialize, Deserialize)]
struct More {}

impl ClaimBody {
    /// The body of a request about the slot of `id` in `group`.
    pub fn new(id: impl Into<String>, group: impl Into<String>) -> Self {
        let client_params = ClientParams { id: id.into(), group: group.into(), more: More {} };
        Self { client_params, more: More {} }
    }
}

impl Claim {
    /// Reads a claim from a request's body.
    ///
    /// # Errors
    /// It is too large, not JSON of the protocol's shape, or has an invalid id or group.
    pub fn parse(body: &[u8]) -> Result<Self, ClaimError> {
        if body.len() > REQUEST_BYTES_MAX {
            return Err(ClaimError::TooLarge);
        }
        let ClaimBody { client_params: ClientParams { id, group, .. }, .. } =
            json::object(body).map_err(ClaimError::Body)?;
        let id = ClientId::new(&id).map_err(ClaimError::Id)?;
        let group = GroupName::new(&group).map_err(ClaimError::Group)?;
        Ok(Self { group, id })
    }

    /// The body of a request that makes this claim.
    pub fn to_body(&self) -> Vec<u8> {
        let body = ClaimBody::new(self.id.as_str(), self.group.as_str());
        serde_json::to_vec(&body).expect("a claim has string keys and no fallible part")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> Result<(String, String), String> {
        let claim = Claim::parse(body.as_bytes()).map_err(|error| error.to_string())?;
        assert_eq!(Claim::parse(&claim.to_body()).unwrap(), claim);
        Ok((claim.group.to_string(), claim.id.to_string()))
    }

    #[test]
    fn claims_of_clients_are_parsed() {
        let expected = Ok(("workers".to_owned(), "c988".to_owned()));
        for body in [
            r#"{"client_params":{"group":"workers","id":"c988"}}"#,
            "{\n  \"client_params\": {\n    \"id\": \"c988\",\n    \"group\": \"workers\"\n  }\n}\n",
            r#"{"v":[1,{}],"client_params":{"id":"c988","group":"workers","node":{"id":7}}}"#,
        ] {
            assert_eq!(parse(body), expected, "{body}");
        }
        let claim = Claim { group: GroupName::new("a").unwrap(), id: ClientId::new("b").unwrap() };
        assert_eq!(claim.to_body(), br#"{"client_params":{"id":"b","group":"a"}}"#);
    }

    #[test]
    fn malformed_claims_are_refused() {
        let shape = r#"the body is not {"client_params": {"id": "...", "group": "..."}}: "#;
        for (body, error) in [
            ("", "EOF while parsing a value at line 1 column 0"),
            ("{}", "missing field `client_params` at line 1 column 2"),
            (r#"[["a","b"]]"#, "an object is expected, not a list"),
            (
                r#"{"client_params":["a","b"]}"#,
                "invalid type: sequence, expected struct ClientParams at line 1 column 17",
            ),
            (
                r#"{"client_params":{"id":7,"group":"a"}}"#,
                "invalid type: integer `7`, expected a string at line 1 column 24",
            ),
            (r#"{"client_params":{"id":"a"}}"#, "missing field `group` at line 1 column 27"),
            (
                r#"{"client_params":{"id":"a","id":"b","group":"a"}}"#,
                "duplicate field `id` at line 1 column 31",
            ),
            (r#"{"client_params":{"id":"a","group":"a"}} x"#, "trailing characters at line 1 column 42"),
        ] {
            assert_eq!(parse(body), Err(format!("{shape}{error}")), "{body}");
        }
        for (id, group, error) in [
            ("", "a", "client_params.id: an id must not be empty"),
            ("a\\n", "a", "client_params.id: an id must not hold control characters"),
            ("a", "", "client_params.group: a name must not be empty"),
            ("a", "a_b", "client_params.group: a group must match ^[a-zA-Z0-9.-]+$"),
        ] {
            let body = format!(r#"{{"client_params":{{"id":"{id}","group":"{group}"}}}}"#);
            assert_eq!(parse(&body), Err(error.to_owned()), "{body}");
        }
        let deep = "[".repeat(REQUEST_BYTES_MAX);
        assert!(parse(&format!(r#"{{"x":{deep}"#)).unwrap_err().starts_with("the body exceeds"));
        assert!(parse(&format!(r#"{{"x":{}"#, &deep[..60_000])).unwrap_err().contains("recursion limit"));
    }
}
