//! What hosts are to have, on a real nats-server: nothing of an earlier leader is stored after a later one's fence, and nothing of another site.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use async_nats::jetstream::{self, Context};
use bytes::Bytes;
use futures::StreamExt as _;
use os_upgrade_bus::Bus;
use os_upgrade_bus::connect::connect;
use os_upgrade_credentials::Access;
use os_upgrade_jetstream::desired_stream;
use os_upgrade_protocol::{
    DesiredFence, HostName, Item, ItemId, ItemKind, Manifest, Revision, UnitItem, WantedState, subject,
};
use os_upgrade_shell::delivery::{DesiredFenced, DesiredStored};
use os_upgrade_worker_sdk::testing::NatsServer;

struct Site {
    bus: Bus,
    client: async_nats::Client,
    jetstream: Context,
    _server: NatsServer,
}

impl Site {
    async fn start() -> Self {
        let server = NatsServer::start().await.unwrap();
        let (bus, _) = connect(&[server.url().to_owned()], Access::default(), "test").await.unwrap();
        let client = async_nats::connect(server.url()).await.unwrap();
        let jetstream = jetstream::new(client.clone());
        jetstream.create_stream(desired_stream()).await.unwrap();
        Self { bus, client, jetstream, _server: server }
    }

    /// The sequence of the fence of the leader whose fence in the control stream has `sequence`, after the restoration `epoch`.
    async fn fence(&self, epoch: u64, sequence: u64) -> u64 {
        match self.bus.fence_desired(&fence("hall-1", epoch, sequence)).await {
            DesiredFenced::Stored(sequence) => sequence,
            other @ (DesiredFenced::Superseded
            | DesiredFenced::CrossedSite { .. }
            | DesiredFenced::Unknown) => {
                panic!("{other:?}")
            }
        }
    }

    /// The revision of the manifest that `host` reads.
    async fn manifest(&self, host: &HostName) -> Option<Revision> {
        let stream = self.jetstream.get_stream(subject::DESIRED_STREAM).await.unwrap();
        let message = stream.direct_get_last_for_subject(subject::desired_manifest(host)).await.ok()?;
        Some(Manifest::parse(&message.payload).unwrap().revision)
    }
}

fn fence(site: &str, epoch: u64, sequence: u64) -> DesiredFence {
    DesiredFence { site: site.to_owned(), revision: Revision { epoch, sequence }, leader: "a1".to_owned() }
}

fn manifest(sequence: u64) -> Manifest {
    Manifest { site: "hall-1".to_owned(), revision: Revision { epoch: 0, sequence }, items: Vec::new() }
}

fn host() -> HostName {
    HostName::new("h1.example.com").unwrap()
}

#[tokio::test]
async fn nothing_of_an_earlier_leader_is_stored() {
    let (site, h1) = (Site::start().await, host());
    let earlier = site.fence(0, 5).await;
    let stored = site.bus.publish_manifest(&h1, &manifest(1), &[], &[], (earlier, earlier)).await;
    assert!(matches!(stored, DesiredStored::Stored(_)), "{stored:?}");
    let later = site.fence(0, 9).await;
    let id = ItemId::new("1").unwrap();
    assert_eq!(
        site.bus.publish_manifest(&h1, &manifest(2), &[], &[], (earlier, earlier)).await,
        DesiredStored::Fenced
    );
    assert_eq!(site.bus.publish_item(&h1, &id, "x".into(), earlier).await, DesiredStored::Fenced);
    assert_eq!(site.bus.fence_desired(&fence("hall-1", 0, 5)).await, DesiredFenced::Superseded);
    assert_eq!(site.manifest(&h1).await, Some(Revision { epoch: 0, sequence: 1 }));
    let stored = site.bus.publish_manifest(&h1, &manifest(3), &[], &[], (later, later)).await;
    assert!(matches!(stored, DesiredStored::Stored(_)), "{stored:?}");
    assert_eq!(site.manifest(&h1).await, Some(Revision { epoch: 0, sequence: 3 }));
    // A restored site counts its fences anew.
    site.fence(1, 2).await;
    assert_eq!(site.bus.fence_desired(&fence("hall-1", 0, 10)).await, DesiredFenced::Superseded);
}

#[tokio::test]
async fn fences_outlive_a_purge_of_the_stream() {
    let (site, h1) = (Site::start().await, host());
    let earlier = site.fence(0, 5).await;
    let stream = site.jetstream.get_stream(subject::DESIRED_STREAM).await.unwrap();
    stream.purge().await.unwrap();
    assert_eq!(
        site.bus.publish_manifest(&h1, &manifest(1), &[], &[], (earlier, earlier)).await,
        DesiredStored::Fenced
    );
    // What is on the subject and is no fence orders nobody.
    site.jetstream.publish(subject::DESIRED_LEADER, "moo".into()).await.unwrap().await.unwrap();
    let later = site.fence(0, 5).await;
    let stored = site.bus.publish_manifest(&h1, &manifest(1), &[], &[], (later, later)).await;
    assert!(matches!(stored, DesiredStored::Stored(_)), "{stored:?}");
}

#[tokio::test]
async fn the_stream_of_another_site_is_left_alone() {
    let site = Site::start().await;
    site.fence(0, 5).await;
    let crossed = DesiredFenced::CrossedSite { site: "hall-1".to_owned() };
    assert_eq!(site.bus.fence_desired(&fence("hall-2", 9, 99)).await, crossed);
}

/// What it no longer names is deleted, whether that is known or from an earlier leader. What is on its way under this fence stays.
#[tokio::test]
async fn items_that_are_no_longer_named_are_deleted() {
    let (site, h1) = (Site::start().await, host());
    let [lost, replaced, named, under_way] =
        ["lost", "replaced", "named", "under-way"].map(|id| ItemId::new(id).unwrap());
    let store = async |id, fence| {
        let stored = site.bus.publish_item(&h1, id, "sealed".into(), fence).await;
        assert!(matches!(stored, DesiredStored::Stored(_)), "{stored:?}");
    };
    let earlier = site.fence(0, 5).await;
    store(&lost, earlier).await;
    let fence = site.fence(0, 9).await;
    for id in [&replaced, &named, &under_way] {
        store(id, fence).await;
    }
    let sealed = Revision { epoch: 0, sequence: 1 };
    let item = Item { kind: ItemKind::Configuration, name: "app".to_owned(), id: named.clone(), sealed };
    let manifest = Manifest { items: vec![item], ..manifest(1) };
    let mut hints = site.client.subscribe(subject::desired_hint(&h1)).await.unwrap();
    site.client.flush().await.unwrap();
    let stored =
        site.bus.publish_manifest(&h1, &manifest, &[], std::slice::from_ref(&replaced), (fence, fence)).await;
    assert!(matches!(stored, DesiredStored::Stored(_)), "{stored:?}");
    let stream = site.jetstream.get_stream(subject::DESIRED_STREAM).await.unwrap();
    let has = async |id| stream.direct_get_last_for_subject(subject::desired_item(&h1, id)).await.is_ok();
    assert!(!has(&lost).await && !has(&replaced).await);
    assert!(has(&named).await && has(&under_way).await);
    assert!(hints.next().await.is_some(), "the host is told");
}

/// A host that reads the manifest finds the units that it names, and under a fence that is over neither is stored.
#[tokio::test]
async fn units_are_stored_before_their_manifest() {
    let (site, h1) = (Site::start().await, host());
    let (earlier, later) = (site.fence(0, 5).await, site.fence(0, 9).await);
    let id = ItemId::new("unit-0-1").unwrap();
    let unit = UnitItem {
        name: "app.service".to_owned(),
        contents: "[Service]".to_owned(),
        state: WantedState::Launched,
        placement: 1,
    };
    let sealed = Revision { epoch: 0, sequence: 1 };
    let item = Item { kind: ItemKind::Unit, name: unit.name.clone(), id: id.clone(), sealed };
    let manifest = Manifest { items: vec![item], ..manifest(1) };
    let units = [(id, Bytes::from(unit.to_payload()))];
    let publish = async |fence| site.bus.publish_manifest(&h1, &manifest, &units, &[], (fence, fence)).await;
    let stream = site.jetstream.get_stream(subject::DESIRED_STREAM).await.unwrap();
    let read = async |on: String| stream.direct_get_last_for_subject(on).await.ok();
    let on = subject::desired_item(&h1, &units[0].0);
    assert_eq!(publish(earlier).await, DesiredStored::Fenced);
    assert!(read(on.clone()).await.is_none() && site.manifest(&h1).await.is_none());
    let stored = publish(later).await;
    let DesiredStored::Stored(sequence) = stored else { panic!("{stored:?}") };
    let item = read(on).await.unwrap();
    assert_eq!(UnitItem::parse(&item.payload).unwrap(), unit);
    assert!(item.sequence < sequence);
    assert_eq!(site.manifest(&h1).await, Some(sealed));
}
