//! The labels that say whose balancer it is, and what of it was set because its Service asked for it.

use std::collections::BTreeSet;

use cloudkeel_toolkit::{Labels, OwnerLabels, ServiceLabel};

/// The UID of the Service that it was created for, as the Go CCM labels it. This label decides.
pub const SERVICE_UID: &str = "hcloud-ccm/service-uid";

/// The UID of the cluster that created it.
pub const CLUSTER_UID: &str = "cloudkeel.dev/cluster-uid";

/// What was set because an annotation of the Service asked for it, so that it goes back to the default when the
/// annotation is removed. Written when it is set, never later: what the operator or the Go CCM set stays.
const SET_FOR_SERVICE: &str = "cloudkeel.dev/set-for-service";

pub(super) const OWNER: OwnerLabels = OwnerLabels {
    service_uid: SERVICE_UID,
    cluster_uid: CLUSTER_UID,
    service: ServiceLabel::Split {
        namespace: "cloudkeel.dev/service-namespace",
        name: "cloudkeel.dev/service-name",
    },
    others: &[SET_FOR_SERVICE],
};

/// Something about a balancer that has a default to go back to. Its type has none: a smaller type may be too
/// small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Aspect {
    /// How connections are distributed.
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
    let words = labels.get(SET_FOR_SERVICE).map(|words| words.split('.'));
    let words: BTreeSet<&str> = words.into_iter().flatten().collect();
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
