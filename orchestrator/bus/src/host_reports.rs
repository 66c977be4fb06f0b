//! What hosts have reported over time, read from the streams that keep it.

use std::convert::Infallible;
use std::fmt::Display;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{RawMessageErrorKind, Stream};
use bytes::Bytes;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::{HostName, Output, header as header_name, subject};
use os_upgrade_site::host_reports::{KeepsReports, ReportsError, ReportsRead, Stored};

use super::streams::StreamsError;
use super::{Bus, PendingBus, header};

/// How long reading the reports of a host may take.
const READ_WITHIN: Duration = Duration::from_secs(5);
/// The most reports of a kind that are read for a host. More than the streams keep, because a host may publish meanwhile.
const REPORTS_MAX: usize = 80;

impl Bus {
    /// The messages on `subject` in the stream that `find` finds that are reports, oldest first; none if there is no such stream.
    async fn reports<T, E: Display>(
        &self,
        find: impl Future<Output = Result<Option<Stream>, StreamsError>>,
        subject: &str,
        parse: impl Fn(&StreamMessage) -> Result<T, E>,
    ) -> Result<Vec<Stored<T>>, ReportsError> {
        if self.client.connection_state() != State::Connected {
            return Err(ReportsError("NATS is unreachable".to_owned()));
        }
        let read = tokio::time::timeout(READ_WITHIN, read_all(find, subject, parse));
        read.await.unwrap_or_else(|_| Err(ReportsError("NATS does not answer".to_owned())))
    }
}

async fn read_all<T, E: Display>(
    find: impl Future<Output = Result<Option<Stream>, StreamsError>>,
    subject: &str,
    parse: impl Fn(&StreamMessage) -> Result<T, E>,
) -> Result<Vec<Stored<T>>, ReportsError> {
    let failed = |error: &dyn std::error::Error| ReportsError(with_causes(error));
    let Some(stream) = find.await.map_err(|error| failed(&error))? else { return Ok(Vec::new()) };
    let mut reports = Vec::new();
    let mut from = 1;
    for _ in 0..REPORTS_MAX {
        let message = match stream.get_first_raw_message_by_subject(subject, from).await {
            Ok(message) => message,
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => break,
            Err(error) => return Err(failed(&error)),
        };
        from = message.sequence + 1;
        match parse(&message) {
            Ok(report) => reports.push(Stored { report, at: message.time }),
            Err(error) => tracing::debug!(subject, sequence = message.sequence, "not a report: {error}"),
        }
    }
    Ok(reports)
}

/// The reports in the streams.
#[derive(Debug)]
pub struct StreamedReports(pub PendingBus);

impl StreamedReports {
    fn bus(&self) -> Result<&Bus, ReportsError> {
        self.0.get().ok_or_else(|| ReportsError("NATS is not connected yet".to_owned()))
    }
}

impl KeepsReports for StreamedReports {
    fn outputs<'a>(&'a self, host: &'a HostName) -> ReportsRead<'a, Output> {
        Box::pin(async move {
            let parse = |message: &StreamMessage| {
                Output::parse(host, header(&message.headers, header_name::COMMAND_ID), &message.payload)
            };
            let (bus, config) = (self.bus()?, os_upgrade_jetstream::output_stream());
            bus.reports(bus.find_checked(&config), &subject::output(host), parse).await
        })
    }

    fn versions<'a>(&'a self, host: &'a HostName) -> ReportsRead<'a, Bytes> {
        Box::pin(async move {
            let parse = |message: &StreamMessage| Ok::<_, Infallible>(message.payload.clone());
            let bus = self.bus()?;
            bus.reports(bus.find_stream(subject::VERSIONS_STREAM), &subject::versions(host), parse).await
        })
    }
}
