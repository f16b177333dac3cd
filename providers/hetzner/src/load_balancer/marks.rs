//! The labels that say whose balancer it is, and what of it was set because its Service asked for it.

use std::collections::{BTreeMap, BTreeSet};

use cloudkeel_api::{Claim, Owner, ServiceRef, is_label_value};

/// The UID of the Service that it was made for, as the Go CCM marks it. This mark decides.
pub const SERVICE_UID: &str = "hcloud-ccm/service-uid";

/// The UID of the cluster that made it. Written when it is made or adopted, never later.
pub const CLUSTER_UID: &str = "cloudkeel.dev/cluster-uid";

/// Where the Service lives, for people and for finding left-overs.
const SERVICE_NAMESPACE: &str = "cloudkeel.dev/service-namespace";
const SERVICE_NAME: &str = "cloudkeel.dev/service-name";

/// What was set because an annotation of the Service asked for it, so that it goes back to the default when the
/// annotation is removed. Written when it is set, never later: what a person or the Go CCM set stays.
const SET_FOR_SERVICE: &str = "cloudkeel.dev/set-for-service";

type Labels = BTreeMap<String, String>;

/// Something about a balancer that has a default to go back to. Its type has none: a smaller type may be too
/// small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Aspect {
    /// How connections are spread.
    Algorithm,
    /// The numbers of health checks.
    Check,
    /// The PROXY protocol.
    Proxy,
    /// Whether it has public addresses.
    Public,
}

impl Aspect {
    const ALL: [Self; 4] = [Self::Algorithm, Self::Check, Self::Proxy, Self::Public];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Algorithm => "algorithm",
            Self::Check => "check",
            Self::Proxy => "proxy",
            Self::Public => "public",
        }
    }
}

/// What was set because the Service asked for it.
pub(super) fn set_for_service(labels: &Labels) -> BTreeSet<Aspect> {
    let words: BTreeSet<&str> = labels
        .get(SET_FOR_SERVICE)
        .map(|words| words.split('.').collect())
        .unwrap_or_default();
    let all = Aspect::ALL.into_iter();
    all.filter(|aspect| words.contains(aspect.as_str()))
        .collect()
}

/// The labels with these on record.
pub(super) fn with_set(labels: &Labels, aspects: &BTreeSet<Aspect>) -> Labels {
    let mut labels = labels.clone();
    let words: Vec<_> = aspects.iter().map(|aspect| aspect.as_str()).collect();
    if words.is_empty() {
        labels.remove(SET_FOR_SERVICE);
    } else {
        labels.insert(SET_FOR_SERVICE.to_owned(), words.join("."));
    }
    labels
}

/// Whose balancer it is, by its labels.
pub(super) fn owner(labels: &Labels, claim: &Claim, cluster: Option<&str>) -> Owner {
    let other_cluster = labels
        .get(CLUSTER_UID)
        .filter(|marked| cluster.is_some_and(|ours| ours != *marked));
    match (labels.get(SERVICE_UID), other_cluster) {
        (Some(uid), _) if *uid != claim.service.uid => {
            let named = service(labels).map(|service| service.to_string());
            let named = named.unwrap_or_else(|| format!("with the UID {uid}"));
            Owner::Other(format!("Service {named}"))
        }
        (_, Some(cluster)) => Owner::Other(format!("cluster {cluster}")),
        (Some(_), None) => Owner::Us,
        (None, None) => Owner::Nobody,
    }
}

/// The labels with our marks on them.
pub(super) fn marked(labels: &Labels, claim: &Claim, cluster: Option<&str>) -> Labels {
    let mut labels = labels.clone();
    let Claim { service, .. } = claim;
    let marks = [
        (SERVICE_UID, Some(service.uid.as_str())),
        (CLUSTER_UID, cluster),
        (SERVICE_NAMESPACE, Some(service.namespace.as_str())),
        (SERVICE_NAME, Some(service.name.as_str())),
    ];
    for (key, value) in marks {
        // The cloud takes what Kubernetes takes; a mark for people is not worth a refusal.
        if let Some(value) = value.filter(|value| is_label_value(value)) {
            labels.insert(key.to_owned(), value.to_owned());
        }
    }
    labels
}

/// The labels without ours.
pub(super) fn unmarked(labels: &Labels) -> Labels {
    let ours = [
        SERVICE_UID,
        CLUSTER_UID,
        SERVICE_NAMESPACE,
        SERVICE_NAME,
        SET_FOR_SERVICE,
    ];
    let mut labels = labels.clone();
    labels.retain(|key, _| !ours.contains(&key.as_str()));
    labels
}

/// The Service that a balancer was made for, as far as its labels tell.
pub(super) fn service(labels: &Labels) -> Option<ServiceRef> {
    Some(ServiceRef {
        namespace: labels.get(SERVICE_NAMESPACE)?.clone(),
        name: labels.get(SERVICE_NAME)?.clone(),
        uid: labels.get(SERVICE_UID)?.clone(),
    })
}
