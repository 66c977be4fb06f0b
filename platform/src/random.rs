//! Random bytes, for what must not be guessed.

use ring::rand::{SecureRandom as _, SystemRandom};

/// The system gives no random bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random bytes")]
pub struct RandomError;

/// Fills `bytes`, wherever they are, so that there is no copy of them.
///
/// # Errors
/// There is no randomness.
pub fn fill(bytes: &mut [u8]) -> Result<(), RandomError> {
    SystemRandom::new().fill(bytes).map_err(|_| RandomError)
}
