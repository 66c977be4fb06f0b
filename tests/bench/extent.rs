//! How much a stream has, to tell whether anything was added to it.

use async_nats::jetstream;

/// How much a stream has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) last_sequence: u64,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

impl Extent {
    /// Asks for that of `stream`.
    pub(crate) async fn read(jetstream: &jetstream::Context, stream: &str) -> anyhow::Result<Self> {
        let stream = jetstream.get_stream(stream).await?;
        let state = &stream.cached_info().state;
        Ok(Self { last_sequence: state.last_sequence, messages: state.messages, bytes: state.bytes })
    }
}
