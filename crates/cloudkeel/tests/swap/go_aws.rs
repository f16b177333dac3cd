//! aws-cloud-controller-manager itself: what it leaves is recorded, taken over and given back, and compared with what
//! cloudkeel makes of the same Nodes and Services.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cloudkeel_testkit::cluster::try_eventually;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::aws_cluster::{AwsCluster, Changes, LONG, NODES, changes, each, machines, stop};
use crate::aws_services::SCENARIOS;
use crate::harness::{DEADLINE, Manager, package};

/// Set it to write the records anew.
const UPDATE: &str = "UPDATE_RECORDS";

/// Where the record of a scenario is.
pub(crate) fn record_file(scenario: &str) -> PathBuf {
    let folder = package().join("tests/swap/go_aws");
    folder.join(format!("{scenario}.json"))
}

async fn start_go(cluster: &AwsCluster) -> Manager {
    let program = std::env::var("GO_AWS_CCM").expect("the tier builds it");
    cluster.run(Path::new(&program), &cluster.moto).await
}

/// How often each Service was reported as done.
async fn done(cluster: &AwsCluster) -> BTreeMap<String, i32> {
    let events: Api<Event> = Api::namespaced(cluster.client.clone(), "default");
    let events = events.list(&ListParams::default()).await;
    let mut done = BTreeMap::new();
    for event in events.expect("events can be listed") {
        if event.reason.as_deref() == Some("EnsuredLoadBalancer") {
            let name = event.involved_object.name.unwrap_or_default();
            *done.entry(name).or_default() += event.count.unwrap_or(1);
        }
    }
    done
}

/// Lets the Go CCM run until it has looked at every Service once more; what it changed.
async fn go_again(cluster: &AwsCluster) -> Changes {
    let before = done(cluster).await;
    cluster.moto.calls().await;
    let go = start_go(cluster).await;
    let all = try_eventually("another pass of the Go CCM", LONG, || async {
        let now = done(cluster).await;
        let mut services = cluster.scenario.services.iter();
        services.all(|it| now.get(it.name) > before.get(it.name))
    });
    all.await
        .unwrap_or_else(|why| panic!("{why}\n{}", go.log()));
    stop_go(go).await;
    changes(&cluster.moto.calls().await)
}

/// It ends with an error once it may no longer lead.
async fn stop_go(mut go: Manager) {
    go.signal("TERM");
    go.ended().await;
}

/// What differs between two states, one line for each thing.
fn differences(ours: &Value, theirs: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for (kind, theirs) in theirs.as_object().expect("a state") {
        let lacks = |list: &Value, thing: &Value| !each(list).any(|other| other == thing);
        let only = |of: &str, list: &Value, other: &Value| -> Vec<String> {
            let things = each(list).filter(|thing| lacks(other, thing));
            things
                .map(|thing| format!("{kind}: only {of}: {thing}"))
                .collect()
        };
        lines.extend(only("Go", theirs, &ours[kind]));
        lines.extend(only("cloudkeel", &ours[kind], theirs));
    }
    lines
}

/// The same Nodes and Services in an empty account lead cloudkeel to the same state.
async fn makes_the_same(cluster: &mut AwsCluster, theirs: &Value) {
    cluster.move_to(machines().await).await;
    let manager = cluster.start().await;
    let same = try_eventually("the same state", DEADLINE, || async {
        let ours = cluster.left().await;
        let differences = differences(&ours["state"], theirs);
        if differences.is_empty() {
            Ok(true)
        } else {
            Err(differences.join("\n"))
        }
    });
    same.await
        .unwrap_or_else(|why| panic!("{why}\n{}", manager.log()));
    stop(manager).await;
}

/// Lists with a line for each item, so that a change of a record can be read.
fn lines(value: &Value) -> String {
    match value {
        Value::Object(parts) if parts.values().all(|it| it.is_array() || it.is_object()) => {
            let parts = parts.iter();
            let parts: Vec<_> = parts
                .map(|(key, it)| format!("{}: {}", json!(key), lines(it)))
                .collect();
            format!("{{\n{}\n}}", parts.join(",\n"))
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(Value::to_string).collect();
            format!("[\n{}\n]", items.join(",\n"))
        }
        other => other.to_string(),
    }
}

/// The record is what the Go CCM leaves.
fn compare_or_write(scenario: &str, found: &Value) {
    let file = record_file(scenario);
    if std::env::var_os(UPDATE).is_some() {
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(&file, lines(found) + "\n").expect("the record is written");
        return;
    }
    let text = std::fs::read_to_string(&file).expect("a record");
    let record: Value = serde_json::from_str(&text).expect("JSON");
    let how = format!(
        "{UPDATE}=1 cargo xtask test --tier go-ccm-aws writes {}",
        file.display()
    );
    for part in ["nodes", "services", "state"] {
        assert_eq!(found[part], record[part], "{part}: {how}");
    }
}

#[tokio::test]
#[ignore = "needs the Go CCM: cargo xtask test --tier go-ccm-aws"]
async fn what_the_go_ccm_makes_is_taken_over_and_given_back_without_a_change() {
    for scenario in &SCENARIOS {
        println!("settings {}", scenario.name);
        let mut cluster = AwsCluster::new(scenario).await;
        // The Go CCM does not give its lease back, and nothing is shown by waiting for that.
        cluster.flags = &["--leader-elect=false"];
        let go = start_go(&cluster).await;
        cluster.register_nodes().await;
        cluster.wait_for_nodes(NODES.len()).await;
        println!("Nodes: {} calls", cluster.moto.calls().await.len());
        cluster.create_services().await;
        stop_go(go).await;
        let calls_of_go = cluster.moto.calls().await;
        println!(
            "Services: {} calls, mutating {:?}",
            calls_of_go.len(),
            changes(&calls_of_go)
        );
        let left = cluster.left().await;
        let objects = cluster.objects().await;
        let always = go_again(&cluster).await;
        println!("a restart of the Go CCM changes {always:?}");
        let written = cluster.written();

        let manager = cluster.start().await;
        let mut calls = cluster.first_pass().await;
        stop(manager).await;
        calls.extend(cluster.moto.calls().await);
        println!("cloudkeel takes over by {} reads", calls.len());
        assert_eq!(changes(&calls), Changes::new());
        assert_eq!(cluster.written(), written, "besides Events and leases");

        assert_eq!(go_again(&cluster).await, always, "back to the Go CCM");
        let after = cluster.left().await;
        assert_eq!(
            differences(&after["state"], &left["state"]),
            [] as [String; 0]
        );
        makes_the_same(&mut cluster, &left["state"]).await;
        let record = json!({
            "nodes": objects["nodes"], "services": objects["services"],
            "calls": left["calls"], "state": left["state"],
        });
        compare_or_write(scenario.name, &record);
    }
}
