//! The labels that say which Service and cluster a cloud resource belongs to.

use std::collections::BTreeMap;

use cloudkeel_api::{
    BalancerRef, CloudError, OwnedResource, ResourceKind, ServiceRef, is_label_value,
};

use super::{CloudBalancer, Owner, SHARED_LABEL};

/// Labels or tags of a cloud resource.
pub type Labels = BTreeMap<String, String>;

/// The keys under which a cloud's resources carry their owner. The UID of the Service decides; the UID of the
/// cluster is written when a resource is created or adopted, never later.
///
/// ```
/// use cloudkeel_toolkit::{OwnerLabels, ServiceLabel};
///
/// const LABELS: OwnerLabels = OwnerLabels {
///     service_uid: "cloudkeel.dev/service-uid",
///     cluster_uid: "cloudkeel.dev/cluster-uid",
///     service: ServiceLabel::Joined("cloudkeel.dev/service"),
///     others: &[],
/// };
/// ```
#[derive(Debug, Clone, Copy)]
pub struct OwnerLabels {
    /// The UID of the Service.
    pub service_uid: &'static str,
    /// The UID of the cluster.
    pub cluster_uid: &'static str,
    /// Namespace and name of the Service, for people and for finding left-overs.
    pub service: ServiceLabel,
    /// What else a release takes off.
    pub others: &'static [&'static str],
}

/// How namespace and name of a Service are written.
#[derive(Debug, Clone, Copy)]
pub enum ServiceLabel {
    /// `namespace/name` under one key.
    Joined(&'static str),
    /// Under a key each, where values take no slash.
    Split {
        /// The namespace.
        namespace: &'static str,
        /// The name.
        name: &'static str,
    },
}

impl OwnerLabels {
    /// Whose a resource is, by its labels. A cluster whose own UID is not known takes every cluster for its own.
    pub fn owner(
        &self,
        labels: &Labels,
        balancer_ref: &BalancerRef,
        cluster: Option<&str>,
    ) -> Owner {
        let other_cluster = labels
            .get(self.cluster_uid)
            .filter(|labelled| cluster.is_some_and(|ours| ours != *labelled));
        match (labels.get(self.service_uid), other_cluster) {
            (Some(uid), _) if *uid != balancer_ref.service.uid => {
                let service = self.service(labels).map(|service| service.to_string());
                let service = service.unwrap_or_else(|| format!("with the UID {uid}"));
                Owner::Other(format!("Service {service}"))
            }
            (_, Some(cluster)) => Owner::Other(format!("cluster {cluster}")),
            (Some(_), None) => Owner::Us,
            (None, None) => Owner::Unowned,
        }
    }

    /// Whether a resource carries the label of this Service, whatever else it carries.
    pub fn is_labelled(&self, labels: &Labels, service: &ServiceRef) -> bool {
        labels.get(self.service_uid) == Some(&service.uid)
    }

    /// The labels with our owner labels among them. What the cloud would refuse as a value is left out: a
    /// label for people is not worth a refusal.
    pub fn added(
        &self,
        labels: &Labels,
        balancer_ref: &BalancerRef,
        cluster: Option<&str>,
    ) -> Labels {
        let service = &balancer_ref.service;
        let mut labels = labels.clone();
        let mut put = |key: &str, value: &str, is_taken: bool| {
            if is_taken {
                labels.insert(key.to_owned(), value.to_owned());
            }
        };
        put(self.service_uid, &service.uid, true);
        if let Some(cluster) = cluster {
            put(self.cluster_uid, cluster, true);
        }
        match self.service {
            ServiceLabel::Joined(key) => put(key, &service.to_string(), true),
            ServiceLabel::Split { namespace, name } => {
                for (key, value) in [(namespace, &service.namespace), (name, &service.name)] {
                    put(key, value, is_label_value(value));
                }
            }
        }
        labels
    }

    /// The labels without ours, for a resource that is released.
    pub fn removed(&self, labels: &Labels) -> Labels {
        let of_service = match self.service {
            ServiceLabel::Joined(key) => vec![key],
            ServiceLabel::Split { namespace, name } => vec![namespace, name],
        };
        let is_ours = |key: &str| {
            key == self.service_uid
                || key == self.cluster_uid
                || of_service.contains(&key)
                || key == SHARED_LABEL
                || self.others.contains(&key)
        };
        let mut labels = labels.clone();
        labels.retain(|key, _| !is_ours(key));
        labels
    }

    /// The Service that a resource was created for, as far as its labels say.
    pub fn service(&self, labels: &Labels) -> Option<ServiceRef> {
        let (namespace, name) = match self.service {
            ServiceLabel::Joined(key) => labels.get(key)?.split_once('/')?,
            ServiceLabel::Split { namespace, name } => {
                (labels.get(namespace)?.as_str(), labels.get(name)?.as_str())
            }
        };
        Some(ServiceRef {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: labels.get(self.service_uid)?.clone(),
        })
    }

    /// A load balancer with the cluster's label, for finding left-overs.
    pub fn owned<B: CloudBalancer>(&self, balancer: &B, labels: &Labels) -> OwnedResource {
        let (id, name) = (balancer.id(), balancer.name());
        self.owned_as(ResourceKind::LoadBalancer, id, name, labels)
    }

    /// Something else with the cluster's label.
    pub fn owned_as(
        &self,
        kind: ResourceKind,
        id: String,
        name: &str,
        labels: &Labels,
    ) -> OwnedResource {
        OwnedResource {
            kind,
            id,
            name: name.to_owned(),
            service: self.service(labels),
        }
    }

    /// Those of all load balancers that carry the cluster's label, where the cloud does not look up by label.
    pub fn owned_among<'a, B: CloudBalancer + 'a>(
        &self,
        all: impl IntoIterator<Item = &'a B>,
        labels_of: impl Fn(&B) -> Labels,
        cluster: &str,
    ) -> Vec<OwnedResource> {
        let labelled = all
            .into_iter()
            .map(|balancer| (balancer, labels_of(balancer)));
        let is_ours = |labels: &Labels| {
            labels
                .get(self.cluster_uid)
                .is_some_and(|uid| uid == cluster)
        };
        let ours = labelled.filter(|(_, labels)| is_ours(labels));
        ours.map(|(balancer, labels)| self.owned(balancer, &labels))
            .collect()
    }

    /// The value of the cluster's label, without which what is ours cannot be listed.
    pub fn cluster<'a>(&self, cluster: Option<&'a String>) -> Result<&'a str, CloudError> {
        let Some(cluster) = cluster else {
            let message = format!(
                "the cluster's UID, the value of {}, is not known: allow `get` on the namespace kube-system",
                self.cluster_uid
            );
            return Err(CloudError::unsupported(
                "list owned load balancers",
                message,
            ));
        };
        Ok(cluster)
    }
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::ClusterIdentity;

    use super::*;

    const JOINED: OwnerLabels = OwnerLabels {
        service_uid: "uid",
        cluster_uid: "cluster",
        service: ServiceLabel::Joined("service"),
        others: &["other"],
    };
    const SPLIT: OwnerLabels = OwnerLabels {
        service: ServiceLabel::Split {
            namespace: "namespace",
            name: "name",
        },
        ..JOINED
    };

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn balancer_ref() -> BalancerRef {
        let cluster = ClusterIdentity {
            name: "c".to_owned(),
            uid: Some("c-1".to_owned()),
            pod_cidrs: vec![],
        };
        let service = ServiceRef {
            namespace: "ns".to_owned(),
            name: "web".to_owned(),
            uid: "u-1".to_owned(),
        };
        BalancerRef::of(cluster, service)
    }

    #[test]
    fn the_owner_labels_decide_whose_it_is() {
        let other = |who: &str| Owner::Other(who.to_owned());
        for (case, pairs, cluster, expected) in [
            (
                "no label",
                &[("team", "a")][..],
                Some("c-1"),
                Owner::Unowned,
            ),
            ("our Service", &[("uid", "u-1")], Some("c-1"), Owner::Us),
            (
                "our Service and cluster",
                &[("uid", "u-1"), ("cluster", "c-1")],
                Some("c-1"),
                Owner::Us,
            ),
            (
                "our Service in a copy of the cluster",
                &[("uid", "u-1"), ("cluster", "c-2")],
                Some("c-1"),
                other("cluster c-2"),
            ),
            (
                "our cluster is not known",
                &[("uid", "u-1"), ("cluster", "c-2")],
                None,
                Owner::Us,
            ),
            (
                "another Service",
                &[("uid", "u-2"), ("service", "ns/db")],
                Some("c-1"),
                other("Service ns/db"),
            ),
            (
                "another Service without a name",
                &[("uid", "u-2")],
                Some("c-1"),
                other("Service with the UID u-2"),
            ),
            (
                "only another cluster",
                &[("cluster", "c-2")],
                Some("c-1"),
                other("cluster c-2"),
            ),
        ] {
            let found = JOINED.owner(&labels(pairs), &balancer_ref(), cluster);
            assert_eq!(found, expected, "{case}");
        }
    }

    #[test]
    fn owner_labels_come_and_go_without_touching_others() {
        let before = labels(&[("team", "a")]);
        for keys in [JOINED, SPLIT] {
            let mut with = keys.added(&before, &balancer_ref(), Some("c-1"));
            assert_eq!(keys.owner(&with, &balancer_ref(), Some("c-1")), Owner::Us);
            assert!(keys.is_labelled(&with, &balancer_ref().service));
            assert_eq!(keys.service(&with), Some(balancer_ref().service));
            with.insert("other".to_owned(), "x".to_owned());
            assert_eq!(keys.removed(&with), before);
            assert_eq!(keys.service(&before), None);
        }
    }

    #[test]
    fn a_name_that_is_no_label_value_is_left_out() {
        let mut balancer_ref = balancer_ref();
        balancer_ref.service.name = "x".repeat(64);
        let added = SPLIT.added(&Labels::new(), &balancer_ref, None);
        let keys: Vec<_> = added.keys().map(String::as_str).collect();
        assert_eq!(keys, ["namespace", "uid"]);
    }

    #[test]
    fn without_the_uid_of_the_cluster_nothing_is_listed() {
        assert!(JOINED.cluster(None).is_err());
        assert_eq!(JOINED.cluster(Some(&"c-1".to_owned())).unwrap(), "c-1");
    }
}
