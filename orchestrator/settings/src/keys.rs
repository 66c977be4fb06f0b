//! The keys: section, name, type, default and help of each, in one place.
//!
//! A key added to `sections!` below is read from file and environment, validated by its type's
//! [`Value`], held in [`Settings`], and shown in `config/os-upgrade.toml`.

use std::net::SocketAddr;
use std::path::PathBuf;

use chrono_tz::Tz;
use os_upgrade_kernel::{OnFailure, Reclaim, SecretName};
use os_upgrade_protocol::GroupName;

use super::merged::Merged;
use super::problem::Problem;
use super::schema::{Initial, Key, Schema, Section};
use super::value::{Bounded, Groups, HttpUrl, Interval, Jwks, NatsUrls, SiteName, Text, Value, Words};

/// The same, to be asked.
pub(super) const SCHEMA: Schema = Schema(SECTIONS);

macro_rules! sections {
    ($(
        $(#[doc = $section_help:literal])+
        $section:literal => $section_field:ident: $section_type:ident {$(
            $(#[doc = $help:literal])+
            $key:literal => $field:ident: $type:ty = $initial:expr;
        )+}
    )+) => {
        /// A valid configuration. [`Default`] is what an absent file means.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Settings {$(
            $(#[doc = $section_help])+
            pub $section_field: $section_type,
        )+}

        $(
            $(#[doc = $section_help])+
            #[derive(Debug, Clone, PartialEq, Eq)]
            pub struct $section_type {$(
                $(#[doc = $help])+
                pub $field: $type,
            )+}
        )+

        /// Every section with its keys.
        pub static SECTIONS: &[Section] = &[$(Section {
            name: $section,
            help: &[$($section_help),+],
            keys: &[$(Key {
                section: $section,
                name: $key,
                help: &[$($help),+],
                shape: <$type as Value>::SHAPE,
                initial: $initial,
            }),+],
        }),+];

        impl Settings {
            /// Each key's value by its own type; rules between keys are not checked here.
            pub(super) fn read(merged: &Merged, problems: &mut Vec<Problem>) -> Option<Self> {
                // All keys are read before any is missed, so that all problems are found.
                $(let $section_field = {
                    $(let $field = merged.read::<$type>($section, $key, problems);)+
                    move || Some($section_type { $($field: $field?),+ })
                };)+
                Some(Self { $($section_field: $section_field()?),+ })
            }
        }
    };
}

sections! {
    /// The site: the hosts that this orchestrator upgrades.
    "site" => site: Site {
        /// Its name, in the API and towards other orchestrators.
        "name" => name: SiteName = Initial::Is("site");
        /// The time zone that maintenance windows mean by `site-local`: an IANA name.
        "timezone" => timezone: Tz = Initial::Is("UTC");
        /// Whether every host that announces itself takes part in runs. Else one waits until `os-upgrade hosts approve` names
        /// it, and is sent nothing. One that was withdrawn stays out all the same.
        "auto-approve" => auto_approve: bool = Initial::Is("false");
    }

    /// The HTTP API.
    "api" => api: Api {
        /// The address and port to listen on. Without `tokens` it must be a loopback address, and whoever reaches it may do
        /// everything.
        "listen" => listen: SocketAddr = Initial::Is("127.0.0.1:8646");
        /// A file with the tokens of those who may call, on loopback too: `os-upgrade token create` makes it. Changes are in
        /// force within two seconds.
        "tokens" => tokens: Option<PathBuf> = Initial::Unset("/var/lib/os-upgrade/tokens.toml");
        /// Connections at once, 16 to 10000, a sixteenth of them for this machine alone. With so many, a further one takes the
        /// place of an idle one of the address, or the IPv6 network of 64 bits, that has most.
        /// Each is an open file, and 256 more are needed.
        "connections" => connections: Bounded<16, 10_000> = Initial::Is("512");
        /// Connections at once from one of these, 1 to 10000; further ones are closed. All of loopback is one, and so is a proxy
        /// in front.
        "connections-per-address" => connections_per_address: Bounded<1, 10_000> = Initial::Is("128");
        /// Requests under way at once, 1 to 10000, of which one address gets no more than are left: alone half of them.
        /// Further ones are answered with 503. There are never more than fifteen sixteenths of the connections, less one.
        "requests-in-flight" => requests_in_flight: Bounded<1, 10_000> = Initial::Is("256");
        /// Requests a second from one address, or one IPv6 network of 64 bits; further ones are answered with 429. A new
        /// connection counts as one, and is closed. 0 is no limit, and there is none for loopback.
        "requests-per-second" => requests_per_second: Bounded<0, 1_000_000> = Initial::Is("1000");
    }

    /// HTTPS in place of HTTP. Files that change are read again within seconds; one that cannot be used is logged, and what
    /// was in force stays in force.
    "api.tls" => api_tls: ApiTls {
        /// A file with the API's certificate, in PEM, and those between it and its authority. Without it there is no TLS.
        "cert" => cert: Option<PathBuf> = Initial::Unset("/etc/os-upgrade/api.pem");
        /// A file with the private key of `cert`, in PEM, not encrypted.
        "key" => key: Option<PathBuf> = Initial::Unset("/etc/os-upgrade/api.key");
        /// A file with the certificates, in PEM, of the authorities of clients. With it clients are asked for a certificate:
        /// they need none, but one that is shown must be valid.
        "client-ca" => client_ca: Option<PathBuf> = Initial::Unset("/etc/os-upgrade/client-ca.pem");
    }

    /// JSON web tokens of an identity provider, taken beside those of `tokens`. `issuer`, `audience` and `jwks` go together.
    "api.oidc" => api_oidc: ApiOidc {
        /// Who makes the tokens: their `iss`, to the letter.
        "issuer" => issuer: Option<Text> = Initial::Unset("https://login.example.com/realms/site");
        /// For whom they are: one of their `aud`.
        "audience" => audience: Option<Text> = Initial::Unset("os-upgrade");
        /// The provider's public keys, a JSON Web Key Set: an https:// URL, or a file.
        "jwks" => jwks: Option<Jwks> = Initial::Unset("https://login.example.com/realms/site/certs");
        /// The claim that holds roles, a text or a list of texts; dots lead into objects, as in `realm_access.roles`.
        "role-claim" => role_claim: Text = Initial::Is("roles");
        /// What in that claim makes a viewer, separated by commas.
        "viewers" => viewers: Words = Initial::Is("viewer");
        /// What in that claim makes an operator, separated by commas.
        "operators" => operators: Words = Initial::Is("operator");
        /// What in that claim makes an admin, separated by commas.
        "admins" => admins: Words = Initial::Is("admin");
    }

    /// The message bus: a nats-server of yours (`url`), or one started here as a child process (`managed`).
    "nats" => nats: Nats {
        /// Servers of yours, `nats://` or `tls://`, separated by commas; 2.11 or newer, with JetStream.
        "url" => url: Option<NatsUrls> = Initial::Unset("nats://127.0.0.1:4222");
        /// Start a nats-server here, on loopback, its data under `[store] path`. The default unless `url` is given. It lets in
        /// who has the password that stands in `nats/url` there, a file with the whole URL that workers need.
        "managed" => managed: Option<bool> = Initial::Unset("true");
        /// The port of a managed server. By default the one it had last, or else a free one.
        "managed-port" => managed_port: Option<Bounded<1, 65_535>> = Initial::Unset("4222");
        /// A credentials file (`.creds`) for the servers of `url`, as `os-upgrade nats-config` makes it. It is read at every
        /// connection.
        "credentials" => credentials: Option<PathBuf> = Initial::Unset("/etc/os-upgrade/nats.creds");
        /// A file with the certificates, in PEM, of the authorities to trust for `url`, instead of the system's. With it
        /// only TLS will do.
        "ca" => ca: Option<PathBuf> = Initial::Unset("/etc/os-upgrade/nats-ca.pem");
        /// A file with the certificate, in PEM, to show to the servers of `url`, and those between it and its authority.
        "certificate" => certificate: Option<PathBuf> = Initial::Unset("/etc/os-upgrade/nats.pem");
        /// A file with the private key of `certificate`, in PEM, not encrypted.
        "key" => key: Option<PathBuf> = Initial::Unset("/etc/os-upgrade/nats.key");
        /// Copies of each stream, 1 to 5: 3 in a cluster of three.
        "replicas" => replicas: Bounded<1, 5> = Initial::Is("1");
    }

    /// Secrets that the site keeps, sealed.
    "strongbox" => strongbox: Strongbox {
        /// A file with the key, as `os-upgrade strongbox key` prints it. Without it the strongbox is sealed after each start
        /// until `os-upgrade strongbox unseal`, if there are secrets. Others must not be able to read it: mode 0400 or 0600,
        /// or 0440 for a group; a credential of systemd will do.
        "key-file" => key_file: Option<PathBuf> = Initial::Unset("/etc/os-upgrade/strongbox.key");
    }

    /// What this instance keeps on disk.
    "store" => store: Store {
        /// A directory, made if missing: the SQLite history, and the data of a managed nats-server.
        "path" => path: PathBuf = Initial::Is("data");
    }

    /// The slots that hosts take before they upgrade.
    "fleet-lock" => fleet_lock: FleetLock {
        /// A FleetLock server, `http://` or `https://`, with `user:password@` if it wants HTTP Basic authentication.
        /// Without it the orchestrator's own semaphores are used.
        "url" => url: Option<HttpUrl> = Initial::Unset("https://fleet-lock.example.com/base");
        /// The secret in the strongbox that is the `user:password` for `url`, in place of one in the URL.
        "credentials-secret" => credentials_secret: Option<SecretName> = Initial::Unset("lock-server");
        /// A file with the certificates, in PEM, of the authorities to trust for `url`, instead of the system's.
        "ca" => ca: Option<PathBuf> = Initial::Unset("/etc/os-upgrade/fleet-lock-ca.pem");
        /// A file with the certificate, in PEM, to show to the server of `url`, and those between it and its authority.
        "certificate" => certificate: Option<PathBuf> = Initial::Unset("/etc/os-upgrade/fleet-lock.pem");
        /// A file with the private key of `certificate`, in PEM, not encrypted.
        "key" => key: Option<PathBuf> = Initial::Unset("/etc/os-upgrade/fleet-lock.key");
        /// The group of hosts that name none.
        "default-group" => default_group: GroupName = Initial::Is("default");
        /// What becomes of the slot of a host whose upgrade failed: `hold` keeps it, because the host may be down,
        /// until an operator releases it or it succeeds; `release` frees it.
        "on-failure" => on_failure: OnFailure = Initial::Is("hold");
        /// Whose slots may be taken back with `os-upgrade lock forget` because they are gone: `never` anybody's, or those
        /// of hosts that have left the `inventory`. Nothing is taken back by time.
        "reclaim" => reclaim: Reclaim = Initial::Is("never");
        /// How long a slot may be held before it is shown as stuck, in the state and in the metrics.
        "stuck-after" => stuck_after: Interval<1_000, 2_592_000_000> = Initial::Is("2h");
        /// Time between two requests for a slot that was denied, and up to a quarter more. After a failure it is 1 s, and
        /// doubles with each further one up to this, and to no more than 1 min.
        "retry-interval" => retry_interval: Interval<100, 86_400_000> = Initial::Is("10s");
        /// Mean time between two requests to the server of `url`, of whatever kind; two may go out together. The default
        /// suits a server that takes one request a second: give less only for one that takes more.
        "request-interval" => request_interval: Interval<1, 60_000> = Initial::Is("1100ms");
        /// Groups of the orchestrator's own semaphores and how many of their hosts may be upgraded at once, 0 to 10000.
        "groups" => groups: Groups = Initial::Is("default=1");
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::read(&Merged::empty(SCHEMA), &mut Vec::new()).expect("every default is valid, as a test shows")
    }
}
