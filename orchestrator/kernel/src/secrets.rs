//! The strongbox: the site's sealed secrets, and the key that opens them.

mod fact;
mod fold;
pub(crate) mod request;
mod state;

pub use self::fact::SecretFact;
pub use self::request::{SecretOperation, SecretRefusal};
pub use self::state::{
    SEALED_BYTES_MAX, SECRET_NAME_BYTES_MAX, SECRETS_MAX, Sealed, Secret, SecretName, SecretNameError,
    Strongbox,
};
