//! Labels, taints and annotations of Kubernetes that the controllers read or write.

/// Taint: the Node waits to be initialised by its cloud.
pub const UNINITIALIZED_TAINT: &str = "node.cloudprovider.kubernetes.io/uninitialized";
/// Taint: the Node's machine is shut down.
pub const SHUTDOWN_TAINT: &str = "node.cloudprovider.kubernetes.io/shutdown";
/// Taint: the cluster autoscaler is about to remove the Node.
pub const AUTOSCALER_TAINT: &str = "ToBeDeletedByClusterAutoscaler";

/// Taint: the operator or the cloud says that the machine is down for good; its Pods are moved by force.
pub const OUT_OF_SERVICE_TAINT: &str = "node.kubernetes.io/out-of-service";
/// Taint: Karpenter is about to remove the Node.
pub const KARPENTER_TAINT: &str = "karpenter.sh/disrupted";

/// Annotation: the addresses of the kubelet's `--node-ip`.
pub const PROVIDED_NODE_IP: &str = "alpha.kubernetes.io/provided-node-ip";

/// Label: the machine's type.
pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
/// Label: the same under its old name.
pub const INSTANCE_TYPE_BETA: &str = "beta.kubernetes.io/instance-type";
/// Label: zone.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// Label: the same under its old name.
pub const ZONE_BETA: &str = "failure-domain.beta.kubernetes.io/zone";
/// Label: region.
pub const REGION: &str = "topology.kubernetes.io/region";
/// Label: the same under its old name.
pub const REGION_BETA: &str = "failure-domain.beta.kubernetes.io/region";

/// Finalizer: the Service's balancer has to be removed before the Service may go.
pub const CLEANUP_FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
/// Node label: not a target of balancers, unless its value says false.
pub const EXCLUDE_LABEL: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// Service annotation: the source ranges, from before there was a field for them.
pub const SOURCE_RANGES_ANNOTATION: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
