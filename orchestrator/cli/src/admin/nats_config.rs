//! `os-upgrade nats-config`: NATS for a site in which no host can speak for another.

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
    /// Make keys, certificates, credentials of the orchestrators, and a configuration for each server
    ///
    /// Run again, it makes what is missing and never writes over a key; configurations, `ca.pem` and what else follows from
    /// keys are written anew, so change them where the servers are. What is in DIR/keys decides who may do what on
    /// NATS: keep DIR where neither servers nor hosts are.
    Init(Init),
    /// Make an account and credentials for hosts
    Host(Hosts),
    /// Revoke the credentials of hosts
    Revoke(Hosts),
    /// Tell running servers of all accounts
    Push(Push),
}

/// Which site.
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
    /// A nats-server, HOST[:PORT[:CLUSTER-PORT]], as everybody reaches it; three times for a cluster
    #[arg(long = "server", value_name = "SERVER", required = true)]
    servers: Vec<Server>,
    /// The address that a server listens on
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0")]
    listen: IpAddr,
    /// Where a server's configuration and certificate lie on its machine
    #[arg(long, value_name = "DIR", default_value = "/etc/nats")]
    etc: PathBuf,
    /// Where it keeps streams and accounts
    #[arg(long, value_name = "DIR", default_value = "/var/lib/nats")]
    data: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Hosts {
    #[command(flatten)]
    place: Place,
    /// Hosts, by the names that their workers say
    #[arg(value_name = "HOST", required = true)]
    names: Vec<HostName>,
    /// Tell the servers at this URL at once, any of a cluster
    #[arg(long, value_name = "URL", env = "OS_UPGRADE_NATS_URL")]
    nats: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Push {
    #[command(flatten)]
    place: Place,
    /// The servers, any of a cluster
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
        let wrong = "two servers stand still when one of them does: give one, or three";
        return Err(Failure::Usage(wrong.to_owned()));
    }
    let servers = || options.servers.iter().map(|server| (&server.host, server.client_port));
    if let Some((_, (host, port))) =
        servers().enumerate().find(|(place, server)| servers().take(*place).any(|earlier| earlier == *server))
    {
        return Err(Failure::Usage(format!(
            "{host}:{port} is given twice: each server of a cluster is another"
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
    tell(&config, options.nats, &accounts).await
}

async fn revoke(options: Hosts) -> Result<(), Failure> {
    let config = NatsConfig::new(&options.place.dir);
    let mut accounts = Vec::new();
    for host in &options.names {
        config.revoke_host(host, Utc::now()).map_err(failure)?;
        accounts.push(config.account_of(host).map_err(failure)?);
    }
    tell(&config, options.nats, &accounts).await
}

/// Tells the servers, or says that somebody has to.
async fn tell(config: &NatsConfig, nats: Option<String>, accounts: &[String]) -> Result<(), Failure> {
    if let Some(nats) = nats {
        return push(config, &nats, accounts).await;
    }
    errln!("in force once the servers are told: os-upgrade nats-config push --dir DIR --nats URL");
    Ok(())
}

async fn push(config: &NatsConfig, nats: &str, accounts: &[String]) -> Result<(), Failure> {
    let pushed = config.push(nats, accounts).await;
    pushed.context("the servers have not been told; run `os-upgrade nats-config push` again")?;
    errln!("the servers have been told of {} accounts", accounts.len());
    Ok(())
}

/// What somebody has to put right first ends with 2.
fn failure(error: Error) -> Failure {
    match error {
        Error::NotBegun { .. } | Error::Exists { .. } | Error::NoHost { .. } => {
            Failure::Usage(error.to_string())
        }
        Error::File(_) | Error::Sign(_) | Error::Certificate(_) => Failure::Runtime(error.into()),
    }
}
