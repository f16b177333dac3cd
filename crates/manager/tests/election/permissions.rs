//! Elections under roles that allow no more than they must.

use cloudkeel_manager::election::{KubeLease, LeaseStore, StoreError};
use cloudkeel_testkit::cluster::unique_name;
use cloudkeel_testkit::control_plane::ControlPlane;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;

use crate::candidate::{Contest, DEADLINE, LEASE, Running};

impl Contest {
    /// A client of a user who may do this to leases and nothing else.
    async fn client_that_may(&self, rules: serde_json::Value) -> Client {
        let (user, namespace) = (unique_name("candidate"), self.namespace.name());
        let role: Role = serde_json::from_value(json!({
            "metadata": {"name": user}, "rules": rules,
        }))
        .unwrap();
        let binding: RoleBinding = serde_json::from_value(json!({
            "metadata": {"name": user},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        }))
        .unwrap();
        let roles: Api<Role> = Api::namespaced(self.client.clone(), namespace);
        roles.create(&PostParams::default(), &role).await.unwrap();
        let bindings: Api<RoleBinding> = Api::namespaced(self.client.clone(), namespace);
        bindings
            .create(&PostParams::default(), &binding)
            .await
            .unwrap();
        ControlPlane::shared().await.client_for(&user, &[])
    }
}

/// What the Go framework needs.
fn upstream_rules() -> serde_json::Value {
    json!([{
        "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
        "verbs": ["create", "get", "update"],
    }])
}

#[tokio::test]
async fn a_role_with_create_get_and_update_is_enough() {
    let contest = Contest::open().await;
    let client = contest.client_that_may(upstream_rules()).await;
    let store = KubeLease::new(client.clone(), &contest.config("a"));
    let watched = store.watch(&|_| ()).await;
    let forbidden = matches!(&watched, Err(StoreError::Forbidden(_)));
    assert!(forbidden, "this role must not watch: {watched:?}");

    let first = Running::start(contest.config("a"), client.clone());
    first.leads().await;
    let second = Running::start(contest.config("b"), client);
    second.waits_for("a").await;
    first.stop().await;
    second.leads().await;
    second.stop().await;
    let spec = contest.lease().await.spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some(""));
}

#[tokio::test]
async fn a_role_for_one_lease_by_name_may_watch_it() {
    let contest = Contest::open().await;
    let client = contest
        .client_that_may(json!([
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
            {
                "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
                "resourceNames": [LEASE], "verbs": ["get", "update", "watch"],
            },
        ]))
        .await;
    let leader = Running::start(contest.config("a"), client.clone());
    leader.leads().await;

    let store = KubeLease::new(client, &contest.config("b"));
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let watching = tokio::spawn(async move {
        let on_change = move |record| sender.send(record).unwrap_or_default();
        store.watch(&on_change).await
    });
    let present = seen.recv().await.expect("the watch goes on").unwrap();
    assert_eq!(present.holder, "a");
    let renewed = seen.recv().await.expect("the watch goes on").unwrap();
    assert!(renewed.renewed > present.renewed);
    leader.stop().await;
    let release = async {
        let mut latest = renewed;
        while !latest.holder.is_empty() {
            latest = seen.recv().await.expect("the watch goes on").unwrap();
        }
    };
    let released = tokio::time::timeout(DEADLINE, release).await;
    released.expect("the release is observed");
    watching.abort();
}

#[tokio::test]
async fn a_missing_permission_is_named() {
    let contest = Contest::open().await;
    let client = contest.client_that_may(json!([])).await;
    let store = KubeLease::new(client, &contest.config("a"));
    let error = store.get().await.unwrap_err();
    assert!(matches!(error, StoreError::Forbidden(_)), "{error:?}");
    let text = error.to_string();
    for part in ["not allowed", "cannot get resource \"leases\""] {
        assert!(text.contains(part), "{part:?} is missing in: {text}");
    }
}
