//! Open files: as many must be allowed as the API's connections need, and everything else.

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Files that are open beside the API's connections, and some more: the store, the bus, lock servers, other sites.
const OTHERS_MAX: u64 = 256;

/// Too few files may be open.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilesError {
    /// The settings do not fit.
    #[error(
        "{connections} `connections` of [api] need {needed} open files, and no more than {limit} may be: allow more with \
         LimitNOFILE= of the service, or set fewer connections"
    )]
    TooFew {
        /// As many as are set.
        connections: u64,
        /// As many files as these need.
        needed: u64,
        /// As many as may be open.
        limit: u64,
    },
    /// It cannot be found out.
    #[error("cannot find out how many files may be open")]
    Unknown(#[source] Errno),
}

/// Allows as many files as this process may allow itself, and looks whether they are enough for `connections`.
///
/// # Errors
/// They are not, or nobody knows.
pub(super) fn allow(connections: u64) -> Result<(), FilesError> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(FilesError::Unknown)?;
    let limit = match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
        Ok(()) => hard,
        Err(error) => {
            tracing::warn!(%error, soft, hard, "cannot allow more open files");
            soft
        }
    };
    enough(connections, limit)
}

fn enough(connections: u64, limit: u64) -> Result<(), FilesError> {
    let needed = connections + OTHERS_MAX;
    if limit < needed { Err(FilesError::TooFew { connections, needed, limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_enough() {
        assert_eq!(enough(512, 1_024), Ok(()));
        assert_eq!(enough(768, 1_024), Ok(()));
        assert_eq!(
            enough(10_000, 4_096).unwrap_err().to_string(),
            "10000 `connections` of [api] need 10256 open files, and no more than 4096 may be: allow more with \
             LimitNOFILE= of the service, or set fewer connections"
        );
    }

    #[test]
    fn as_many_as_may_be_are_allowed() {
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        setrlimit(Resource::RLIMIT_NOFILE, 300.min(hard), 1_000.min(hard)).unwrap();
        assert_eq!(allow(600), Ok(()));
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).unwrap(), (1_000.min(hard), 1_000.min(hard)));
        assert!(allow(10_000).is_err());
    }
}
