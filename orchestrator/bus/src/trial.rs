//! What NATS does not tell a client, found by trying, for operators. Nothing is left of a trial.

use async_nats::jetstream::context::CreateStreamErrorKind;
use async_nats::jetstream::{ErrorCode, stream};
use os_upgrade_protocol::subject;

use super::Bus;

/// The stream that NATS refuses to create.
const REFUSED_STREAM: &str = "os-upgrade:trial";
/// How exactly a server's limit is found, in bytes; of large ones a thousandth.
const PRECISION: u64 = 16 * 1024;

impl Bus {
    /// How many bytes the connected server may store, `max_file_store`, less what streams of other accounts have reserved;
    /// `None` where that cannot be found out: in a cluster, and where the account may store less.
    ///
    /// A server that is not in a cluster refuses a stream that reserves more than it may store before it refuses one with
    /// subjects of another stream. So it is asked for streams that it refuses in any case.
    pub async fn server_storage(&self) -> Option<u64> {
        let account = self.jetstream.query_account().await.ok()?;
        if self.takes_reservation(u64::MAX >> 1).await? {
            return None;
        }
        let (mut fits, mut too_much) = (0, u64::MAX >> 1);
        while too_much - fits > PRECISION.max(fits / 1024) {
            // First the magnitude is found, then the number.
            let low = fits.max(PRECISION);
            let between =
                if low < too_much / 4 { low.isqrt() * too_much.isqrt() } else { fits.midpoint(too_much) };
            if self.takes_reservation(between).await? { fits = between } else { too_much = between }
        }
        let limit = fits + account.reserved_storage;
        let is_of_account = account.limits.max_storage.is_some_and(|of_account| {
            let highest = too_much + account.reserved_storage;
            u64::try_from(of_account).is_ok_and(|of_account| of_account > 0 && of_account <= highest)
        });
        (!is_of_account).then_some(limit)
    }

    /// Whether a new stream may reserve so many bytes; `None` if that is not what NATS answers.
    async fn takes_reservation(&self, bytes: u64) -> Option<bool> {
        let config = stream::Config {
            name: REFUSED_STREAM.to_owned(),
            subjects: vec![subject::JOURNAL_FACT.to_owned()],
            max_bytes: i64::try_from(bytes).ok()?,
            ..stream::Config::default()
        };
        match self.jetstream.create_stream(config).await {
            // The journal was just deleted.
            Ok(_) => drop(self.jetstream.delete_stream(REFUSED_STREAM).await),
            Err(error) => {
                if let CreateStreamErrorKind::JetStream(error) = error.kind() {
                    return match error.error_code() {
                        ErrorCode::STREAM_SUBJECT_OVERLAP => Some(true),
                        ErrorCode::STORAGE_RESOURCES_EXCEEDED => Some(false),
                        _ => None,
                    };
                }
            }
        }
        None
    }
}
