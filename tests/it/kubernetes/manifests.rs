//! The files of `config/kubernetes`: they grant exactly what is used, and fit together.

use std::collections::BTreeSet;
use std::fs;

use harness::docker::repository;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::serde::Serialize;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::config::Kubeconfig;
use os_upgrade_adapters::kubernetes::client::{Access, Client};
use os_upgrade_adapters::kubernetes::node;
use os_upgrade_adapters::kubernetes::rights::{RIGHTS, Right};
use os_upgrade_settings as settings;
use os_upgrade_test_kubernetes::ApiServer;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::adapter::{NODE, USER, rules};

const NAMESPACE: &str = "os-upgrade";

/// The documents of a file.
fn documents(name: &str) -> Vec<Value> {
    let text = fs::read_to_string(repository().join("config/kubernetes").join(name)).unwrap();
    text.split("\n---\n").map(|text| serde_saphyr::from_str(text).unwrap()).collect()
}

/// The object of a kind, all of whose members Kubernetes knows.
fn object<T: DeserializeOwned + Serialize>(name: &str, kind: &str) -> T {
    let found: Vec<Value> = documents(name).into_iter().filter(|object| object["kind"] == kind).collect();
    let [object] = &found[..] else { panic!("{kind}: {found:?}") };
    let read: T = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(json!(read), *object);
    read
}

/// The rules of the cluster role.
pub(super) fn granted() -> Value {
    json!(object::<ClusterRole>("rbac.yaml", "ClusterRole").rules.unwrap())
}

#[test]
fn cluster_role_grants_exactly_what_is_used() {
    let role: ClusterRole = object("rbac.yaml", "ClusterRole");
    let mut granted = BTreeSet::new();
    for rule in role.rules.unwrap() {
        assert_eq!((rule.resource_names, rule.non_resource_urls), (None, None));
        for group in rule.api_groups.unwrap() {
            for resource in rule.resources.clone().unwrap() {
                granted.extend(rule.verbs.iter().map(|verb| (verb.clone(), group.clone(), resource.clone())));
            }
        }
    }
    let text = |right: Right| (right.verb.to_owned(), right.group.to_owned(), right.resource.to_owned());
    assert_eq!(granted, RIGHTS.map(text).into());
}

#[test]
fn role_is_bound_to_the_service_account() {
    let namespace: Namespace = object("rbac.yaml", "Namespace");
    let account: ServiceAccount = object("rbac.yaml", "ServiceAccount");
    let binding: ClusterRoleBinding = object("rbac.yaml", "ClusterRoleBinding");
    let role: ClusterRole = object("rbac.yaml", "ClusterRole");
    assert_eq!(namespace.metadata.name.as_deref(), Some(NAMESPACE));
    assert_eq!(account.metadata.namespace.as_deref(), Some(NAMESPACE));
    assert_eq!(
        (binding.role_ref.kind.as_str(), Some(binding.role_ref.name)),
        ("ClusterRole", role.metadata.name)
    );
    let [subject] = &binding.subjects.unwrap()[..] else { panic!("one subject") };
    assert_eq!((subject.kind.as_str(), subject.namespace.as_deref()), ("ServiceAccount", Some(NAMESPACE)));
    assert_eq!(Some(&subject.name), account.metadata.name.as_ref());
}

#[test]
fn deployment_runs_as_the_service_account() {
    let account: ServiceAccount = object("rbac.yaml", "ServiceAccount");
    let claim: PersistentVolumeClaim = object("inside.yaml", "PersistentVolumeClaim");
    let deployment: Deployment = object("inside.yaml", "Deployment");
    assert_eq!(deployment.metadata.namespace.as_deref(), Some(NAMESPACE));
    let spec = deployment.spec.unwrap();
    let template = spec.template.metadata.unwrap();
    let labels = template.labels.unwrap();
    assert!(spec.selector.match_labels.unwrap().iter().all(|(key, value)| labels.get(key) == Some(value)));
    assert_eq!(labels.get("app.kubernetes.io/part-of").map(String::as_str), Some("os-upgrade"));
    let pod = spec.template.spec.unwrap();
    assert_eq!(pod.service_account_name, account.metadata.name);
    let container = &pod.containers[0];

    // An unknown variable would be silently ignored.
    let known: Vec<String> =
        settings::SECTIONS.iter().flat_map(|section| section.keys).map(settings::Key::variable).collect();
    let mut files = BTreeSet::new();
    for variable in container.env.iter().flatten() {
        assert!(known.contains(&variable.name), "{variable:?}");
        files.extend(variable.value.iter().filter_map(|value| value.strip_prefix("/etc/os-upgrade/")));
    }
    // The secret is made of the files that are read.
    let text = fs::read_to_string(repository().join("config/kubernetes/inside.yaml")).unwrap();
    let made = text.lines().find(|line| line.contains("create secret")).unwrap();
    assert_eq!(made.split("--from-file ").skip(1).map(str::trim).collect::<BTreeSet<_>>(), files);

    let volumes = pod.volumes.unwrap();
    let names: BTreeSet<&String> = volumes.iter().map(|volume| &volume.name).collect();
    let mounted: BTreeSet<&String> =
        container.volume_mounts.iter().flatten().map(|mount| &mount.name).collect();
    assert_eq!(mounted, names);
    let claimed = volumes.iter().find_map(|volume| volume.persistent_volume_claim.as_ref()).unwrap();
    assert_eq!(Some(&claimed.claim_name), claim.metadata.name.as_ref());
}

/// What the level `restricted` of Pod Security asks for, field by field.
#[test]
fn deployment_passes_the_restricted_level() {
    let deployment: Deployment = object("inside.yaml", "Deployment");
    let pod = deployment.spec.unwrap().template.spec.unwrap();
    assert_eq!([pod.host_network, pod.host_pid, pod.host_ipc].map(Option::unwrap_or_default), [false; 3]);
    let of_pod = pod.security_context.unwrap();
    assert_eq!((of_pod.run_as_non_root, of_pod.run_as_user.map(|user| user > 0)), (Some(true), Some(true)));
    assert_eq!(of_pod.seccomp_profile.unwrap().type_, "RuntimeDefault");
    assert_eq!((of_pod.sysctls, of_pod.se_linux_options, of_pod.app_armor_profile), (None, None, None));
    assert_eq!((pod.init_containers, pod.ephemeral_containers, pod.containers.len()), (None, None, 1));
    let container = &pod.containers[0];
    assert!(container.ports.iter().flatten().all(|port| port.host_port.is_none()));
    let context = container.security_context.clone().unwrap();
    assert_eq!(context.allow_privilege_escalation, Some(false));
    let weaker = (context.privileged, context.run_as_non_root, context.run_as_user, context.seccomp_profile);
    assert_eq!(weaker, (None, None, None, None));
    let capabilities = context.capabilities.unwrap();
    assert_eq!((capabilities.add, capabilities.drop), (None, Some(vec!["ALL".to_owned()])));
    for volume in pod.volumes.unwrap() {
        let allowed =
            volume.empty_dir.is_some() || volume.secret.is_some() || volume.persistent_volume_claim.is_some();
        assert!(allowed, "{volume:?}");
    }
}

#[tokio::test]
async fn kubeconfig_uses_the_token_of_the_service_account() {
    let account: ServiceAccount = object("rbac.yaml", "ServiceAccount");
    let secret: Secret = object("outside.yaml", "Secret");
    assert_eq!(secret.metadata.namespace.as_deref(), Some(NAMESPACE));
    assert_eq!(secret.metadata.annotations.unwrap().values().next(), account.metadata.name.as_ref());

    let mut config = documents("outside.kubeconfig").remove(0);
    assert_eq!(json!(serde_json::from_value::<Kubeconfig>(config.clone()).unwrap()), config);
    // At a server of the test, with files of the test.
    let server = ApiServer::start_with_tls().await;
    server.add_node(NODE);
    let folder = TempDir::new().unwrap();
    let mut moved = |pointer: &str, text: &str| {
        let path = config.pointer_mut(pointer).unwrap();
        let name = path.as_str().unwrap().strip_prefix("/etc/os-upgrade/kubernetes/").unwrap();
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        *path = json!(file);
    };
    moved("/clusters/0/cluster/certificate-authority", server.authority().unwrap());
    moved("/users/0/user/tokenFile", &server.grant(USER, rules(&RIGHTS)));
    config["clusters"][0]["cluster"]["server"] = json!(server.url);
    let file = folder.path().join("config");
    fs::write(&file, config.to_string()).unwrap();
    let client = Client::new(&Access::Kubeconfig { file, context: None }).await.unwrap();
    assert_eq!(node::read(&client, NODE).await.unwrap().name, NODE);
}
