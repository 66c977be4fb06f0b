//! The smallest worker: it upgrades, and that is all. Everything else has a default.
//!
//! `cargo run --example smallest -- nats://127.0.0.1:4222 h01`

use os_upgrade_worker_sdk::{Context, HandlerResult, Upgraded, Worker, WorkerBuilder};

struct Smallest;

impl Worker for Smallest {
    async fn upgrade(&self, _context: &Context) -> HandlerResult<Upgraded> {
        Ok(Upgraded::Done)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let url = args.next().unwrap_or_else(|| "nats://127.0.0.1:4222".to_owned());
    let host = args.next().unwrap_or_else(|| "h01".to_owned());
    let builder = WorkerBuilder::new(&host, "smallest")?.nats_url(&url).state_dir("smallest-worker-state");
    Ok(builder.run(Smallest).await?)
}
