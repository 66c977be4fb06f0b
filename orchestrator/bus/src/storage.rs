//! What NATS stores, and how much it may.

use std::error::Error;
use std::time::Duration;

use async_nats::connection::State;
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
    /// A stream's name, or `account`, or one of its tiers, such as `account R3`.
    pub of: String,
    /// How many bytes it stores.
    pub bytes: u64,
    /// How many messages it stores; `None` for an account, which does not tell.
    pub messages: Option<u64>,
    /// Whether the oldest messages are dropped at the limit. Otherwise nothing more is stored.
    pub drops_oldest: bool,
    /// How many bytes it may store; `None` without a limit of its own. A server may have another, which it does not tell.
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
        let limit = |limit: Option<i64>| limit.and_then(|limit| u64::try_from(limit).ok());
        let mut usage = Vec::new();
        if let Ok(account) = self.jetstream.query_account().await {
            let (bytes, limit_of_all) = (account.storage, limit(account.limits.max_storage));
            usage.push(Usage {
                of: "account".to_owned(),
                bytes,
                messages: None,
                drops_oldest: false,
                limit: limit_of_all.filter(|limit| *limit > 0),
            });
            usage.extend(account.tiers.iter().map(|(name, tier)| Usage {
                of: format!("account {name}"),
                bytes: tier.storage,
                messages: None,
                drops_oldest: false,
                limit: limit(tier.limits.max_storage),
            }));
        }
        for name in [
            subject::JOURNAL_STREAM,
            subject::CONTROL_STREAM,
            subject::VERSIONS_STREAM,
            subject::WORKERS_STREAM,
            subject::OUTPUT_STREAM,
            LEASE_STREAM,
        ] {
            let Ok(stream) = self.stream(name).await else { continue };
            let info = stream.cached_info();
            let of_stream = limit(Some(info.config.max_bytes)).filter(|limit| *limit > 0);
            usage.push(Usage {
                of: name.to_owned(),
                bytes: info.state.bytes,
                messages: Some(info.state.messages),
                drops_oldest: info.config.discard == DiscardPolicy::Old,
                limit: of_stream,
            });
        }
        usage
    }
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
