//! What several tests of this crate begin with.

use cloudkeel_api::{ClusterIdentity, ServiceRef};

/// A cluster without a UID, and the Service `ns/web` in it.
pub(crate) fn cluster_and_service() -> (ClusterIdentity, ServiceRef) {
    let cluster = ClusterIdentity {
        name: "c".to_owned(),
        uid: None,
        pod_cidrs: vec![],
    };
    let service = ServiceRef {
        namespace: "ns".to_owned(),
        name: "web".to_owned(),
        uid: "u-1".to_owned(),
    };
    (cluster, service)
}
