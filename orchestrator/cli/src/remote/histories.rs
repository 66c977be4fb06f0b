//! Histories of what operators did: a page of facts from the API, newest first.

use clap::Args;
use os_upgrade_api_types::body::Page;
use os_upgrade_api_types::route::Call;
use os_upgrade_console::Row;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::options::Remote;
use crate::Failure;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct PageOptions {
    /// How many to show, newest first
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    pub(super) limit: u32,
    #[command(flatten)]
    pub(super) remote: Remote,
}

/// Requests a page with `call`, and prints it.
pub(crate) async fn show<T: DeserializeOwned + Row>(
    PageOptions { limit, remote }: PageOptions,
    call: Call,
) -> Result<(), Failure> {
    let page = remote.client()?.call(call.with("limit", limit.to_string())).await?;
    remote.output.show::<Page<T>>(&page)?;
    note_older(&page, remote.output);
    Ok(())
}

/// Says that a list does not go back to its beginning, if the API's answer says so.
pub(crate) fn note_older(page: &Value, output: Output) {
    if page["next"].is_string() {
        output.aside("there are older ones: a larger --limit shows them, of 500 at most");
    }
}
