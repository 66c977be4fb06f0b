//! The schema of an entry of `config-providers`. The kernel defines it; this file describes it.

use utoipa::ToSchema;

use crate::text::{
    DurationText, FileModeText, HookEventWord, NameText, OnRemovalWord, ProviderKindWord, SecretNameText,
};

/// Where configuration of hosts comes from: a server of files, or a program with hooks.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
#[serde(deny_unknown_fields)]
pub struct ConfigProvider {
    /// Its name, which is also that of what it gives: 1 to 64 of `a-z A-Z 0-9 . _ -`.
    pub name: String,
    #[schema(value_type = ProviderKindWord)]
    pub kind: String,
    /// Where the configuration of a host is: `https://`, or `http://` to the orchestrator's machine only. `{host}` stands for the name of the
    /// host. Of kind `hooks` it is one URL for all hosts.
    pub url: String,
    /// The absolute path of the file that it becomes on the host. Absent: it is for the worker's handler alone.
    pub path: Option<String>,
    /// The permissions of that file, and its owner. Absent: the worker's choice.
    #[schema(value_type = Option<FileModeText>)]
    pub mode: Option<String>,
    pub user: Option<String>,
    pub group: Option<String>,
    /// Which hosts get it. Absent: all.
    pub selector: Option<Selector>,
    /// The secret with which it is asked: a bearer token, or `user:password`.
    #[schema(value_type = Option<SecretNameText>)]
    pub credentials: Option<String>,
    /// The secret with the client certificate for it: certificate, chain and private key in PEM.
    #[schema(value_type = Option<SecretNameText>)]
    pub client_certificate: Option<String>,
    /// The certificate authorities to trust instead of the system's, in PEM.
    pub ca: Option<String>,
    /// The time between two polls of a host, at least 10 s.
    #[schema(required = false, value_type = DurationText, default = "1h")]
    pub poll_interval: String,
    /// How long a request may take in total, 1 s to 300 s.
    #[schema(required = false, value_type = DurationText, default = "10s")]
    pub timeout: String,
    /// How many requests may be under way at once.
    #[schema(required = false, minimum = 1, maximum = 64, default = 4)]
    pub max_in_flight: u64,
    /// Whether a host is prepared only once it has what the provider says.
    #[schema(required = false, default = false)]
    pub required: bool,
    /// How long ago the provider may have said so then; at least the poll interval.
    #[schema(required = false, value_type = DurationText, default = "24h")]
    pub max_age: String,
    /// What becomes of what a host has once the provider has nothing for it any more.
    #[schema(required = false, value_type = OnRemovalWord, default = "keep")]
    pub on_removal: String,
    /// The events of which it is told; of kind `hooks` only. Absent: all.
    #[schema(value_type = Option<Vec<HookEventWord>>)]
    pub events: Option<Vec<String>>,
    /// Of how many hosts it may be told in one request; of kind `hooks` only.
    #[schema(required = false, minimum = 1, maximum = 100, default = 1)]
    pub batch_size: u64,
}

/// Which hosts a provider is about.
#[derive(Debug, ToSchema)]
#[schema(as = ConfigProviderSelector)]
#[serde(deny_unknown_fields)]
pub struct Selector {
    /// The names of these hosts, 1 to 10000.
    #[schema(value_type = Vec<NameText>)]
    pub names: Vec<String>,
}
