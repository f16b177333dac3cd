//! The admission policy for tenants, as it is shipped, on a real API server.

use std::time::Duration;

use cloudkeel_testkit::cluster::{TestNamespace, eventually, unique_name};
use cloudkeel_testkit::control_plane::ControlPlane;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const POLICY: &str = include_str!("../../../../deploy/policies/tenant-services.yaml");
const REFERENCES: [&str; 6] = [
    include_str!("../../../../docs/reference/annotations.md"),
    include_str!("../../../../docs/reference/provider-aws.md"),
    include_str!("../../../../docs/reference/provider-digitalocean.md"),
    include_str!("../../../../docs/reference/provider-hcloud.md"),
    include_str!("../../../../docs/reference/provider-local.md"),
    include_str!("../../../../docs/reference/provider-openstack.md"),
];

/// Long enough for the API server to learn of a policy or a role.
const SOON: Duration = Duration::from_secs(30);

fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// The keys that the policy reserves.
fn reserved() -> Vec<String> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(POLICY).unwrap();
    let variables = documents[0]["spec"]["variables"].as_array().unwrap();
    let list = variables.iter().find(|it| it["name"] == "reserved");
    let list = list.unwrap()["expression"].as_str().unwrap();
    let quoted = list.split('\'').skip(1).step_by(2);
    quoted.map(str::to_owned).collect()
}

/// A namespace of a tenant who may write Services there and nothing else.
struct Tenant {
    namespace: TestNamespace,
    services: Api<Service>,
}

impl Tenant {
    async fn create(plane: &ControlPlane) -> Self {
        let (admin, user) = (plane.client(), unique_name("tenant"));
        let namespace = TestNamespace::create(&admin, "tenant").await.unwrap();
        let name = namespace.name();
        let namespaces: Api<Namespace> = Api::all(admin.clone());
        let label = json!({"metadata": {"labels": {"cloudkeel.dev/tenant": "true"}}});
        let params = PatchParams::default();
        namespaces
            .patch(name, &params, &Patch::Merge(label))
            .await
            .unwrap();
        let post = PostParams::default();
        let role = json!({
            "metadata": {"name": "services"},
            "rules": [{"apiGroups": [""], "resources": ["services"], "verbs": ["*"]}],
        });
        let roles: Api<Role> = Api::namespaced(admin.clone(), name);
        roles.create(&post, &object(role)).await.unwrap();
        let binding = json!({
            "metadata": {"name": "services"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "services"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        });
        let bindings: Api<RoleBinding> = Api::namespaced(admin, name);
        bindings.create(&post, &object(binding)).await.unwrap();
        let services = Api::namespaced(plane.client_for(&user, &[]), name);
        Self {
            namespace,
            services,
        }
    }

    /// Whether a Service would be written, or why not.
    async fn attempt(&self, annotations: &Value, spec: &Value) -> Result<(), String> {
        let params = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let service = service(&unique_name("web"), annotations, spec);
        let created = self.services.create(&params, &service).await;
        created.map(drop).map_err(|error| error.to_string())
    }
}

fn service(name: &str, annotations: &Value, spec: &Value) -> Service {
    let mut service = json!({
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    });
    let fields = spec.as_object().unwrap().clone();
    service["spec"].as_object_mut().unwrap().extend(fields);
    object(service)
}

async fn apply_policy(client: &Client) {
    let documents: Vec<Value> = serde_saphyr::from_multiple(POLICY).unwrap();
    let [policy, binding] = <[Value; 2]>::try_from(documents).unwrap();
    let post = PostParams::default();
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    policies.create(&post, &object(policy)).await.unwrap();
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(client.clone());
    bindings.create(&post, &object(binding)).await.unwrap();
}

#[test]
fn every_key_that_the_policy_reserves_is_one_of_a_cloud() {
    let keys = reserved();
    assert!(keys.len() > 20, "{keys:?}");
    for key in keys {
        let is_known = REFERENCES.iter().any(|page| page.contains(&key));
        assert!(is_known, "{key} is not in docs/reference");
    }
}

#[tokio::test]
async fn the_policy_for_tenants_refuses_what_refers_to_others_and_nothing_else() {
    let plane = ControlPlane::start().await.unwrap();
    let admin = plane.client();
    apply_policy(&admin).await;
    let tenant = Tenant::create(&plane).await;
    let (none, plain) = (json!({}), json!({}));
    let adopt = json!({"cloudkeel.dev/adopt": "4711"});
    eventually("the role and the policy", SOON, || async {
        let refused = tenant.attempt(&adopt, &plain).await.err();
        refused.is_some_and(|why| why.contains("reserved for administrators"))
    })
    .await;

    for key in reserved() {
        let annotations = json!({key.as_str(): "4711"});
        let why = tenant.attempt(&annotations, &plain).await.unwrap_err();
        let expected = format!("reserved for administrators: {key}");
        assert!(why.contains(&expected), "{why}");
    }
    for (field, value) in [
        ("loadBalancerClass", "example.com/other-cloud"),
        ("loadBalancerIP", "192.0.2.7"),
    ] {
        let why = tenant.attempt(&none, &json!({field: value})).await;
        let why = why.unwrap_err();
        assert!(why.contains(&format!("spec.{field}")), "{why}");
    }
    let harmless = json!({"cloudkeel.dev/lb-health-check-path": "/ok", "example.com/x": "y"});
    tenant.attempt(&harmless, &plain).await.unwrap();

    // What cloudkeel writes through the status stays, and the tenant may go on to change the rest, but not that.
    let post = PostParams::default();
    let web = service("web", &none, &plain);
    tenant.services.create(&post, &web).await.unwrap();
    let (params, id) = (PatchParams::default(), "cloudkeel.dev/lb-id");
    let written = json!({"metadata": {"annotations": {id: "4711"}}});
    let all: Api<Service> = Api::namespaced(admin.clone(), tenant.namespace.name());
    all.patch_status("web", &params, &Patch::Merge(&written))
        .await
        .unwrap();
    let patch = |annotations: Value| {
        let patch = json!({"metadata": {"annotations": annotations}});
        let services = tenant.services.clone();
        async move {
            let params = PatchParams::default();
            services.patch("web", &params, &Patch::Merge(patch)).await
        }
    };
    let changed = patch(json!({"example.com/x": "y"})).await.unwrap();
    assert_eq!(changed.metadata.annotations.unwrap()[id], "4711");
    for change in [json!("4712"), Value::Null] {
        let why = patch(json!({id: change})).await.unwrap_err().to_string();
        assert!(
            why.contains(&format!("reserved for administrators: {id}")),
            "{why}"
        );
    }

    // Elsewhere the policy says nothing.
    let others: Api<Service> = Api::namespaced(admin, "default");
    let free = service(&unique_name("web"), &adopt, &plain);
    others.create(&post, &free).await.unwrap();
}
