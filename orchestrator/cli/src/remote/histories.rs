//! Histories of what operators did: a page of facts from the API, newest first.

use anyhow::Context as _;
use clap::Args;
use os_upgrade_api_types::route::Call;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::output::{Output, outln, table};
use crate::rest::{self, Server};

#[derive(Debug, Args)]
pub(crate) struct PageOptions {
    #[command(flatten)]
    server: Server,
    /// How many to show, newest first
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
    /// The output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Page<F> {
    items: Vec<Item<F>>,
}

#[derive(Debug, Deserialize)]
struct Item<F> {
    time: String,
    #[serde(default)]
    actor: String,
    fact: F,
}

/// How facts of one kind are shown in a table, after the columns with their time and actor.
pub(crate) trait Shown: DeserializeOwned {
    /// The heads of its columns.
    const HEADS: &'static [&'static str];
    /// The text that is printed when there are none.
    const NONE: &'static str;

    /// The entries of its columns.
    fn row(&self) -> Vec<String>;
}

/// Requests a page with `call`, and prints it.
pub(crate) async fn show<F: Shown>(options: PageOptions, call: Call) -> anyhow::Result<()> {
    let PageOptions { server, limit, output } = options;
    let page = rest::call(&server, call.with("limit", limit.to_string())).await?;
    match output {
        Output::Json => outln!("{}", serde_json::to_string_pretty(&page)?),
        Output::Text => {
            let page = Page::<F>::deserialize(page).context("unexpected response")?;
            outln!("{}", text(&page));
        }
    }
    Ok(())
}

/// The page as a table.
pub(crate) fn text<F: Shown>(page: &Page<F>) -> String {
    if page.items.is_empty() {
        return F::NONE.to_owned();
    }
    let row = |item: &Item<F>| [vec![item.time.clone(), item.actor.clone()], item.fact.row()].concat();
    let heads = [&["TIME", "WHO"], F::HEADS].concat();
    table(&heads, page.items.iter().map(row).collect()).trim_end().to_owned()
}
