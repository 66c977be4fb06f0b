//! Reads of the state at a steady rate, and their floor: a bare HTTP server that sends the same bytes.

use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::body::Bytes;
use axum::routing;
use hdrhistogram::Histogram;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A client that reads one URL over persistent connections.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    pub(crate) http: reqwest::Client,
    pub(crate) url: String,
}

impl Reader {
    /// Reads it once, completely.
    pub(crate) async fn read(&self) -> anyhow::Result<Bytes> {
        let answer = self.http.get(&self.url).send().await?;
        Ok(answer.error_for_status()?.bytes().await?)
    }

    /// A client of a new server that answers with `bytes` and does nothing else.
    pub(crate) async fn bare(&self, bytes: Bytes) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/", listener.local_addr()?);
        let router = Router::new().route("/", routing::get(move || std::future::ready(bytes.clone())));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { http: self.http.clone(), url })
    }

    /// Reads `per_sec` times a second until `work` is done, at least once. Returns the result of the work, and the 99th
    /// percentile of the reads' answer times. The first read, of somebody who has not read for long, is not measured.
    pub(crate) async fn read_during<T>(
        &self,
        per_sec: u32,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<(T, Duration)> {
        self.read().await?;
        let end = CancellationToken::new();
        let reading = tokio::spawn(self.clone().read_until(per_sec, end.clone()));
        let end = end.drop_guard();
        let result = work.await?;
        drop(end);
        let times = reading.await.context("the reader ended")??;
        Ok((result, Duration::from_micros(times.value_at_quantile(0.99))))
    }

    /// The time of a read that begins late counts from when it was due.
    async fn read_until(self, per_sec: u32, end: CancellationToken) -> anyhow::Result<Histogram<u64>> {
        let mut times = Histogram::new(3)?;
        let mut due = tokio::time::interval(Duration::from_secs(1) / per_sec);
        loop {
            let due = tokio::select! {
                due = due.tick() => due,
                () = end.cancelled(), if !times.is_empty() => return Ok(times),
            };
            self.read().await?;
            times.record(u64::try_from(due.elapsed().as_micros())?)?;
        }
    }
}
