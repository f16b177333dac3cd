//! The labels that say whose balancer it is.

use std::collections::BTreeMap;

use cloudkeel_api::{Claim, Owner, ServiceRef};

/// The UID of the Service that it was made for. This mark decides.
pub const SERVICE_UID: &str = "cloudkeel.dev/service-uid";

/// The UID of the cluster that made it. Written when it is made or adopted, never later.
pub const CLUSTER_UID: &str = "cloudkeel.dev/cluster-uid";

/// `namespace/name` of the Service, for people and for finding left-overs.
pub const SERVICE: &str = "cloudkeel.dev/service";

const ALL: [&str; 3] = [SERVICE_UID, CLUSTER_UID, SERVICE];

type Labels = BTreeMap<String, String>;

/// Whose balancer it is, by its labels.
pub(super) fn owner(labels: &Labels, claim: &Claim, cluster: Option<&str>) -> Owner {
    let other_cluster = labels
        .get(CLUSTER_UID)
        .filter(|marked| cluster.is_some_and(|ours| ours != *marked));
    match labels.get(SERVICE_UID) {
        Some(uid) if *uid != claim.service.uid => {
            let name = labels.get(SERVICE).unwrap_or(uid);
            Owner::Other(format!("Service {name}"))
        }
        marked => match (other_cluster, marked) {
            (Some(cluster), _) => Owner::Other(format!("cluster {cluster}")),
            (None, Some(_)) => Owner::Us,
            (None, None) => Owner::Nobody,
        },
    }
}

/// The labels with our marks on them.
pub(super) fn marked(labels: &Labels, claim: &Claim, cluster: Option<&str>) -> Labels {
    let mut labels = labels.clone();
    labels.insert(SERVICE_UID.to_owned(), claim.service.uid.clone());
    labels.insert(SERVICE.to_owned(), claim.service.to_string());
    if let Some(cluster) = cluster {
        labels.insert(CLUSTER_UID.to_owned(), cluster.to_owned());
    }
    labels
}

/// The labels without anybody's marks.
pub(super) fn unmarked(labels: &Labels) -> Labels {
    let mut labels = labels.clone();
    labels.retain(|key, _| !ALL.contains(&key.as_str()));
    labels
}

/// The Service that a balancer was made for, as far as its labels tell.
pub(super) fn service(labels: &Labels) -> Option<ServiceRef> {
    let (namespace, name) = labels.get(SERVICE)?.split_once('/')?;
    Some(ServiceRef {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: labels.get(SERVICE_UID)?.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::claim;
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn the_marks_decide_whose_it_is() {
        let claim = claim("u-1");
        let other = |who: &str| Owner::Other(who.to_owned());
        for (case, pairs, cluster, expected) in [
            ("no mark", &[("team", "a")][..], Some("c-1"), Owner::Nobody),
            (
                "our Service",
                &[(SERVICE_UID, "u-1")],
                Some("c-1"),
                Owner::Us,
            ),
            (
                "our Service and cluster",
                &[(SERVICE_UID, "u-1"), (CLUSTER_UID, "c-1")],
                Some("c-1"),
                Owner::Us,
            ),
            (
                "our Service in a copy of the cluster",
                &[(SERVICE_UID, "u-1"), (CLUSTER_UID, "c-2")],
                Some("c-1"),
                other("cluster c-2"),
            ),
            (
                "our cluster is not known",
                &[(SERVICE_UID, "u-1"), (CLUSTER_UID, "c-2")],
                None,
                Owner::Us,
            ),
            (
                "another Service",
                &[(SERVICE_UID, "u-2"), (SERVICE, "ns/db")],
                Some("c-1"),
                other("Service ns/db"),
            ),
            (
                "another Service without a name",
                &[(SERVICE_UID, "u-2")],
                Some("c-1"),
                other("Service u-2"),
            ),
            (
                "only another cluster",
                &[(CLUSTER_UID, "c-2")],
                Some("c-1"),
                other("cluster c-2"),
            ),
        ] {
            assert_eq!(owner(&labels(pairs), &claim, cluster), expected, "{case}");
        }
    }

    #[test]
    fn marks_come_and_go_without_touching_other_labels() {
        let claim = claim("u-1");
        let before = labels(&[("team", "a")]);
        let with = marked(&before, &claim, Some("c-1"));
        assert_eq!(owner(&with, &claim, Some("c-1")), Owner::Us);
        assert_eq!(service(&with), Some(claim.service));
        assert_eq!(unmarked(&with), before);
        assert_eq!(service(&before), None);
    }
}
