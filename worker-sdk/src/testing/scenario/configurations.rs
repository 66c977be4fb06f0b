//! Configurations: the check seals items and publishes manifests, as an orchestrator would, and judges what the worker reports of them.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use os_upgrade_protocol::text::one_line;
use os_upgrade_protocol::{
    Applied, Content, HostKey, Item, ItemId, ItemKind, Manifest, ManifestRefusal, Revision, subject,
};
use os_upgrade_sealing::{PrivateKey, SealedFor, seal};
use tokio::time::{Instant, sleep};

use super::{Scenario, WATCHED};
use crate::testing::controller::{POLL_EVERY, waiting_for};
use crate::testing::error::{CheckError, nats};
use crate::testing::report::{Row, Rule};

const RULES: [Rule; 8] = [
    Rule::ConfigApplied,
    Rule::ConfigOlder,
    Rule::ConfigOtherSite,
    Rule::ConfigRepeated,
    Rule::ConfigReplaced,
    Rule::ConfigRevoked,
    Rule::ConfigErrors,
    Rule::ConfigEmptied,
];
/// The site of every check, so that a worker can be checked again.
const SITE: &str = "os-upgrade-check";
/// How much of a report is shown.
const SHOWN_CHARS: usize = 500;

/// The item that was sealed to another key, and the one that was sealed for another name.
const FOREIGN: &str = "check-foreign";
const RENAMED: &str = "check-renamed";

/// The last report, as it is shown, and read if it is one.
struct Reported {
    shown: String,
    report: Option<Applied>,
}

/// Makes manifests and items, each newer than all before, also than those of earlier checks.
struct Maker {
    last: Revision,
}

impl Maker {
    fn new() -> Self {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Self { last: Revision { epoch, sequence: 1 } }
    }

    fn revision(&mut self) -> Revision {
        self.last.sequence += 1;
        self.last
    }

    fn item(&mut self, name: &str) -> Item {
        let sealed = self.revision();
        let id = format!("check-{}-{}", sealed.epoch, sealed.sequence);
        let id = ItemId::new(&id).expect("letters, digits and hyphens, and short enough");
        Item { kind: ItemKind::Configuration, name: name.to_owned(), id, sealed }
    }

    fn manifest(&mut self, items: &[&Item]) -> Manifest {
        let items = items.iter().map(|item| (*item).clone()).collect();
        Manifest { site: SITE.to_owned(), revision: self.revision(), items }
    }
}

impl<F: FnMut(&Row) + Send> Scenario<F> {
    /// Checks configurations, if the worker takes some. At the end nothing is in force.
    pub(super) async fn configurations(&mut self) -> Result<(), CheckError> {
        let announced = self.controller.announcement().await?;
        let Some(key) = announced.and_then(|says| says.configures) else {
            for rule in RULES {
                self.judge(rule, true, "it does not announce configures");
            }
            return Ok(());
        };
        let mut maker = Maker::new();
        let [first, kept] = ["check-a", "check-b"].map(|name| maker.item(name));
        for item in [&first, &kept] {
            if !self.put(&key, item, &item.name).await? {
                self.judge(Rule::ConfigApplied, false, format!("nothing can be sealed to its key {key}"));
                self.skip_configurations();
                return Ok(());
            }
        }
        let manifest = maker.manifest(&[&first, &kept]);
        if !self.expect_applied(Rule::ConfigApplied, &manifest, &[]).await? {
            self.skip_configurations();
            return Ok(());
        }
        self.refused(&mut maker, manifest.revision).await?;
        self.repeated(&manifest).await?;

        let second = maker.item(&first.name);
        self.put(&key, &second, &second.name).await?;
        let manifest = maker.manifest(&[&second, &kept]);
        self.expect_applied(Rule::ConfigReplaced, &manifest, &[]).await?;
        let manifest = maker.manifest(&[&second]);
        self.expect_applied(Rule::ConfigRevoked, &manifest, &[]).await?;

        let [foreign, renamed, other] = [FOREIGN, RENAMED, "check-c"].map(|name| maker.item(name));
        self.put(&PrivateKey::generate().public(), &foreign, &foreign.name).await?;
        self.put(&key, &renamed, &other.name).await?;
        self.put(&key, &other, &other.name).await?;
        let manifest = maker.manifest(&[&foreign, &renamed, &second, &other]);
        self.expect_applied(Rule::ConfigErrors, &manifest, &[FOREIGN, RENAMED]).await?;
        let manifest = maker.manifest(&[]);
        self.expect_applied(Rule::ConfigEmptied, &manifest, &[]).await.map(drop)
    }

    fn skip_configurations(&mut self) {
        for rule in &RULES[1..] {
            self.skip(*rule, "needs a configuration that is applied");
        }
    }

    /// Publishes `item` with a content for the worker's handler, sealed to `key` for `name`; false if nothing can be sealed to it.
    async fn put(&self, key: &HostKey, item: &Item, name: &str) -> Result<bool, CheckError> {
        let host = &self.controller.host;
        let sealed_for = SealedFor { host, kind: item.kind, name, revision: item.sealed };
        let content = Content { files: Vec::new(), bytes: format!("{} of a check\n", item.id).into() };
        let Ok(sealed) = seal(key, &sealed_for, &content.to_bytes()) else {
            return Ok(false);
        };
        self.store(subject::desired_item(host, &item.id), sealed).await?;
        Ok(true)
    }

    async fn store(&self, subject: String, payload: Vec<u8>) -> Result<(), CheckError> {
        let stored = self.controller.jetstream.publish(subject, payload.into()).await.map_err(nats)?;
        stored.await.map(drop).map_err(nats)
    }

    /// Publishes the manifest, and says so.
    async fn desire(&self, manifest: &Manifest) -> Result<(), CheckError> {
        let (host, client) = (&self.controller.host, &self.controller.client);
        self.store(subject::desired_manifest(host), manifest.to_payload()).await?;
        client.publish(subject::desired_hint(host), "".into()).await.map_err(nats)?;
        client.flush().await.map_err(nats)
    }

    /// The first report that is an `end`, or the last one when `wait` is over.
    async fn report(&self, wait: Duration, end: impl Fn(&Applied) -> bool) -> Result<Reported, CheckError> {
        let until = Instant::now() + wait;
        let subject = subject::applied(&self.controller.host);
        let reports = async {
            loop {
                let stored = self.controller.stored(subject::APPLIED_STREAM, &subject).await?;
                let parsed = stored.last().map(|payload| (payload, Applied::parse(payload)));
                let reported = match parsed {
                    None => {
                        let shown = format!("no report within {} s", wait.as_secs());
                        Reported { shown, report: None }
                    }
                    Some((_, Err(error))) => {
                        Reported { shown: format!("an invalid report: {error}"), report: None }
                    }
                    Some((payload, Ok(report))) => {
                        let shown = one_line(&String::from_utf8_lossy(payload), SHOWN_CHARS);
                        Reported { shown, report: Some(report) }
                    }
                };
                if reported.report.as_ref().is_some_and(&end) || Instant::now() >= until {
                    return Ok(reported);
                }
                sleep(POLL_EVERY).await;
            }
        };
        let what = format_args!("a report of configurations, for at most {} s", wait.as_secs());
        waiting_for(what, reports).await
    }

    /// Judges by whether the worker follows this manifest, in which the items with the names `failing` cannot be opened.
    async fn expect_applied(
        &mut self,
        rule: Rule,
        manifest: &Manifest,
        failing: &[&str],
    ) -> Result<bool, CheckError> {
        self.desire(manifest).await?;
        // It is tried again later, but a check need not wait for that.
        let has_failed = |report: &Applied| {
            report.revision == manifest.revision
                && report
                    .items
                    .iter()
                    .any(|said| said.error.is_some() && !failing.contains(&said.name.as_str()))
        };
        let end = |report: &Applied| follows(report, manifest, failing) || has_failed(report);
        let reported = self.report(self.controller.work_wait, end).await?;
        let good = reported.report.is_some_and(|report| follows(&report, manifest, failing));
        self.judge(rule, good, reported.shown);
        Ok(good)
    }

    /// The manifest that is in force once more, while what it names cannot be applied again. The worker has read it once it no longer reports
    /// the refusal of the one before.
    async fn repeated(&mut self, manifest: &Manifest) -> Result<(), CheckError> {
        for item in &manifest.items {
            self.store(subject::desired_item(&self.controller.host, &item.id), b"damaged".to_vec()).await?;
        }
        self.desire(manifest).await?;
        self.report(self.controller.patience, |report| report.refused.is_none()).await?;
        let reported = self.report(WATCHED, |report| !follows(report, manifest, &[])).await?;
        let good = reported.report.is_some_and(|report| follows(&report, manifest, &[]));
        self.judge(Rule::ConfigRepeated, good, reported.shown);
        Ok(())
    }

    /// Manifests that are older than that of `accepted`, by sequence and by epoch, and one of another site between them: each has
    /// another refusal, so that it can be told which of them was read.
    async fn refused(&mut self, maker: &mut Maker, accepted: Revision) -> Result<(), CheckError> {
        let empty = maker.manifest(&[]);
        let of = |revision| Manifest { revision, ..empty.clone() };
        let by_sequence = of(Revision { sequence: accepted.sequence - 1, ..accepted });
        let by_epoch = of(Revision { epoch: accepted.epoch - 1, ..maker.revision() });
        let elsewhere = Manifest { site: format!("not-{SITE}"), ..empty };
        let mut older = self.is_refused(&by_sequence, ManifestRefusal::Older).await?;
        let (is_refused, seen) = self.is_refused(&elsewhere, ManifestRefusal::OtherSite).await?;
        if older.0 {
            older = self.is_refused(&by_epoch, ManifestRefusal::Older).await?;
        }
        self.judge(Rule::ConfigOlder, older.0, older.1);
        self.judge(Rule::ConfigOtherSite, is_refused, seen);
        Ok(())
    }

    /// Whether the worker refuses this manifest for this reason and changes nothing, and what it reports.
    async fn is_refused(
        &self,
        manifest: &Manifest,
        why: ManifestRefusal,
    ) -> Result<(bool, String), CheckError> {
        let before = self.report(Duration::ZERO, |_| true).await?.report;
        self.desire(manifest).await?;
        let is_good = |report: &Applied| {
            let is_unchanged = before.as_ref().is_some_and(|before| {
                (&before.site, before.revision) == (&report.site, report.revision)
                    && in_force(before) == in_force(report)
            });
            report.refused == Some(why) && is_unchanged
        };
        let reported = self.report(self.controller.patience, is_good).await?;
        Ok((reported.report.as_ref().is_some_and(is_good), reported.shown))
    }
}

/// Whether `report` is about `manifest` and has its items in force, but for those with the names `failing`, which have errors, and
/// nothing else.
fn follows(report: &Applied, manifest: &Manifest, failing: &[&str]) -> bool {
    let is_reported = |item: &Item| {
        let fails = failing.contains(&item.name.as_str());
        let id = (!fails).then_some(&item.id);
        report.items.iter().any(|said| {
            (said.kind, &said.name, said.id.as_ref()) == (item.kind, &item.name, id)
                && said.error.is_some() == fails
        })
    };
    (&report.site, report.revision, report.refused) == (&manifest.site, manifest.revision, None)
        && report.items.len() == manifest.items.len()
        && manifest.items.iter().all(is_reported)
}

fn in_force(report: &Applied) -> BTreeMap<&str, &ItemId> {
    report.items.iter().filter_map(|said| Some((&*said.name, said.id.as_ref()?))).collect()
}
