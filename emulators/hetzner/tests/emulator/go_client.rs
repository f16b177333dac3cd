//! Hetzner's own Go client, making the calls of hcloud-cloud-controller-manager in its order, over a
//! socket. Needs Go, as the control plane does; without it, this fails and says so.

use std::process::{Command, Output};
use std::time::Duration;

use cloudkeel_emulator_hetzner::{Fault, HetznerCloud, Operation, Settings};
use cloudkeel_testkit::control_plane::{Tool, provide};
use serde_json::{Value, json};

use crate::support::lab_with;

/// The calls of one whole life in order: names, labels and bodies as hcloud-ccm chooses them. Made by the
/// probe, not by hcloud-ccm itself, which adds targets in any order.
const CALLS: &str = include_str!("hcloud-go-calls.json");

async fn probe(cloud: &HetznerCloud) -> Output {
    let program = provide(Tool::HcloudProbe).await.unwrap().path;
    let served = cloud.serve_on_loopback().await.unwrap();
    let endpoint = served.api_url();
    let run = move || {
        Command::new(program)
            .env("HCLOUD_ENDPOINT", endpoint)
            .env("HCLOUD_TOKEN", HetznerCloud::TOKEN)
            .env("HCLOUD_NETWORK", "kube")
            .env("PROBE_NODES", "node-0,node-1")
            .output()
            .unwrap()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    drop(served);
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Every call but polls, with IDs and addresses as they are: the emulator gives them out in order.
fn calls(cloud: &HetznerCloud) -> Vec<Value> {
    let log = cloud.call_log().into_iter();
    let log = log.filter(|call| call.operation != Operation::ListActions);
    let shown = log.map(|call| {
        json!({
            "call": call.operation.to_string(),
            "query": call.query,
            "body": call.body,
        })
    });
    shown.collect()
}

#[tokio::test]
async fn the_go_client_makes_all_calls_of_its_controller_to_the_emulator() {
    let settings = Settings {
        action_duration: Duration::from_millis(50),
        certificate_duration: Duration::from_millis(50),
        ..Settings::default()
    };
    let (cloud, _) = lab_with(2, settings);
    let output = probe(&cloud).await;
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    let steps = "start\nnodes\nservice\ncertificate\nroute\nrefusals\n";
    assert_eq!(text(&output.stdout), steps);
    assert!(cloud.load_balancers().is_empty());
    assert!(cloud.networks()[0].routes.is_empty());
    assert!(
        cloud.calls().of(Operation::ListActions) > 0,
        "it has to wait"
    );
    let expected: Vec<Value> = serde_json::from_str(CALLS).unwrap();
    let seen = calls(&cloud);
    for (number, (seen, expected)) in seen.iter().zip(&expected).enumerate() {
        assert_eq!(seen, expected, "call {number}");
    }
    assert_eq!(seen.len(), expected.len());
}

#[tokio::test]
async fn the_go_client_retries_conflicts_and_gives_up_on_an_action_that_fails() {
    let (cloud, _) = lab_with(2, Settings::default());
    cloud
        .faults()
        .once(Operation::ListServers, Fault::code("conflict"));
    cloud
        .faults()
        .once(Operation::AddService, Fault::action_fails("action_failed"));
    let output = probe(&cloud).await;
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "start\nnodes\n");
    let said = text(&output.stderr);
    assert!(said.starts_with("service: settle: "), "{said}");
    assert!(said.contains("action_failed"), "{said}");
}
