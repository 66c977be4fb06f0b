//! The test bed of the rows: a nats-server with a site and a floor with the same number of hosts.

use std::path::{Path, PathBuf};

use os_upgrade_platform::managed_nats::{self, ManagedNats};
use os_upgrade_platform::nats_server;

use crate::floor::Floor;
use crate::locks;
use crate::report::progress;
use crate::site::Site;

/// A site and a floor that share a nats-server. Dropping it stops its processes.
#[derive(Debug)]
pub(crate) struct Testbed {
    pub(crate) floor: Floor,
    pub(crate) site: Site,
    /// The number of hosts of each.
    pub(crate) hosts: usize,
    nats: ManagedNats,
}

impl Testbed {
    /// Starts a test bed without hosts, with all data in `directory`.
    pub(crate) async fn start(program: PathBuf, directory: &Path) -> anyhow::Result<Self> {
        let server = nats_server::find().await?;
        let options = managed_nats::Options { directory: directory.join("nats"), port: None };
        let nats = ManagedNats::start(server, &options).await?;
        let floor = Floor::new(&nats.url()).await?;
        let groups = format!(
            "[fleet-lock.groups]\ndefault = 1\n{} = {}\n{} = 1\n{} = 1\n",
            locks::GROUP,
            locks::SLOTS,
            locks::CROWDED,
            locks::QUIET
        );
        let site = Site::start(program, directory.join("site"), &nats.url(), &groups).await?;
        Ok(Self { floor, site, hosts: 0, nats })
    }

    /// Adds hosts until floor and site have `hosts` each.
    pub(crate) async fn grow(&mut self, hosts: usize) -> anyhow::Result<()> {
        progress(format!("{hosts} hosts and their consumers"));
        self.floor.grow(hosts).await?;
        self.site.grow(&self.nats.url(), hosts).await?;
        self.hosts = hosts;
        Ok(())
    }

    /// The nats-server's URL.
    pub(crate) fn nats(&self) -> String {
        self.nats.url()
    }
}
