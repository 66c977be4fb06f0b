//! A complete worker: it pretends to install something and requires a reboot.
//!
//! `OS_UPGRADE_NATS_URL=nats://127.0.0.1:4222 cargo run --example minimal -- h01`

use os_upgrade_worker_sdk::{Context, HandlerResult, Upgraded, Versions, Worker, WorkerBuilder};

struct Minimal;

impl Worker for Minimal {
    async fn upgrade(&self, context: &Context) -> HandlerResult<Upgraded> {
        if context.is_resumed() {
            return Ok(Upgraded::RebootRequired); // It was installed before the worker was cut off.
        }
        std::fs::write(std::env::temp_dir().join("minimal-worker"), "2.0")?;
        Ok(Upgraded::RebootRequired)
    }

    async fn reboot(&self, context: &Context) -> HandlerResult {
        Err(format!("a demo does not reboot {}", context.host()).into())
    }

    async fn versions(&self, _context: &Context) -> HandlerResult<Versions> {
        let version = std::fs::read_to_string(std::env::temp_dir().join("minimal-worker"));
        let version = version.unwrap_or_else(|_| "1.0".to_owned());
        Ok(Versions([("minimal".to_owned(), version)].into()))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The URL may contain a password, and other users can read arguments.
    let url = std::env::var("OS_UPGRADE_NATS_URL")
        .map_err(|_| "set OS_UPGRADE_NATS_URL to the URL of NATS, such as nats://127.0.0.1:4222")?;
    let host = std::env::args().nth(1).unwrap_or_else(|| "h01".to_owned());
    let state_dir = std::env::temp_dir().join("minimal-worker-state");
    let builder = WorkerBuilder::new(&host, "minimal")?.nats_url(&url).state_dir(state_dir);
    Ok(builder.run(Minimal).await?)
}
