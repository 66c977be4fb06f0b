//! nats-servers as `os-upgrade nats-config` has them: TLS, and an account for each host.

use std::path::{Path, PathBuf};
use std::process::Output;

use async_nats::{Client, jetstream};
use os_upgrade_credentials::Access;
use os_upgrade_platform::child::Child;
use os_upgrade_platform::nats_server;
use os_upgrade_protocol::HostName;
use tempfile::TempDir;

use crate::orchestrator::{Orchestrator, own_address};
use crate::wait::eventually;
use crate::{disk, programs};

/// A nats-server, as clients and the other servers reach it.
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
}

/// What `os-upgrade nats-config` has put into its directory, and under which names.
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

    /// The credentials of who tells the servers of accounts.
    pub fn system_credentials(&self) -> PathBuf {
        self.0.join("system.creds")
    }

    /// The credentials of a host.
    pub fn host_credentials(&self, host: &str) -> PathBuf {
        self.0.join("hosts").join(format!("{}.creds", HostName::new(host).unwrap().token()))
    }

    fn server(&self, server: &Server) -> PathBuf {
        self.0.join("servers").join(format!("{}-{}", server.host, server.client_port))
    }
}

/// The servers of one test, one or three.
pub struct SecuredNats {
    // First, so that they are gone before their files are.
    children: Vec<Child>,
    directory: TempDir,
    servers: Vec<Server>,
}

impl SecuredNats {
    /// One server, or a cluster of three, that runs.
    pub async fn start(servers: usize) -> Self {
        let server = |_| {
            let address = own_address();
            Server {
                host: address.ip().to_string(),
                client_port: address.port(),
                cluster_port: own_address().port(),
            }
        };
        let servers = (0..servers).map(server).collect();
        let mut this = Self { children: Vec::new(), directory: tempfile::tempdir().unwrap(), servers };
        this.init().await;
        for index in 0..this.servers.len() {
            let child = this.launch(index).await;
            this.children.push(child);
        }
        eventually("the servers to let orchestrators in, and to have a leader", async || {
            let client = this.try_client(&this.issued().orchestrator_credentials()).await?;
            jetstream::new(client).query_account().await.ok()
        })
        .await;
        this
    }

    /// Has everything made by the program. Its directories are for one server each, as they are on its machine.
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
            // The next one is for another machine, and would write over it.
            std::fs::copy(etc.join("nats-server.conf"), etc.join("own.conf")).unwrap();
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

    /// Kills a server and starts it again without the accounts that it had been told of. Its streams stay.
    pub async fn lose_accounts(&mut self, index: usize) {
        drop(self.children.remove(index));
        std::fs::remove_dir_all(self.data(&self.servers[index]).join("accounts")).unwrap();
        let child = self.launch(index).await;
        self.children.insert(index, child);
        eventually("the server to let orchestrators in", async || {
            self.try_client(&self.issued().orchestrator_credentials()).await
        })
        .await;
    }

    fn data(&self, server: &Server) -> PathBuf {
        self.directory.path().join(format!("data-{}", server.client_port))
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

    /// Runs `host` or `revoke` for a host, which the servers are told of.
    pub async fn change(&self, what: &str, host: &str) {
        let arguments = [what, host, "--nats", &self.urls()].map(str::to_owned);
        let output = self.nats_config(&arguments).await;
        assert!(output.status.success(), "{output:?}");
    }

    /// Credentials for `host`, made now.
    pub async fn admit(&self, host: &str) -> PathBuf {
        self.change("host", host).await;
        self.issued().host_credentials(host)
    }

    /// A client with these credentials, if it is let in.
    pub async fn try_client(&self, credentials: &Path) -> Option<Client> {
        let access = Access {
            credentials: Some(credentials.to_owned()),
            ca: Some(self.issued().ca()),
            ..Access::default()
        };
        let addresses: Vec<_> = self.servers.iter().map(|server| server.url().parse().unwrap()).collect();
        access.options(&addresses).unwrap().connect(addresses).await.ok()
    }

    /// A client with these credentials.
    pub async fn client(&self, credentials: &Path) -> Client {
        self.try_client(credentials).await.unwrap()
    }

    /// An orchestrator with its credentials, which does not run yet.
    pub fn orchestrator(&self) -> Orchestrator {
        self.orchestrator_with(&self.issued().orchestrator_credentials())
    }

    /// One that shows other credentials.
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
