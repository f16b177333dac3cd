//! The plain manifests are printed from the chart.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::helm::Helm;
use crate::permissions::manifests;

/// Set to write the manifests instead of comparing them.
const WRITE: &str = "CLOUDKEEL_WRITE_MANIFESTS";

/// Each file, the template that it is printed from, and the values.
fn printed() -> Vec<(&'static str, &'static str, Value)> {
    let deployment = json!({"kind": "Deployment"});
    let accounts = json!({"useServiceAccountCredentials": true});
    let ipam = json!({"controllers": {"ipam": true}, "clusterCIDR": "10.244.0.0/16"});
    let mut all = vec![
        ("base/config", "config", json!({})),
        ("base/service-account", "service-account", json!({})),
        ("daemonset/daemonset", "daemonset", json!({})),
        ("deployment/deployment", "deployment", deployment.clone()),
        (
            "deployment/pod-disruption-budget",
            "pod-disruption-budget",
            deployment,
        ),
        (
            "service-account-credentials/rbac",
            "rbac/service-account-credentials",
            accounts,
        ),
        ("rbac/ipam", "rbac/ipam", ipam),
        (
            "extras/credentials-secret",
            "extras/credentials-secret",
            json!({"provider": "vsphere", "existingConfigMap": "vsphere-cloud-config"}),
        ),
        (
            "extras/leader-migration",
            "extras/leader-migration",
            json!({"leaderElection": {"migration": true}}),
        ),
        (
            "extras/metrics-reader",
            "extras/metrics-reader",
            json!({"metrics": {"enabled": true}}),
        ),
        (
            "extras/persistent-volume-labels",
            "extras/persistent-volume-labels",
            json!({"persistentVolumeLabels": true}),
        ),
        (
            "extras/plan-reader",
            "extras/plan-reader",
            json!({"planReader": true}),
        ),
        (
            "../digitalocean/admission-webhook",
            "digitalocean-webhook",
            json!({"provider": "digitalocean", "digitalocean": {"webhook": true}}),
        ),
    ];
    let roles = [
        "rbac/cluster",
        "rbac/election",
        "rbac/events",
        "rbac/lifecycle",
        "rbac/node",
        "rbac/route",
        "rbac/service",
        "rbac/serving",
    ];
    all.extend(roles.map(|file| (file, file, json!({}))));
    all
}

/// Without what only helm needs: where a text comes from, and empty lines.
fn plain(rendered: &str) -> String {
    let lines = rendered.lines().filter(|line| {
        let line = line.trim_end();
        !line.is_empty() && !line.starts_with("# Source: ")
    });
    let text = lines.fold(String::new(), |text, line| text + line.trim_end() + "\n");
    text.strip_prefix("---\n").unwrap_or(&text).to_owned()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else if path
            .file_name()
            .is_some_and(|name| name != "kustomization.yaml")
        {
            found.push(path);
        }
    }
    found
}

#[tokio::test]
async fn manifests_are_what_the_chart_prints() {
    let helm = Helm::new().await;
    let mut stale = Vec::new();
    for (file, template, values) in printed() {
        let rendered = helm.render(&values, Some(&format!("{template}.yaml"))).ok();
        let expected = plain(&rendered.stdout);
        let path = manifests().join(format!("{file}.yaml"));
        if std::env::var_os(WRITE).is_some() {
            std::fs::write(&path, &expected).expect("the manifest is written");
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        if found != expected {
            stale.push(file);
        }
    }
    assert!(
        stale.is_empty(),
        "{stale:?} are not what deploy/chart prints: change the chart, then run this test with {WRITE}=1"
    );
}

/// A file beside them would be maintained by hand.
#[test]
fn every_manifest_is_printed() {
    let known: Vec<_> = printed()
        .iter()
        .map(|(file, _, _)| manifests().join(format!("{file}.yaml")))
        .collect();
    let others: Vec<_> = files_below(&manifests())
        .into_iter()
        .filter(|file| !known.contains(file))
        .collect();
    assert!(others.is_empty(), "{others:?}");
}
