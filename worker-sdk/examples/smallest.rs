//! The smallest worker: it only upgrades. Everything else has a default.
//!
//! `OS_UPGRADE_NATS_URL=nats://127.0.0.1:4222 cargo run --example smallest -- h01`

use os_upgrade_worker_sdk::{Context, HandlerResult, Upgraded, Worker, WorkerBuilder};

struct Smallest;

impl Worker for Smallest {
    async fn upgrade(&self, _context: &Context) -> HandlerResult<Upgraded> {
        Ok(Upgraded::Done)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The URL may contain a password, and other users can read arguments.
    let url = std::env::var("OS_UPGRADE_NATS_URL")
        .map_err(|_| "set OS_UPGRADE_NATS_URL to the URL of NATS, such as nats://127.0.0.1:4222")?;
    let host = std::env::args().nth(1).unwrap_or_else(|| "h01".to_owned());
    let builder = WorkerBuilder::new(&host, "smallest")?.nats_url(&url).state_dir("smallest-worker-state");
    Ok(builder.run(Smallest).await?)
}
