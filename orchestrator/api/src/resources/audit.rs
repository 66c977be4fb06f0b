//! Audit lists, newest first, read from the projection.

use axum::response::Response;
use os_upgrade_api_types::body::{Count, Entry, Page};
use os_upgrade_api_types::query::{ListMode, ListQuery};
use os_upgrade_kernel::FactCursor;
use os_upgrade_store::{Audit, FactPage, FactRow};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::Api;
use crate::http::error::Problem;
use crate::http::reply;

/// The result of reading an audit.
pub(crate) enum AuditResult {
    /// How many facts there are.
    Count(u64),
    /// A page of them, or of their keys.
    Page(FactPage, ListMode),
}

impl AuditResult {
    /// Reads the audit, once the history has caught up with the current state.
    pub(crate) async fn read(api: &Api, audit: Audit, query: ListQuery<FactCursor>) -> Result<Self, Problem> {
        let history = api.history().await;
        match query.mode {
            ListMode::Count => Ok(Self::Count(history.count_audit(audit).await?)),
            ListMode::Entries | ListMode::Keys => {
                Ok(Self::Page(history.audit(audit, query.limit, query.after).await?, query.mode))
            }
        }
    }

    /// The facts of the page.
    pub(crate) fn rows(&mut self) -> &mut [FactRow] {
        match self {
            Self::Count(_) => &mut [],
            Self::Page(page, _) => &mut page.items,
        }
    }

    /// The answer, with each fact converted by `item`.
    pub(crate) fn answer<'a, T: Serialize>(
        &'a self,
        item: impl Fn(&'a FactRow) -> Result<T, Problem>,
    ) -> Result<Response, Problem> {
        match self {
            Self::Count(count) => reply::json(&Count { count: *count }),
            Self::Page(page, mode) => {
                let shown = |fact| {
                    let whole = item(fact)?;
                    Ok(Entry::of(*mode, || fact.cursor().to_string(), || whole))
                };
                let items = page.items.iter().map(shown).collect::<Result<_, Problem>>()?;
                reply::json(&Page { items, next: page.next.map(|next| next.to_string()) })
            }
        }
    }
}

/// Deserializes the content of a fact.
pub(crate) fn read<T: DeserializeOwned>(fact: &FactRow) -> Result<T, Problem> {
    serde_json::from_str(fact.fact.get()).map_err(|error| {
        Problem::internal(format!("fact {} of the store cannot be read: {error}", fact.cursor()))
    })
}
