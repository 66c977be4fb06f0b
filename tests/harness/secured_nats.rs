//! nats-servers set up by `os-upgrade nats-config`: TLS, and an account for each host.

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

    fn server(&self, server: &Server) -> PathBuf {
        self.0.join("servers").join(format!("{}-{}", server.host, server.client_port))
    }
}

/// The servers of one test, one or three.
pub struct SecuredNats {
    // First field: dropped before the servers' files.
    children: Vec<Child>,
    directory: TempDir,
    servers: Vec<Server>,
}

impl SecuredNats {
    /// Starts one server, or a cluster of three.
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

    /// Kills a server and starts it again without the accounts pushed to it. Its streams stay.
    pub async fn lose_accounts(&mut self, index: usize) {
        drop(self.children.remove(index));
        std::fs::remove_dir_all(self.data(&self.servers[index]).join("accounts")).unwrap();
        let child = self.launch(index).await;
        self.children.insert(index, child);
        eventually("the server to admit orchestrators", async || {
            self.try_client(&self.issued().orchestrator_credentials()).await
        })
        .await;
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

    /// A client with these credentials; `None` if it is rejected.
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
