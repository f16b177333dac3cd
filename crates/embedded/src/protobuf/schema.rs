//! The messages of Kubernetes' own `.proto` files that this API speaks: Nodes, metadata, and what a request failed
//! with.

/// How a field is written.
#[derive(Debug, Clone, Copy)]
pub(super) enum Type {
    Text,
    Flag,
    Integer,
    Time,
    Quantity,
    Message(&'static [Field]),
}

/// How often a field may occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    One,
    Many,
    /// By a key that is text.
    Map,
}

/// A field: its name in JSON, its number, and what it holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) number: u32,
    pub(super) shape: Shape,
    pub(super) kind: Type,
}

const fn one(number: u32, name: &'static str, kind: Type) -> Field {
    Field {
        name,
        number,
        shape: Shape::One,
        kind,
    }
}

const fn many(number: u32, name: &'static str, kind: Type) -> Field {
    Field {
        name,
        number,
        shape: Shape::Many,
        kind,
    }
}

const fn map(number: u32, name: &'static str, kind: Type) -> Field {
    Field {
        name,
        number,
        shape: Shape::Map,
        kind,
    }
}

/// The message of a kind; `None` if this API has it in JSON only.
pub(super) fn message_of(api_version: &str, kind: &str) -> Option<&'static [Field]> {
    match (api_version, kind) {
        ("v1", "Node") => Some(NODE),
        ("v1", "NodeList") => Some(NODE_LIST),
        ("v1", "Status") => Some(STATUS),
        ("meta.k8s.io/v1", "PartialObjectMetadata") => Some(METADATA_ONLY),
        ("meta.k8s.io/v1", "PartialObjectMetadataList") => Some(METADATA_ONLY_LIST),
        _ => None,
    }
}

const METADATA_ONLY: &[Field] = &[one(1, "metadata", Type::Message(OBJECT_META))];

const METADATA_ONLY_LIST: &[Field] = &[
    one(1, "metadata", Type::Message(LIST_META)),
    many(2, "items", Type::Message(METADATA_ONLY)),
];

const LIST_META: &[Field] = &[
    one(1, "selfLink", Type::Text),
    one(2, "resourceVersion", Type::Text),
    one(3, "continue", Type::Text),
    one(4, "remainingItemCount", Type::Integer),
];

const OBJECT_META: &[Field] = &[
    one(1, "name", Type::Text),
    one(2, "generateName", Type::Text),
    one(3, "namespace", Type::Text),
    one(4, "selfLink", Type::Text),
    one(5, "uid", Type::Text),
    one(6, "resourceVersion", Type::Text),
    one(7, "generation", Type::Integer),
    one(8, "creationTimestamp", Type::Time),
    one(9, "deletionTimestamp", Type::Time),
    one(10, "deletionGracePeriodSeconds", Type::Integer),
    map(11, "labels", Type::Text),
    map(12, "annotations", Type::Text),
    many(13, "ownerReferences", Type::Message(OWNER_REFERENCE)),
    many(14, "finalizers", Type::Text),
];

const OWNER_REFERENCE: &[Field] = &[
    one(1, "kind", Type::Text),
    one(3, "name", Type::Text),
    one(4, "uid", Type::Text),
    one(5, "apiVersion", Type::Text),
    one(6, "controller", Type::Flag),
    one(7, "blockOwnerDeletion", Type::Flag),
];

const NODE_LIST: &[Field] = &[
    one(1, "metadata", Type::Message(LIST_META)),
    many(2, "items", Type::Message(NODE)),
];

const NODE: &[Field] = &[
    one(1, "metadata", Type::Message(OBJECT_META)),
    one(2, "spec", Type::Message(NODE_SPEC)),
    one(3, "status", Type::Message(NODE_STATUS)),
];

const NODE_SPEC: &[Field] = &[
    one(1, "podCIDR", Type::Text),
    one(2, "externalID", Type::Text),
    one(3, "providerID", Type::Text),
    one(4, "unschedulable", Type::Flag),
    many(5, "taints", Type::Message(TAINT)),
    many(7, "podCIDRs", Type::Text),
];

const TAINT: &[Field] = &[
    one(1, "key", Type::Text),
    one(2, "value", Type::Text),
    one(3, "effect", Type::Text),
    one(4, "timeAdded", Type::Time),
];

const NODE_STATUS: &[Field] = &[
    map(1, "capacity", Type::Quantity),
    map(2, "allocatable", Type::Quantity),
    one(3, "phase", Type::Text),
    many(4, "conditions", Type::Message(NODE_CONDITION)),
    many(5, "addresses", Type::Message(NODE_ADDRESS)),
    one(6, "daemonEndpoints", Type::Message(DAEMON_ENDPOINTS)),
    one(7, "nodeInfo", Type::Message(NODE_INFO)),
    many(8, "images", Type::Message(CONTAINER_IMAGE)),
    many(9, "volumesInUse", Type::Text),
    many(10, "volumesAttached", Type::Message(ATTACHED_VOLUME)),
];

const NODE_CONDITION: &[Field] = &[
    one(1, "type", Type::Text),
    one(2, "status", Type::Text),
    one(3, "lastHeartbeatTime", Type::Time),
    one(4, "lastTransitionTime", Type::Time),
    one(5, "reason", Type::Text),
    one(6, "message", Type::Text),
];

const NODE_ADDRESS: &[Field] = &[one(1, "type", Type::Text), one(2, "address", Type::Text)];

const DAEMON_ENDPOINTS: &[Field] = &[one(
    1,
    "kubeletEndpoint",
    Type::Message(&[one(1, "Port", Type::Integer)]),
)];

const NODE_INFO: &[Field] = &[
    one(1, "machineID", Type::Text),
    one(2, "systemUUID", Type::Text),
    one(3, "bootID", Type::Text),
    one(4, "kernelVersion", Type::Text),
    one(5, "osImage", Type::Text),
    one(6, "containerRuntimeVersion", Type::Text),
    one(7, "kubeletVersion", Type::Text),
    one(8, "kubeProxyVersion", Type::Text),
    one(9, "operatingSystem", Type::Text),
    one(10, "architecture", Type::Text),
];

const CONTAINER_IMAGE: &[Field] = &[
    many(1, "names", Type::Text),
    one(2, "sizeBytes", Type::Integer),
];

const ATTACHED_VOLUME: &[Field] = &[one(1, "name", Type::Text), one(2, "devicePath", Type::Text)];

const STATUS: &[Field] = &[
    one(1, "metadata", Type::Message(LIST_META)),
    one(2, "status", Type::Text),
    one(3, "message", Type::Text),
    one(4, "reason", Type::Text),
    one(5, "details", Type::Message(STATUS_DETAILS)),
    one(6, "code", Type::Integer),
];

const STATUS_DETAILS: &[Field] = &[
    one(1, "name", Type::Text),
    one(2, "group", Type::Text),
    one(3, "kind", Type::Text),
    many(4, "causes", Type::Message(STATUS_CAUSE)),
    one(5, "retryAfterSeconds", Type::Integer),
    one(6, "uid", Type::Text),
];

const STATUS_CAUSE: &[Field] = &[
    one(1, "reason", Type::Text),
    one(2, "message", Type::Text),
    one(3, "field", Type::Text),
];
