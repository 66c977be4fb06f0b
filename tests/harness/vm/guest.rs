//! A guest: its own disk over the common image, and its QEMU process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use os_upgrade_platform::child::{Child, command};
use tempfile::TempDir;

use super::QEMU;
use super::accelerator::Accelerator;
use super::agent::Agent;
use crate::wait;

/// Timeout of a guest's boot, emulated and beside other work.
const BOOT_WAIT: Duration = Duration::from_mins(30);

/// A virtual machine, which can lose its power.
#[derive(Debug)]
pub struct Guest {
    name: String,
    accelerator: Accelerator,
    directory: PathBuf,
    // In a separate directory, because socket paths must be short.
    sockets: TempDir,
    qemu: Option<Child>,
    /// Its guest agent.
    pub agent: Agent,
}

impl Guest {
    /// A guest whose disk is an overlay of `image`, in `directory`. It does not run yet.
    pub fn new(name: &str, image: &Path, directory: &Path, accelerator: Accelerator) -> Self {
        let directory = directory.join(name);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        let made = Command::new("qemu-img")
            .args(["create", "-q", "-f", "qcow2", "-F", "raw", "-b"])
            .arg(image.canonicalize().unwrap())
            .arg(directory.join("disk"))
            .stdout(Stdio::null())
            .status();
        assert!(made.unwrap().success(), "no disk for {name}");
        let sockets = tempfile::tempdir().unwrap();
        let agent = Agent::new(sockets.path().join("agent"));
        Self { name: name.to_owned(), accelerator, directory, sockets, qemu: None, agent }
    }

    /// Its host name.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn console_file(&self) -> PathBuf {
        self.directory.join("console")
    }

    /// Its console output of all boots.
    pub fn console(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.console_file()).unwrap_or_default()).into_owned()
    }

    /// Starts it.
    pub fn power_on(&mut self) {
        let mut qemu = command(QEMU);
        qemu.args(self.accelerator.options()).args(["-m", "512", "-display", "none", "-monitor", "none"]);
        qemu.arg("-drive")
            .arg(format!("file={},format=qcow2,if=virtio", self.directory.join("disk").display()));
        qemu.arg("-chardev").arg(format!("file,id=console,append=on,path={}", self.console_file().display()));
        qemu.args([
            "-serial",
            "chardev:console",
            "-netdev",
            "user,id=net",
            "-device",
            "virtio-net-pci,netdev=net",
        ]);
        qemu.args(["-device", "virtio-rng-pci", "-device", "virtio-serial"]);
        let socket = self.sockets.path().join("agent");
        qemu.arg("-chardev").arg(format!("socket,id=agent,server=on,wait=off,path={}", socket.display()));
        qemu.args(["-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0"]);
        let log =
            fs::File::options().create(true).append(true).open(self.directory.join("qemu.log")).unwrap();
        qemu.stderr(log);
        self.qemu = Some(Child::start(qemu).unwrap());
    }

    /// Cuts its power: everything not yet written to its disk is lost.
    pub async fn cut_power(&mut self) {
        self.qemu.take().unwrap().kill().await;
    }

    /// Waits until it is up and systemd has started all units.
    pub async fn up(&self) {
        let name = &self.name;
        wait::within(
            BOOT_WAIT,
            &format!("{name} to boot; see {}", self.console_file().display()),
            async || {
                let status = self.qemu.as_ref().unwrap().status();
                assert!(status.is_none(), "QEMU of {name} has ended: {status:?}");
                let output = self.agent.try_run("systemctl is-system-running").await?;
                (!matches!(output.text.trim(), "" | "initializing" | "starting" | "offline")).then_some(())
            },
        )
        .await;
    }

    /// The id of the current boot.
    pub async fn boot_id(&self) -> String {
        self.agent.must("cat /proc/sys/kernel/random/boot_id").await.trim().to_owned()
    }
}
