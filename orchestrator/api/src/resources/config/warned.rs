//! Answers to writes of the configuration, with what an operator should know. The kernel finds the warnings; the state is
//! the one that this instance had before the write.

use std::sync::Arc;

use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use chrono::Utc;
use os_upgrade_api_types::body::Stamp;
use os_upgrade_api_types::headers;
use os_upgrade_api_types::routes::config::{NextStarts, Validated};
use os_upgrade_console::describe;
use os_upgrade_kernel::{Config, Warning, next_start, warnings};
use os_upgrade_site::published_state::PublishedState;

use crate::bodies;
use crate::context::Api;
use crate::http::error::Problem;
use crate::http::prefer::{APPLIED, PREFERENCE_APPLIED, Preference};
use crate::http::reply;

/// Longest warning in a header, in bytes; the rest is cut off.
const WARNING_BYTES_MAX: usize = 400;
/// What stands in the place of the rest.
const CUT: &str = "...";

/// Where the warnings are in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerForm {
    /// In headers; the answer has no body.
    Headers,
    Body,
}

impl AnswerForm {
    /// A write that takes effect is answered as specified, whatever the client prefers.
    pub(super) const fn of(validate: bool, preference: Preference) -> Self {
        match (validate, preference) {
            (true, Preference::Representation) => Self::Body,
            (true | false, Preference::Specified) | (false, Preference::Representation) => Self::Headers,
        }
    }
}

/// The answer to a write of `proposed` that was granted with `status`, in the state `before` it; without warnings if that
/// is not known.
pub(super) async fn answer(
    api: &Api,
    before: Option<Arc<PublishedState>>,
    proposed: Option<Config>,
    status: StatusCode,
    form: AnswerForm,
) -> Result<Response, Problem> {
    let (found, next_upgrade_at) = match before {
        Some(before) => find(api, before, proposed.clone()).await?,
        None => (Vec::new(), NextStarts::default()),
    };
    Ok(match form {
        AnswerForm::Headers => {
            let mut response = status.into_response();
            for value in found.iter().filter_map(header) {
                response.headers_mut().append(headers::WARNING, value);
            }
            response
        }
        AnswerForm::Body => {
            let warnings = found.into_iter().map(bodies::warning).collect();
            let mut response =
                reply::json(&Validated { configuration: proposed.as_ref(), warnings, next_upgrade_at })?;
            response.headers_mut().insert(PREFERENCE_APPLIED, APPLIED);
            response
        }
    })
}

/// The warnings, and when runs start before and after, found off the runtime's threads, which also drive the run: windows
/// may take long to search.
async fn find(
    api: &Api,
    before: Arc<PublishedState>,
    proposed: Option<Config>,
) -> Result<(Vec<Warning>, NextStarts), Problem> {
    let permit = Arc::clone(&api.renders).acquire_owned().await;
    let found = tokio::task::spawn_blocking(move || {
        let (state, view, now) = (&before.state, &before.view, Utc::now());
        let found = warnings(state, view, proposed.as_ref(), now);
        let next = |config: Option<&Config>| next_start(state, view, config, now).map(Stamp);
        let next = NextStarts { before: next(state.config.as_deref()), after: next(proposed.as_ref()) };
        drop(permit);
        (found, next)
    });
    found.await.map_err(|error| Problem::internal(error.to_string()))
}

/// A warning as the value of a header: printable ASCII, of bounded length. Operators choose names of applications, which
/// may have any characters.
fn header(warning: &Warning) -> Option<HeaderValue> {
    let mut text = String::new();
    for character in describe(warning).to_string().chars() {
        let safe: String = match character {
            ' '..='~' => character.into(),
            other => other.escape_unicode().collect(),
        };
        if text.len() + safe.len() > WARNING_BYTES_MAX - CUT.len() {
            text.push_str(CUT);
            break;
        }
        text.push_str(&safe);
    }
    HeaderValue::try_from(text).ok()
}

#[cfg(test)]
mod tests {
    use os_upgrade_protocol::ApplicationName;

    use super::*;

    #[test]
    fn headers_are_short_and_in_ascii() {
        let shown = |name: &str| {
            let application = ApplicationName::new(name).unwrap();
            header(&Warning::NotAnnounced { application }).unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(shown("os-upgrade-debain"), "no host announces os-upgrade-debain");
        assert_eq!(shown("löv"), "no host announces l\\u{f6}v");
        let long = shown(&"ö".repeat(127));
        assert!(long.len() <= WARNING_BYTES_MAX && long.ends_with("}..."), "{long}");
    }
}
