//! DigitalOcean's own Go client, making the calls of digitalocean-cloud-controller-manager in its order, over a socket.
//! Needs Go, as the control plane does; without it, this fails and says so.

use std::process::{Command, Output};
use std::time::Duration;

use cloudkeel_emulator_digitalocean::{DigitalOceanCloud, Fault, Operation, Settings};
use cloudkeel_testkit::control_plane::{Tool, provide};
use serde_json::{Value, json};

use crate::support::lab_with;

/// The calls of one whole life in order: names, tags and bodies as the CCM chooses them. Made by the probe, not by the
/// CCM itself.
const CALLS: &str = include_str!("godo-calls.json");

async fn probe(cloud: &DigitalOceanCloud) -> Output {
    let program = provide(Tool::GodoProbe).await.unwrap().path;
    let served = cloud.serve_on_loopback().await.unwrap();
    let endpoint = served.api_url();
    let run = move || {
        Command::new(program)
            .env("DO_OVERRIDE_URL", endpoint)
            .env("DO_ACCESS_TOKEN", DigitalOceanCloud::TOKEN)
            .env("REGION", "nyc3")
            .env("PROBE_NODES", "node-0,node-1")
            .env("PROBE_CERTIFICATE", "shop")
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

/// Every call but polls, with IDs as they are: the emulator gives them out in order.
fn calls(cloud: &DigitalOceanCloud) -> Vec<Value> {
    let log = cloud.call_log().into_iter();
    let log = log.filter(|call| call.operation != Operation::GetLoadBalancer);
    let shown = log.map(|call| {
        json!({
            "call": call.operation.to_string(),
            "query": call.query,
            "body": call.body,
        })
    });
    shown.collect()
}

fn lab() -> DigitalOceanCloud {
    let settings = Settings {
        balancer_duration: Duration::from_millis(50),
        ..Settings::default()
    };
    let (cloud, _) = lab_with(60, settings);
    cloud.add_certificate("shop", "lets_encrypt");
    cloud
}

#[tokio::test]
async fn the_go_client_makes_all_calls_of_its_controller_to_the_emulator() {
    let cloud = lab();
    let output = probe(&cloud).await;
    let said = text(&output.stderr);
    assert!(output.status.success(), "{}{said}", text(&output.stdout));
    let steps = "start\nnodes\nservice\ncertificate\nfirewall\nrefusals\n";
    assert_eq!(text(&output.stdout), steps);
    assert!(
        cloud.calls().of(Operation::GetLoadBalancer) > 0,
        "it has to wait"
    );
    let expected: Vec<Value> = serde_json::from_str(CALLS).unwrap();
    let seen = calls(&cloud);
    for (number, (seen, expected)) in seen.iter().zip(&expected).enumerate() {
        assert_eq!(seen, expected, "call {number}");
    }
    assert_eq!(seen.len(), expected.len(), "{}", json!(seen));
}

#[tokio::test]
async fn the_go_client_gives_up_on_a_refusal_in_the_words_of_the_api() {
    let cloud = lab();
    cloud
        .faults()
        .once(Operation::UpdateLoadBalancer, Fault::status(500));
    let output = probe(&cloud).await;
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "start\nnodes\n");
    let said = text(&output.stderr);
    assert!(said.starts_with("service: update too early: "), "{said}");
    assert!(said.contains("Unexpected server-side error"), "{said}");
}
