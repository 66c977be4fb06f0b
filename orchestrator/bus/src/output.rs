//! The output of hosts' commands, in a stream of its own. Nothing depends on that stream: it is created again when it is
//! missing, and without it operators see no output.

use std::time::{Duration, Instant};

use async_nats::connection::State;
use async_nats::jetstream::stream::{Config, RawMessageErrorKind};
use os_upgrade_credentials::LogThrottle;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::{HostName, Output, header as header_name, subject};
use os_upgrade_site::outputs::{KeepsOutputs, OutputsError, OutputsRead, StoredOutput};
use tokio_util::sync::CancellationToken;

use super::{Bus, PendingBus, header};

/// How often the stream is looked up.
const CHECK_EVERY: Duration = Duration::from_secs(10);
/// How long reading the output of a host may take.
const READ_WITHIN: Duration = Duration::from_secs(5);
/// The most messages that are read for a host. More than the stream keeps, because a host may publish meanwhile.
const MESSAGES_MAX: usize = 8;

impl Bus {
    /// Creates the stream with `replicas` copies whenever it is missing, until `stop`. An existing one is used as it is.
    pub async fn keep_output_stream(&self, replicas: usize, stop: CancellationToken) {
        let config = Config { num_replicas: replicas, ..os_upgrade_jetstream::output_stream() };
        let mut throttle = LogThrottle::default();
        let mut check = tokio::time::interval(CHECK_EVERY);
        check.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while stop.run_until_cancelled(check.tick()).await.is_some() {
            if self.client.connection_state() != State::Connected {
                continue;
            }
            match self.jetstream.get_or_create_stream(config.clone()).await {
                Ok(_) => throttle.reset(),
                Err(error) => {
                    let error = with_causes(&error);
                    if throttle.is_due(&error, Instant::now()) {
                        tracing::warn!(
                            stream = config.name,
                            "the stream cannot be created, so no output of commands is kept: {error}"
                        );
                    }
                }
            }
        }
    }

    async fn outputs(&self, host: &HostName) -> Result<Vec<StoredOutput>, OutputsError> {
        if self.client.connection_state() != State::Connected {
            return Err(OutputsError("NATS is unreachable".to_owned()));
        }
        let read = tokio::time::timeout(READ_WITHIN, self.read_outputs(host));
        read.await.unwrap_or_else(|_| Err(OutputsError("NATS does not answer".to_owned())))
    }

    async fn read_outputs(&self, host: &HostName) -> Result<Vec<StoredOutput>, OutputsError> {
        let failed = |error: &dyn std::error::Error| OutputsError(with_causes(error));
        let found = self.find_stream(subject::OUTPUT_STREAM).await.map_err(|error| failed(&error))?;
        let Some(stream) = found else { return Ok(Vec::new()) };
        let subject = subject::output(host);
        let mut outputs = Vec::new();
        let mut from = 1;
        for _ in 0..MESSAGES_MAX {
            let message = match stream.get_first_raw_message_by_subject(&subject, from).await {
                Ok(message) => message,
                Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => break,
                Err(error) => return Err(failed(&error)),
            };
            from = message.sequence + 1;
            match Output::parse(host, header(&message.headers, header_name::COMMAND_ID), &message.payload) {
                Ok(output) => outputs.push(StoredOutput { output, stored_at: message.time }),
                Err(error) => tracing::debug!(%host, sequence = message.sequence, "not output: {error}"),
            }
        }
        Ok(outputs)
    }
}

/// The outputs in the stream.
#[derive(Debug)]
pub struct StreamOfOutputs(pub PendingBus);

impl KeepsOutputs for StreamOfOutputs {
    fn of_host<'a>(&'a self, host: &'a HostName) -> OutputsRead<'a> {
        Box::pin(async move {
            match self.0.get() {
                Some(bus) => bus.outputs(host).await,
                None => Err(OutputsError("NATS is not connected yet".to_owned())),
            }
        })
    }
}
