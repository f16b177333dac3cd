//! `doctor` and `explain` as processes: exit codes, forms of output, progress, and a role that only reads.

use std::process::{Command, Output};

use cloudkeel_testkit::cluster::unique_name;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::lab::Lab;
use crate::world::healthy;

/// Runs the program. Not on the thread that serves the cloud.
async fn run(words: Vec<String>) -> Output {
    let running = tokio::task::spawn_blocking(move || {
        let mut program = Command::new(env!("CARGO_BIN_EXE_cloudkeel"));
        program.args(words).env_remove("KUBECONFIG").output()
    });
    running.await.expect("it runs").expect("it starts")
}

fn words(first: &[&str], flags: &[String]) -> Vec<String> {
    let first = first.iter().map(ToString::to_string);
    first.chain(flags.iter().cloned()).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// May get, list and watch everything, as the group `readers`.
async fn grant_reading(lab: &Lab) {
    let name = "readers";
    let role = json!({
        "metadata": {"name": name},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}],
    });
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name}],
    });
    let roles: Api<ClusterRole> = Api::all(lab.client());
    let role = serde_json::from_value(role).expect("a role");
    let made = roles.create(&PostParams::default(), &role).await;
    made.expect("the role is made");
    let bindings: Api<ClusterRoleBinding> = Api::all(lab.client());
    let binding = serde_json::from_value(binding).expect("a binding");
    let made = bindings.create(&PostParams::default(), &binding).await;
    made.expect("the binding is made");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exit_code_says_the_worst_finding_and_a_role_that_only_reads_is_enough() {
    let lab = Lab::open().await;
    grant_reading(&lab).await;
    let manager = healthy(&lab, &["web"]).await;
    let mut flags = lab.flags();
    let reader = lab.kubeconfig_for("reader", "readers");
    flags.push(format!("--kubeconfig={}", reader.display()));

    let healthy = run(words(&["doctor"], &flags)).await;
    let (out, progress) = (text(&healthy.stdout), text(&healthy.stderr));
    assert_eq!(healthy.status.code(), Some(0), "{out}{progress}");
    assert!(out.contains("Nothing is wrong."), "{out}");
    for part in ["reading the API server", "asking cloud one"] {
        assert!(progress.contains(part), "{progress}");
    }

    lab.initialised_as("strayed", |node| {
        node.label("topology.kubernetes.io/zone", "elsewhere")
    })
    .await;
    let json = run(words(
        &["doctor", "-q"],
        &[&flags[..], &["--output=json".to_owned()]].concat(),
    ));
    let warned = json.await;
    assert_eq!(warned.status.code(), Some(2), "{}", text(&warned.stdout));
    assert_eq!(text(&warned.stderr), "", "no progress is asked for");
    let report: Value = serde_json::from_slice(&warned.stdout).expect("JSON");
    assert_eq!(report["worst"], "warning", "{report}");
    let ids: Vec<_> = report["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|finding| finding["id"].as_str().unwrap_or_default())
        .collect();
    assert!(ids.contains(&"node-topology-differs"), "{report}");

    let wrong = unique_name("no-machine");
    lab.create(lab.node(&wrong)).await;
    let failed = run(words(&["doctor", "--output", "table"], &flags)).await;
    let out = text(&failed.stdout);
    assert_eq!(failed.status.code(), Some(3), "{out}");
    for part in [
        &format!("✖ Node {wrong}  node-no-machine")[..],
        "why:",
        "fix:",
        "1 error,",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }

    stories(&flags, &wrong).await;
    drop(manager);
}

async fn stories(flags: &[String], wrong: &str) {
    let unknown = run(words(&["doctor", "--kube-api-qps=many"], flags)).await;
    assert_eq!(unknown.status.code(), Some(1));
    assert!(
        text(&unknown.stderr).contains("kube-api-qps"),
        "{}",
        text(&unknown.stderr)
    );

    let story = run(words(&["explain", "node", wrong], flags)).await;
    let out = text(&story.stdout);
    assert_eq!(story.status.code(), Some(0), "{out}{}", text(&story.stderr));
    assert!(
        out.contains("keeps its taint until exactly one machine"),
        "{out}"
    );
    let story = run(words(&["explain", "svc", "web", "-ojson"], flags)).await;
    let story: Value = serde_json::from_slice(&story.stdout).expect("JSON");
    assert_eq!(story["object"], "Service default/web", "{story}");
    let missing = run(words(&["explain", "node", "n11"], flags)).await;
    assert_eq!(missing.status.code(), Some(1));
    let error = text(&missing.stderr);
    assert!(
        error.contains("there is no Node \"n11\"; did you mean \"n1\"?"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_read_is_a_finding_and_the_rest_is_checked() {
    let lab = Lab::open().await;
    let flags = lab.flags();
    let stranger = lab.kubeconfig_for("stranger", "strangers");
    let stranger = format!("--kubeconfig={}", stranger.display());
    let flags = [&flags[..], &[stranger, "--output=json".to_owned()]].concat();
    let denied = run(words(&["doctor"], &flags)).await;
    let report: Value = serde_json::from_slice(&denied.stdout).expect("JSON");
    let findings = report["findings"].as_array().expect("a list");
    let unread: Vec<_> = findings
        .iter()
        .filter(|finding| finding["id"] == "not-readable")
        .filter_map(|finding| finding["object"].as_str())
        .collect();
    assert!(
        unread.contains(&"Nodes") && unread.contains(&"Services"),
        "{report}"
    );
    let state = report["state"].to_string();
    assert!(
        state.contains("one (local)"),
        "the cloud was asked: {report}"
    );
}
