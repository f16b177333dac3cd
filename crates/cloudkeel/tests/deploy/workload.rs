//! What the Pods of both workloads are like.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::permissions::{documents, manifests};

/// The workloads.
pub(crate) const FILES: [&str; 2] = ["daemonset/daemonset.yaml", "deployment/deployment.yaml"];

fn workload(file: &str) -> Value {
    let mut documents = documents(&manifests().join(file));
    assert_eq!(documents.len(), 1, "{file}");
    documents.remove(0)
}

fn pod_spec(file: &str) -> Value {
    workload(file)["spec"]["template"]["spec"].clone()
}

fn container(file: &str) -> Value {
    let containers = pod_spec(file)["containers"].clone();
    let containers = containers.as_array().expect("containers").clone();
    assert_eq!(containers.len(), 1, "{file}");
    containers[0].clone()
}

/// A Pod as the workload would make it.
pub(crate) fn pod(file: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "cloudkeel", "namespace": "kube-system"},
        "spec": pod_spec(file),
    })
}

/// The arguments of the container.
pub(crate) fn arguments(file: &str) -> Vec<String> {
    let arguments = container(file)["args"].clone();
    serde_json::from_value(arguments).expect("a list of texts")
}

/// The paths that probes ask for.
pub(crate) fn probed(file: &str) -> Vec<String> {
    ["startupProbe", "livenessProbe", "readinessProbe"]
        .map(|probe| container(file)[probe]["httpGet"]["path"].clone())
        .map(|path| path.as_str().expect("a path").to_owned())
        .into()
}

/// Taints that are on a control plane before anything works: set by kubelets, kubeadm and the like.
#[test]
fn it_runs_on_a_control_plane_that_is_not_ready_for_anything_else() {
    for file in FILES {
        let tolerations = pod_spec(file)["tolerations"].clone();
        let tolerations = tolerations.as_array().expect("tolerations");
        for (key, value, effect) in [
            (
                "node.cloudprovider.kubernetes.io/uninitialized",
                "true",
                "NoSchedule",
            ),
            ("node.kubernetes.io/not-ready", "", "NoSchedule"),
            ("node.kubernetes.io/not-ready", "", "NoExecute"),
            ("node.kubernetes.io/network-unavailable", "", "NoSchedule"),
            ("node-role.kubernetes.io/control-plane", "", "NoSchedule"),
            ("node-role.kubernetes.io/control-plane", "true", "NoExecute"),
            ("node-role.kubernetes.io/master", "", "NoSchedule"),
            ("CriticalAddonsOnly", "true", "NoExecute"),
        ] {
            let tolerated = tolerations
                .iter()
                .any(|it| tolerates(it, key, value, effect));
            assert!(tolerated, "{file}: {key}={value}:{effect}");
        }
        let workers = ("node.example/dedicated", "true", "NoSchedule");
        let tolerated = tolerations
            .iter()
            .any(|it| tolerates(it, workers.0, workers.1, workers.2));
        assert!(!tolerated, "{file}: taints of others are respected");
    }
}

/// As the scheduler matches them.
fn tolerates(toleration: &Value, key: &str, value: &str, effect: &str) -> bool {
    let text = |field: &str| toleration[field].as_str().unwrap_or_default();
    let effect_fits = text("effect").is_empty() || text("effect") == effect;
    let key_fits = text("key").is_empty() || text("key") == key;
    let value_fits = text("operator") == "Exists" || text("value") == value;
    effect_fits && key_fits && value_fits
}

#[test]
fn it_needs_neither_the_network_of_pods_nor_rights_on_its_machine() {
    for file in FILES {
        let (spec, container) = (pod_spec(file), container(file));
        for (what, found, expected) in [
            ("host network", &spec["hostNetwork"], json!(true)),
            ("DNS of the machine", &spec["dnsPolicy"], json!("Default")),
            (
                "priority",
                &spec["priorityClassName"],
                json!("system-cluster-critical"),
            ),
            ("account", &spec["serviceAccountName"], json!("cloudkeel")),
            ("user", &spec["securityContext"]["runAsUser"], json!(65532)),
            (
                "not root",
                &spec["securityContext"]["runAsNonRoot"],
                json!(true),
            ),
            (
                "system calls",
                &spec["securityContext"]["seccompProfile"]["type"],
                json!("RuntimeDefault"),
            ),
            (
                "root file system",
                &container["securityContext"]["readOnlyRootFilesystem"],
                json!(true),
            ),
            (
                "escalation",
                &container["securityContext"]["allowPrivilegeEscalation"],
                json!(false),
            ),
            (
                "capabilities",
                &container["securityContext"]["capabilities"],
                json!({"drop": ["ALL"]}),
            ),
            (
                "port",
                &container["ports"][0]["containerPort"],
                json!(10258),
            ),
            (
                "CPU limit",
                &container["resources"]["limits"]["cpu"],
                Value::Null,
            ),
        ] {
            assert_eq!(*found, expected, "{file}: {what}");
        }
        let volumes = spec["volumes"].as_array().expect("volumes");
        let of_machine = volumes.iter().any(|volume| !volume["hostPath"].is_null());
        assert!(!of_machine, "{file}: no file of the machine is mounted");
    }
}

#[test]
fn probes_ask_the_secure_port_of_the_same_machine() {
    for file in FILES {
        let container = container(file);
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
            let get = &container[probe]["httpGet"];
            assert_eq!(get["host"], "127.0.0.1", "{file}: {probe}");
            assert_eq!(get["scheme"], "HTTPS", "{file}: {probe}");
            assert_eq!(
                get["port"], container["ports"][0]["name"],
                "{file}: {probe}"
            );
        }
        assert_eq!(probed(file), ["/livez", "/livez", "/readyz"], "{file}");
    }
}

/// Two files, one Pod: what is changed in one is changed in the other.
#[test]
fn both_workloads_run_the_same_pod_but_for_where() {
    let [daemon, replicas] = FILES.map(|file| {
        let mut spec = pod_spec(file);
        spec["affinity"]["podAntiAffinity"] = Value::Null;
        spec["topologySpreadConstraints"] = Value::Null;
        spec
    });
    assert_eq!(daemon, replicas);
    let deployment = workload(FILES[1]);
    assert_eq!(deployment["spec"]["replicas"], 2);
    let label = &deployment["spec"]["template"]["metadata"]["labels"];
    let budget = workload("deployment/pod-disruption-budget.yaml");
    assert_eq!(budget["spec"]["selector"]["matchLabels"], *label);
}

/// The configuration and the arguments are understood: the first thing that is wrong is the kubeconfig that
/// this test makes up. Files of the Pod are looked for under a folder of the test.
#[test]
fn the_shipped_configuration_and_arguments_are_understood() {
    let config = documents(&manifests().join("base/config.yaml")).remove(0);
    let files: BTreeSet<_> = config["data"].as_object().expect("files").keys().collect();
    assert_eq!(files.len(), 1);
    let text = config["data"]["clouds.yaml"].as_str().expect("a text");
    for file in FILES {
        for (case, text, expected) in [
            (
                "as shipped",
                text.to_owned(),
                "--kubeconfig: \"/does/not/exist\"",
            ),
            ("broken", text.replace("provider:", "provder:"), "provder"),
        ] {
            let folder = TempDir::new().expect("a temporary folder");
            let path = folder.path().join("clouds.yaml");
            std::fs::write(&path, text).expect("the file is written");
            let mut flags = arguments(file);
            assert!(flags.contains(&"--cloud-config=/etc/cloudkeel/clouds.yaml".to_owned()));
            flags.push(format!("--cloud-config={}", path.display()));
            flags.push("--kubeconfig=/does/not/exist".to_owned());
            let output = Command::new(env!("CARGO_BIN_EXE_cloudkeel"))
                .args(flags)
                .output()
                .expect("the program runs");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(said.contains(expected), "{file}, {case}: {said}");
        }
    }
}

/// Where the configuration looks for credentials, and the workload puts them.
#[test]
fn credentials_are_where_the_configuration_looks() {
    let config = documents(&manifests().join("base/config.yaml")).remove(0);
    let text = config["data"]["clouds.yaml"].as_str().expect("a text");
    for file in FILES {
        let mounts = container(file)["volumeMounts"].clone();
        let mounts = mounts.as_array().expect("mounts");
        let secret = mounts.iter().find(|mount| mount["name"] == "credentials");
        let place = secret.expect("credentials")["mountPath"].as_str();
        let place = place.expect("a path");
        assert!(text.contains(&format!("tokenFile: {place}/")), "{file}");
        assert!(
            mounts.iter().all(|mount| mount["readOnly"] == true),
            "{file}"
        );
    }
}
