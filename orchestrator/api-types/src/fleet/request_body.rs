//! Reading the bodies of requests. A body is a partial entity, so fields without a meaning for the request are ignored.

use os_upgrade_protocol::json;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::route::Dialect;

/// Largest body of a request, in bytes. The options of a unit of 64 KiB may take fifteen times as much in JSON.
pub const REQUEST_BYTES_MAX: usize = Dialect::Fleet.body_bytes_max();

/// Why a body is not what the request needs.
#[derive(Debug, thiserror::Error)]
pub enum RequestBodyError {
    /// It is larger than a body may be.
    #[error("the body exceeds {REQUEST_BYTES_MAX} bytes")]
    TooLarge,
    /// It is not JSON of this shape.
    #[error("the body cannot be read: {0}")]
    Json(serde_json::Error),
}

/// Reads a JSON object.
///
/// # Errors
/// It is too large, or not JSON of this shape.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, RequestBodyError> {
    if body.len() > REQUEST_BYTES_MAX {
        return Err(RequestBodyError::TooLarge);
    }
    json::object(body).map_err(RequestBodyError::Json)
}

/// Fields without a meaning. Flattening this also keeps serde from accepting a list of the fields in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Others {}
