//! The labels that say whose balancer it is.

use std::collections::BTreeMap;

use cloudkeel_api::{Claim, Owner, ServiceRef, is_label_value};

/// The UID of the Service that it was made for, as the Go CCM marks it. This mark decides.
pub const SERVICE_UID: &str = "hcloud-ccm/service-uid";

/// The UID of the cluster that made it. Written when it is made or adopted, never later.
pub const CLUSTER_UID: &str = "cloudkeel.dev/cluster-uid";

/// Where the Service lives, for people and for finding left-overs.
const SERVICE_NAMESPACE: &str = "cloudkeel.dev/service-namespace";
const SERVICE_NAME: &str = "cloudkeel.dev/service-name";

type Labels = BTreeMap<String, String>;

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

/// The Service that a balancer was made for, as far as its labels tell.
pub(super) fn service(labels: &Labels) -> Option<ServiceRef> {
    Some(ServiceRef {
        namespace: labels.get(SERVICE_NAMESPACE)?.clone(),
        name: labels.get(SERVICE_NAME)?.clone(),
        uid: labels.get(SERVICE_UID)?.clone(),
    })
}
