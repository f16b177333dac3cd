//! The chart, over a matrix of values.

use serde_json::{Value, json};

use crate::helm::Helm;
use crate::kubectl::Kubectl;

/// What the API server of a bare cluster does not know: objects of the Prometheus Operator and of cert-manager.
fn needs_a_crd(object: &Value) -> bool {
    let group = object["apiVersion"].as_str().unwrap_or_default();
    group.starts_with("monitoring.coreos.com/") || group.starts_with("cert-manager.io/")
}

fn cases() -> Vec<(&'static str, Value)> {
    [ways(), clouds(), options()].concat()
}

/// As what it runs.
fn ways() -> Vec<(&'static str, Value)> {
    vec![
        ("as it is", json!({})),
        ("Deployment", json!({"kind": "Deployment", "replicas": 3})),
        (
            "Deployment of one, without election",
            json!({"kind": "Deployment", "replicas": 1, "leaderElection": {"enabled": false}, "podDisruptionBudget": false}),
        ),
        ("static Pod", json!({"kind": "StaticPod"})),
    ]
}

fn clouds() -> Vec<(&'static str, Value)> {
    vec![
        ("aws", json!({"provider": "aws"})),
        (
            "aws with keys and a file",
            json!({"provider": "aws", "aws": {"staticCredentials": true}, "cloudConfig": "[Global]\nVPC=vpc-1\n"}),
        ),
        (
            "aws with IRSA",
            json!({"provider": "aws", "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn"}}}),
        ),
        (
            "digitalocean with its webhook",
            json!({"provider": "digitalocean", "digitalocean": {"webhook": true}}),
        ),
        (
            "hcloud with network and Robot",
            json!({"provider": "hcloud", "hcloud": {"network": true, "robot": true}, "clusterCIDR": "10.244.0.0/16"}),
        ),
        (
            "openstack",
            json!({"provider": "openstack", "existingSecret": "my-cloud-config"}),
        ),
        (
            "vsphere",
            json!({"provider": "vsphere", "existingConfigMap": "vsphere-cloud-config"}),
        ),
        (
            "vsphere with a file",
            json!({"provider": "vsphere", "cloudConfig": "global:\n  port: 443\n"}),
        ),
    ]
}

fn options() -> Vec<(&'static str, Value)> {
    let everything = json!({
        "enabled": true, "podMonitor": true, "rules": true, "dashboard": true,
        "reader": {"serviceAccount": "prometheus"}, "labels": {"release": "prometheus"},
    });
    let of_services = json!({"enabled": true, "serviceMonitor": true});
    vec![
        (
            "accounts of controllers",
            json!({"useServiceAccountCredentials": true}),
        ),
        (
            "only Nodes",
            json!({"controllers": {"service": false, "route": false}}),
        ),
        (
            "IPAM",
            json!({"controllers": {"ipam": true}, "clusterCIDR": "10.244.0.0/16"}),
        ),
        ("metrics by Pod", json!({"metrics": everything})),
        (
            "metrics by Service",
            json!({"metrics": of_services, "kind": "Deployment"}),
        ),
        (
            "a second release",
            json!({"nameOverride": "edge", "leaderElection": {"name": "edge", "namespace": "default", "migration": true}}),
        ),
        (
            "an image by digest",
            json!({"image": {"digest": format!("sha256:{}", "0".repeat(64))}, "imagePullSecrets": [{"name": "pull"}]}),
        ),
        (
            "an API server by name",
            json!({"apiServer": {"host": "api.example.internal"}, "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://p:1"}]}),
        ),
        (
            "managed control planes",
            json!({"kind": "Deployment", "controlPlaneOnly": false, "hostNetwork": false, "priorityClassName": "", "nodeSelector": {"a": "b"}}),
        ),
        (
            "roles and account of your own",
            json!({"rbac": {"create": false}, "serviceAccount": {"create": false, "name": "mine"}}),
        ),
        (
            "labels of volumes, and plans",
            json!({"persistentVolumeLabels": true, "planReader": true, "nameOverride": "edge"}),
        ),
        (
            "more of everything",
            json!({
                "extraArgs": ["--v=4"], "labels": {"team": "x"}, "podLabels": {"a": "b"}, "podAnnotations": {"a": "b"},
                "extraTolerations": [{"operator": "Exists"}], "extraVolumes": [{"name": "x", "emptyDir": {}}],
                "extraVolumeMounts": [{"name": "x", "mountPath": "/x"}],
            }),
        ),
    ]
}

#[tokio::test]
async fn every_variant_is_valid_and_the_api_server_accepts_every_object() {
    let (helm, kubectl) = (Helm::new().await, Kubectl::new().await);
    for (case, values) in cases() {
        helm.lint(&values).ok();
        let objects = helm.objects(&values);
        let (foreign, own): (Vec<_>, Vec<_>) = objects.into_iter().partition(needs_a_crd);
        assert!(!own.is_empty(), "{case}");
        let list = json!({"apiVersion": "v1", "kind": "List", "items": own});
        let arguments = [
            "apply",
            "--server-side",
            "--validate=strict",
            "--dry-run=server",
            "-f",
            "-",
        ];
        let said = kubectl.feed(arguments, &list.to_string());
        assert!(said.success, "{case}: {said:#?}");
        assert!(!said.stderr.contains("Warning"), "{case}: {said:#?}");
        for object in foreign {
            assert!(object["metadata"]["name"].is_string(), "{case}: {object}");
            assert!(object["spec"].is_object(), "{case}: {object}");
        }
    }
}

#[tokio::test]
async fn values_that_cannot_work_are_refused_with_the_reason() {
    let helm = Helm::new().await;
    for (case, values, complaint) in [
        ("nothing wrong", json!({}), ""),
        ("a misspelt value", json!({"replicaz": 2}), "replicaz"),
        ("an unknown kind", json!({"kind": "Job"}), "/kind"),
        (
            "an unknown cloud",
            json!({"provider": "photon"}),
            "/provider",
        ),
        ("no cloud", json!({"clouds": []}), "/clouds"),
        (
            "vsphere without its file",
            json!({"provider": "vsphere"}),
            "/cloudConfig",
        ),
        (
            "IPAM without networks",
            json!({"controllers": {"ipam": true}}),
            "/clusterCIDR",
        ),
        (
            "two managers that both write",
            json!({"leaderElection": {"enabled": false}}),
            "/kind",
        ),
        (
            "a short digest",
            json!({"image": {"digest": "sha256:1"}}),
            "/image/digest",
        ),
        (
            "two certificates for one port",
            json!({"persistentVolumeLabels": true, "digitalocean": {"webhook": true}}),
            "/digitalocean/webhook",
        ),
        (
            "a monitor of nothing",
            json!({"metrics": {"podMonitor": true}}),
            "a monitor needs metrics.enabled",
        ),
        (
            "two monitors",
            json!({"metrics": {"enabled": true, "podMonitor": true, "serviceMonitor": true}}),
            "would read everything twice",
        ),
    ] {
        let said = helm.render(&values, None);
        assert_eq!(said.success, complaint.is_empty(), "{case}: {said:#?}");
        assert!(said.stderr.contains(complaint), "{case}: {said:#?}");
    }
}

/// The pod template of the one workload.
fn template(objects: &[Value]) -> Value {
    let workload = objects.iter().find(|object| {
        let kind = object["kind"].as_str();
        matches!(kind, Some("DaemonSet" | "Deployment"))
    });
    workload.expect("a workload")["spec"]["template"].clone()
}

/// The Secrets, and the keys in them, that the Go charts of these clouds use.
#[tokio::test]
async fn secrets_of_the_go_charts_are_taken_as_they_are() {
    let helm = Helm::new().await;
    for (provider, more, secret, parts) in [
        (
            "hcloud",
            json!({"hcloud": {"network": true, "robot": true}}),
            "hcloud",
            vec![
                "/etc/cloud/token",
                "\"network\"",
                "/etc/cloud/robot-user",
                "/etc/cloud/robot-password",
            ],
        ),
        (
            "digitalocean",
            json!({}),
            "digitalocean",
            vec!["/etc/cloud/access-token"],
        ),
        (
            "openstack",
            json!({}),
            "cloud-config",
            vec!["--cloud-config=/etc/cloud/cloud.conf"],
        ),
    ] {
        let mut values = more;
        values["provider"] = provider.into();
        let spec = template(&helm.objects(&values))["spec"].clone();
        assert_eq!(
            spec["volumes"][0]["secret"]["secretName"], secret,
            "{provider}"
        );
        let container = spec["containers"][0].to_string();
        for part in parts {
            assert!(
                container.contains(part),
                "{provider}: {part} in {container}"
            );
        }
    }
    let values = json!({"provider": "vsphere", "existingConfigMap": "vsphere-cloud-config"});
    let objects = helm.objects(&values);
    let role = objects.iter().find(|object| {
        object["kind"] == "Role" && object["metadata"]["name"] == "cloudkeel:credentials"
    });
    let names = role.expect("a role")["rules"][0]["resourceNames"].clone();
    assert_eq!(names, json!(["vsphere-cloud-secret"]));
    let volumes = template(&objects)["spec"]["volumes"].clone();
    assert_eq!(volumes[0]["configMap"]["name"], "vsphere-cloud-config");
}

/// Each controller brings its role, and one that is switched off leaves no permission behind.
#[tokio::test]
async fn a_controller_that_does_not_run_has_no_role() {
    let helm = Helm::new().await;
    let roles_and_flag = |values: &Value| {
        let objects = helm.objects(values);
        let roles = objects
            .iter()
            .filter(|object| object["kind"] == "ClusterRole");
        let names: Vec<_> = roles
            .map(|role| {
                role["metadata"]["name"]
                    .as_str()
                    .expect("a name")
                    .to_owned()
            })
            .collect();
        let arguments = template(&objects)["spec"]["containers"][0]["args"].clone();
        let arguments: Vec<String> = serde_json::from_value(arguments).expect("texts");
        let flag = arguments
            .into_iter()
            .find(|it| it.starts_with("--controllers="));
        (names, flag)
    };
    let (names, flag) = roles_and_flag(&json!({}));
    for role in ["lifecycle", "node", "route", "service", "serving"] {
        assert!(names.contains(&format!("cloudkeel:{role}")), "{names:?}");
    }
    assert_eq!(flag, None);
    for (value, role, expected) in [
        ("node", "node", "*,-cloud-node"),
        ("lifecycle", "lifecycle", "*,-cloud-node-lifecycle"),
        ("service", "service", "*,-service"),
        ("route", "route", "*,-route"),
    ] {
        let (left, flag) = roles_and_flag(&json!({"controllers": {value: false}}));
        assert!(!left.contains(&format!("cloudkeel:{role}")), "{left:?}");
        assert_eq!(left.len(), names.len() - 1, "{value}");
        assert_eq!(flag, Some(format!("--controllers={expected}")));
    }
    let (accounts, _) = roles_and_flag(&json!({"useServiceAccountCredentials": true}));
    assert_eq!(accounts, ["cloudkeel:informers", "cloudkeel:serving"]);
}

/// On the network of Pods it asks for nothing that the strictest standard forbids.
#[tokio::test]
async fn on_the_pod_network_the_pod_is_restricted() {
    let (helm, kubectl) = (Helm::new().await, Kubectl::new().await);
    let world = crate::harness::World::new().await;
    let namespace = cloudkeel_testkit::cluster::TestNamespace::create(&world.client, "restricted");
    let namespace = namespace.await.expect("a namespace");
    let enforce = "pod-security.kubernetes.io/enforce=restricted";
    kubectl
        .run(["label", "namespace", namespace.name(), enforce])
        .ok();
    for (host_network, expected) in [(false, true), (true, false)] {
        let values = json!({"hostNetwork": host_network, "priorityClassName": "", "serviceAccount": {"name": "default"}});
        let mut pod = template(&helm.objects(&values));
        pod["apiVersion"] = "v1".into();
        pod["kind"] = "Pod".into();
        pod["metadata"]["name"] = "cloudkeel".into();
        pod["metadata"]["namespace"] = namespace.name().into();
        // The account of the namespace is made by a controller that does not run here.
        pod["spec"]["serviceAccountName"] = Value::Null;
        let arguments = ["create", "--dry-run=server", "--validate=strict", "-f", "-"];
        let said = kubectl.feed(arguments, &pod.to_string());
        if expected || said.success {
            assert_eq!(said.success, expected, "{said:#?}");
        } else {
            assert!(
                said.stderr.contains("violates PodSecurity \"restricted"),
                "{said:#?}"
            );
        }
    }
}

/// Beyond 120 s of a late API server: `/livez` answers before it does, which `tests/manager/startup.rs` shows.
#[tokio::test]
async fn no_probe_waits_for_the_api_server_but_readiness() {
    let helm = Helm::new().await;
    for (_, values) in cases() {
        let objects = helm.objects(&values);
        for object in objects {
            let pod = match object["kind"].as_str() {
                Some("Pod") => object["spec"].clone(),
                Some("DaemonSet" | "Deployment") => object["spec"]["template"]["spec"].clone(),
                _ => continue,
            };
            let container = &pod["containers"][0];
            for (probe, path) in [
                ("startupProbe", "/livez"),
                ("livenessProbe", "/livez"),
                ("readinessProbe", "/readyz"),
            ] {
                assert_eq!(container[probe]["httpGet"]["path"], path, "{probe}");
            }
        }
    }
}
