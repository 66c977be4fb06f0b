//! PUT and DELETE of a unit. The kernel decides what follows, and the answer comes once that is durable.

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use os_upgrade_api_types::fleet::destroy::{DESTROYED, Destroy};
use os_upgrade_api_types::fleet::error::FleetError;
use os_upgrade_api_types::fleet::put::{self, Put};
use os_upgrade_api_types::fleet::version::Version;
use os_upgrade_api_types::route::Dialect;
use os_upgrade_auth::Caller;
use os_upgrade_console::describe;
use os_upgrade_kernel::{self as kernel, Accepted, UnitOperation, UnitRefusal};
use os_upgrade_scheduler::UnitFile;

use super::path::unit_name;
use crate::context::Api;
use crate::http::error::Problem;
use crate::http::extract;

/// A request that may change something, whose caller was admitted.
struct Change {
    actor: String,
    name: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Change {
    async fn read(request: Request) -> Result<Self, Problem> {
        let caller = request.extensions().get::<Caller>();
        let caller = caller.ok_or_else(|| Problem::internal("a write without a caller"))?;
        let (actor, name, headers) =
            (caller.actor.clone(), unit_name(request.uri()), request.headers().clone());
        let body = extract::bytes_in(Dialect::Fleet, request, &()).await?;
        Ok(Self { actor, name, headers, body })
    }

    fn content_types(&self) -> impl Iterator<Item = &[u8]> {
        self.headers.get_all(CONTENT_TYPE).iter().map(HeaderValue::as_bytes)
    }
}

/// Creates a unit, or changes it.
pub(super) async fn put(api: &Api, version: Version, request: Request) -> Result<Response, Problem> {
    let change = Change::read(request).await?;
    let put = Put::read(version, &change.name, change.content_types(), &change.body)?;
    let Put { name, desired, contents } = put;
    let contents = contents.as_ref().map(text);
    let replaces = version == Version::V1;
    let operation = UnitOperation::Put { name, contents, desired, replaces };
    let is_new = match request_change(api, change.actor, operation).await? {
        Ok(accepted) => accepted == Accepted::Created,
        // The unit is there, as the request has it. The document knows no refusal of that.
        Err(UnitRefusal::NoState { .. }) if version == Version::V1Alpha => false,
        Err(refusal) => return Err(refused(version, refusal).into()),
    };
    without_body(put::status(version, is_new))
}

/// Destroys a unit.
pub(super) async fn destroy(api: &Api, version: Version, request: Request) -> Result<Response, Problem> {
    let change = Change::read(request).await?;
    let destroy = Destroy::read(version, &change.name, change.content_types(), &change.body)?;
    let Destroy { name, expected } = destroy;
    let operation = UnitOperation::Destroy { name, expected: expected.as_ref().map(text) };
    let destroyed = request_change(api, change.actor, operation).await?;
    destroyed.map_err(|refusal| refused(version, refusal))?;
    without_body(DESTROYED)
}

fn text(file: &UnitFile) -> String {
    file.text().to_owned()
}

/// The kernel's answer, once it is durable.
async fn request_change(
    api: &Api,
    actor: String,
    operation: UnitOperation,
) -> Result<Result<Accepted, UnitRefusal>, Problem> {
    Ok(api.site.request(kernel::Request::new(actor, operation)).await?)
}

fn without_body(status: u16) -> Result<Response, Problem> {
    let status = StatusCode::from_u16(status).map_err(|error| Problem::internal(error.to_string()))?;
    Ok(status.into_response())
}

/// What a request in this dialect is answered that the kernel refuses. Files were read before: the kernel refuses one only if its instance is
/// of another version.
fn refused(version: Version, refusal: UnitRefusal) -> FleetError {
    match refusal {
        UnitRefusal::UnknownUnit { .. } => FleetError::UnknownUnit,
        UnitRefusal::NoContents { .. } => FleetError::NoContents(version),
        UnitRefusal::OtherContents { .. } => FleetError::ContentsDiffer,
        UnitRefusal::NoState { .. } => FleetError::NoDesiredState,
        UnitRefusal::ActivatesTemplate { unit } => FleetError::TemplateActivated(unit),
        UnitRefusal::BadFile { unit: _, error } | UnitRefusal::BadRequirements { unit: _, error } => {
            FleetError::Other { status: StatusCode::BAD_REQUEST.as_u16(), message: error }
        }
        UnitRefusal::TooManyUnits { .. } | UnitRefusal::TooManyBytes { .. } => {
            FleetError::NoPlace(describe(&refusal).to_string())
        }
    }
}
