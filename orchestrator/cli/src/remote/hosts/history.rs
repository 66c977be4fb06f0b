//! `hosts history`: the part of a host in each run, or what operators decided about hosts.

use clap::Args;
use os_upgrade_api_types::body::Page;
use os_upgrade_api_types::routes::hosts as routes;
use os_upgrade_api_types::routes::{run_hosts, runs};
use os_upgrade_console::rows::histories::HostChange;
use os_upgrade_console::rows::run_hosts::PartInRun;
use os_upgrade_protocol::HostName;
use serde_json::{Value, json};

use crate::Failure;
use crate::remote::completion;
use crate::remote::histories::{self, PageOptions, note_older};
use crate::remote::hosts::selection::note_unknown;

#[derive(Debug, Args)]
pub(crate) struct History {
    /// The host
    #[arg(value_name = "NAME", add = completion::hosts())]
    host: Option<HostName>,
    #[command(flatten)]
    page: PageOptions,
}

/// Shows the history.
pub(super) async fn show(History { host, page }: History) -> Result<(), Failure> {
    let Some(host) = host else {
        return histories::show::<HostChange>(page, routes::HISTORY.call()).await;
    };
    let PageOptions { limit, remote } = page;
    let client = remote.client()?;
    let call = runs::LIST.call().with("host", host.as_str()).with("limit", limit.to_string());
    let listed: Page<Value> = client.read(call).await?;
    let mut items = Vec::new();
    for run in listed.items {
        let id = run["id"].as_str().unwrap_or_default();
        let part = client.call(run_hosts::READ.named([id, host.as_str()])).await?;
        items.push(json!({ "run": run, "host": part }));
    }
    let mut answer = json!({ "items": items });
    if let Some(next) = listed.next {
        answer["next"] = json!(next);
    }
    remote.output.show::<Page<PartInRun>>(&answer)?;
    note_older(&answer, remote.output);
    if answer["items"].as_array().is_some_and(Vec::is_empty) {
        note_unknown(&client, &host, remote.output).await;
    }
    Ok(())
}
