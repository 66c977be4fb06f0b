//! The section of a Kubernetes cluster.

use std::time::Duration;

use os_upgrade_calendar::Duration as KernelDuration;
use os_upgrade_kernel::ApiServerOrder;
use os_upgrade_protocol::HostName;

use super::load_text;
use crate::{ClusterAccess, LabelOperator, NodeFrom, Settings, Warning};

fn host(name: &str) -> HostName {
    HostName::new(name).unwrap()
}

/// A configuration with a name for the site and these lines in `[kubernetes]`.
fn cluster(lines: &str) -> String {
    format!("[site]\nname = \"hall-1\"\n[kubernetes]\n{lines}")
}

#[test]
fn without_access_there_is_no_cluster() {
    let settings = Settings::default();
    assert_eq!(settings.cluster(), None);
    let kernel = settings.for_kernel();
    assert_eq!(kernel.kubernetes, None);
    assert_eq!(kernel.reboot, os_upgrade_kernel::RebootSettings::default());
}

#[test]
fn cluster_with_the_defaults() {
    let settings = load_text(&cluster("in-cluster = true"), &[]).unwrap();
    let found = settings.cluster().unwrap();
    assert_eq!(found.access, ClusterAccess::InCluster);
    assert_eq!((found.site.as_str(), &found.node_from), ("hall-1", &NodeFrom::Host));
    assert_eq!((found.protected_namespaces, found.job_pods, found.wait_for_pods), (None, None, None));
    assert_eq!((found.eviction_retries, found.eviction_interval), (0, Duration::from_secs(10)));
    assert_eq!((found.pod_grace, found.requests_per_second.get()), (None, 100));
    let [api_servers] = found.api_servers.requirements() else { panic!("{:?}", found.api_servers) };
    assert_eq!(api_servers.key, "node-role.kubernetes.io/control-plane");
    assert_eq!(api_servers.operator, LabelOperator::Exists);
    let kernel = settings.for_kernel().kubernetes.unwrap();
    assert_eq!(kernel.drain_timeout.as_secs(), 600);
    assert!(!kernel.uncordon_failed && kernel.includes(&host("any")));
}

#[test]
fn keys_for_nodes_have_no_effect_without_a_cluster() {
    let text =
        "[reboot]\napi-servers = \"last\"\napi-server-selector = \"a\"\nskip-wait-for-delete = \"5m\"\n";
    let warnings = |text: &str| load_text(text, &[]).unwrap().warnings();
    let no_effect = |key| Warning::NoEffect { key, needs: "[kubernetes]" };
    let expected = ["api-servers", "api-server-selector", "skip-wait-for-delete"].map(no_effect);
    assert_eq!(warnings(text), expected);
    let cluster = "[site]\nname = \"hall-1\"\n[kubernetes]\nkubeconfig = \"/k\"\n";
    assert_eq!(warnings(&format!("{text}{cluster}")), []);
}

#[test]
fn every_key_has_its_effect() {
    let text = r#"
[site]
name = "hall-1"
[reboot]
api-servers = "last"
api-server-selector = "cke.cybozu.com/master=true"
skip-wait-for-delete = "5m"
backoff-first = "1m"
backoff-max = "1h"
backoff-jitter = "0s"
[kubernetes]
kubeconfig = "/k"
context = "c"
node-from = "mapping"
drain-timeout = "20m"
protected-namespaces = "team=core,env in (a,b)"
job-pods = "app!=batch"
wait-for-pods = "blocks in (reboot)"
eviction-retries = 3
eviction-interval = "5s"
pod-grace = "1500ms"
requests-per-second = 250
on-failure = "uncordon"
[kubernetes.nodes]
h01 = "node-1"
"h02.example.com" = "node-2.example.com"
"#;
    let settings = load_text(text, &[]).unwrap();
    let cluster = settings.cluster().unwrap();
    let access = ClusterAccess::Kubeconfig { file: "/k".into(), context: Some("c".to_owned()) };
    assert_eq!(cluster.access, access);
    let nodes = [(host("h01"), "node-1"), (host("h02.example.com"), "node-2.example.com")];
    let nodes = nodes.map(|(host, node)| (host, node.to_owned()));
    assert_eq!(cluster.node_from, NodeFrom::Mapping(nodes.into()));
    assert_eq!(cluster.protected_namespaces.unwrap().requirements().len(), 2);
    assert_eq!(cluster.job_pods.unwrap().requirements()[0].operator, LabelOperator::NotIn);
    assert_eq!(cluster.wait_for_pods.unwrap().requirements()[0].values, ["reboot"]);
    assert_eq!(cluster.api_servers.requirements()[0].values, ["true"]);
    assert_eq!(cluster.skip_wait_for_delete, Some(Duration::from_mins(5)));
    assert_eq!((cluster.eviction_retries, cluster.eviction_interval), (3, Duration::from_secs(5)));
    assert_eq!(cluster.pod_grace, Some(Duration::from_secs(2)), "in whole seconds");
    assert_eq!(cluster.requests_per_second.get(), 250);
    let kernel = settings.for_kernel();
    assert_eq!(kernel.reboot.api_servers, ApiServerOrder::Last);
    let backoff = kernel.reboot.backoff;
    assert_eq!([backoff.first, backoff.max, backoff.jitter].map(KernelDuration::as_secs), [60, 3_600, 0]);
    let kubernetes = kernel.kubernetes.unwrap();
    assert_eq!((kubernetes.drain_timeout.as_secs(), kubernetes.uncordon_failed), (1_200, true));
    assert!(kubernetes.includes(&host("h01")) && !kubernetes.includes(&host("h03")));
}

#[test]
fn keys_are_variables_too() {
    let environment = [
        ("OS_UPGRADE_SITE__NAME", "hall-1"),
        ("OS_UPGRADE_KUBERNETES__IN_CLUSTER", "true"),
        ("OS_UPGRADE_KUBERNETES__NODE_FROM", "mapping"),
        ("OS_UPGRADE_KUBERNETES__NODES", "h01=node-1, a=b=node-2"),
        ("OS_UPGRADE_REBOOT__API_SERVER_SELECTOR", "a in (b,c)"),
    ];
    let cluster = load_text("", &environment).unwrap().cluster().unwrap();
    let nodes = [(host("h01"), "node-1".to_owned()), (host("a=b"), "node-2".to_owned())];
    assert_eq!(cluster.node_from, NodeFrom::Mapping(nodes.into()));
    assert_eq!(cluster.api_servers.requirements()[0].values, ["b", "c"]);
    let label =
        [environment[0], environment[1], ("OS_UPGRADE_KUBERNETES__NODE_FROM", "label:example.com/host")];
    let cluster = load_text("", &label).unwrap().cluster().unwrap();
    assert_eq!(cluster.node_from, NodeFrom::Label("example.com/host".to_owned()));
    assert_eq!(cluster.node_from.hosts(), None);
}

#[test]
fn ways_to_the_cluster_are_checked() {
    let no_effect = "has no effect without kubernetes.kubeconfig or kubernetes.in-cluster = true";
    for (text, expected) in [
        (
            cluster("kubeconfig = \"k\"\nin-cluster = true"),
            "c.toml:5:14: kubernetes.in-cluster: true contradicts kubernetes.kubeconfig (4:14); set only one of them"
                .to_owned(),
        ),
        (
            cluster("in-cluster = true\ncontext = \"c\""),
            "c.toml:5:11: kubernetes.context: needs kubernetes.kubeconfig, whose contexts it chooses from"
                .to_owned(),
        ),
        (
            "[kubernetes]\nkubeconfig = \"k\"".to_owned(),
            "c.toml:2:14: kubernetes.kubeconfig: needs a site.name other than \"site\", as sites that share a cluster \
             must differ"
                .to_owned(),
        ),
        (
            "[site]\nname = \"site\"\n[kubernetes]\nin-cluster = true".to_owned(),
            "c.toml:4:14: kubernetes.in-cluster: needs a site.name other than \"site\", as sites that share a cluster \
             must differ"
                .to_owned(),
        ),
        (
            // A value that is the default, as in the file with every key, says nothing.
            "[kubernetes]\ncontext = \"c\"\nin-cluster = false\ndrain-timeout = \"600s\"\non-failure = \"uncordon\"\n\
             eviction-retries = 0\neviction-interval = \"1s\"\njob-pods = \"a\""
                .to_owned(),
            format!(
                "c.toml:2:11: kubernetes.context: {no_effect}\nc.toml:5:14: kubernetes.on-failure: {no_effect}\n\
                 c.toml:7:21: kubernetes.eviction-interval: {no_effect}\nc.toml:8:12: kubernetes.job-pods: {no_effect}"
            ),
        ),
        (
            "[kubernetes]\nkubeconfig = \"\"\n[site]\nname = \"\"".to_owned(),
            "c.toml:2:14: kubernetes.kubeconfig: expected a path, found \"\"\n\
             c.toml:4:8: site.name: expected a name, found \"\": a name must not be empty"
                .to_owned(),
        ),
    ] {
        assert_eq!(load_text(&text, &[]).unwrap_err(), expected, "{text}");
    }
}

#[test]
fn nodes_are_checked() {
    let mapping = "in-cluster = true\nnode-from = \"mapping\"\n[kubernetes.nodes]\n";
    let node = "the name of a node";
    let rule = ": it consists of lower-case letters, digits, dashes and dots";
    for (lines, expected) in [
        (
            "in-cluster = true\nnode-from = \"mapping\"".to_owned(),
            "c.toml:5:13: kubernetes.node-from: \"mapping\" needs [kubernetes.nodes] with the node of each host"
                .to_owned(),
        ),
        (
            mapping.to_owned(),
            "c.toml:5:13: kubernetes.node-from: \"mapping\" needs [kubernetes.nodes] with the node of each host"
                .to_owned(),
        ),
        (
            "in-cluster = true\nnodes = { h01 = \"node-1\" }".to_owned(),
            "c.toml:5:9: kubernetes.nodes: needs kubernetes.node-from = \"mapping\"".to_owned(),
        ),
        (
            format!("{mapping}h01 = \"Node\"\nh02 = 2\nh03.example.com = \"n3\""),
            format!(
                "c.toml:7:7: kubernetes.nodes.h01: expected {node}, found \"Node\"{rule}\n\
                 c.toml:8:7: kubernetes.nodes.h02: expected {node}, found 2\n\
                 c.toml:9:1: kubernetes.nodes.h03: expected {node}, found a table; the name of a host with a dot needs quotes"
            ),
        ),
        (
            format!("{mapping}h01 = \"n\"\nh02 = \"n\""),
            "c.toml:8:1: kubernetes.nodes: n is the node of h01 already".to_owned(),
        ),
        (
            "in-cluster = true\nnode-from = \"label:\"".to_owned(),
            "c.toml:5:13: kubernetes.node-from: expected \"host\", \"label:KEY\" or \"mapping\", found \"label:\": \"\" is not \
             the key of a label"
                .to_owned(),
        ),
        (
            "in-cluster = true\nnode-from = \"Host\"".to_owned(),
            "c.toml:5:13: kubernetes.node-from: expected \"host\", \"label:KEY\" or \"mapping\", found \"Host\"".to_owned(),
        ),
    ] {
        assert_eq!(load_text(&cluster(&lines), &[]).unwrap_err(), expected, "{lines}");
    }
    let problem = load_text(
        &cluster("in-cluster = true\nnode-from = \"mapping\""),
        &[("OS_UPGRADE_KUBERNETES__NODES", "a=n,b=n")],
    );
    assert_eq!(
        problem.unwrap_err(),
        "OS_UPGRADE_KUBERNETES__NODES: kubernetes.nodes: expected hosts with their nodes, such as h01 = \"node-1\" (in a \
         variable: h01=node-1,h02=node-2), found \"a=n,b=n\": n is the node of a already"
    );
}

#[test]
fn selectors_and_backoff_are_checked() {
    let selector =
        "expected a label selector as kubectl takes it, such as \"team=core,env in (a,b),!spare\", found";
    for (text, expected) in [
        (
            cluster("in-cluster = true\nprotected-namespaces = \"a b\"\njob-pods = \"\""),
            format!(
                "c.toml:5:24: kubernetes.protected-namespaces: {selector} \"a b\": \"a b\" is not the key of a label\n\
                 c.toml:6:12: kubernetes.job-pods: {selector} \"\"; leave the key out to choose all"
            ),
        ),
        (
            "[reboot]\napi-servers = \"none\"\napi-server-selector = \"a in (\"".to_owned(),
            format!(
                "c.toml:2:15: reboot.api-servers: expected \"first\" or \"last\", found \"none\"\n\
                 c.toml:3:23: reboot.api-server-selector: {selector} \"a in (\": \"a in (\" is not the key of a label"
            ),
        ),
        (
            "[reboot]\nbackoff-first = \"1h\"".to_owned(),
            "c.toml:2:17: reboot.backoff-first: reboot.backoff-max is less than reboot.backoff-first"
                .to_owned(),
        ),
        (
            "[reboot]\nbackoff-first = \"1m\"\nbackoff-max = \"30s\"".to_owned(),
            "c.toml:3:15: reboot.backoff-max: reboot.backoff-max is less than reboot.backoff-first"
                .to_owned(),
        ),
    ] {
        assert_eq!(load_text(&text, &[]).unwrap_err(), expected, "{text}");
    }
}
