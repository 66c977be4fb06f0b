//! Random bytes for secrets.

use ring::rand::{SecureRandom as _, SystemRandom};

/// The system provides no random bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system provides no random bytes")]
pub struct RandomError;

/// Fills `bytes` in place, so that no copy of a secret is left elsewhere.
///
/// # Errors
/// The system provides no random bytes.
pub fn fill(bytes: &mut [u8]) -> Result<(), RandomError> {
    SystemRandom::new().fill(bytes).map_err(|_| RandomError)
}
