//! Configuration: the site's upgrade configuration, which operators change over the API, and the settings from the
//! orchestrator's file.

pub mod difference;
mod fact;
mod fold;
mod integer;
mod max_failures;
mod provider;
pub(crate) mod request;
mod settings;
mod state;
pub mod tag;
mod warning;

pub use self::fact::ConfigFact;
pub use self::max_failures::MaxFailures;
pub use self::provider::{ConfigProvider, FileMode, OnRemoval, PROVIDERS_MAX, ProviderKind, Selector};
pub use self::request::{ConfigOperation, ConfigRefusal};
pub use self::settings::{LockProvider, OnFailure, Reclaim, Settings};
pub use self::state::{Config, ConfigError, Retries, Rollout, UnreachablePolicy, WorkerApplication};
pub use self::warning::{WARNINGS_MAX, Warning, lasting_warnings, next_start, warnings};
