//! nats-servers set up by `os-upgrade nats-config`: TLS, and an account for each host.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;

use async_nats::jetstream::stream::Info;
use async_nats::{Client, jetstream};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::TryStreamExt as _;
use nkeys::KeyPair;
use os_upgrade_credentials::Access;
use os_upgrade_platform::child::Child;
use os_upgrade_platform::nats_server;
use os_upgrade_protocol::HostName;
use serde_json::Value;
use tempfile::TempDir;

use crate::host::Host;
use crate::orchestrator::{Orchestrator, own_address};
use crate::wait::eventually;
use crate::{disk, files, programs};

/// The addresses of a nats-server.
#[derive(Debug)]
struct Server {
    host: String,
    client_port: u16,
    cluster_port: u16,
}

impl Server {
    fn url(&self) -> String {
        format!("tls://{}:{}", self.host, self.client_port)
    }

    /// As `nats-config` calls it.
    fn name(&self) -> String {
        format!("{}-{}", self.host, self.client_port)
    }
}

/// The files that `os-upgrade nats-config` has created in its directory.
#[derive(Debug)]
pub struct Issued(PathBuf);

impl Issued {
    /// The certificate of the authority.
    pub fn ca(&self) -> PathBuf {
        self.0.join("ca.pem")
    }

    /// The credentials of the orchestrators.
    pub fn orchestrator_credentials(&self) -> PathBuf {
        self.0.join("orchestrator.creds")
    }

    /// The credentials that push accounts to the servers.
    pub fn system_credentials(&self) -> PathBuf {
        self.0.join("system.creds")
    }

    /// The credentials of a host.
    pub fn host_credentials(&self, host: &str) -> PathBuf {
        self.0.join("hosts").join(format!("{}.creds", HostName::new(host).unwrap().token()))
    }

    /// What nats-server calls the orchestrators' account in the subjects of acknowledgements, by the rights of a host.
    pub fn account_hash(&self, host: &str) -> String {
        let token = HostName::new(host).unwrap().token();
        let jwt = std::fs::read_to_string(self.0.join("hosts").join(format!("{token}.jwt"))).unwrap();
        let claims = claims(&jwt);
        let imports = claims["nats"]["imports"].as_array().unwrap();
        let long = imports.iter().find(|import| import["name"] == "long-acknowledgements").unwrap();
        long["subject"].as_str().unwrap().split('.').nth(3).unwrap().to_owned()
    }

    fn server(&self, server: &Server) -> PathBuf {
        self.0.join("servers").join(server.name())
    }
}

/// The servers of one test, one or three.
pub struct SecuredNats {
    // First field: dropped before the servers' files.
    children: Vec<Option<Child>>,
    directory: TempDir,
    servers: Vec<Server>,
    settings: Settings,
}

/// What operators may change in the servers' configurations.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    /// Whether servers give the long form of acknowledgements' subjects.
    pub long_acks: bool,
    /// The `JetStream` domain.
    pub domain: Option<&'static str>,
}

impl Settings {
    fn apply(self, mut configuration: String) -> String {
        if self.long_acks {
            configuration.push_str("feature_flags { js_ack_fc_v2: true }\n");
        }
        match self.domain {
            Some(domain) => {
                configuration.replace("jetstream {", &format!("jetstream {{\n    domain: {domain}"))
            }
            None => configuration,
        }
    }
}

impl SecuredNats {
    /// Starts one server, or a cluster of three.
    pub async fn start(servers: usize) -> Self {
        Self::start_with(servers, Settings::default()).await
    }

    /// Starts one server, or a cluster of three, with other settings.
    pub async fn start_with(servers: usize, settings: Settings) -> Self {
        let server = |_| {
            let address = own_address();
            Server {
                host: address.ip().to_string(),
                client_port: address.port(),
                cluster_port: own_address().port(),
            }
        };
        let servers = (0..servers).map(server).collect();
        let directory = tempfile::tempdir().unwrap();
        let mut this = Self { children: Vec::new(), directory, servers, settings };
        this.init().await;
        for index in 0..this.servers.len() {
            let child = this.launch(index).await;
            this.children.push(Some(child));
        }
        eventually("the servers to admit orchestrators, and to have a leader", async || {
            let client = this.try_client(&this.issued().orchestrator_credentials()).await?;
            jetstream::new(client).query_account().await.ok()
        })
        .await;
        this
    }

    /// Lets the program create all files. It creates a directory for each server, laid out as on that server's machine.
    async fn init(&self) {
        for server in &self.servers {
            let spelled: Vec<String> = self
                .servers
                .iter()
                .map(|server| format!("{}:{}:{}", server.host, server.client_port, server.cluster_port))
                .collect();
            let mut arguments = vec!["init".to_owned()];
            arguments.extend(spelled.iter().flat_map(|server| ["--server".to_owned(), server.clone()]));
            let etc = self.issued().server(server);
            arguments.extend(["--listen".to_owned(), server.host.clone()]);
            arguments.extend(["--etc".to_owned(), etc.display().to_string()]);
            arguments.extend(["--data".to_owned(), self.data(server).display().to_string()]);
            let output = self.nats_config(&arguments).await;
            assert!(output.status.success(), "{output:?}");
            // The next server's machine would be another one; here its files would overwrite these.
            let own = etc.join("own.conf");
            if !own.exists() {
                let made = std::fs::read_to_string(etc.join("nats-server.conf")).unwrap();
                std::fs::write(own, self.settings.apply(made)).unwrap();
            }
        }
    }

    async fn launch(&self, index: usize) -> Child {
        let server = &self.servers[index];
        let program = nats_server::find().await.unwrap().path;
        let mut command = disk::command(&program);
        let etc = self.issued().server(server);
        command.arg("-c").arg(etc.join("own.conf")).arg("-l").arg(etc.join("log"));
        Child::start(command).unwrap()
    }

    /// Kills a server, and waits until its process has ended.
    pub fn kill(&mut self, index: usize) {
        self.children[index] = None;
    }

    /// Starts a killed server.
    pub async fn start_again(&mut self, index: usize) {
        self.children[index] = Some(self.launch(index).await);
    }

    /// The index of the server with this name in the configuration.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.servers.iter().position(|server| name == server.name())
    }

    /// The index of the server that leads each stream; `None` while one has no leader.
    /// `jetstream` is a client of the orchestrators' account.
    pub async fn stream_leaders(&self, jetstream: &jetstream::Context) -> Option<BTreeMap<String, usize>> {
        let streams: Vec<_> = jetstream.streams().try_collect().await.ok()?;
        let leader = |info: Info| {
            let leader = self.index_of(&info.cluster?.leader?)?;
            Some((info.config.name, leader))
        };
        streams.into_iter().map(leader).collect()
    }

    /// Kills a server and starts it again without the accounts pushed to it. Its streams stay.
    pub async fn lose_accounts(&mut self, index: usize) {
        self.kill(index);
        std::fs::remove_dir_all(self.data(&self.servers[index]).join("accounts")).unwrap();
        self.start_again(index).await;
        eventually("the server to admit orchestrators", async || {
            self.try_client(&self.issued().orchestrator_credentials()).await
        })
        .await;
    }

    /// Gives all hosts the rights of the program's version, as operators of an older site do. The servers keep their
    /// configurations.
    pub async fn renew_rights(&self) {
        self.init().await;
        self.push().await;
    }

    /// Takes the right `name` from all accounts, as a version of the program made them that did not know it.
    pub async fn take_right(&self, name: &str) {
        self.edit_accounts(|claims| {
            for kind in ["imports", "exports"] {
                if let Some(rights) = claims[kind].as_array_mut() {
                    let before = rights.len();
                    rights.retain(|right| right["name"] != name);
                    assert!(rights.len() < before, "there is no right {name} in {rights:?}");
                }
            }
            claims.as_object_mut().unwrap().remove("mappings");
        })
        .await;
    }

    /// Changes what NATS reads of all accounts, but for the system's.
    pub async fn edit_accounts(&self, edit: impl Fn(&mut Value)) {
        let site = self.directory.path().join("site");
        let seed = std::fs::read_to_string(site.join("keys/operator.nk")).unwrap();
        let operator = KeyPair::from_seed(&seed).unwrap();
        let hosts = std::fs::read_dir(site.join("hosts")).unwrap().map(|entry| entry.unwrap().path());
        let hosts = hosts.filter(|path| path.extension().is_some_and(|extension| extension == "jwt"));
        for path in hosts.chain([site.join("site.jwt")]) {
            let jwt = std::fs::read_to_string(&path).unwrap();
            let mut claims = claims(&jwt);
            edit(&mut claims["nats"]);
            std::fs::write(&path, signed(&jwt, &claims, &operator)).unwrap();
        }
        self.push().await;
    }

    async fn push(&self) {
        let push = ["push", "--nats", &self.urls()].map(str::to_owned);
        let output = self.nats_config(&push).await;
        assert!(output.status.success(), "{output:?}");
    }

    fn data(&self, server: &Server) -> PathBuf {
        self.directory.path().join(format!("data-{}", server.client_port))
    }

    /// The size of what the servers store, in bytes.
    pub fn stored(&self) -> u64 {
        self.servers.iter().map(|server| files::size(&self.data(server))).sum()
    }

    /// The keys, certificates and configurations of the site's NATS.
    pub fn issued(&self) -> Issued {
        Issued(self.directory.path().join("site"))
    }

    /// The URLs of all servers, separated by commas.
    pub fn urls(&self) -> String {
        self.servers.iter().map(Server::url).collect::<Vec<_>>().join(",")
    }

    /// Runs `os-upgrade nats-config` on its directory.
    pub async fn nats_config(&self, arguments: &[String]) -> Output {
        let mut command = tokio::process::Command::new(programs::path(programs::ORCHESTRATOR));
        let (first, rest) = arguments.split_first().unwrap();
        command.args(["nats-config", first, "--dir"]).arg(self.directory.path().join("site")).args(rest);
        command.output().await.unwrap()
    }

    /// Runs `nats-config host` or `revoke` for a host, and pushes the result to the servers.
    pub async fn change(&self, what: &str, host: &str) {
        let arguments = [what, host, "--nats", &self.urls()].map(str::to_owned);
        let output = self.nats_config(&arguments).await;
        assert!(output.status.success(), "{output:?}");
    }

    /// Creates credentials for `host`.
    pub async fn admit(&self, host: &str) -> PathBuf {
        self.change("host", host).await;
        self.issued().host_credentials(host)
    }

    /// A host with its own credentials, whose scripts write to `log`. Its worker does not run yet.
    pub async fn host(&self, log: &Path, name: &str) -> Host {
        let [credentials, ca] =
            [self.admit(name).await, self.issued().ca()].map(|path| path.display().to_string());
        Host::new(&self.urls(), log, name).with_arguments(&["--credentials", &credentials, "--tls-ca", &ca])
    }

    /// A client with these credentials; `None` if it is rejected.
    pub async fn try_client(&self, credentials: &Path) -> Option<Client> {
        self.try_client_of(&self.servers, credentials).await
    }

    /// A client of one server, with these credentials.
    pub async fn client_of(&self, index: usize, credentials: &Path) -> Client {
        self.try_client_of(&self.servers[index..=index], credentials).await.unwrap()
    }

    async fn try_client_of(&self, servers: &[Server], credentials: &Path) -> Option<Client> {
        let access = Access {
            credentials: Some(credentials.to_owned()),
            ca: Some(self.issued().ca()),
            ..Access::default()
        };
        let addresses: Vec<_> = servers.iter().map(|server| server.url().parse().unwrap()).collect();
        access.options(&addresses).unwrap().connect(addresses).await.ok()
    }

    /// A client with these credentials.
    pub async fn client(&self, credentials: &Path) -> Client {
        self.try_client(credentials).await.unwrap()
    }

    /// An orchestrator with orchestrator credentials, which does not run yet.
    pub fn orchestrator(&self) -> Orchestrator {
        self.orchestrator_with(&self.issued().orchestrator_credentials())
    }

    /// An orchestrator with other credentials, which does not run yet.
    pub fn orchestrator_with(&self, credentials: &Path) -> Orchestrator {
        let config = self.issued();
        let more = format!(
            "credentials = \"{}\"\nca = \"{}\"\nreplicas = {}",
            credentials.display(),
            config.ca().display(),
            self.servers.len()
        );
        Orchestrator::new(&self.urls(), &more)
    }
}

/// The claims of an account.
fn claims(jwt: &str) -> Value {
    let claims = jwt.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap()
}

/// `claims` in place of those of `jwt`, signed by `operator`.
fn signed(jwt: &str, claims: &Value, operator: &KeyPair) -> String {
    let (header, _) = jwt.split_once('.').unwrap();
    let text = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
    let signature = operator.sign(text.as_bytes()).unwrap();
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}
