//! What NATS stores, and how much it may.

use std::error::Error;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::account::Limits;
use async_nats::jetstream::stream::DiscardPolicy;
use async_nats::jetstream::{self, ErrorCode};
use os_upgrade_protocol::subject;
use os_upgrade_shell::storage::StorageLimit;

use super::Bus;
use super::streams::LEASE_STREAM;

/// How long reading it may take.
const USAGE_WITHIN: Duration = Duration::from_secs(2);

/// What one part of NATS stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// A stream's name; [`ACCOUNT`], or one of its tiers, such as `account R3`; [`ACCOUNT_MEMORY`].
    pub of: String,
    /// How many bytes it stores.
    pub bytes: u64,
    /// How many bytes are reserved for the streams of an account that have a limit; 0 for a stream.
    pub reserved: u64,
    /// How many messages it stores; `None` for an account, which does not tell.
    pub messages: Option<u64>,
    /// Whether the oldest messages are dropped at the limit. Otherwise nothing more is stored.
    pub drops_oldest: bool,
    /// How many bytes it may store; `None` without a limit of its own. A server may have another, see
    /// [`Bus::server_storage`].
    pub limit: Option<u64>,
    /// The streams of an account.
    pub streams: Option<Count>,
    /// The consumers of a stream; or of an account, whose limit holds for each of its streams.
    pub consumers: Option<Count>,
}

/// How many there are of something that NATS limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// How many there are.
    pub used: u64,
    /// How many there may be; `None` without a limit.
    pub limit: Option<u64>,
}

impl Bus {
    /// What the account and each stream store. Nothing if not all is answered in time.
    pub async fn usage(&self) -> Vec<Usage> {
        if self.client.connection_state() != State::Connected {
            return Vec::new();
        }
        tokio::time::timeout(USAGE_WITHIN, self.read_usage()).await.unwrap_or_default()
    }

    async fn read_usage(&self) -> Vec<Usage> {
        let mut usage = Vec::new();
        let account = self.jetstream.query_account().await.ok();
        if let Some(account) = &account {
            let (streams, consumers) = (account.streams, account.consumers);
            usage.push(of_account(
                ACCOUNT.to_owned(),
                [account.storage, account.reserved_storage],
                [streams, consumers],
                &account.limits,
            ));
            let limit = account.limits.max_memory.and_then(positive);
            let memory = Usage { bytes: account.memory, limit, ..of_bytes(ACCOUNT_MEMORY.to_owned()) };
            usage.push(memory);
            usage.extend(account.tiers.iter().map(|(name, tier)| {
                of_account(
                    format!("{ACCOUNT} {name}"),
                    [tier.storage, tier.reserved_storage],
                    [tier.streams, tier.consumers],
                    &tier.limits,
                )
            }));
        }
        for name in STREAMS {
            let Ok(stream) = self.stream(name).await else { continue };
            let info = stream.cached_info();
            let limits = account.as_ref().map(|account| {
                let tier = account.tiers.get(&format!("R{}", info.config.num_replicas.max(1)));
                tier.map_or(&account.limits, |tier| &tier.limits)
            });
            let of_account = limits.and_then(|limits| limits.max_consumers).and_then(positive);
            let of_stream = positive(info.config.max_consumers.into());
            usage.push(Usage {
                bytes: info.state.bytes,
                messages: Some(info.state.messages),
                drops_oldest: info.config.discard == DiscardPolicy::Old,
                limit: positive(info.config.max_bytes),
                consumers: Some(Count {
                    used: info.state.consumer_count as u64,
                    limit: of_account.into_iter().chain(of_stream).min(),
                }),
                ..of_bytes(name.to_owned())
            });
        }
        usage
    }
}

/// What [`Usage`] calls the account.
pub const ACCOUNT: &str = "account";
/// The account's in-memory streams; a site has none.
pub const ACCOUNT_MEMORY: &str = "account memory";
/// How many consumers a stream must be allowed in an account, or NATS does not create the control stream.
pub const CONSUMERS_ALLOWED_MIN: u64 = os_upgrade_jetstream::CONSUMERS_MAX.unsigned_abs() as u64;
/// How many bytes the stream of output reserves.
pub const OUTPUT_BYTES_RESERVED: u64 = os_upgrade_jetstream::OUTPUT_STREAM_BYTES_MAX.unsigned_abs();
/// The streams of a site.
pub const STREAMS: [&str; 8] = [
    subject::JOURNAL_STREAM,
    subject::CONTROL_STREAM,
    subject::VERSIONS_STREAM,
    subject::WORKERS_STREAM,
    subject::OUTPUT_STREAM,
    subject::DESIRED_STREAM,
    subject::APPLIED_STREAM,
    LEASE_STREAM,
];

fn of_bytes(of: String) -> Usage {
    let (messages, limit, streams, consumers) = (None, None, None, None);
    Usage { of, bytes: 0, reserved: 0, messages, drops_oldest: false, limit, streams, consumers }
}

fn of_account(of: String, bytes: [u64; 2], counts: [usize; 2], limits: &Limits) -> Usage {
    let count =
        |used: usize, limit: Option<i64>| Some(Count { used: used as u64, limit: limit.and_then(positive) });
    let ([bytes, reserved], [streams, consumers]) = (bytes, counts);
    Usage {
        bytes,
        reserved,
        limit: limits.max_storage.and_then(positive),
        streams: count(streams, limits.max_streams),
        consumers: count(consumers, limits.max_consumers),
        ..of_bytes(of)
    }
}

/// A limit; `None` where there is none, which is -1, or 0 in an account with tiers.
fn positive(limit: i64) -> Option<u64> {
    u64::try_from(limit).ok().filter(|limit| *limit > 0)
}

/// The limit because of which the server refused to store a message, if that is the reason.
pub(super) fn storage_limit(error: &(dyn Error + 'static)) -> Option<StorageLimit> {
    let mut causes = std::iter::successors(Some(error), |error| (*error).source());
    let code = causes.find_map(|cause| cause.downcast_ref::<jetstream::Error>())?.error_code();
    match code {
        ErrorCode::ACCOUNT_RESOURCES_EXCEEDED => Some(StorageLimit::Account),
        ErrorCode::INSUFFICIENT_RESOURCES | ErrorCode::STORAGE_RESOURCES_EXCEEDED => {
            Some(StorageLimit::Server)
        }
        ErrorCode::STREAM_STORE_FAILED => Some(StorageLimit::Stream),
        _ => None,
    }
}
