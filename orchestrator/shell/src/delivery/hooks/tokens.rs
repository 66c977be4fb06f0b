//! The tokens with which providers may call back. Each leadership draws its own, which is in its memory alone: what is journaled, and
//! known here, is the digest.

use std::collections::BTreeMap;
use std::time::Duration;

use os_upgrade_kernel::{HookProvider, Input};
use os_upgrade_provider_rules::ProviderName;

use crate::clock::Now;
use crate::delivery::action::Deliver;

/// How long a token may take until it is in force, before another one is drawn.
const RETRY: Duration = Duration::from_secs(10);

/// The token of each provider.
#[derive(Debug, Default)]
pub(super) struct Tokens(BTreeMap<ProviderName, Token>);

/// Times are monotonic.
#[derive(Debug)]
enum Token {
    /// It is to be drawn.
    Needed,
    Drawing {
        since: Duration,
    },
    /// The state does not have it yet.
    Drawn {
        digest: String,
        since: Duration,
    },
    /// The state has it: call-backs with it are accepted.
    InForce {
        digest: String,
    },
}

impl Tokens {
    /// Other ones are to be drawn.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    pub(super) fn retain(&mut self, is_wanted: impl Fn(&ProviderName) -> bool) {
        self.0.retain(|name, _| is_wanted(name));
    }

    /// The state has `known` of `provider`. Returns whether its token is in force. One that is revoked is drawn anew.
    pub(super) fn follow(&mut self, provider: &ProviderName, known: Option<&HookProvider>, now: Now) -> bool {
        let is_known = |digest: &str| known.is_some_and(|known| known.has_token(digest));
        let is_late = |since: Duration| now.monotonic.saturating_sub(since) >= RETRY;
        let token = match self.0.remove(provider).unwrap_or(Token::Needed) {
            Token::Drawn { digest, .. } | Token::InForce { digest } if is_known(&digest) => {
                Token::InForce { digest }
            }
            Token::InForce { .. } => Token::Needed,
            Token::Drawing { since } | Token::Drawn { since, .. } if is_late(since) => Token::Needed,
            token @ (Token::Needed | Token::Drawing { .. } | Token::Drawn { .. }) => token,
        };
        let is_in_force = matches!(token, Token::InForce { .. });
        self.0.insert(provider.clone(), token);
        is_in_force
    }

    /// Begins to draw those that are needed.
    pub(super) fn draw(&mut self, now: Now) -> Vec<Deliver> {
        let mut begun = Vec::new();
        for (provider, token) in &mut self.0 {
            if matches!(token, Token::Needed) {
                *token = Token::Drawing { since: now.monotonic };
                begun.push(Deliver::DrawToken { provider: provider.clone() });
            }
        }
        begun
    }

    /// One was drawn. Returns what is to be decided.
    pub(super) fn drawn(&mut self, now: Now, provider: &ProviderName, digest: String) -> Option<Input> {
        let token = self.0.get_mut(provider)?;
        if !matches!(token, Token::Drawing { .. }) {
            return None;
        }
        *token = Token::Drawn { digest: digest.clone(), since: now.monotonic };
        Some(Input::HookTokenDrawn { provider: provider.clone(), digest })
    }

    /// The digest of the token with which `provider` may call back.
    pub(super) fn in_force(&self, provider: &ProviderName) -> Option<&str> {
        match self.0.get(provider)? {
            Token::InForce { digest } => Some(digest),
            Token::Needed | Token::Drawing { .. } | Token::Drawn { .. } => None,
        }
    }
}
