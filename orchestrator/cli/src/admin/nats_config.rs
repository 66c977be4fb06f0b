//! `os-upgrade nats-config`: configures NATS for a site so that no host can speak for another.

use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use chrono::Utc;
use clap::{Args, Subcommand};
use os_upgrade_nats_config::{Error, Layout, NatsConfig, Server};
use os_upgrade_protocol::HostName;

use crate::Failure;
use crate::output::{errln, outln};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create keys, certificates, the orchestrators' credentials, and a configuration for each server
    ///
    /// Run it again, and then `push`, to create what is missing and to give all hosts the rights of this version. It keeps
    /// keys, and overwrites what is derived from them, such as configurations and `ca.pem`: make your changes in the copies
    /// on the servers. Whoever has DIR/keys can grant any right on NATS: keep DIR away from servers and hosts.
    #[command(after_help = examples!["nats-config init --dir nats --server bus.example"])]
    Init(Init),
    /// Create an account and credentials for each host
    #[command(after_help = examples!["nats-config host --dir nats h01 h02"])]
    Host(Hosts),
    /// Revoke the credentials of hosts
    #[command(after_help = examples!["nats-config revoke --dir nats h01 --nats nats://bus.example"])]
    Revoke(Hosts),
    /// Send all accounts to running servers
    #[command(after_help = examples!["nats-config push --dir nats --nats nats://bus.example"])]
    Push(Push),
}

/// The option that selects the site.
#[derive(Debug, Args)]
struct Place {
    /// The directory with everything of the site's NATS
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Init {
    #[command(flatten)]
    place: Place,
    /// A nats-server, HOST[:PORT[:CLUSTER-PORT]], as clients and other servers reach it; repeat it for a cluster of three
    #[arg(long = "server", value_name = "SERVER", required = true)]
    servers: Vec<Server>,
    /// The address that each server listens on
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0")]
    listen: IpAddr,
    /// The directory for a server's configuration and certificate, on its machine
    #[arg(long, value_name = "DIR", default_value = "/etc/nats")]
    etc: PathBuf,
    /// The directory for a server's streams and accounts, on its machine
    #[arg(long, value_name = "DIR", default_value = "/var/lib/nats")]
    data: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Hosts {
    #[command(flatten)]
    place: Place,
    /// Hosts, by the names that their workers announce
    #[arg(value_name = "HOST", required = true)]
    names: Vec<HostName>,
    /// Also send the change to the servers at this URL; any server of a cluster will do
    #[arg(long, value_name = "URL", env = "OS_UPGRADE_NATS_URL")]
    nats: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Push {
    #[command(flatten)]
    place: Place,
    /// The servers; any server of a cluster will do
    #[arg(long, value_name = "URL", env = "OS_UPGRADE_NATS_URL")]
    nats: String,
}

/// Carries the command out.
pub(crate) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Init(options) => init(&options),
        Command::Host(options) => add(options).await,
        Command::Revoke(options) => revoke(options).await,
        Command::Push(Push { place, nats }) => {
            let config = NatsConfig::new(&place.dir);
            let accounts = config.accounts().map_err(failure)?;
            push(&config, &nats, &accounts).await
        }
    }
}

fn init(options: &Init) -> Result<(), Failure> {
    if options.servers.len() == 2 {
        let wrong = "a cluster of two stops when either server does: give one server, or three";
        return Err(Failure::Usage(wrong.to_owned()));
    }
    let servers = || options.servers.iter().map(|server| (&server.host, server.client_port));
    if let Some((_, (host, port))) =
        servers().enumerate().find(|(place, server)| servers().take(*place).any(|earlier| earlier == *server))
    {
        return Err(Failure::Usage(format!(
            "{host}:{port} is given twice: the servers of a cluster must differ"
        )));
    }
    let layout = Layout {
        servers: options.servers.clone(),
        listen: options.listen,
        etc: options.etc.clone(),
        data: options.data.clone(),
    };
    let config = NatsConfig::new(&options.place.dir);
    config.init(&layout, Utc::now()).map_err(failure)?;
    let urls: Vec<String> = layout.servers.iter().map(Server::url).collect();
    for server in &layout.servers {
        let (from, to) = (config.server(server), layout.etc.display());
        outln!("on {}: put the files of {} into {to}, and start", server.host, from.display());
        outln!("  nats-server --config {to}/nats-server.conf");
    }
    outln!("for each orchestrator:");
    outln!("  [nats]");
    outln!("  url = \"{}\"", urls.join(","));
    outln!(
        "  credentials = \"/etc/os-upgrade/nats.creds\"   # {}",
        config.orchestrator_credentials().display()
    );
    outln!("  ca = \"/etc/os-upgrade/nats-ca.pem\"           # {}", config.ca().display());
    if layout.servers.len() > 1 {
        outln!("  replicas = {}", layout.servers.len().min(5));
    }
    Ok(())
}

async fn add(options: Hosts) -> Result<(), Failure> {
    let config = NatsConfig::new(&options.place.dir);
    let mut accounts = Vec::new();
    for host in &options.names {
        let path = config.add_host(host, Utc::now()).map_err(failure)?;
        accounts.push(config.account_of(host).map_err(failure)?);
        outln!("{}", path.display());
    }
    push_or_remind(&config, options.nats, &accounts).await
}

async fn revoke(options: Hosts) -> Result<(), Failure> {
    let config = NatsConfig::new(&options.place.dir);
    let mut accounts = Vec::new();
    for host in &options.names {
        config.revoke_host(host, Utc::now()).map_err(failure)?;
        accounts.push(config.account_of(host).map_err(failure)?);
    }
    push_or_remind(&config, options.nats, &accounts).await
}

/// Pushes `accounts` to the servers if a URL is given, and else prints how to.
async fn push_or_remind(
    config: &NatsConfig,
    nats: Option<String>,
    accounts: &[String],
) -> Result<(), Failure> {
    if let Some(nats) = nats {
        return push(config, &nats, accounts).await;
    }
    errln!("this takes effect after: os-upgrade nats-config push --dir DIR --nats URL");
    Ok(())
}

async fn push(config: &NatsConfig, nats: &str, accounts: &[String]) -> Result<(), Failure> {
    let pushed = config.push(nats, accounts).await;
    pushed.context("the accounts were not sent; run `os-upgrade nats-config push` again")?;
    errln!("sent {} accounts to the servers", accounts.len());
    Ok(())
}

/// Errors that the operator must correct first become usage errors (exit code 2).
fn failure(error: Error) -> Failure {
    match error {
        Error::Name { .. }
        | Error::NotInitialized { .. }
        | Error::Exists { .. }
        | Error::UnknownHost { .. } => Failure::Usage(error.to_string()),
        Error::File(_) | Error::Sign(_) | Error::Certificate(_) => Failure::Runtime(error.into()),
    }
}
