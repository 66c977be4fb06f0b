//! What is answered to a request that is refused: a status, and an error entity `{"error":{"code":400,"message":"..."}}`.

use std::fmt;

use os_upgrade_scheduler::{RequirementsError, UnitName, UnitNameError};
use serde::{Deserialize, Serialize};

use crate::fleet::contents::ContentsError;
use crate::fleet::media_type::MediaTypeError;
use crate::fleet::page_token::PageTokenError;
use crate::fleet::request_body::RequestBodyError;
use crate::fleet::version::Version;
use crate::route::Method;

/// The body of every answer that refuses something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The error entity.
    pub error: ErrorEntity,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorEntity {
    /// The status of the answer.
    pub code: u16,
    /// The sentence.
    pub message: String,
}

/// Methods in a sentence: `GET, PUT and DELETE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Methods(pub Vec<Method>);

impl fmt::Display for Methods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, method) in self.0.iter().enumerate() {
            let before = match index {
                0 => "",
                _ if index + 1 == self.0.len() => " and ",
                _ => ", ",
            };
            write!(f, "{before}{}", method.as_str())?;
        }
        Ok(())
    }
}

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The page token is not one that this API gives.
    #[error("invalid value of nextPageToken query parameter: {0}")]
    PageToken(PageTokenError),
    /// The media type is another one.
    #[error("{0}")]
    MediaType(MediaTypeError),
    /// The body cannot be read.
    #[error("{0}")]
    RequestBody(RequestBodyError),
    /// No unit can have this name.
    #[error("{0}")]
    Name(UnitNameError),
    /// In v1: the body names another unit than the URL.
    #[error("the URL names the unit {url:?}, and the body {body:?}")]
    NamesDiffer {
        /// The name in the URL, or its beginning.
        url: String,
        /// The name in the body, or its beginning.
        body: String,
    },
    /// The contents are no unit file.
    #[error("{0}")]
    Contents(ContentsError),
    /// The unit asks for what cannot be.
    #[error("{0}")]
    Requirements(Box<RequirementsError>),
    /// Somebody wants to load or launch a template.
    #[error("cannot activate template {name:?}", name = .0.as_str())]
    TemplateActivated(UnitName),
    /// A new unit needs contents.
    #[error("unit does not exist and {} empty", .0.contents_field())]
    NoContents(Version),
    /// In v1-alpha: the unit has other contents than the request expects.
    #[error("the unit has other contents than fileContents")]
    ContentsDiffer,
    /// In v1: the unit exists, and the request neither has other options nor names a state.
    #[error("must provide desiredState to update existing unit")]
    NoDesiredState,
    /// There is no such unit.
    #[error("unit does not exist")]
    UnknownUnit,
    /// In v1: nothing is known of the unit on any machine.
    #[error("unit state does not exist")]
    UnknownState,
    /// There is nothing at this path.
    #[error("nothing exists at {path}")]
    UnknownPath {
        /// The path.
        path: String,
    },
    /// What is at this path knows other methods only.
    #[error("only {0} can be used here")]
    MethodNotAllowed(Methods),
    /// The discovery document can be read only. Fleet answers 400 there, and 405 everywhere else.
    #[error("the discovery document can only be read, with GET")]
    DiscoveryIsReadOnly,
    /// The site has no place for another unit, or for one of this size.
    #[error("{0}")]
    NoPlace(String),
    /// What all dialects refuse with the same sentence: missing rights, too many requests, an instance that cannot answer.
    #[error("{message}")]
    Other {
        /// The status, from 400 to 599.
        status: u16,
        /// The sentence.
        message: String,
    },
}

impl FleetError {
    /// The status of the answer.
    pub const fn status(&self) -> u16 {
        match self {
            Self::RequestBody(RequestBodyError::TooLarge) | Self::NoPlace(_) => 413,
            Self::Contents(error) if error.is_too_large() => 413,
            Self::PageToken(_)
            | Self::RequestBody(RequestBodyError::Json(_))
            | Self::Name(_)
            | Self::NamesDiffer { .. }
            | Self::Contents(_)
            | Self::Requirements(_)
            | Self::TemplateActivated(_)
            | Self::DiscoveryIsReadOnly => 400,
            Self::UnknownUnit | Self::UnknownState | Self::UnknownPath { .. } => 404,
            Self::MethodNotAllowed(_) => 405,
            Self::NoContents(_) | Self::ContentsDiffer | Self::NoDesiredState => 409,
            Self::MediaType(_) => 415,
            Self::Other { status, .. } => *status,
        }
    }

    /// The body of the answer.
    pub fn body(&self) -> ErrorBody {
        ErrorBody { error: ErrorEntity { code: self.status(), message: self.to_string() } }
    }
}

macro_rules! from_errors {
    ($($error:ty => $variant:ident),+ $(,)?) => {
        $(impl From<$error> for FleetError {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        })+
    };
}

from_errors!(
    PageTokenError => PageToken,
    MediaTypeError => MediaType,
    RequestBodyError => RequestBody,
    UnitNameError => Name,
    ContentsError => Contents,
);

impl From<RequirementsError> for FleetError {
    fn from(error: RequirementsError) -> Self {
        Self::Requirements(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_are_entities() {
        let error = FleetError::from(PageTokenError::Empty);
        let message = "invalid value of nextPageToken query parameter: it is empty";
        let body = json!({"error": {"code": 400, "message": message}});
        assert_eq!(serde_json::to_value(error.body()).unwrap(), body);
        assert_eq!(serde_json::from_value::<ErrorBody>(body).unwrap(), error.body());
    }

    #[test]
    fn every_refusal_has_status_and_sentence() {
        let methods = |methods: &[Method]| FleetError::MethodNotAllowed(Methods(methods.to_vec()));
        let template = UnitName::new("a@.service").unwrap();
        for (error, status, message) in [
            (FleetError::UnknownUnit, 404, "unit does not exist"),
            (FleetError::UnknownState, 404, "unit state does not exist"),
            (
                FleetError::UnknownPath { path: "/v1-alpha/x".to_owned() },
                404,
                "nothing exists at /v1-alpha/x",
            ),
            (methods(&[Method::Get]), 405, "only GET can be used here"),
            (
                methods(&[Method::Get, Method::Put, Method::Delete]),
                405,
                "only GET, PUT and DELETE can be used here",
            ),
            (FleetError::DiscoveryIsReadOnly, 400, "the discovery document can only be read, with GET"),
            (FleetError::NoContents(Version::V1), 409, "unit does not exist and options field empty"),
            (
                FleetError::NoContents(Version::V1Alpha),
                409,
                "unit does not exist and fileContents field empty",
            ),
            (FleetError::ContentsDiffer, 409, "the unit has other contents than fileContents"),
            (FleetError::NoDesiredState, 409, "must provide desiredState to update existing unit"),
            (FleetError::TemplateActivated(template), 400, "cannot activate template \"a@.service\""),
            (FleetError::NoPlace("there is no place for it".to_owned()), 413, "there is no place for it"),
            (FleetError::RequestBody(RequestBodyError::TooLarge), 413, "the body exceeds 1048576 bytes"),
            (
                FleetError::MediaType(MediaTypeError::Missing),
                415,
                "the Content-Type must be application/json, and there is none",
            ),
            (FleetError::Other { status: 503, message: "no leader".to_owned() }, 503, "no leader"),
        ] {
            assert_eq!((error.status(), error.to_string()), (status, message.to_owned()));
        }
    }
}
