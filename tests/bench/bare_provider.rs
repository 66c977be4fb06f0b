//! The floor of configuration by a provider: the files of the provider, and a bare loop that gets the file of each host, seals it, and
//! publishes it with a manifest. The floor of an unchanged poll is a bare conditional GET.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use async_nats::jetstream::{self, stream};
use futures::{StreamExt as _, TryStreamExt as _};
use harness::file_server::FileServer;
use harness::http;
use os_upgrade_protocol::{HostKey, HostName, Item, ItemId, ItemKind, Manifest, Revision};
use os_upgrade_sealing::SealedFor;
use reqwest::StatusCode;
use reqwest::header::{ETAG, IF_NONE_MATCH};

use crate::cpu_time;
use crate::workers::host;

/// The number of requests at once, of the floor and of the orchestrator: the default of `max-in-flight`.
pub(crate) const IN_FLIGHT: usize = 4;
/// Where the file of a host is.
pub(crate) const PATH: &str = "/{host}/app.conf";
/// The name of the provider, and of what it gives.
pub(crate) const NAME: &str = "app";
/// The content of each file.
const CONTENT: &[u8] = &[b'x'; 1_024];
/// How long the file server takes for an answer. A server that answers at once would never have several requests.
const ANSWER_TIME: Duration = Duration::from_millis(1);
/// The number of manifests on their way at once, as the orchestrator's.
pub(crate) const MANIFESTS_AT_ONCE: usize = 16;
const STREAM: &str = "floor-desired";

/// The bare loop, with a file server of its own.
#[derive(Debug)]
pub(crate) struct BareProvider {
    files: FileServer,
    http: reqwest::Client,
    jetstream: jetstream::Context,
    /// The key of every host.
    key: HostKey,
}

/// A server that has a file for each host.
pub(crate) async fn file_server(hosts: usize) -> FileServer {
    let files = FileServer::start().await;
    files.slow_down(ANSWER_TIME);
    for number in 0..hosts {
        files.put(&path(number), CONTENT);
    }
    files
}

fn path(number: usize) -> String {
    PATH.replace("{host}", host(number).as_str())
}

impl BareProvider {
    pub(crate) async fn start(
        jetstream: jetstream::Context,
        key: HostKey,
        hosts: usize,
    ) -> anyhow::Result<Self> {
        let config = stream::Config {
            name: STREAM.to_owned(),
            subjects: vec![format!("{STREAM}.>")],
            ..os_upgrade_jetstream::desired_stream()
        };
        jetstream.create_stream(config).await.context("the floor's stream cannot be created")?;
        Ok(Self { files: file_server(hosts).await, http: http::builder([]).build()?, jetstream, key })
    }

    /// Publishes an item and a manifest for each of `hosts` hosts. Returns how long that took.
    pub(crate) async fn join(&self, hosts: usize) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        futures::stream::iter(0..hosts)
            .map(|number| self.publish_item(number))
            .buffer_unordered(IN_FLIGHT)
            .map(|item| async move { self.publish_manifest(item?).await })
            .buffer_unordered(MANIFESTS_AT_ONCE)
            .try_collect::<()>()
            .await?;
        Ok(begun.elapsed())
    }

    async fn publish_item(&self, number: usize) -> anyhow::Result<(HostName, Item)> {
        let answer = self.http.get(self.files.url(&path(number))).send().await?;
        let content = answer.error_for_status()?.bytes().await?;
        let (host, kind) = (host(number), ItemKind::Configuration);
        let sealed = Revision { epoch: 0, sequence: u64::try_from(number)? };
        let sealed_for = SealedFor { host: &host, kind, name: NAME, revision: sealed };
        let payload = os_upgrade_sealing::seal(&self.key, &sealed_for, &content)?;
        // As long as an id of the orchestrator.
        let id = ItemId::new(&format!("{number:022}"))?;
        self.publish(format!("{STREAM}.{}.item.{id}", host.token()), payload).await?;
        Ok((host, Item { kind, name: NAME.to_owned(), id, sealed }))
    }

    async fn publish_manifest(&self, (host, item): (HostName, Item)) -> anyhow::Result<()> {
        let manifest = Manifest { site: "floor".to_owned(), revision: item.sealed, items: vec![item] };
        self.publish(format!("{STREAM}.{}.manifest", host.token()), manifest.to_payload()).await
    }

    async fn publish(&self, subject: String, payload: Vec<u8>) -> anyhow::Result<()> {
        self.jetstream.publish(subject, payload.into()).await?.await?;
        Ok(())
    }

    /// Gets the unchanged file of each of `hosts` hosts. Returns the CPU time for each, of the client alone.
    pub(crate) async fn poll(&self, hosts: usize) -> anyhow::Result<Duration> {
        let urls: Vec<String> = (0..hosts).map(|number| self.files.url(&path(number))).collect();
        // In a thread of its own, where the server's work does not count.
        tokio::task::spawn_blocking(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let begun = cpu_time::of_thread()?;
            runtime.block_on(get_unchanged(&urls))?;
            let spent = cpu_time::of_thread()?.saturating_sub(begun);
            anyhow::Ok(spent / u32::try_from(urls.len())?)
        })
        .await?
    }
}

async fn get_unchanged(urls: &[String]) -> anyhow::Result<()> {
    let client = http::builder([]).build()?;
    // All files have the same content.
    let first = client.get(urls.first().context("there are no hosts")?).send().await?;
    let tag = first.headers().get(ETAG).context("a file without an ETag")?;
    futures::stream::iter(urls)
        .map(async |url| {
            let answer = client.get(url).header(IF_NONE_MATCH, tag.clone()).send().await?;
            let status = answer.status();
            ensure!(status == StatusCode::NOT_MODIFIED, "{url} was answered {status}");
            anyhow::Ok(())
        })
        .buffer_unordered(IN_FLIGHT)
        .try_collect::<()>()
        .await
}
