//! `os-upgrade-worker`: ready-made workers, and a check for any worker.

mod check;
mod cli;
mod content_file;
mod debian;
mod image;
mod leftover;
mod options;
mod pipes;
mod process;
mod progress_file;
mod script_file;
mod scripts;
mod system;

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{CommandFactory, FromArgMatches};
use os_upgrade_credentials::{SafeFields, without_empty_variables};
use os_upgrade_platform::manual;
use os_upgrade_protocol::text::sanitized_character;
use os_upgrade_worker_sdk::{BootIdSource, CancellationToken, Error, HostName, WorkerBuilder};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Mutex;
use tracing::info;
use tracing_subscriber::EnvFilter;

use cli::{Cli, Command, ExecArgs};
use content_file::ContentFile;
use debian::{Debian, DebianArgs};
use image::{Image, ImageArgs};
use leftover::Leftover;
use options::WorkerArgs;
use progress_file::ProgressFile;
use scripts::Scripts;
use system::SystemOptions;
use system::host::Host;

fn main() -> ExitCode {
    manual::complete(Cli::command);
    run()
}

#[tokio::main]
async fn run() -> ExitCode {
    let arguments = without_empty_variables(Cli::command()).get_matches();
    let Cli { command } = Cli::from_arg_matches(&arguments).unwrap_or_else(|error| error.exit());
    init_log();
    let ended = match command {
        Command::Exec(args) => exec(args).await,
        Command::Debian(args) => debian(args).await,
        Command::Image(args) => image(args).await,
        Command::Check(args) => check::run(args).await,
        Command::Manual { directory } => manual::write(&directory, &Cli::command())
            .with_context(|| format!("cannot write {}", directory.display())),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "the line that reports why the process ends")]
            {
                let error: String = format!("{error:#}").chars().map(sanitized_character).collect();
                eprintln!("os-upgrade-worker: {error}");
            }
            let is_usage = error.downcast_ref::<Error>().is_some_and(Error::is_usage);
            if is_usage { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

fn init_log() {
    // The NATS client would log every attempt to connect; the library logs what matters of that.
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info,async_nats=off"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .fmt_fields(SafeFields::default())
        .init();
}

async fn exec(args: ExecArgs) -> anyhow::Result<()> {
    let directory = std::path::absolute(&args.dir)
        .and_then(|path| std::fs::read_dir(&path).map(|_| path))
        .with_context(|| format!("cannot use the scripts in {}", args.dir.display()))?;
    let host = host(args.worker.host.as_deref())?;
    let state_dir = std::path::absolute(&args.worker.state_dir)?;
    let leftover = Leftover::of_host(&state_dir, &host, "script")?;
    let progress = state_dir.join(format!("{}.progress", HostName::new(&host)?.token()));
    let shutdown = shutdown_on_signals()?;
    let scripts = Scripts {
        directory,
        host: host.clone(),
        leftover,
        progress: ProgressFile::new(progress),
        configuring: Leftover::of_host(&state_dir, &host, "configuring")?,
        content: ContentFile::of_host(&state_dir, &host, std::env::var_os("XDG_RUNTIME_DIR").as_deref())?,
        shutdown: shutdown.clone(),
        cleared: Mutex::default(),
    };
    let mut builder = builder(args.worker, &host, shutdown)?;
    if scripts.can_configure()? {
        builder = builder.configures();
    }
    builder.run(scripts).await?;
    Ok(())
}

async fn debian(args: DebianArgs) -> anyhow::Result<()> {
    let DebianArgs { worker, mut settings, system } = args;
    settings.root = std::fs::canonicalize(&settings.root)
        .with_context(|| format!("cannot use the root {}", settings.root.display()))?;
    let system = with_absolute_script(system)?;
    let host = host(worker.host.as_deref())?;
    let state_dir = std::path::absolute(&worker.state_dir)?;
    let reboot_wait = worker.reboot_wait + system.holdup_max();
    let debian = Debian::new(settings, system, &state_dir, &host, boot_id(&worker))?;
    builder(worker, &host, shutdown_on_signals()?)?.reboot_wait(reboot_wait).run(Host(debian)).await?;
    Ok(())
}

async fn image(args: ImageArgs) -> anyhow::Result<()> {
    let ImageArgs { worker, settings, system } = args;
    let host = host(worker.host.as_deref())?;
    let state_dir = std::path::absolute(&worker.state_dir)?;
    let reboot_wait = worker.reboot_wait + system.holdup_max();
    let image = Image::new(settings, with_absolute_script(system)?, &state_dir, &host, boot_id(&worker))?;
    builder(worker, &host, shutdown_on_signals()?)?.reboot_wait(reboot_wait).run(Host(image)).await?;
    Ok(())
}

/// The options with the absolute path of the health script, which must exist.
fn with_absolute_script(mut options: SystemOptions) -> anyhow::Result<SystemOptions> {
    if let Some(script) = &options.health_script {
        let path = std::fs::canonicalize(script)
            .with_context(|| format!("cannot use the health script {}", script.display()))?;
        options.health_script = Some(path);
    }
    Ok(options)
}

/// A worker of `host` configured by the command line and ended by `shutdown`.
fn builder(args: WorkerArgs, host: &str, shutdown: CancellationToken) -> anyhow::Result<WorkerBuilder> {
    let boot_id = boot_id(&args);
    let mut builder = WorkerBuilder::new(host, &args.application)?
        .nats_url(&args.nats.url)
        .state_dir(&args.state_dir)
        .reboot_wait(args.reboot_wait);
    if let Some(file) = args.nats.credentials {
        builder = builder.credentials(file);
    }
    if let Some(file) = args.nats.tls_ca {
        builder = builder.tls_ca(file);
    }
    if let (Some(certificate), Some(key)) = (args.nats.tls_cert, args.nats.tls_key) {
        builder = builder.tls_certificate(certificate, key);
    }
    if let Some(group) = args.group {
        builder = builder.group(group);
    }
    for (key, value) in &args.labels {
        builder = builder.label(key, value);
    }
    for root in args.config_roots {
        builder = builder.configuration_root(root);
    }
    for address in &args.addresses {
        builder = builder.address(address);
    }
    Ok(builder.boot_id(boot_id).shutdown(shutdown))
}

fn boot_id(args: &WorkerArgs) -> BootIdSource {
    args.boot_id_file.clone().map_or(BootIdSource::Kernel, BootIdSource::File)
}

/// The host's name: the given one (see [`WorkerArgs::host`]), or else this machine's.
fn host(given: Option<&str>) -> anyhow::Result<String> {
    if let Some(host) = given.filter(|host| !host.is_empty()) {
        return Ok(host.to_owned());
    }
    let name = hostname::get().context("cannot read this machine's name")?;
    match name.into_string() {
        Ok(name) if !name.is_empty() => Ok(name),
        Ok(_) | Err(_) => bail!("this machine has no usable name; give one with --host"),
    }
}

/// Cancelled by the first SIGTERM or SIGINT; a second one ends the process as usual.
fn shutdown_on_signals() -> anyhow::Result<CancellationToken> {
    let token = CancellationToken::new();
    for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
        let mut signals = signal(kind).context("cannot listen for signals")?;
        let token = token.clone();
        tokio::spawn(async move {
            signals.recv().await;
            info!("shutting down after a signal");
            token.cancel();
            signals.recv().await;
            std::process::exit(1);
        });
    }
    Ok(token)
}
