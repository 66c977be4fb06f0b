//! `os-upgrade providers` and `desired`: where configuration of hosts comes from, how far it is, and whether hosts are told.

use anyhow::anyhow;
use clap::{Args, Subcommand};
use os_upgrade_api_types::routes::providers::{
    LIST, LeftOver, POLL, Poll, Provider, ProviderHooks, ProviderHosts, ProviderTest,
    Providers as ProviderList, READ, RESUME, ROTATE_TOKEN, ResumeDelivery, TEST, TestProvider, WITHHELD,
    WithheldHosts,
};
use os_upgrade_api_types::word::TestOutcome;
use os_upgrade_console::commands::shell_word;
use os_upgrade_protocol::HostName;
use os_upgrade_protocol::text::sanitized;
use os_upgrade_provider_rules::ProviderName;
use serde::Deserialize as _;

use super::completion;
use super::options::Remote;
use crate::Failure;
use crate::output::{Canvas, View};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the providers, and on how many hosts what they give is applied
    #[command(after_help = examples!["providers list", "providers list -o json"])]
    List(Remote),
    /// Show how far the configuration of each host is that a provider selects
    #[command(after_help = examples!["providers show app", "providers show app -o json"])]
    Show(Of),
    /// Ask a provider about a host, and show whether and what it answers
    ///
    /// The instance that is asked asks, with the provider's credentials, for which it needs the key of the strongbox; it waits for 15 seconds at
    /// most. Nothing follows from the answer, and the content is not shown. Ends with 1 if the provider fails.
    #[command(after_help = examples!["providers test app --host h01", "providers test app --host h01 -o json"])]
    Test(TestOptions),
    /// Ask a provider at once, about one host or all
    ///
    /// Providers are asked in their poll interval otherwise. A server's Retry-After still holds.
    #[command(after_help = examples!["providers poll app", "providers poll app --host h01"])]
    Poll(PollOptions),
    /// Let a provider of kind `hooks` call back no longer with the tokens that it was sent
    ///
    /// The leader draws a new token at once. The provider is sent it with the next call: until then its call-backs are refused.
    #[command(after_help = examples!["providers rotate-token app", "providers rotate-token app -o json"])]
    RotateToken(Of),
}

#[derive(Debug, Args)]
pub(crate) struct Of {
    /// The provider
    #[arg(value_name = "NAME", value_parser = ProviderName::new)]
    name: ProviderName,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct PollOptions {
    /// The provider
    #[arg(value_name = "NAME", value_parser = ProviderName::new)]
    name: ProviderName,
    /// The host about which it is asked; all without it
    #[arg(long, value_name = "NAME", add = completion::hosts())]
    host: Option<HostName>,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct TestOptions {
    /// The provider
    #[arg(value_name = "NAME", value_parser = ProviderName::new)]
    name: ProviderName,
    /// The host about which it is asked
    #[arg(long, value_name = "NAME", add = completion::hosts())]
    host: HostName,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Desired {
    /// List the hosts whose configuration is withheld, and what they would gain and lose
    #[command(after_help = examples!["desired list", "desired list -o json"])]
    List(Remote),
    /// Tell hosts again what they are to have
    ///
    /// After a restoration no host is told until somebody has looked at `desired list`; the site may know less than the hosts have. A host
    /// that has something newer than the site knows of must be named.
    #[command(after_help = examples!["desired resume", "desired resume h01"])]
    Resume(ResumeOptions),
}

#[derive(Debug, Args)]
pub(crate) struct ResumeOptions {
    /// The host; all without it
    #[arg(value_name = "HOST", add = completion::hosts())]
    host: Option<HostName>,
    #[command(flatten)]
    remote: Remote,
}

/// Carries out a command about providers.
pub(super) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::List(remote) => {
            let list = remote.client()?.call(&LIST).await?;
            remote.output.show::<ProviderList<'_>>(&list)
        }
        Command::Show(Of { name, remote }) => {
            let provider = remote.client()?.call(READ.named([name.as_str()])).await?;
            remote.output.show::<ProviderHosts<'_>>(&provider)
        }
        Command::Test(TestOptions { name, host, remote }) => {
            let body = TestProvider { host: host.to_string() };
            let tested = remote.client()?.call_with_body(TEST.named([name.as_str()]), &body).await?;
            remote.output.show::<ProviderTest>(&tested)?;
            let tested = ProviderTest::deserialize(&tested).map_err(anyhow::Error::from)?;
            if tested.outcome.is(|outcome| outcome == TestOutcome::Failed) {
                return Err(anyhow!("provider {name} does not say what {host} is to have").into());
            }
            Ok(())
        }
        Command::Poll(PollOptions { name, host, remote }) => {
            let body = Poll { host: host.map(|host| host.to_string()) };
            remote.client()?.call_with_body(POLL.named([name.as_str()]), &body).await?;
            remote.output.done("asked", &[name.as_str()])
        }
        Command::RotateToken(Of { name, remote }) => {
            remote.client()?.call(ROTATE_TOKEN.named([name.as_str()])).await?;
            remote.output.done("rotated", &[name.as_str()])
        }
    }
}

/// Carries out a command about what hosts are told.
pub(super) async fn run_desired(command: Desired) -> Result<(), Failure> {
    match command {
        Desired::List(remote) => {
            let list = remote.client()?.call(&WITHHELD).await?;
            remote.output.show::<WithheldHosts<'_>>(&list)
        }
        Desired::Resume(ResumeOptions { host, remote }) => {
            let told = host.as_ref().map_or_else(|| "all hosts".to_owned(), ToString::to_string);
            let body = ResumeDelivery { host: host.map(|host| host.to_string()) };
            remote.client()?.call_with_body(&RESUME, &body).await?;
            remote.output.note(&format!("{told}: told again what to have"));
            Ok(())
        }
    }
}

impl View for ProviderTest {
    fn text(&self, _canvas: &Canvas) -> String {
        let took = format!("in {} ms", self.millis);
        match (self.bytes, &self.failure) {
            (Some(bytes), _) => format!("a content of {bytes} bytes {took}"),
            (None, Some(failure)) => format!("{}; {took}", sanitized(failure)),
            (None, None) if self.outcome.is(|outcome| outcome == TestOutcome::Unchanged) => {
                format!("the host keeps what it has; {took}")
            }
            (None, None) => format!("the host is to have nothing: the server has none for it; {took}"),
        }
    }
}

impl View for ProviderList<'static> {
    fn text(&self, canvas: &Canvas) -> String {
        let left_over: String = self.left_over.iter().map(left_over_line).collect();
        format!("{}{left_over}", self.providers.text(canvas))
    }

    fn names(&self) -> Option<Vec<String>> {
        self.providers.names()
    }

    fn none(&self) -> Option<String> {
        if self.left_over.is_empty() { self.providers.none() } else { None }
    }
}

/// That hosts have something of a provider that gives it no more.
fn left_over_line(left_over: &LeftOver<'_>) -> String {
    let LeftOver { name, hosts, first } = left_over;
    let on = if *hosts == 1 { "1 host".to_owned() } else { format!("{hosts} hosts") };
    let (name, first, show) = (sanitized(name), sanitized(first), shell_word(first));
    format!("\n{name} is left over on {on}, such as {first}: os-upgrade hosts show {show}")
}

impl View for ProviderHosts<'static> {
    fn text(&self, canvas: &Canvas) -> String {
        let Provider { applied, hosts, url, hooks, .. } = &self.provider;
        let head = sanitized(url);
        let hooks = hooks.as_ref().map(hooks_line).unwrap_or_default();
        format!("{head}: applied on {applied} of {hosts} hosts\n{hooks}\n{}", self.on.text(canvas))
    }

    fn names(&self) -> Option<Vec<String>> {
        self.on.names()
    }

    fn none(&self) -> Option<String> {
        self.on.none()
    }
}

/// How the hooks of a provider are, in a line.
fn hooks_line(hooks: &ProviderHooks<'_>) -> String {
    let ProviderHooks { events, batch_size, tokens, pending } = hooks;
    let events = sanitized(&events.join(", "));
    let hosts = if *batch_size == 1 { "host" } else { "hosts" };
    format!(
        "told of {events}, {batch_size} {hosts} in a call; {pending} events pending; call-back tokens: {tokens}\n"
    )
}

impl View for WithheldHosts<'static> {
    fn text(&self, canvas: &Canvas) -> String {
        self.hosts.text(canvas)
    }

    fn names(&self) -> Option<Vec<String>> {
        self.hosts.names()
    }

    fn none(&self) -> Option<String> {
        self.hosts.none()
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_console::Zone;
    use serde_json::{Value, json};

    use super::*;

    const CANVAS: Canvas = Canvas { is_wide: false, columns: None, zone: Zone::Utc };

    /// A provider with `more`.
    fn provider(more: &Value) -> Value {
        let mut provider = json!({
            "name": "app", "url": "https://hooks.example/", "required": false, "hosts": 1, "applied": 1,
        });
        let more = more.as_object().unwrap().clone();
        provider.as_object_mut().unwrap().extend(more);
        provider
    }

    #[test]
    fn hooks_of_a_provider_are_shown() {
        let hooks = json!({
            "events": ["ON_FLEET_JOIN", "ON_DEVICE_POLL"], "batch-size": 10, "tokens": 2, "pending": 3,
        });
        let on = json!({
            "host": "h01", "state": "applied", "pending-events": ["ON_FLEET_JOIN"], "poll-interval": "30m",
        });
        let answer = provider(&json!({ "kind": "hooks", "hooks": hooks, "on": [on] }));
        let shown = ProviderHosts::deserialize(answer).unwrap();
        let expected = "\
https://hooks.example/: applied on 1 of 1 hosts
told of ON_FLEET_JOIN, ON_DEVICE_POLL, 10 hosts in a call; 3 events pending; call-back tokens: 2

HOST  STATE    SINCE  CONFIRMED  PENDING        DETAIL
h01   applied                    ON_FLEET_JOIN";
        assert_eq!(shown.text(&CANVAS).trim_end(), expected);
    }

    /// An instance of an earlier version says nothing of kinds.
    #[test]
    fn providers_of_earlier_versions_are_read() {
        let answer = json!({ "providers": [provider(&json!({ "failing": 0 }))] });
        let shown = ProviderList::deserialize(answer).unwrap().text(&CANVAS);
        let expected = "\
NAME  KIND  REQUIRED  APPLIED  FAILING  LAST FAILURE
app                   1 of 1   0";
        assert_eq!(shown.trim_end(), expected);
    }

    #[test]
    fn what_is_left_over_is_listed() {
        let left_over = json!([
            { "name": "net", "hosts": 2, "first": "h01" }, { "name": "old", "hosts": 1, "first": "-h" },
        ]);
        let answer = json!({ "providers": [], "left-over": left_over });
        let list = ProviderList::deserialize(answer).unwrap();
        assert_eq!(list.none(), None);
        let text = list.text(&CANVAS);
        let expected = "
net is left over on 2 hosts, such as h01: os-upgrade hosts show h01
old is left over on 1 host, such as -h: os-upgrade hosts show -- -h";
        assert!(text.ends_with(expected), "{text}");
    }
}
