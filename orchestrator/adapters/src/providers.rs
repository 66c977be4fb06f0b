//! Configuration providers: asks a plain file server what a host is to have, and seals it to the host.
//!
//! Each question is one GET, sent once; retries are up to [`os_upgrade_provider_rules::Schedule`]. What an answer means is
//! [`os_upgrade_provider_rules::Answer::interpret`]'s to say.

mod client;
mod credentials;
mod failure;
mod seal;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use os_upgrade_protocol::HostName;
use os_upgrade_provider_rules::{Failure, ProviderName, Reply, Validator};

use self::client::Client;
pub use self::client::Definition;
pub use self::credentials::Credentials;
pub use self::seal::{FileTarget, SealItemError, SealedItem, seal};

/// The clients of all providers. Cheap to clone; clones share connections.
#[derive(Debug, Clone, Default)]
pub struct HttpProviders {
    clients: Arc<Mutex<BTreeMap<ProviderName, Arc<Client>>>>,
}

impl HttpProviders {
    /// Asks the provider `name` what `host` is to have. `validator` is that of the content received last. Credentials are sent only to their
    /// own origin; if they are for another one, nothing is sent.
    pub async fn ask(
        &self,
        name: &ProviderName,
        definition: &Definition,
        host: &HostName,
        validator: Option<&Validator>,
        credentials: Option<&Credentials>,
    ) -> Reply {
        match self.client(name, definition) {
            Ok(client) => client.get(host, validator, credentials).await,
            Err(failure) => failure.into(),
        }
    }

    /// Closes the connections of providers that are no longer configured.
    pub fn retain(&self, is_configured: impl Fn(&ProviderName) -> bool) {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|name, _| is_configured(name));
    }

    /// The client of this definition, which replaces that of an earlier one.
    fn client(&self, name: &ProviderName, definition: &Definition) -> Result<Arc<Client>, Failure> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(name).filter(|client| client.is_of(definition)) {
            return Ok(Arc::clone(client));
        }
        let client = Arc::new(Client::new(definition.clone())?);
        clients.insert(name.clone(), Arc::clone(&client));
        Ok(client)
    }
}

#[cfg(test)]
mod tests;
