//! Alerts and the dashboard, against the metrics that exist.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::helm::Helm;

/// Every metric of the reference page, with the names that a histogram has.
fn metrics() -> BTreeSet<String> {
    let page = crate::harness::package().join("../../docs/reference/metrics.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| {
        let (name, rest) = row.split_once("` | ")?;
        let ending = if rest.starts_with("histogram") {
            "_bucket"
        } else {
            ""
        };
        Some(format!("{name}{ending}"))
    })
    .collect()
}

/// What looks like a metric in an expression: a word with an underscore that is no function and no label.
fn named_in(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words
        .filter(|word| word.contains('_') && *word != "histogram_quantile")
        .map(str::to_owned)
        .collect()
}

fn objects(helm: &Helm) -> Vec<Value> {
    let all = json!({"enabled": true, "podMonitor": true, "rules": true, "dashboard": true});
    helm.objects(&json!({"metrics": all}))
}

fn of_kind<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found = objects
        .iter()
        .find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("no {kind} {name}"))
}

#[tokio::test]
async fn every_alert_asks_for_metrics_that_exist_and_says_what_to_do() {
    let helm = Helm::new().await;
    let objects = objects(&helm);
    let rule = of_kind(&objects, "PrometheusRule", "cloudkeel");
    let alerts = rule["spec"]["groups"][0]["rules"].as_array();
    let alerts = alerts.expect("alerts");
    assert!(alerts.len() >= 10, "{alerts:#?}");
    let known = metrics();
    for alert in alerts {
        let expression = alert["expr"].as_str().expect("an expression");
        let named = named_in(expression);
        assert!(!named.is_empty(), "{alert}");
        let unknown: Vec<_> = named.difference(&known).collect();
        assert!(unknown.is_empty(), "{unknown:?} in {alert}");
        for part in [
            &alert["labels"]["severity"],
            &alert["annotations"]["summary"],
            &alert["annotations"]["description"],
        ] {
            assert!(
                part.as_str().is_some_and(|text| !text.is_empty()),
                "{alert}"
            );
        }
    }
}

#[tokio::test]
async fn every_panel_of_the_dashboard_asks_for_metrics_that_exist() {
    let helm = Helm::new().await;
    let objects = objects(&helm);
    let map = of_kind(&objects, "ConfigMap", "cloudkeel-dashboard");
    assert_eq!(map["metadata"]["labels"]["grafana_dashboard"], "1");
    let text = map["data"]["cloudkeel.json"].as_str().expect("a text");
    let dashboard: Value = serde_json::from_str(text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let known = metrics();
    let mut named = BTreeSet::new();
    for panel in panels {
        for target in panel["targets"].as_array().expect("targets") {
            named.extend(named_in(target["expr"].as_str().expect("an expression")));
        }
    }
    assert!(named.len() >= panels.len(), "{named:?}");
    let unknown: Vec<_> = named.difference(&known).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// The labels by which monitors find Pods are those that Pods have, and the port is theirs.
#[tokio::test]
async fn monitors_find_the_pods() {
    let helm = Helm::new().await;
    for (monitor, kind, endpoints) in [
        ("podMonitor", "PodMonitor", "podMetricsEndpoints"),
        ("serviceMonitor", "ServiceMonitor", "endpoints"),
    ] {
        let objects = helm.objects(&json!({"metrics": {"enabled": true, monitor: true}}));
        let pod = &of_kind(&objects, "DaemonSet", "cloudkeel")["spec"]["template"];
        let found = of_kind(&objects, kind, "cloudkeel");
        let selector = &found["spec"]["selector"]["matchLabels"];
        assert_eq!(*selector, pod["metadata"]["labels"], "{kind}");
        let port = &pod["spec"]["containers"][0]["ports"][0]["name"];
        assert_eq!(found["spec"][endpoints][0]["port"], *port, "{kind}");
        if kind == "ServiceMonitor" {
            let service = of_kind(&objects, "Service", "cloudkeel");
            assert_eq!(service["metadata"]["labels"], *selector);
            assert_eq!(service["spec"]["selector"], *selector);
        }
        let arguments = pod["spec"]["containers"][0]["args"].to_string();
        assert!(!arguments.contains("127.0.0.1"), "{arguments}");
    }
}
