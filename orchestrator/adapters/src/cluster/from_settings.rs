//! The Kubernetes cluster that the settings name.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Expression, Selector};
use os_upgrade_settings::{self as settings, ClusterAccess, LabelOperator, LabelRequirement, Settings};

use super::{Cluster, ClusterConfig};
use crate::kubernetes::client::{Access, BuildError, Client};
use crate::kubernetes::drain::Pace;
use crate::kubernetes::plan::Policy;
use crate::kubernetes::request_rate::RequestRate;

impl Cluster {
    /// The cluster of `[kubernetes]`, if there is one. It is not asked anything yet.
    ///
    /// # Errors
    /// The way to the cluster or the credentials cannot be read or used.
    pub async fn from_settings(settings: &Settings) -> Result<Option<Self>, BuildError> {
        let Some(cluster) = settings.cluster() else { return Ok(None) };
        let config = config(cluster);
        // The cluster makes its client when it needs it, which would be late for a mistake in the settings.
        drop(Client::new(&config.access).await?);
        Ok(Some(Self::new(config)))
    }
}

fn config(cluster: settings::Cluster) -> ClusterConfig {
    let labels = |selector: &settings::LabelSelector| LabelSelector::from(selector_of(selector));
    let protected = cluster.protected_namespaces.as_ref().map(labels);
    let job_pods = cluster.job_pods.as_ref().map(labels);
    let awaited = cluster.wait_for_pods.as_ref().map(labels);
    let policy = Policy::new(protected, job_pods).and_then(|policy| policy.waiting_for(awaited));
    ClusterConfig {
        access: match cluster.access {
            ClusterAccess::Kubeconfig { file, context } => Access::Kubeconfig { file, context },
            ClusterAccess::InCluster => Access::InCluster,
        },
        site: cluster.site,
        node_from: cluster.node_from,
        policy: policy.expect("the settings have only known operators"),
        requests: RequestRate::per_second(cluster.requests_per_second),
        pace: Pace {
            retry: cluster.eviction_interval,
            retries: cluster.eviction_retries,
            grace: cluster.pod_grace,
            skip_terminating_after: cluster.skip_wait_for_delete,
        },
        api_servers: selector_of(&cluster.api_servers),
    }
}

fn selector_of(selector: &settings::LabelSelector) -> Selector {
    selector.requirements().iter().map(expression).collect()
}

fn expression(LabelRequirement { key, operator, values }: &LabelRequirement) -> Expression {
    let (key, values) = (key.clone(), values.iter().cloned().collect());
    match operator {
        LabelOperator::In => Expression::In(key, values),
        LabelOperator::NotIn => Expression::NotIn(key, values),
        LabelOperator::Exists => Expression::Exists(key),
        LabelOperator::DoesNotExist => Expression::DoesNotExist(key),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kube::core::SelectorExt as _;
    use os_upgrade_settings::NodeFrom;

    use super::*;

    #[test]
    fn settings_become_a_configuration() {
        let text = "[site]\nname = \"hall-1\"\n[kubernetes]\nkubeconfig = \"/k\"\nnode-from = \"label:a\"\n\
                    eviction-retries = 2\neviction-interval = \"1s\"\nprotected-namespaces = \"team\"\n\
                    wait-for-pods = \"w\"\n[reboot]\n\
                    api-server-selector = \"a in (b,c),!d,e!=f\"\n";
        let settings = settings::parse(None, text, []).unwrap();
        let config = config(settings.cluster().unwrap());
        assert_eq!(config.access, Access::Kubeconfig { file: "/k".into(), context: None });
        assert_eq!((config.site.as_str(), &config.node_from), ("hall-1", &NodeFrom::Label("a".to_owned())));
        assert_eq!((config.pace.retries, config.pace.retry.as_secs()), (2, 1));
        assert!(config.policy.needs_namespaces());
        assert!(config.policy.awaits(&[("w".to_owned(), String::new())].into()));
        let matches = |labels: &[(&str, &str)]| {
            let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            config.api_servers.matches(&labels.collect::<BTreeMap<_, _>>())
        };
        assert!(matches(&[("a", "c")]) && matches(&[("a", "b"), ("e", "g")]));
        assert!(!matches(&[]) && !matches(&[("a", "b"), ("d", "")]) && !matches(&[("a", "b"), ("e", "f")]));
    }
}
