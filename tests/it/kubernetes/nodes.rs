//! The adapter's cordons at a server: who may undo what, and what a lost answer leaves behind.

use std::time::Duration;

use harness::wait::eventually;
use os_upgrade_adapters::kubernetes::client::{Access, BuildError, Client};
use os_upgrade_adapters::kubernetes::error::Error;
use os_upgrade_adapters::kubernetes::mark::{
    ANNOTATION, Claim, Cordoned, Mark, Refenced, Standing, Uncordoned,
};
use os_upgrade_adapters::kubernetes::node::{self, Readiness, Sent};
use os_upgrade_adapters::kubernetes::permit::{Interrupted, Permit};
use os_upgrade_adapters::kubernetes::rights::{GET_NODE, PATCH_NODE};
use os_upgrade_test_kubernetes::resource::NODES;
use os_upgrade_test_kubernetes::{ApiServer, Fault};
use os_upgrade_test_site::authority::Authority;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::adapter::{Cluster, NODE, OWNER, USER, claim, client, client_of, fence, lasting, rules};

const FREE: Uncordoned = Uncordoned::Unmarked { is_unschedulable: false };

fn ours(was_unschedulable: bool) -> Cordoned {
    Cordoned::Ours { was_unschedulable }
}

fn later() -> Claim {
    Claim { fence: fence(8), ..claim() }
}

fn mark_of(claim: &Claim, was_unschedulable: bool) -> Mark {
    let Claim { site, host, fence, journal, takes_over: _ } = claim.clone();
    Mark { site, owner: OWNER.to_owned(), host, fence, journal, was_unschedulable }
}

async fn cordon(
    client: &Client,
    node: &str,
    claim: &Claim,
    permit: Permit<'_>,
) -> Result<Cordoned, Interrupted> {
    node::cordon(client, node, claim, OWNER, false, permit).await.map(|(cordoned, _)| cordoned)
}

async fn keep(client: &Client, node: &str, claim: &Claim) -> Result<Standing, Interrupted> {
    node::keep(client, node, claim, lasting()).await.map(|(standing, _)| standing)
}

async fn uncordon(client: &Client, node: &str, claim: &Claim) -> Result<Uncordoned, Interrupted> {
    let sent = Sent::default();
    node::uncordon(client, node, claim, lasting(), false, &sent, |_| true).await.map(Option::unwrap)
}

impl Cluster {
    async fn try_cordon(&self) -> Result<Cordoned, Interrupted> {
        cordon(&self.client, NODE, &claim(), lasting()).await
    }

    async fn uncordon(&self, claim: &Claim) -> Result<Uncordoned, Interrupted> {
        uncordon(&self.client, NODE, claim).await
    }

    async fn standing(&self, claim: &Claim) -> Standing {
        claim.standing(&node::read(&self.client, NODE).await.unwrap().cordon)
    }

    fn is_unschedulable(&self) -> bool {
        self.node()["spec"]["unschedulable"] == json!(true)
    }

    fn annotation(&self) -> Value {
        let text = &self.node()["metadata"]["annotations"][ANNOTATION];
        let mut mark: Value = text.as_str().map_or(Value::Null, |text| serde_json::from_str(text).unwrap());
        // What is for people has a test of its own.
        if let Some(mark) = mark.as_object_mut() {
            mark.retain(|key, _| !["since", "reason"].contains(&key.as_str()));
        }
        mark
    }

    fn set_unschedulable(&self, is_unschedulable: bool) {
        self.server.edit(NODES, "", NODE, |node| node["spec"]["unschedulable"] = json!(is_unschedulable));
    }
}

#[tokio::test]
async fn cordon_is_one_patch_and_ends_without_trace() {
    let cluster = Cluster::start().await;
    let before = cluster.node();
    assert_eq!(cluster.try_cordon().await, Ok(ours(false)));
    assert!(cluster.is_unschedulable());
    let expected = json!({
        "site": "here", "owner": OWNER, "host": NODE, "fence": { "restored": 0, "sequence": 7 },
        "wasUnschedulable": false,
    });
    assert_eq!(cluster.annotation(), expected);
    assert_eq!(cluster.standing(&claim()).await, Standing::Ours);
    assert_eq!(cluster.writes(), 1);
    // Again, it finds that it is done.
    assert_eq!(cluster.try_cordon().await, Ok(ours(false)));
    assert_eq!(cluster.writes(), 1);

    assert_eq!(cluster.uncordon(&claim()).await, Ok(FREE));
    assert_eq!(cluster.writes(), 2);
    assert_eq!(cluster.node()["spec"], before["spec"]);
    assert_eq!(cluster.annotation(), Value::Null);
    assert_eq!(cluster.uncordon(&claim()).await, Ok(FREE));
    assert_eq!(cluster.writes(), 2);
}

#[tokio::test]
async fn node_says_which_boot_it_runs() {
    let cluster = Cluster::start().await;
    let before = node::read(&cluster.client, NODE).await.unwrap();
    assert_eq!((before.name.as_str(), before.readiness), (NODE, Readiness::Ready));
    cluster.server.stop_kubelet(NODE);
    cluster.server.lose_node(NODE);
    assert_eq!(node::read(&cluster.client, NODE).await.unwrap().readiness, Readiness::Unknown);
    cluster.server.boot_node(NODE);
    let after = node::read(&cluster.client, NODE).await.unwrap();
    assert_eq!((after.readiness, &after.uid), (Readiness::NotReady, &before.uid));
    assert!(after.boot_id.is_some() && after.boot_id != before.boot_id);
}

#[tokio::test]
async fn administrators_cordon_outlives_ours() {
    let cluster = Cluster::start().await;
    cluster.set_unschedulable(true);
    assert_eq!(cluster.try_cordon().await, Ok(ours(true)));
    // The next leader takes the mark over, with what it remembers.
    let later = later();
    assert_eq!(cordon(&cluster.client, NODE, &later, lasting()).await, Ok(ours(true)));
    assert_eq!(cluster.uncordon(&later).await, Ok(Uncordoned::Unmarked { is_unschedulable: true }));
    assert!(cluster.is_unschedulable());
    assert_eq!(cluster.annotation(), Value::Null);
}

#[tokio::test]
async fn node_without_our_mark_is_left_alone() {
    let cluster = Cluster::start().await;
    cluster.set_unschedulable(true);
    assert_eq!(cluster.standing(&claim()).await, Standing::Unmarked);
    assert_eq!(cluster.uncordon(&claim()).await, Ok(Uncordoned::Unmarked { is_unschedulable: true }));
    cluster
        .server
        .edit(NODES, "", NODE, |node| node["metadata"]["annotations"] = json!({ ANNOTATION: "odd" }));
    assert!(matches!(cluster.standing(&claim()).await, Standing::Unreadable { .. }));
    assert!(matches!(cluster.uncordon(&claim()).await, Ok(Uncordoned::Unreadable { .. })));
    assert!(matches!(cluster.try_cordon().await, Ok(Cordoned::Unreadable { .. })));
    assert_eq!(cluster.writes(), 0);
    assert!(cluster.is_unschedulable());
}

#[tokio::test]
async fn foreign_uncordon_is_seen() {
    let cluster = Cluster::start().await;
    cluster.cordon().await;
    cluster.set_unschedulable(false);
    assert_eq!(cluster.standing(&claim()).await, Standing::ForeignUncordon);
    assert_eq!(cluster.uncordon(&claim()).await, Ok(FREE));
    assert_eq!(cluster.annotation(), Value::Null);
}

#[tokio::test]
async fn deposed_leader_undoes_nothing() {
    let cluster = Cluster::start().await;
    cluster.cordon().await;
    let refence = async |claim: &Claim| node::refence(&cluster.client, NODE, claim, lasting()).await;
    assert_eq!(refence(&later()).await, Ok(Refenced::Done { was_unschedulable: false }));
    let mark = mark_of(&later(), false);
    assert_eq!(cluster.standing(&claim()).await, Standing::Superseded(mark.clone()));
    let writes = cluster.writes();
    assert_eq!(cluster.uncordon(&claim()).await, Ok(Uncordoned::Superseded(mark.clone())));
    assert_eq!(cluster.try_cordon().await, Ok(Cordoned::Superseded(mark.clone())));
    assert_eq!(refence(&claim()).await, Ok(Refenced::Superseded(mark)));
    assert_eq!(cluster.writes(), writes);
    assert_eq!(refence(&later()).await, Ok(Refenced::Done { was_unschedulable: false }));
    assert_eq!(cluster.writes(), writes);
    assert_eq!(cluster.uncordon(&later()).await, Ok(FREE));
    assert_eq!(refence(&later()).await, Ok(Refenced::Unmarked));
}

/// Each has its own fences and owners, which may be equal by chance.
#[tokio::test]
async fn two_sites_leave_each_others_cordons() {
    let cluster = Cluster::start().await;
    cluster.server.add_node("m");
    let client = &cluster.client;
    let there = Claim { site: "there".to_owned(), ..claim() };
    for sequence in [1, 7, 99] {
        let there = Claim { fence: fence(sequence), ..there.clone() };
        assert_eq!(cordon(client, NODE, &claim(), lasting()).await, Ok(ours(false)));
        assert_eq!(cordon(client, "m", &there, lasting()).await, Ok(ours(false)));
        let mark = mark_of(&claim(), false);
        let writes = cluster.writes();
        assert_eq!(cordon(client, NODE, &there, lasting()).await, Ok(Cordoned::OtherSite(mark.clone())));
        assert_eq!(
            node::refence(client, NODE, &there, lasting()).await,
            Ok(Refenced::OtherSite(mark.clone()))
        );
        assert_eq!(cluster.uncordon(&there).await, Ok(Uncordoned::OtherSite(mark.clone())));
        assert_eq!(keep(client, NODE, &there).await, Ok(Standing::OtherSite(mark)));
        assert_eq!(cluster.writes(), writes);

        // When one has left the node, the other one may have it.
        assert_eq!(cluster.uncordon(&claim()).await, Ok(FREE));
        assert_eq!(cordon(client, NODE, &there, lasting()).await, Ok(ours(false)));
        assert_eq!(cluster.try_cordon().await, Ok(Cordoned::OtherSite(mark_of(&there, false))));
        assert_eq!(cluster.uncordon(&there).await, Ok(FREE));
        assert_eq!(uncordon(client, "m", &there).await, Ok(FREE));
    }
}

#[tokio::test]
async fn conflicts_are_resolved_by_another_look() {
    let cluster = Cluster::start().await;
    cluster.server.plan(Fault::Slow(Duration::from_millis(300)), "patch", "nodes", 1);
    let change = async {
        eventually("the patch", async || (cluster.writes() == 1).then_some(())).await;
        cluster.set_unschedulable(true);
    };
    let (cordoned, ()) = tokio::join!(cluster.try_cordon(), change);
    // The administrator was faster, and is remembered.
    assert_eq!(cordoned, Ok(ours(true)));
    assert_eq!(cluster.called("patch", "nodes").len(), 2);
}

#[tokio::test]
async fn repeated_conflicts_are_given_up() {
    let cluster = Cluster::start().await;
    cluster.server.plan(Fault::Conflict, "patch", "nodes", 100);
    let error = cluster.try_cordon().await.unwrap_err();
    assert!(matches!(error, Interrupted::Failed(Error::Conflict { .. })), "{error:?}");
    assert_eq!(cluster.writes(), 6);
    assert!(!cluster.is_unschedulable());
}

#[tokio::test]
async fn uncordon_notices_a_mark_that_changes() {
    let cluster = Cluster::start().await;
    cluster.cordon().await;
    cluster.server.plan(Fault::Slow(Duration::from_millis(300)), "patch", "nodes", 1);
    let mark = mark_of(&later(), false);
    let text = json!(mark).to_string();
    let change = async {
        eventually("the patch", async || (cluster.writes() == 1).then_some(())).await;
        cluster
            .server
            .edit(NODES, "", NODE, |node| node["metadata"]["annotations"][ANNOTATION] = json!(text));
    };
    let claim = claim();
    let (uncordoned, ()) = tokio::join!(cluster.uncordon(&claim), change);
    assert_eq!(uncordoned, Ok(Uncordoned::Superseded(mark)));
    assert!(cluster.is_unschedulable());
}

#[tokio::test]
async fn lost_answers_are_looked_up() {
    for fault in [Fault::CutBefore, Fault::CutAfter, Fault::Status(500), Fault::Throttled] {
        let cluster = Cluster::start().await;
        cluster.server.plan(fault, "patch", "nodes", 1);
        assert_eq!(cluster.try_cordon().await, Ok(ours(false)), "{fault:?}");
        let patches = if fault == Fault::CutAfter { 1 } else { 2 };
        assert_eq!(cluster.writes(), patches, "{fault:?}");
        cluster.server.plan(fault, "patch", "nodes", 1);
        assert_eq!(cluster.uncordon(&claim()).await, Ok(FREE), "{fault:?}");
        assert_eq!(cluster.writes(), 2 * patches, "{fault:?}");
        assert!(!cluster.is_unschedulable());
    }
}

/// The answer to an uncordon is lost, and an administrator cordons the node before it is looked up.
#[tokio::test]
async fn repeated_uncordon_leaves_an_administrators_cordon() {
    let cluster = Cluster::start().await;
    cluster.cordon().await;
    cluster.server.plan(Fault::CutAfter, "patch", "nodes", 1);
    let (claim, sent) = (claim(), Sent::default());
    let uncordon = node::uncordon(&cluster.client, NODE, &claim, lasting(), true, &sent, |_| true);
    let cordon = async {
        eventually("the patch", async || (cluster.writes() == 1).then_some(())).await;
        cluster.set_unschedulable(true);
    };
    let (uncordoned, ()) = tokio::join!(uncordon, cordon);
    assert_eq!(uncordoned, Ok(Some(Uncordoned::Unmarked { is_unschedulable: true })));
    assert!(cluster.is_unschedulable());
}

/// Its mark is gone, so that nothing but what the site knows tells whose cordon it is.
#[tokio::test]
async fn refused_uncordon_is_repeated() {
    let cluster = Cluster::start().await;
    cluster.cordon().await;
    cluster.server.edit(NODES, "", NODE, |node| node["metadata"]["annotations"] = json!({}));
    cluster.server.plan(Fault::Throttled, "patch", "nodes", 1);
    let (claim, sent) = (claim(), Sent::default());
    let uncordoned = node::uncordon(&cluster.client, NODE, &claim, lasting(), true, &sent, |_| true).await;
    assert!(uncordoned.is_ok(), "{uncordoned:?}");
    assert!(!cluster.is_unschedulable());
}

#[tokio::test]
async fn late_answers_are_looked_up() {
    let cluster = Cluster::start().await;
    let client = cluster.client.clone().with_timeout(Duration::from_millis(200));
    cluster.server.plan(Fault::LateAnswer(Duration::from_secs(1)), "patch", "nodes", 1);
    assert_eq!(cordon(&client, NODE, &claim(), lasting()).await, Ok(ours(false)));
    assert_eq!(cluster.writes(), 1);
    cluster.server.plan(Fault::LateAnswer(Duration::from_secs(1)), "get", "nodes", 1);
    let limit = Duration::from_millis(200);
    assert_eq!(node::read(&client, NODE).await, Err(Error::TimedOut { limit }));
}

#[tokio::test]
async fn nothing_is_written_without_permission() {
    let cluster = Cluster::start().await;
    let cordoned = cordon(&cluster.client, NODE, &claim(), Permit::new(&|| false)).await;
    assert_eq!(cordoned, Err(Interrupted::NotLeading));
    assert_eq!(cluster.writes(), 0);
}

/// An older fence is rewritten, and what somebody else has undone stays undone.
#[tokio::test]
async fn kept_cordon_gets_the_fence_and_is_not_made_anew() {
    let cluster = Cluster::start().await;
    let keep = async |claim: &Claim| keep(&cluster.client, NODE, claim).await;
    assert_eq!(keep(&claim()).await, Ok(Standing::Unmarked));
    cluster.cordon().await;
    assert_eq!(keep(&claim()).await, Ok(Standing::Ours));
    assert_eq!(cluster.writes(), 0);
    assert_eq!(keep(&later()).await, Ok(Standing::Ours));
    assert_eq!((cluster.writes(), &cluster.annotation()["fence"]["sequence"]), (1, &json!(8)));
    assert_eq!(keep(&claim()).await, Ok(Standing::Superseded(mark_of(&later(), false))));
    cluster.set_unschedulable(false);
    assert_eq!(keep(&Claim { fence: fence(9), ..claim() }).await, Ok(Standing::ForeignUncordon));
    assert_eq!(cluster.writes(), 1);
}

#[tokio::test]
async fn missing_rights_are_named() {
    let cluster = Cluster::start().await;
    cluster.server.grant(USER, rules(&[GET_NODE]));
    let forbidden = |result: Result<(), Interrupted>| match result {
        Err(Interrupted::Failed(Error::Forbidden { right, detail })) => {
            assert!(detail.contains("User \"os-upgrade\" cannot"), "{detail}");
            right
        }
        other => panic!("not forbidden: {other:?}"),
    };
    assert_eq!(forbidden(cluster.try_cordon().await.map(|_| ())), PATCH_NODE);
}

#[tokio::test]
async fn failures_are_told_apart() {
    let cluster = Cluster::start().await;
    let error = node::read(&cluster.client, "gone").await.unwrap_err();
    assert!(matches!(error, Error::NotFound { right: GET_NODE, .. }), "{error:?}");
    assert!(matches!(node::read(&cluster.client, "").await, Err(Error::NotFound { .. })));
    cluster.server.plan(Fault::Throttled, "get", "nodes", 1);
    let retry_after = Some(Duration::from_secs(1));
    assert_eq!(node::read(&cluster.client, NODE).await, Err(Error::Throttled { retry_after }));
    // Something else than an API server may answer so to every request: no node is taken for gone.
    cluster.server.plan(Fault::Status(404), "get", "nodes", 1);
    let error = node::read(&cluster.client, NODE).await.unwrap_err();
    assert!(matches!(error, Error::Refused { status: 404, .. }), "{error:?}");
    cluster.server.renew_token(USER);
    assert_eq!(node::read(&cluster.client, NODE).await, Err(Error::Unauthorized));
    assert_eq!(cluster.try_cordon().await, Err(Interrupted::Failed(Error::Unauthorized)));
    let client = cluster.client.clone();
    drop(cluster);
    let error = node::read(&client, NODE).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert!(error.leaves_outcome_unknown());
}

#[tokio::test]
async fn answer_that_is_not_http_is_malformed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = ApiServer::start().await;
    let mut config = server.kubeconfig(server.admin_token());
    config["clusters"][0]["cluster"]["server"] = json!(format!("http://{}", listener.local_addr().unwrap()));
    let client = client_of(&config).await;
    let answer = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_u8().await.unwrap();
        stream.write_all(b"220 mail.example.org ESMTP\r\n\r\n").await.unwrap();
        stream.read_to_end(&mut Vec::new()).await.unwrap();
    };
    let (read, ()) = tokio::join!(node::read(&client, NODE), answer);
    assert!(matches!(read, Err(Error::Malformed { .. })), "{read:?}");
}

/// Credentials come from a program that the kubeconfig names, which fails after a while.
#[tokio::test]
async fn failing_credentials_are_told_from_a_missing_server() {
    let server = ApiServer::start().await;
    server.add_node(NODE);
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("credentials");
    let credentials = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "status": { "token": server.admin_token(), "expirationTimestamp": "2026-01-01T00:00:00Z" },
    });
    std::fs::write(&file, credentials.to_string()).unwrap();
    let mut config = server.kubeconfig("");
    config["users"][0]["user"] = json!({ "exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "cat", "args": [file], "interactiveMode": "Never",
    } });
    let client = client_of(&config).await;
    assert_eq!(node::read(&client, NODE).await.unwrap().name, NODE);
    std::fs::remove_file(&file).unwrap();
    let error = node::read(&client, NODE).await.unwrap_err();
    assert!(matches!(error, Error::NoCredentials { .. }), "{error:?}");
    assert!(!error.leaves_outcome_unknown());
}

#[tokio::test]
async fn client_trusts_what_its_kubeconfig_says() {
    let server = ApiServer::start_with_tls().await;
    server.add_node(NODE);
    let client = client(&server, server.admin_token()).await;
    assert_eq!(node::read(&client, NODE).await.unwrap().name, NODE);
}

#[tokio::test]
async fn client_uses_the_context_that_is_named() {
    let server = ApiServer::start().await;
    server.add_node(NODE);
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("config");
    let mut config = server.kubeconfig("wrong");
    let named = |name: &str, kind: &str, value: Value| json!({ "name": name, kind: value });
    let more = [
        ("users", named("right", "user", json!({ "token": server.admin_token() }))),
        ("contexts", named("right", "context", json!({ "cluster": "test", "user": "right" }))),
    ];
    for (list, item) in more {
        config[list].as_array_mut().unwrap().push(item);
    }
    std::fs::write(&file, config.to_string()).unwrap();
    let access = |context: Option<&str>| Access::Kubeconfig {
        file: file.clone(),
        context: context.map(str::to_owned),
    };
    let read = async |context| node::read(&Client::new(&access(context)).await.unwrap(), NODE).await;
    assert_eq!(read(None).await, Err(Error::Unauthorized));
    assert_eq!(read(Some("right")).await.unwrap().name, NODE);
    let error = Client::new(&access(Some("unknown"))).await.unwrap_err();
    assert!(matches!(error, BuildError::Kubeconfig { .. }), "{error:?}");
}

/// The files of a service account, as a pod has them.
fn service_account(server: &ApiServer, token: &str) -> (TempDir, Access) {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("ca.crt"), server.authority().unwrap()).unwrap();
    std::fs::write(folder.path().join("token"), token).unwrap();
    let access = Access::ServiceAccount { server: server.url.clone(), folder: folder.path().to_owned() };
    (folder, access)
}

#[tokio::test]
async fn client_uses_the_files_of_a_service_account() {
    let server = ApiServer::start_with_tls().await;
    server.add_node(NODE);
    let (folder, access) = service_account(&server, server.admin_token());
    let client = Client::new(&access).await.unwrap();
    assert_eq!(node::read(&client, NODE).await.unwrap().name, NODE);

    std::fs::write(folder.path().join("ca.crt"), Authority::new("another").pem).unwrap();
    let error = node::read(&Client::new(&access).await.unwrap(), NODE).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains("certificate"), "{error}");
    std::fs::remove_file(folder.path().join("token")).unwrap();
    let error = Client::new(&access).await.unwrap_err();
    assert!(matches!(error, BuildError::Token { .. }), "{error:?}");
    std::fs::remove_file(folder.path().join("ca.crt")).unwrap();
    let error = Client::new(&access).await.unwrap_err();
    assert!(matches!(error, BuildError::ServiceAccount { .. }), "{error:?}");
}

/// Tokens of service accounts live for an hour and are replaced in their file before. Whoever writes one by hand adds a new line.
#[tokio::test]
async fn client_follows_the_token_in_its_file() {
    let server = ApiServer::start_with_tls().await;
    server.add_node(NODE);
    let (folder, access) = service_account(&server, &server.grant(USER, rules(&[GET_NODE])));
    let mut config = server.kubeconfig("");
    config["users"][0]["user"] = json!({ "tokenFile": folder.path().join("token") });
    let clients = [Client::new(&access).await.unwrap(), client_of(&config).await];
    for _ in 0..2 {
        for client in &clients {
            assert_eq!(node::read(client, NODE).await.unwrap().name, NODE);
        }
        std::fs::write(folder.path().join("token"), server.renew_token(USER) + "\n").unwrap();
    }
}
