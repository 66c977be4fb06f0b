//! Why a host lacks what a required provider says that it is to have.

use os_upgrade_provider_rules::Failure;
use serde::{Deserialize, Serialize};

/// What a host that lacks required configuration waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "wait", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum ConfigurationWait {
    /// No key is approved to which it could be sealed.
    Key,
    /// That an operator resumes the delivery to the host.
    Resumption,
    /// The provider, which has not said within `max-age` what the host is to have, or has given nothing for the file that it names by now.
    Provider {
        /// How asking it failed last; absent if that is not known, or it is still to be asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
    },
    /// The host, which has not applied it yet.
    Host {
        /// Why not, as its worker says; absent if it has said nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
}
