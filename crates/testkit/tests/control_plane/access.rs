//! Who may do what.

use std::time::Duration;

use cloudkeel_testkit::cluster::{TestNamespace, eventually, unique_name};
use cloudkeel_testkit::control_plane::{ControlPlane, KUBERNETES_VERSION, Origin, Tool, locate};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Long enough for the API server's own caches to learn of a new role.
const SOON: Duration = Duration::from_secs(20);

fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

async fn list_nodes(client: &Client) -> Result<usize, kube::Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    Ok(nodes.list(&ListParams::default()).await?.items.len())
}

/// The code and message with which the API server refuses.
fn refusal<T: std::fmt::Debug>(outcome: Result<T, kube::Error>) -> (u16, String) {
    match outcome {
        Err(kube::Error::Api(status)) => (status.code, status.message.clone()),
        other => panic!("not refused by the API server: {other:?}"),
    }
}

#[tokio::test]
async fn the_server_reports_the_version_of_its_program() {
    let plane = ControlPlane::shared().await;
    let program = locate(Tool::KubeApiserver).expect("it runs, so it is there");
    let expected = match program.origin {
        Origin::Built => KUBERNETES_VERSION.to_owned(),
        Origin::Assets | Origin::Path => {
            let output = std::process::Command::new(program.path)
                .arg("--version")
                .output();
            let line = String::from_utf8(output.unwrap().stdout).unwrap();
            line.trim().trim_start_matches("Kubernetes ").to_owned()
        }
    };
    let answer = plane.client().apiserver_version().await.unwrap();
    assert_eq!(answer.git_version, expected);
    assert_eq!(plane.version(), expected);
}

#[tokio::test]
async fn a_user_without_a_role_is_forbidden_what_the_administrator_may() {
    let plane = ControlPlane::shared().await;
    list_nodes(&plane.client()).await.unwrap();
    let jane = plane.client_for("jane", &[]);
    let (code, message) = refusal(list_nodes(&jane).await);
    assert_eq!(code, 403, "{message}");
    assert!(
        message.contains("User \"jane\" cannot list resource \"nodes\""),
        "{message}"
    );
}

#[tokio::test]
async fn a_certificate_carries_both_of_its_groups() {
    let plane = ControlPlane::shared().await;
    let [first, second] = ["readers", "writers"].map(unique_name);
    let bindings: Api<ClusterRoleBinding> = Api::all(plane.client());
    for group in [&first, &second] {
        let client = plane.client_for("joe", &[&first, &second]);
        let name = unique_name("binding");
        let binding = object(json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}],
        }));
        bindings
            .create(&PostParams::default(), &binding)
            .await
            .unwrap();
        eventually(
            &format!("a list of nodes through {group}"),
            SOON,
            || async { list_nodes(&client).await.map(Some) },
        )
        .await;
        bindings
            .delete(&name, &DeleteParams::default())
            .await
            .unwrap();
        eventually(&format!("the end of {group}'s role"), SOON, || async {
            list_nodes(&client).await.is_err()
        })
        .await;
    }
}

#[tokio::test]
async fn a_service_account_acts_by_its_token_and_only_as_far_as_its_roles_go() {
    let plane = ControlPlane::shared().await;
    let namespace = TestNamespace::create(&plane.client(), "tokens")
        .await
        .unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(plane.client(), namespace.name());
    let account = object(json!({"metadata": {"name": "ccm"}}));
    accounts
        .create(&PostParams::default(), &account)
        .await
        .unwrap();

    let client = plane
        .service_account_client(namespace.name(), "ccm")
        .await
        .unwrap();
    client
        .apiserver_version()
        .await
        .expect("every authenticated user may ask for the version");
    let (code, message) = refusal(list_nodes(&client).await);
    let user = format!("system:serviceaccount:{}:ccm", namespace.name());
    assert_eq!(code, 403, "{message}");
    assert!(message.contains(&user), "{message} is not about {user}");
}

#[tokio::test]
async fn a_token_that_was_not_issued_is_not_authenticated() {
    let plane = ControlPlane::shared().await;
    let (code, _) = refusal(list_nodes(&plane.client_with_token("made-up")).await);
    assert_eq!(code, 401);
}

#[tokio::test]
async fn a_kubeconfig_file_is_all_that_a_program_needs() {
    let plane = ControlPlane::shared().await;
    let path = plane.kubeconfig_for("operator", &["system:masters"]);
    let kubeconfig = kube::config::Kubeconfig::read_from(path).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    assert_eq!(
        config.cluster_url.to_string().trim_end_matches('/'),
        plane.url()
    );
    list_nodes(&Client::try_from(config).unwrap())
        .await
        .unwrap();
}

#[tokio::test]
async fn servers_behind_the_api_can_learn_both_certificate_authorities() {
    let plane = ControlPlane::shared().await;
    let config_maps: Api<ConfigMap> = Api::namespaced(plane.client(), "kube-system");
    let published = config_maps
        .get("extension-apiserver-authentication")
        .await
        .unwrap();
    let data = published.data.unwrap();
    assert_eq!(data["client-ca-file"].trim(), plane.ca_pem().trim());
    assert!(data["requestheader-client-ca-file"].contains("BEGIN CERTIFICATE"));
    assert_ne!(data["requestheader-client-ca-file"], data["client-ca-file"]);
    for (key, value) in [
        ("requestheader-allowed-names", r#"["front-proxy-client"]"#),
        ("requestheader-username-headers", r#"["X-Remote-User"]"#),
        ("requestheader-group-headers", r#"["X-Remote-Group"]"#),
        (
            "requestheader-extra-headers-prefix",
            r#"["X-Remote-Extra-"]"#,
        ),
    ] {
        assert_eq!(data[key], value, "{key}");
    }
}

#[tokio::test]
async fn a_pod_needs_no_controller_to_be_accepted() {
    let plane = ControlPlane::shared().await;
    let namespace = TestNamespace::create(&plane.client(), "pods")
        .await
        .unwrap();
    let pods: Api<Pod> = Api::namespaced(plane.client(), namespace.name());
    let pod = object(json!({
        "metadata": {"name": "web"},
        "spec": {"nodeName": "n1", "containers": [{"name": "web", "image": "example.com/web"}]},
    }));
    let created = pods.create(&PostParams::default(), &pod).await.unwrap();
    assert_eq!(created.spec.unwrap().node_name.as_deref(), Some("n1"));
}

#[tokio::test]
async fn a_test_namespace_takes_nothing_new_once_it_is_deleted() {
    let plane = ControlPlane::shared().await;
    let namespace = TestNamespace::create(&plane.client(), "short-lived")
        .await
        .unwrap();
    namespace.delete().await.unwrap();
    let namespaces: Api<Namespace> = Api::all(plane.client());
    let left = namespaces.get(namespace.name()).await.unwrap();
    assert_eq!(left.status.unwrap().phase.as_deref(), Some("Terminating"));
    let accounts: Api<ServiceAccount> = Api::namespaced(plane.client(), namespace.name());
    let late = object(json!({"metadata": {"name": "late"}}));
    let (code, message) = refusal(accounts.create(&PostParams::default(), &late).await);
    assert_eq!(code, 403, "{message}");
}

#[tokio::test]
async fn what_a_user_writes_is_on_record() {
    let plane = ControlPlane::start_audited().await.unwrap();
    let jane = plane.client_for("jane", &["system:masters"]);
    let config_maps: Api<ConfigMap> = Api::namespaced(jane.clone(), "default");
    let made = object(json!({"metadata": {"name": "made"}}));
    config_maps
        .create(&PostParams::default(), &made)
        .await
        .unwrap();
    list_nodes(&jane).await.unwrap();
    let written = eventually("the record", SOON, || async {
        let written = plane.writes_of("jane").unwrap();
        (!written.is_empty()).then_some(written)
    })
    .await;
    let written: Vec<_> = written
        .iter()
        .map(|write| (&*write.verb, &*write.resource, &*write.name, write.code))
        .collect();
    assert_eq!(written, [("create", "configmaps", "made", 201)]);
    assert_eq!(plane.writes_of("joe").unwrap(), []);
}
