//! Authentication of API callers: tokens and their file, an identity provider, and client certificates.
//!
//! Which caller may use a route is not decided here: the declaration of the route says it.

mod authenticator;
mod browser;
mod caller;
mod credentials;
mod denials;
mod name;
mod oidc;
mod peer;
mod secret;
mod token_file;
mod watched_tokens;

pub use os_upgrade_api_types::Role;

pub use self::authenticator::{Authenticator, Presented, Scheme};
pub use self::caller::{Caller, Denied, Rights};
pub use self::credentials::bearer;
pub use self::denials::{DenialCounts, Denials};
pub use self::name::{NameError, TokenName};
pub use self::oidc::{Oidc, OidcError, check_keys};
pub use self::peer::PeerCertificate;
pub use self::secret::{Secret, SecretHash};
pub use self::token_file::{FileError, Proof, Token, Tokens, edit, read, read_trusted, write};
pub use self::token_file::{parse as parse_tokens, text as tokens_text};
pub use self::watched_tokens::WatchedTokens;

#[cfg(test)]
mod tests;
