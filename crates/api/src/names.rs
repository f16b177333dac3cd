//! cloudkeel's own labels and annotations.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use crate::{
    Algorithm, AnnotationKey, CheckProtocol, Documented, DriftPolicy, IpMode, KeyDoc,
    ProxyProtocolChoice,
};

/// Node label: with the value `true`, the Node is never changed or deleted.
pub const UNMANAGED_LABEL: &str = "cloudkeel.dev/unmanaged";

/// Node label: the Node belongs to the cloud of this name in the configuration.
pub const CLOUD_LABEL: &str = "cloudkeel.dev/cloud";

/// The prefix of all our annotations.
pub const ANNOTATION_PREFIX: &str = "cloudkeel.dev/";

/// Node annotation: never delete.
pub const HOLD: AnnotationKey<bool> = AnnotationKey::new(
    "cloudkeel.dev/hold",
    "On a Node: it is never deleted, whatever the cloud reports.",
)
.with_default("false");

/// Node annotation: delete without grace period and rate limit.
pub const DELETE_NOW: AnnotationKey<bool> = AnnotationKey::new(
    "cloudkeel.dev/delete-now",
    "On a Node: delete it without grace period and rate limit. Proof that its instance is gone is still needed.",
)
.with_default("false");

/// Service and Node annotation: leave it as it is.
pub const PAUSED: AnnotationKey<bool> = AnnotationKey::new(
    "cloudkeel.dev/paused",
    "On a Service or a Node: as long as it is `true`, cloudkeel does not write to it, and changes and deletes nothing \
     for it in the cloud. A value that cannot be read pauses too.",
)
.with_default("false");

/// Whether an object is paused. A value that cannot be read pauses too: its author wanted something to stop.
pub fn is_paused(annotations: &BTreeMap<String, String>) -> bool {
    PAUSED
        .get(annotations)
        .map_or(true, Option::unwrap_or_default)
}

/// Service annotation: take over a balancer.
pub const ADOPT: AnnotationKey<String> = AnnotationKey::new(
    "cloudkeel.dev/adopt",
    "On a Service: adopt the load balancer with this ID. Rejected if it belongs to another Service or cluster.",
);

/// Service annotation: the balancer outlives the Service.
pub const LB_RETAIN: AnnotationKey<bool> = AnnotationKey::new(
    "cloudkeel.dev/lb-retain",
    "Whether the load balancer stays, without its owner labels, when the Service goes or needs none any more. A value that \
     cannot be read keeps it too.",
)
.with_default("false");

/// Service annotation: whether the balancer is the Service's alone.
pub const LB_EXCLUSIVE: AnnotationKey<bool> = AnnotationKey::new(
    "cloudkeel.dev/lb-exclusive",
    "Whether the load balancer is the Service's alone, as it is by default. With `false`, listeners and targets of other \
     clients on it are left alone, and the load balancer as a whole is not changed.",
);

/// Service annotation: which parts of a shared balancer are the Service's.
pub const LB_OWN_PARTS: AnnotationKey<String> = AnnotationKey::new(
    "cloudkeel.dev/lb-own-parts",
    "Written by cloudkeel: which listeners and targets of a shared load balancer are the Service's. Leave it as it is.",
);

/// Service annotation: name of the balancer.
pub const LB_NAME: AnnotationKey<String> = AnnotationKey::new(
    "cloudkeel.dev/lb-name",
    "The load balancer's name in the cloud.",
);

/// Service annotation: internal balancer.
pub const LB_INTERNAL: AnnotationKey<bool> = AnnotationKey::new(
    "cloudkeel.dev/lb-internal",
    "Whether it is reachable only from the private network.",
);

/// Service annotation: size or type.
pub const LB_TYPE: AnnotationKey<String> = AnnotationKey::new(
    "cloudkeel.dev/lb-type",
    "The cloud's type, size or flavour of load balancer.",
);

/// Service annotation: what happens to drift.
pub const LB_DRIFT: AnnotationKey<DriftPolicy> = AnnotationKey::new(
    "cloudkeel.dev/lb-drift",
    "What happens if another client changes the load balancer: `repair`, `report` or `off`. Without it, \
     `--load-balancer-drift` decides.",
);

/// Service annotation: balancing algorithm.
pub const LB_ALGORITHM: AnnotationKey<Algorithm> = AnnotationKey::new(
    "cloudkeel.dev/lb-algorithm",
    "How connections are distributed: `round-robin`, `least-connections` or `source-ip`.",
);

/// Service annotation: PROXY protocol.
pub const LB_PROXY_PROTOCOL: AnnotationKey<ProxyProtocolChoice> = AnnotationKey::new(
    "cloudkeel.dev/lb-proxy-protocol",
    "PROXY protocol towards the targets: `v1`, `v2` or `off`.",
);

/// Service annotation: which nodes are targets.
pub const LB_NODE_SELECTOR: AnnotationKey<String> = AnnotationKey::new(
    "cloudkeel.dev/lb-node-selector",
    "Only nodes that match this label selector are targets.",
);

/// Service annotation: protocol of the health check.
pub const LB_HEALTH_CHECK_PROTOCOL: AnnotationKey<CheckProtocol> = AnnotationKey::new(
    "cloudkeel.dev/lb-health-check-protocol",
    "The protocol of the health check: `tcp`, `http` or `https`.",
);

/// Service annotation: port of the health check.
pub const LB_HEALTH_CHECK_PORT: AnnotationKey<u16> = AnnotationKey::new(
    "cloudkeel.dev/lb-health-check-port",
    "The node port of the health check.",
);

/// Service annotation: path of the health check.
pub const LB_HEALTH_CHECK_PATH: AnnotationKey<String> = AnnotationKey::new(
    "cloudkeel.dev/lb-health-check-path",
    "The path of an HTTP health check.",
);

/// Service annotation: interval of the health check.
pub const LB_HEALTH_CHECK_INTERVAL: AnnotationKey<Duration> = AnnotationKey::new(
    "cloudkeel.dev/lb-health-check-interval",
    "The interval between health checks.",
);

/// Service annotation: timeout of the health check.
pub const LB_HEALTH_CHECK_TIMEOUT: AnnotationKey<Duration> = AnnotationKey::new(
    "cloudkeel.dev/lb-health-check-timeout",
    "The timeout of a health check.",
);

/// Service annotation: failures until a target is out.
pub const LB_HEALTH_CHECK_RETRIES: AnnotationKey<u32> = AnnotationKey::new(
    "cloudkeel.dev/lb-health-check-retries",
    "Consecutive failures until a target gets no traffic.",
);

/// Service annotation: successes until a target is in again.
pub const LB_HEALTH_CHECK_HEALTHY_THRESHOLD: AnnotationKey<u32> = AnnotationKey::new(
    "cloudkeel.dev/lb-health-check-healthy-threshold",
    "Consecutive successes until a target gets traffic again, where the cloud supports it.",
);

/// Service annotation: draining time.
pub const LB_DRAIN_SECONDS: AnnotationKey<u32> = AnnotationKey::new(
    "cloudkeel.dev/lb-drain-seconds",
    "How long a target that is removed may finish its connections. In clouds that cannot drain, a Node that leaves stays \
     a target for so long once others serve; `0` removes it at once.",
);

/// Service annotation: requested address.
pub const LB_IP: AnnotationKey<IpAddr> = AnnotationKey::new(
    "cloudkeel.dev/lb-ip",
    "The address to use; overrides `spec.loadBalancerIP`.",
);

/// Service annotation: hostname in the status.
pub const LB_HOSTNAME: AnnotationKey<String> = AnnotationKey::new(
    "cloudkeel.dev/lb-hostname",
    "A hostname to publish in the Service's status in place of addresses.",
);

/// Service annotation: whether Pods may go past the balancer.
pub const LB_IP_MODE: AnnotationKey<IpMode> = AnnotationKey::new(
    "cloudkeel.dev/lb-ip-mode",
    "The `ipMode` of published addresses: with `vip`, Pods reach the Service without the load balancer; with `proxy`, \
     through it. Without it, `proxy` where the load balancer sends the PROXY protocol.",
);

/// Every annotation of our own, for the reference page and for finding typos.
pub fn annotation_docs() -> Vec<KeyDoc> {
    let keys: [&dyn Documented; 25] = [
        &HOLD,
        &DELETE_NOW,
        &PAUSED,
        &ADOPT,
        &LB_RETAIN,
        &LB_EXCLUSIVE,
        &LB_OWN_PARTS,
        &LB_NAME,
        &LB_INTERNAL,
        &LB_TYPE,
        &LB_DRIFT,
        &LB_ALGORITHM,
        &LB_PROXY_PROTOCOL,
        &LB_NODE_SELECTOR,
        &LB_HEALTH_CHECK_PROTOCOL,
        &LB_HEALTH_CHECK_PORT,
        &LB_HEALTH_CHECK_PATH,
        &LB_HEALTH_CHECK_INTERVAL,
        &LB_HEALTH_CHECK_TIMEOUT,
        &LB_HEALTH_CHECK_RETRIES,
        &LB_HEALTH_CHECK_HEALTHY_THRESHOLD,
        &LB_DRAIN_SECONDS,
        &LB_IP,
        &LB_HOSTNAME,
        &LB_IP_MODE,
    ];
    keys.into_iter().map(Documented::doc).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn all_annotations_are_ours_documented_and_distinct() {
        let docs = annotation_docs();
        let names: BTreeSet<_> = docs.iter().map(|doc| doc.name).collect();
        assert_eq!(names.len(), docs.len());
        for doc in docs {
            assert!(doc.name.starts_with(ANNOTATION_PREFIX), "{}", doc.name);
            assert!(doc.help.ends_with('.'), "{}", doc.name);
        }
    }
}
