//! The open-file limit, which must suffice for the API's connections and everything else.

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The most files that are open beside the API's connections, with some reserve: subscribers of events, store, bus, lock
/// server, other sites.
const OTHERS_MAX: u64 = os_upgrade_api::SUBSCRIBERS_MAX as u64 + 256;

/// Why the open-file limit does not suffice.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilesError {
    /// The limit is too low for the configured connections.
    #[error(
        "{connections} `connections` of [api] need {needed} open files, but the limit is {limit}: raise it with \
         LimitNOFILE= of the service, or set fewer connections"
    )]
    TooFew {
        /// `[api] connections`.
        connections: u64,
        /// The open files that they need.
        needed: u64,
        /// The limit of the process.
        limit: u64,
    },
    /// The limit cannot be read.
    #[error("cannot read the limit of open files")]
    Unknown(#[source] Errno),
}

/// Raises the soft open-file limit to the hard one, and checks that it suffices for `connections`.
///
/// # Errors
/// It does not, or cannot be read.
pub(super) fn raise_limit(connections: u64) -> Result<(), FilesError> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(FilesError::Unknown)?;
    let limit = match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
        Ok(()) => hard,
        Err(error) => {
            tracing::warn!(%error, soft, hard, "cannot raise the limit of open files");
            soft
        }
    };
    check(connections, limit)
}

fn check(connections: u64, limit: u64) -> Result<(), FilesError> {
    let needed = connections + OTHERS_MAX;
    if limit < needed { Err(FilesError::TooFew { connections, needed, limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_must_cover_connections() {
        assert_eq!(check(512, 1_768), Ok(()));
        assert_eq!(check(768, 2_024), Ok(()));
        assert_eq!(
            check(10_000, 4_096).unwrap_err().to_string(),
            "10000 `connections` of [api] need 11256 open files, but the limit is 4096: raise it with \
             LimitNOFILE= of the service, or set fewer connections"
        );
    }

    #[test]
    fn soft_limit_is_raised_to_hard() {
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        setrlimit(Resource::RLIMIT_NOFILE, 300.min(hard), 2_000.min(hard)).unwrap();
        assert_eq!(raise_limit(600), Ok(()));
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).unwrap(), (2_000.min(hard), 2_000.min(hard)));
        assert!(raise_limit(10_000).is_err());
    }
}
