//! What the account of the manager has to be allowed.

use serde::Serialize;

/// One permission, as a `SubjectAccessReview` asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Permission {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The resource, with its subresource.
    pub resource: &'static str,
    /// The verb.
    pub verb: &'static str,
    /// The namespace; `None` for all.
    pub namespace: Option<&'static str>,
    /// Whether it is asked for the lease alone.
    pub of_lease: bool,
    /// The one object that it is asked for, if it is not the lease.
    pub named: Option<&'static str>,
    /// What does not work without it.
    pub without: &'static str,
}

const fn anywhere(resource: &'static str, verb: &'static str, without: &'static str) -> Permission {
    Permission {
        group: "",
        resource,
        verb,
        namespace: None,
        of_lease: false,
        named: None,
        without,
    }
}

const fn lease(verb: &'static str, without: &'static str) -> Permission {
    Permission {
        group: "coordination.k8s.io",
        resource: "leases",
        verb,
        namespace: Some("kube-system"),
        of_lease: !matches!(verb.as_bytes(), b"create"),
        named: None,
        without,
    }
}

const fn within(namespace: &'static str, permission: Permission) -> Permission {
    Permission {
        namespace: Some(namespace),
        ..permission
    }
}

const fn of_group(group: &'static str, permission: Permission) -> Permission {
    Permission {
        group,
        ..permission
    }
}

/// Of the CAs that the API server trusts, which every cluster lets authentication webhooks read.
const fn client_ca(verb: &'static str, without: &'static str) -> Permission {
    Permission {
        named: Some("extension-apiserver-authentication"),
        ..within("kube-system", anywhere("configmaps", verb, without))
    }
}

const NO_NODES: &str = "no Node is initialised, deleted or made a target";
const NO_SERVICES: &str = "no Service gets a load balancer";
const NO_LEASE: &str = "no replica can lead, so nothing is reconciled";
const NO_INIT: &str = "no Node is initialised";

/// All of them: what the manifests in `deploy/manifests/rbac` grant.
pub const PERMISSIONS: &[Permission] = &[
    lease("create", NO_LEASE),
    lease("get", NO_LEASE),
    lease("update", NO_LEASE),
    lease("watch", "a release of the lease is seen late"),
    anywhere("nodes", "list", NO_NODES),
    anywhere("nodes", "watch", NO_NODES),
    anywhere("nodes", "get", "no Node is deleted"),
    anywhere("nodes", "patch", NO_INIT),
    anywhere(
        "nodes",
        "update",
        "Nodes are initialised with more requests",
    ),
    anywhere("nodes", "delete", "Nodes whose machines are gone stay"),
    anywhere(
        "nodes/status",
        "patch",
        "Nodes get no addresses, and no network condition",
    ),
    anywhere("services", "list", NO_SERVICES),
    anywhere("services", "watch", NO_SERVICES),
    anywhere("services/status", "patch", NO_SERVICES),
    anywhere("events", "create", "failures are only in the log"),
    anywhere("events", "patch", "repeated failures are only in the log"),
    within(
        "kube-system",
        anywhere(
            "namespaces",
            "get",
            "new cloud resources do not carry the UID of this cluster",
        ),
    ),
    within(
        "kube-node-lease",
        of_group(
            "coordination.k8s.io",
            anywhere(
                "leases",
                "get",
                "Nodes are deleted without reading the heartbeats of kubelets",
            ),
        ),
    ),
    within(
        "kube-node-lease",
        of_group(
            "coordination.k8s.io",
            anywhere(
                "leases",
                "list",
                "the heartbeats of many kubelets are read one by one",
            ),
        ),
    ),
    of_group(
        "authentication.k8s.io",
        anywhere(
            "tokenreviews",
            "create",
            "/metrics and /status accept no token",
        ),
    ),
    of_group(
        "authorization.k8s.io",
        anywhere(
            "subjectaccessreviews",
            "create",
            "/metrics and /status refuse all requests",
        ),
    ),
    client_ca(
        "get",
        "/metrics and /status know no client by its certificate",
    ),
    client_ca("list", "new client CAs are trusted late"),
    client_ca("watch", "new client CAs are trusted late"),
];

impl Permission {
    /// Such as `patch nodes/status` or `get leases.coordination.k8s.io in kube-system`.
    pub fn describe(&self) -> String {
        let group = match self.group {
            "" => String::new(),
            group => format!(".{group}"),
        };
        let namespace = self.namespace.map(|it| format!(" in {it}"));
        let namespace = namespace.unwrap_or_default();
        format!("{} {}{group}{namespace}", self.verb, self.resource)
    }
}
