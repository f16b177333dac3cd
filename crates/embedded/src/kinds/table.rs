//! The resources of the API.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    ConfigMap, Endpoints, Event, Namespace, Node, Pod, Secret, Service, ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};

use super::typed::through;
use super::{Kind, NameRule};
use crate::rules;

/// A resource with the most common choices; the table says what differs.
const COMMON: Kind = Kind {
    group: "",
    version: "v1",
    kind: "",
    plural: "",
    singular: "",
    short: &[],
    namespaced: true,
    storage: "",
    subresources: &[],
    create_on_update: false,
    unconditional_update: true,
    returns_deleted: false,
    names: NameRule::Subdomain,
    retype: |object| Ok(object.clone()),
    rules: &rules::Plain,
};

pub(crate) static KINDS: &[Kind] = &[
    Kind {
        kind: "Namespace",
        plural: "namespaces",
        singular: "namespace",
        storage: "namespaces",
        short: &["ns"],
        namespaced: false,
        subresources: &["status", "finalize"],
        returns_deleted: true,
        names: NameRule::Label,
        retype: through::<Namespace>,
        rules: &rules::Namespaces,
        ..COMMON
    },
    Kind {
        kind: "Node",
        plural: "nodes",
        singular: "node",
        storage: "nodes",
        short: &["no"],
        namespaced: false,
        subresources: &["status"],
        retype: through::<Node>,
        rules: &rules::Nodes,
        ..COMMON
    },
    Kind {
        kind: "Service",
        plural: "services",
        singular: "service",
        storage: "services",
        short: &["svc"],
        subresources: &["status"],
        create_on_update: true,
        returns_deleted: true,
        names: NameRule::Label1035,
        retype: through::<Service>,
        rules: &rules::Services,
        ..COMMON
    },
    Kind {
        kind: "Event",
        plural: "events",
        singular: "event",
        storage: "events",
        short: &["ev"],
        create_on_update: true,
        retype: through::<Event>,
        rules: &rules::Events,
        ..COMMON
    },
    Kind {
        kind: "ConfigMap",
        plural: "configmaps",
        singular: "configmap",
        storage: "configmaps",
        short: &["cm"],
        retype: through::<ConfigMap>,
        rules: &rules::ConfigMaps,
        ..COMMON
    },
    Kind {
        kind: "Secret",
        plural: "secrets",
        singular: "secret",
        storage: "secrets",
        retype: through::<Secret>,
        rules: &rules::Secrets,
        ..COMMON
    },
    Kind {
        kind: "ServiceAccount",
        plural: "serviceaccounts",
        singular: "serviceaccount",
        storage: "serviceaccounts",
        short: &["sa"],
        subresources: &["token"],
        returns_deleted: true,
        retype: through::<ServiceAccount>,
        ..COMMON
    },
    Kind {
        kind: "Pod",
        plural: "pods",
        singular: "pod",
        storage: "pods",
        short: &["po"],
        subresources: &["status"],
        returns_deleted: true,
        retype: through::<Pod>,
        rules: &rules::Pods,
        ..COMMON
    },
    Kind {
        kind: "Endpoints",
        plural: "endpoints",
        singular: "endpoints",
        storage: "endpoints",
        short: &["ep"],
        create_on_update: true,
        retype: through::<Endpoints>,
        ..COMMON
    },
    Kind {
        group: "coordination.k8s.io",
        kind: "Lease",
        plural: "leases",
        singular: "lease",
        storage: "leases",
        create_on_update: true,
        unconditional_update: false,
        retype: through::<Lease>,
        rules: &rules::Leases,
        ..COMMON
    },
    Kind {
        group: "discovery.k8s.io",
        kind: "EndpointSlice",
        plural: "endpointslices",
        singular: "endpointslice",
        storage: "endpointslices",
        retype: through::<EndpointSlice>,
        rules: &rules::EndpointSlices,
        ..COMMON
    },
    Kind {
        group: "events.k8s.io",
        kind: "Event",
        plural: "events",
        singular: "event",
        storage: "events",
        short: &["ev"],
        create_on_update: true,
        retype: through::<k8s_openapi::api::events::v1::Event>,
        rules: &rules::EventsOfTheirGroup,
        ..COMMON
    },
    Kind {
        kind: "ClusterRole",
        plural: "clusterroles",
        singular: "clusterrole",
        storage: "clusterroles",
        namespaced: false,
        retype: through::<ClusterRole>,
        ..RBAC
    },
    Kind {
        kind: "ClusterRoleBinding",
        plural: "clusterrolebindings",
        singular: "clusterrolebinding",
        storage: "clusterrolebindings",
        namespaced: false,
        retype: through::<ClusterRoleBinding>,
        ..RBAC
    },
    Kind {
        kind: "Role",
        plural: "roles",
        singular: "role",
        storage: "roles",
        retype: through::<Role>,
        ..RBAC
    },
    Kind {
        kind: "RoleBinding",
        plural: "rolebindings",
        singular: "rolebinding",
        storage: "rolebindings",
        retype: through::<RoleBinding>,
        ..RBAC
    },
];

/// Roles are kept, shown and watched, but not enforced.
const RBAC: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    create_on_update: true,
    names: NameRule::PathSegment,
    ..COMMON
};
