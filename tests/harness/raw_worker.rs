//! A worker written from the specification only: JSON and subjects, no headers, none of this project's code. It uses the
//! bare NATS client.

use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::{self, AckKind};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::host::APPLICATION;
use crate::wait::PATIENCE;

/// The timeout of one request for a command.
const FETCH: Duration = Duration::from_secs(1);

/// A worker without any library. Host names are plain here: letters and digits.
#[derive(Debug)]
pub struct RawWorker {
    host: String,
    client: Client,
    jetstream: jetstream::Context,
    commands: PullConsumer,
}

/// A received command.
#[derive(Debug)]
pub struct Received {
    /// Its payload.
    pub command: Value,
    message: jetstream::Message,
}

impl Received {
    /// Its action.
    pub fn action(&self) -> &str {
        self.command["action"].as_str().unwrap()
    }

    /// Acknowledges it.
    pub async fn ack(&self) {
        self.message.ack_with(AckKind::Ack).await.unwrap();
    }
}

impl RawWorker {
    /// Creates the worker's durable consumer, and announces the worker.
    pub async fn start(client: Client, host: &str) -> Self {
        let jetstream = jetstream::new(client.clone());
        let stream = jetstream.get_stream("os-upgrade:control").await.unwrap();
        let config = pull::Config {
            durable_name: Some(format!("my-own-{host}")),
            filter_subject: format!("os-upgrade:control.command.{host}"),
            ack_policy: AckPolicy::Explicit,
            max_ack_pending: 1,
            ..pull::Config::default()
        };
        let commands = stream.create_consumer(config).await.unwrap();
        let worker = Self { host: host.to_owned(), client, jetstream, commands };
        let announcement = json!({ "host": host, "application": APPLICATION }).to_string();
        worker.announce(&announcement).await;
        worker
    }

    /// Publishes this payload as the announcement; an empty one withdraws.
    pub async fn announce(&self, payload: &str) {
        let subject = format!("os-upgrade:workers.{APPLICATION}.{}", self.host);
        self.publish(subject, payload.as_bytes()).await;
    }

    /// Sends a heartbeat without a time.
    pub async fn heartbeat(&self) {
        self.send_heartbeat("").await;
    }

    /// Sends a heartbeat of a host whose clock shows `time`.
    pub async fn heartbeat_at(&self, time: DateTime<Utc>) {
        self.send_heartbeat(&json!({ "time": time }).to_string()).await;
    }

    async fn send_heartbeat(&self, payload: &str) {
        let subject = format!("os-upgrade.presence.{}", self.host);
        self.client.publish(subject, payload.to_owned().into()).await.unwrap();
        self.client.flush().await.unwrap();
    }

    async fn publish(&self, subject: String, payload: &[u8]) -> u64 {
        let stored = self.jetstream.publish(subject, payload.to_vec().into()).await.unwrap();
        stored.await.unwrap().sequence
    }

    /// Waits for the next command.
    pub async fn next(&self) -> Received {
        tokio::time::timeout(PATIENCE, async {
            loop {
                if let Some(received) = self.poll().await {
                    return received;
                }
            }
        })
        .await
        .expect("no command arrived")
    }

    /// Waits for the next command, which must have this action.
    pub async fn expect(&self, action: &str) -> Received {
        let received = self.next().await;
        assert_eq!(received.action(), action, "{}", self.host);
        received
    }

    async fn poll(&self) -> Option<Received> {
        use futures::StreamExt;
        let mut batch = self.commands.fetch().max_messages(1).expires(FETCH).messages().await.ok()?;
        let message = batch.next().await?.ok()?;
        Some(Received { command: serde_json::from_slice(&message.payload).unwrap(), message })
    }

    /// Publishes this payload as a reply of this host, and returns its sequence.
    pub async fn publish_reply(&self, payload: &[u8]) -> u64 {
        self.publish(format!("os-upgrade:control.reply.{}", self.host), payload).await
    }

    /// Replies to an action.
    pub async fn reply(&self, action: &str, result: &str) -> u64 {
        self.publish_reply(json!({ "action": action, "result": result }).to_string().as_bytes()).await
    }

    /// Waits for a command with this action, answers it, and acknowledges it.
    pub async fn answer(&self, action: &str, result: &str) -> Value {
        let received = self.expect(action).await;
        self.reply(action, result).await;
        received.ack().await;
        received.command
    }
}
