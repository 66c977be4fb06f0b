//! The keys: section, name, type, default and help of each, in one place.
//!
//! A key added to `sections!` below is read from file and environment, validated by its type's
//! [`Value`], held in [`Settings`], and shown in `config/os-upgrade.toml`.

use std::net::SocketAddr;
use std::path::PathBuf;

use chrono_tz::Tz;
use os_upgrade_kernel::{ApiServerOrder, OnFailure, Reclaim, SecretName};
use os_upgrade_protocol::GroupName;

use super::merged::{Merged, Setting};
use super::problem::Problem;
use super::section::{Initial, Key, Schema, Section};
use super::value::{
    Bounded, CommandWords, FailedNode, FleetSocketRole, Groups, HttpUrl, Interval, Jwks, LabelSelector,
    NatsUrls, NodeNames, NodeSource, SiteName, StringList, Text, Value,
};

/// [`SECTIONS`] with its look-ups.
pub(super) const SCHEMA: Schema = Schema(SECTIONS);

macro_rules! sections {
    ($(
        $(#[doc = $section_help:literal])+
        $section:literal => $section_field:ident: $section_type:ident {$(
            $(#[doc = $help:literal])+
            $key:literal => $field:ident: $type:ty = $initial:expr;
        )+}
    )+) => {
        /// A valid configuration. [`Default`] has the default of every key.
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

        /// The sections as they were read, for the rules between keys.
        #[expect(clippy::struct_field_names, reason = "fields are named as their keys")]
        pub(super) mod read {
            use super::*;

            pub(crate) struct Settings<'a> {$(
                pub(crate) $section_field: $section_type<'a>,
            )+}

            $(
                pub(crate) struct $section_type<'a> {$(
                    pub(crate) $field: Setting<'a, $type>,
                )+}
            )+

            impl<'a> Settings<'a> {
                /// Reads every key as its type; rules between keys are not checked here.
                pub(crate) fn new(merged: &'a Merged, problems: &mut Vec<Problem>) -> Self {
                    Self {$(
                        $section_field: $section_type {$(
                            $field: merged.read($section, $key, concat!($section, ".", $key), problems),
                        )+},
                    )+}
                }

                /// The values; `None` if one is bad.
                pub(crate) fn values(self) -> Option<super::Settings> {
                    Some(super::Settings {$(
                        $section_field: super::$section_type {$(
                            $field: self.$section_field.$field.value?,
                        )+},
                    )+})
                }
            }
        }
    };
}

sections! {
    /// The site: the hosts that this orchestrator upgrades.
    "site" => site: Site {
        /// The name of the site, in the API and for other orchestrators.
        "name" => name: SiteName = Initial::Is("site");
        /// The time zone that `site-local` means in maintenance windows, by its IANA name.
        "timezone" => timezone: Tz = Initial::Is("UTC");
        /// Whether every host that announces itself takes part in runs. If not, a host waits, and is sent no commands, until
        /// `os-upgrade hosts approve` names it. Withdrawn hosts stay out in either case.
        "auto-approve" => auto_approve: bool = Initial::Is("false");
    }

    /// The HTTP API.
    "api" => api: Api {
        /// The address and port to listen on. Without `tokens` it must be a loopback address; callers are then not authenticated
        /// and may do everything.
        "listen" => listen: SocketAddr = Initial::Is("127.0.0.1:8646");
        /// The token file, which `os-upgrade token create` creates. With it, callers need a token, even on loopback. Changes take
        /// effect within two seconds.
        "tokens" => tokens: Option<PathBuf> = Initial::Unset("/var/lib/os-upgrade/tokens.toml");
        /// The URL at which others reach the API, such as that of a proxy. Configuration providers of kind `hooks` are told to call back
        /// there. Without it they are told the address on which it listens.
        "public-url" => public_url: Option<HttpUrl> = Initial::Unset("https://upgrade.example.com");
        /// The path of a Unix socket for clients of fleet on this machine, which send no tokens. It serves fleet's API below `/v1-alpha/`
        /// and `/fleet/v1/`, and nothing else. Its directory must exist. The history names the users who call, as `unix:1000 (ada)`.
        "fleet-socket" => fleet_socket: Option<PathBuf> = Initial::Unset("/run/os-upgrade/fleet.sock");
        /// The group whose members may connect to it, beside the user of the orchestrator, who must be a member. By default the
        /// orchestrator's own group.
        "fleet-socket-group" => fleet_socket_group: Option<Text> = Initial::Unset("fleet");
        /// What they may do: `viewer`, read, or `admin`, also change units, which run as root on their hosts.
        "fleet-socket-role" => fleet_socket_role: FleetSocketRole = Initial::Is("viewer");
        /// The most connections at once, 16 to 10000; a sixteenth is reserved for this machine. When all are in use, a new one
        /// replaces an idle one of the address, or IPv6 /64 network, that has the most.
        /// Each connection needs an open file, and the process needs 1256 more.
        "connections" => connections: Bounded<16, 10_000> = Initial::Is("512");
        /// The most connections at once from one address or IPv6 /64 network, 1 to 10000; further ones are closed. All loopback
        /// addresses count as one, and so do all clients behind a proxy.
        "connections-per-address" => connections_per_address: Bounded<1, 10_000> = Initial::Is("128");
        /// The most requests at once, 1 to 10000. One address gets no more than are still free, so alone at most half of them.
        /// Further ones are answered with 503. The limit is at most fifteen sixteenths of the connections, less one.
        "requests-in-flight" => requests_in_flight: Bounded<1, 10_000> = Initial::Is("256");
        /// The most requests a second from one address or IPv6 /64 network; further ones are answered with 429. A new connection
        /// counts as a request; a connection over the limit is closed. 0 is no limit; loopback is not limited.
        "requests-per-second" => requests_per_second: Bounded<0, 1_000_000> = Initial::Is("1000");
    }

    /// HTTPS instead of HTTP. Changed files are reloaded within seconds; if they cannot be used, that is logged, and the
    /// previous ones stay in use.
    "api.tls" => api_tls: ApiTls {
        /// A PEM file with the API's certificate and its intermediate certificates. Without it there is no TLS.
        "cert" => cert: Option<PathBuf> = Initial::Unset("/etc/os-upgrade/api.pem");
        /// A PEM file with the private key of `cert`, not encrypted.
        "key" => key: Option<PathBuf> = Initial::Unset("/etc/os-upgrade/api.key");
        /// A PEM file with the certificate authorities of clients. With it, clients are asked for a certificate: it is optional,
        /// but must be valid if it is presented.
        "client-ca" => client_ca: Option<PathBuf> = Initial::Unset("/etc/os-upgrade/client-ca.pem");
    }

    /// JSON Web Tokens of an identity provider, accepted beside `tokens`. Set `issuer`, `audience` and `jwks` together.
    "api.oidc" => api_oidc: ApiOidc {
        /// The issuer of the tokens: exactly their `iss`.
        "issuer" => issuer: Option<Text> = Initial::Unset("https://login.example.com/realms/site");
        /// The audience of the tokens: one of their `aud`.
        "audience" => audience: Option<Text> = Initial::Unset("os-upgrade");
        /// The provider's public keys, a JSON Web Key Set: an https:// URL, or a file.
        "jwks" => jwks: Option<Jwks> = Initial::Unset("https://login.example.com/realms/site/certs");
        /// The claim that holds roles, a string or a list of strings; dots lead into objects, as in `realm_access.roles`.
        "role-claim" => role_claim: Text = Initial::Is("roles");
        /// The values of that claim that make a viewer, separated by commas.
        "viewers" => viewers: StringList = Initial::Is("viewer");
        /// The values of that claim that make an operator, separated by commas.
        "operators" => operators: StringList = Initial::Is("operator");
        /// The values of that claim that make an admin, separated by commas.
        "admins" => admins: StringList = Initial::Is("admin");
    }

    /// The message bus: your own NATS servers (`url`), or a nats-server started here as a child process (`managed`).
    "nats" => nats: Nats {
        /// The addresses of your servers, `nats://` or `tls://`, separated by commas; 2.11 or newer, with JetStream.
        "url" => url: Option<NatsUrls> = Initial::Unset("nats://127.0.0.1:4222");
        /// Start a nats-server here, on loopback, with its data under `[store] path`. The default unless `url` is given. Clients
        /// need a password: the file `nats/url` under that path has the whole URL, with the password, for workers.
        "managed" => managed: Option<bool> = Initial::Unset("true");
        /// The port of a managed server. By default the one it used last, or else a free one.
        "managed-port" => managed_port: Option<Bounded<1, 65_535>> = Initial::Unset("4222");
        /// A credentials file (`.creds`) for the servers of `url`, as `os-upgrade nats-config` creates it. It is read again for
        /// every connection.
        "credentials" => credentials: Option<PathBuf> = Initial::Unset("/etc/os-upgrade/nats.creds");
        /// A PEM file with the certificate authorities to trust for `url`, instead of the system's. With it, only TLS
        /// connections are made.
        "ca" => ca: Option<PathBuf> = Initial::Unset("/etc/os-upgrade/nats-ca.pem");
        /// A PEM file with the certificate to present to the servers of `url`, and its intermediate certificates.
        "certificate" => certificate: Option<PathBuf> = Initial::Unset("/etc/os-upgrade/nats.pem");
        /// A PEM file with the private key of `certificate`, not encrypted.
        "key" => key: Option<PathBuf> = Initial::Unset("/etc/os-upgrade/nats.key");
        /// The `sync_interval` of the servers of `url`, `0s` if it is `always`: a server that loses power loses what it has
        /// acknowledged for so long. A snapshot of the state stands five times as long before the streams are trimmed to it.
        "sync-interval" => sync_interval: Interval<0, 86_400_000> = Initial::Is("2m");
        /// Copies of each stream, 1 to 5: 3 in a cluster of three.
        "replicas" => replicas: Bounded<1, 5> = Initial::Is("1");
    }

    /// The site's secrets, which are stored sealed.
    "strongbox" => strongbox: Strongbox {
        /// A file with the key, as `os-upgrade strongbox key` prints it. Without it, a strongbox with secrets is sealed after each
        /// start until `os-upgrade strongbox unseal`. Others must not be able to read the file: mode 0400 or 0600, or 0440 for a
        /// group; a systemd credential works too.
        "key-file" => key_file: Option<PathBuf> = Initial::Unset("/etc/os-upgrade/strongbox.key");
    }

    /// What this instance keeps on disk.
    "store" => store: Store {
        /// The directory for the SQLite history and the data of a managed nats-server; created if missing.
        "path" => path: PathBuf = Initial::Is("data");
    }

    /// The history: runs, and who did what. It is in SQLite, of each instance for itself.
    "history" => history: History {
        /// How long it is kept. The newest 200 runs stay, however old they are.
        "keep" => keep: Interval<86_400_000, 3_155_760_000_000> = Initial::Is("2years");
    }

    /// The slots that hosts take before they upgrade.
    "fleet-lock" => fleet_lock: FleetLock {
        /// A FleetLock server, `http://` or `https://`, with `user:password@` if it requires HTTP Basic authentication.
        /// Without it the orchestrator's own semaphores are used.
        "url" => url: Option<HttpUrl> = Initial::Unset("https://fleet-lock.example.com/base");
        /// The name of the strongbox's secret with the `user:password` for `url`, instead of one in the URL.
        "credentials-secret" => credentials_secret: Option<SecretName> = Initial::Unset("lock-server");
        /// A PEM file with the certificate authorities to trust for `url`, instead of the system's.
        "ca" => ca: Option<PathBuf> = Initial::Unset("/etc/os-upgrade/fleet-lock-ca.pem");
        /// A PEM file with the certificate to present to the server of `url`, and its intermediate certificates.
        "certificate" => certificate: Option<PathBuf> = Initial::Unset("/etc/os-upgrade/fleet-lock.pem");
        /// A PEM file with the private key of `certificate`, not encrypted.
        "key" => key: Option<PathBuf> = Initial::Unset("/etc/os-upgrade/fleet-lock.key");
        /// The group of hosts that name none.
        "default-group" => default_group: GroupName = Initial::Is("default");
        /// What happens to the slot of a host whose upgrade failed: `hold` keeps it, because the host may be down,
        /// until an operator releases it or the host succeeds; `release` frees it.
        "on-failure" => on_failure: OnFailure = Initial::Is("hold");
        /// Which slots `os-upgrade lock forget` may release: `never` any, or with `inventory` those of hosts that have left the
        /// inventory. No slot is released by a timeout.
        "reclaim" => reclaim: Reclaim = Initial::Is("never");
        /// How long a slot may be held before it is shown as stuck, in the state and in the metrics.
        "stuck-after" => stuck_after: Interval<1_000, 2_592_000_000> = Initial::Is("2h");
        /// The time between two requests for a slot that was denied, plus up to a quarter. After a failed request it is 1 s, and
        /// doubles with each further failure, up to this value and at most 1 min.
        "retry-interval" => retry_interval: Interval<100, 86_400_000> = Initial::Is("10s");
        /// The mean time between two requests of any kind to the server of `url`; two may go out together. The default suits a
        /// server that takes one request a second: set less only for one that takes more.
        "request-interval" => request_interval: Interval<1, 60_000> = Initial::Is("1100ms");
        /// The groups of the orchestrator's own semaphores, and how many of their hosts may be upgraded at once, 0 to 10000. With
        /// `{slots = 1, failed = 1}`, as many hosts whose worker answered an error, and that still send heartbeats, keep no other host of
        /// a run from its slot.
        "groups" => groups: Groups = Initial::Is("default=1");
    }

    /// The reboot queue: hosts that operators want to reboot, without an upgrade.
    "reboot" => reboot: Reboot {
        /// How many hosts of the queue may be under way at once, 1 to 10000; the slots of their groups are a further limit.
        "max-concurrent-reboots" => max_concurrent_reboots: Bounded<1, 10_000> = Initial::Is("1");
        /// How many hosts that are not under way may be unreachable, 0 to 10000: with more, none starts. Hosts that are
        /// queued count, but for the one that is to start, if `reboot-command` reboots it.
        "maximum-unreachable-nodes-for-reboot" => maximum_unreachable_nodes_for_reboot: Bounded<0, 10_000> = Initial::Is("0");
        /// Whether hosts of the queue start only while a maintenance window is open. What is under way when it closes is finished.
        "in-windows" => in_windows: bool = Initial::Is("false");
        /// Whether hosts that say that they need a reboot are queued while a maintenance window is open, each once in a window. Needs
        /// `in-windows`, so that none reboots outside of them.
        "queue-required" => queue_required: bool = Initial::Is("false");
        /// Whether the API servers of the cluster of `[kubernetes]` reboot before its other nodes, `first`, or after them, `last`.
        /// Two of them are never under way at once.
        "api-servers" => api_servers: ApiServerOrder = Initial::Is("first");
        /// The labels of nodes that are API servers, whether or not one runs there now: a label selector as kubectl takes it.
        "api-server-selector" => api_server_selector: LabelSelector = Initial::Is("node-role.kubernetes.io/control-plane");
        /// A command that reboots a host of the queue, instead of its worker: a program and its arguments, quoted as in a shell, which
        /// does not run it. The name of the Kubernetes node, or of the host if it is none, is the last argument. Exit status 0 says
        /// that the reboot has begun, another one that it has not. It needs `command-timeout`.
        "reboot-command" => reboot_command: Option<CommandWords> = Initial::Unset("/usr/local/sbin/reboot-node --soft");
        /// A command that says whether a host has booted since `reboot-command`, instead of the boot that its node or its worker
        /// reports: it prints `true` if so. The last arguments are the node, as above, and the Unix time in seconds since when: the
        /// host is not rebooted before that second.
        "boot-check-command" => boot_check_command: Option<CommandWords> = Initial::Unset("/usr/local/sbin/has-booted");
        /// How long one attempt of these commands may take. After that it is killed, and whether the host reboots is not known: it is
        /// rebooted again only once it has had time to boot and is ready in its old boot.
        "command-timeout" => command_timeout: Option<Interval<1_000, 3_600_000>> = Initial::Unset("1m");
        /// How often a command that has failed is tried again, 0 to 100.
        "command-retries" => command_retries: Bounded<0, 100> = Initial::Is("0");
        /// The time before each of these attempts.
        "command-interval" => command_interval: Interval<0, 3_600_000> = Initial::Is("0s");
        /// How long pods that are terminating are waited for on a node of `[kubernetes]` whose kubelet is silent, after their own time to
        /// end, in the queue and in runs. Then the node counts as drained, and a command can reboot it. Without it they are waited for
        /// until the kubelet is back.
        "skip-wait-for-delete" => skip_wait_for_delete: Option<Interval<1_000, 86_400_000>> = Initial::Unset("5m");
        /// How long a host waits after its node's drain was given up, in the queue and in runs. It doubles each time, up to
        /// `backoff-max`. Where only disruption budgets kept the pods, the first pause is 10 s.
        "backoff-first" => backoff_first: Interval<1_000, 86_400_000> = Initial::Is("5m");
        /// The longest of these pauses.
        "backoff-max" => backoff_max: Interval<1_000, 86_400_000> = Initial::Is("20m");
        /// The most that is added to each pause, so that hosts that were given up together are not tried together.
        "backoff-jitter" => backoff_jitter: Interval<0, 86_400_000> = Initial::Is("5m");
    }

    /// A Kubernetes cluster whose nodes the hosts are: each is cordoned and drained before its host upgrades or reboots. Only with
    /// `kubeconfig` or `in-cluster`. It needs a `[site] name` other than the default, since sites that share a cluster must differ.
    "kubernetes" => kubernetes: Kubernetes {
        /// A kubeconfig with the way to the cluster, and whose rights are used there: those of `config/kubernetes/rbac.yaml`.
        "kubeconfig" => kubeconfig: Option<PathBuf> = Initial::Unset("/etc/os-upgrade/kubernetes/kubeconfig");
        /// The context of `kubeconfig`, instead of its current one.
        "context" => context: Option<Text> = Initial::Unset("os-upgrade");
        /// Whether the cluster is the one in which this orchestrator runs, as the service account of its pod.
        "in-cluster" => in_cluster: bool = Initial::Is("false");
        /// Which node a host is: `host`, the one with the host's name; `label:KEY`, the one whose label KEY has the host's name as its
        /// value; or `mapping`, the one that `[kubernetes.nodes]` names. There, hosts that it does not name are no nodes.
        "node-from" => node_from: NodeSource = Initial::Is("host");
        /// How long a drain may take. After that it is given up: the node is uncordoned, and its host waits for its backoff.
        "drain-timeout" => drain_timeout: Interval<1_000, 86_400_000> = Initial::Is("10m");
        /// The namespaces whose pods stay while a budget refuses their eviction: a label selector as kubectl takes it. Pods of other
        /// namespaces are deleted then. Without it all namespaces are protected.
        "protected-namespaces" => protected_namespaces: Option<LabelSelector> = Initial::Unset("team=core,env in (staging,production)");
        /// The pods of jobs that are waited for until they have ended: a label selector as kubectl takes it. Pods of other jobs are
        /// evicted. Without it every job is waited for.
        "job-pods" => job_pods: Option<LabelSelector> = Initial::Unset("app!=batch");
        /// The pods that are never evicted or deleted: a label selector as kubectl takes it. A drain does not begin while one of them
        /// is on the node and has not finished, whoever controls it.
        "wait-for-pods" => wait_for_pods: Option<LabelSelector> = Initial::Unset("os-upgrade/wait=true");
        /// How often it is asked again whether all pods can be evicted, 0 to 1000, but for 30 s at most, before a drain that has evicted
        /// nothing yet is given up.
        "eviction-retries" => eviction_retries: Bounded<0, 1_000> = Initial::Is("0");
        /// The time before it is tried again to evict a pod that was refused.
        "eviction-interval" => eviction_interval: Interval<100, 3_600_000> = Initial::Is("10s");
        /// How long evicted pods have to end before they are killed, instead of the time that each asks for itself. It is rounded up
        /// to whole seconds.
        "pod-grace" => pod_grace: Option<Interval<1_000, 86_400_000>> = Initial::Unset("2m");
        /// How many requests a second this instance sends to the API servers, 50 to 10000, for all nodes together. A node with ten
        /// pods takes some 30.
        "requests-per-second" => requests_per_second: Bounded<50, 10_000> = Initial::Is("100");
        /// What happens to the node of a host that failed: `keep-cordoned` leaves it as it is, because the host may be down, until an
        /// operator looks after it; `uncordon` uncordons it.
        "on-failure" => on_failure: FailedNode = Initial::Is("keep-cordoned");
        /// The hosts that are nodes, with the names of their nodes, for `node-from = "mapping"`.
        "nodes" => nodes: Option<NodeNames> = Initial::Unset("h01=node-1,h02=node-2");
    }
}

impl Default for Settings {
    fn default() -> Self {
        let nothing = Merged::empty(SCHEMA);
        let read = read::Settings::new(&nothing, &mut Vec::new());
        read.values().expect("every default is valid, as a test shows")
    }
}
