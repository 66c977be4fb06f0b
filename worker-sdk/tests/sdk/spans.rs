//! Log lines of handlers are in a span with their command, host and run.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use async_nats::{HeaderMap, jetstream};
use os_upgrade_protocol::{HostName, header, subject};
use os_upgrade_worker_sdk::testing::NatsServer;
use os_upgrade_worker_sdk::{BootIdSource, Context, HandlerResult, Upgraded, Worker, WorkerBuilder};
use serde_json::json;
use tokio::sync::watch;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber, info};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{self, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Scope};

const PATIENCE: Duration = Duration::from_mins(1);
const POLL_EVERY: Duration = Duration::from_millis(20);

/// The fields of a span or a log line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0.entry(field.name()).or_default(), "{value:?}").unwrap();
    }
}

/// A log line of a handler and its spans, the outermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    message: String,
    spans: Vec<(&'static str, Fields)>,
}

/// Collects the log lines of this test's handlers.
struct Capture(watch::Sender<Vec<Line>>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Capture {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: layer::Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        context.span(id).unwrap().extensions_mut().insert(fields);
    }

    fn on_event(&self, event: &Event<'_>, context: layer::Context<'_, S>) {
        if event.metadata().target() != module_path!() {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let scope = context.event_scope(event).into_iter().flat_map(Scope::from_root);
        let spans = scope.map(|span| (span.name(), span.extensions().get::<Fields>().unwrap().clone()));
        let line = Line { message: fields.0.remove("message").unwrap(), spans: spans.collect() };
        self.0.send_modify(|lines| lines.push(line));
    }
}

/// Logs before and after a pause in each handler, and reboots by writing the boot id file.
struct Talkative(PathBuf);

async fn talk(about: &str) {
    info!("{about} begins");
    tokio::time::sleep(Duration::from_millis(1)).await;
    info!("{about} ends");
}

impl Worker for Talkative {
    async fn prepare(&self, _context: &Context) -> HandlerResult {
        talk("prepare").await;
        Ok(())
    }

    async fn upgrade(&self, _context: &Context) -> HandlerResult<Upgraded> {
        talk("upgrade").await;
        Ok(Upgraded::RebootRequired)
    }

    async fn reboot(&self, _context: &Context) -> HandlerResult {
        talk("reboot").await;
        Ok(std::fs::write(&self.0, "boot-2\n")?)
    }

    async fn health(&self, _context: &Context) -> HandlerResult {
        talk("health").await;
        Ok(())
    }
}

#[tokio::test]
async fn handler_log_lines_name_their_command() {
    let capture = Capture(watch::Sender::default());
    let mut lines = capture.0.subscribe();
    // The subscriber of this thread, which runs everything that this test starts.
    let _subscriber = tracing::subscriber::set_default(tracing_subscriber::registry().with(capture));

    let server = NatsServer::start().await.unwrap();
    let jetstream = jetstream::new(async_nats::connect(server.url()).await.unwrap());
    for stream in os_upgrade_jetstream::worker_streams() {
        jetstream.create_stream(stream).await.unwrap();
    }
    let directory = tempfile::tempdir().unwrap();
    let boot_id = directory.path().join("boot-id");
    std::fs::write(&boot_id, "boot-1\n").unwrap();
    let builder = WorkerBuilder::new("h01", "talkative")
        .unwrap()
        .nats_url(server.url())
        .state_dir(directory.path().join("state"))
        .boot_id(BootIdSource::File(boot_id.clone()));
    let worker = tokio::spawn(builder.run(Talkative(boot_id)));

    let host = HostName::new("h01").unwrap();
    let control = jetstream.get_stream(subject::CONTROL_STREAM).await.unwrap();
    let name = subject::consumer(&host);
    // A new consumer begins at the last command.
    let consumer = async {
        while control.consumer_info(&name).await.is_err() {
            tokio::time::sleep(POLL_EVERY).await;
        }
    };
    tokio::time::timeout(PATIENCE, consumer).await.unwrap();
    let commands = [
        json!({ "action": "prepare", "hosts": ["h01"], "not-after": "" }),
        json!({ "action": "upgrade", "host": "h01" }),
        json!({ "action": "reboot", "host": "h01" }),
    ];
    // Replies are in the same stream.
    let mut sequences = Vec::new();
    for command in &commands {
        let headers = HeaderMap::from_iter([(header::RUN.parse().unwrap(), "r1".into())]);
        let publish =
            jetstream.publish_with_headers(subject::command(&host), headers, command.to_string().into());
        sequences.push(publish.await.unwrap().await.unwrap().sequence);
    }
    let [prepare, upgrade, reboot] = sequences[..] else { unreachable!("there are three commands") };

    let expected: Vec<_> =
        [("prepare", prepare), ("upgrade", upgrade), ("reboot", reboot), ("health", reboot)]
            .into_iter()
            .flat_map(|(action, sequence)| {
                let fields =
                    [("action", action), ("host", "h01"), ("run", "r1"), ("sequence", &sequence.to_string())];
                let fields = Fields(fields.map(|(name, value)| (name, value.to_owned())).into());
                ["begins", "ends"].map(|what| Line {
                    message: format!("{action} {what}"),
                    spans: vec![("command", fields.clone())],
                })
            })
            .collect();
    let all = async {
        let _ = lines.wait_for(|lines| lines.len() >= expected.len()).await;
    };
    // Missing lines are reported by the assertion below.
    let _ = tokio::time::timeout(PATIENCE, all).await;
    assert_eq!(*lines.borrow(), expected);
    worker.abort();
}
