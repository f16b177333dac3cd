//! Credentials that change while the manager runs, and a provider controller.

use std::collections::BTreeMap;

use cloudkeel_testkit::cluster::{NodeBuilder, eventually, unique_name, wait_for_node};
use cloudkeel_testkit::simulated_cloud::Permission;
use k8s_openapi::api::core::v1::{Event, Secret};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use crate::charts::account;
use crate::harness::{DEADLINE, World};
use crate::pod;
use crate::scrape::{free_port, get};
use crate::stand_ins::TAG;

async fn is_tagged(world: &World, name: &str, tag: &str) {
    wait_for_node(&world.client, name, DEADLINE, |node| {
        let labels = node.metadata.labels.as_ref();
        labels
            .and_then(|labels| labels.get(TAG))
            .map(String::as_str)
            == Some(tag)
    })
    .await;
}

/// An event about the lease, by its reason.
async fn wait_for_event(world: &World, reason: &str) -> String {
    let events: Api<Event> = Api::namespaced(world.client.clone(), "kube-system");
    let about = format!("involvedObject.name={},reason={reason}", world.lease());
    let about = ListParams::default().fields(&about);
    let event = eventually(reason, DEADLINE, || async {
        let found = events.list(&about).await.expect("events can be listed");
        found.items.into_iter().next()
    })
    .await;
    event.message.unwrap_or_default()
}

async fn exposes(port: u16, line: &str) {
    eventually(line, DEADLINE, || async {
        let (code, metrics) = get(port, "/metrics", None).await;
        assert_eq!(code, 200, "{metrics}");
        metrics.lines().any(|exposed| exposed == line)
    })
    .await;
}

/// Writes a Secret of this world, for the first time or again.
async fn write_secret(world: &World, token: &str) {
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "kube-system");
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": world.id},
        "stringData": {"token": token},
    });
    let by = PatchParams::apply("test").force();
    let written = secrets.patch(&world.id, &by, &Patch::Apply(secret)).await;
    written.expect("the secret is written");
}

#[tokio::test]
async fn a_file_of_a_go_ccm_and_a_secret_that_it_names_are_followed() {
    let world = World::new().await;
    let account = account(&world.client, "openstack").await;
    for number in 1..=4 {
        let token = format!("token-{number}");
        world.cloud.grant(&token, &world.id, Permission::ReadWrite);
    }
    let write = |line: &str| {
        let text = format!("[Global]\nauth-url = \"{}\"\n{line}\n", world.url());
        world.write_file("cloud.conf", &text)
    };
    let file = write("application-credential-secret = token-1");
    let arguments = [
        "openstack-cloud-controller-manager".to_owned(),
        format!("--cloud-config={}", file.display()),
        "--controllers=*,tagging".to_owned(),
        "--cloud-reload-period=200ms".to_owned(),
        "--secure-port=0".to_owned(),
        format!("--leader-elect-resource-name={}", world.lease()),
    ];
    let manager = pod::start(&world, &account, &arguments, &BTreeMap::new()).await;
    let name = unique_name("node");
    world.machine(&name);
    let made = NodeBuilder::new(&name).create(&world.client).await;
    made.expect("the node is made");
    is_tagged(&world, &name, "1").await;

    write("application-credential-secret = token-2");
    is_tagged(&world, &name, "2").await;
    write_secret(&world, "token-3").await;
    write(&format!("secret-name = {}", world.id));
    is_tagged(&world, &name, "3").await;
    write_secret(&world, "token-4").await;
    is_tagged(&world, &name, "4").await;
    drop(manager);
}

#[tokio::test]
async fn a_rotated_credential_takes_over_without_a_restart_and_a_bad_one_does_not() {
    let world = World::new().await;
    let account = account(&world.client, "hetzner").await;
    for token in ["token-1", "token-2"] {
        world.cloud.grant(token, &world.id, Permission::ReadWrite);
    }
    let file = world.write_file("token", "token-1\n");
    let path = file.to_str().expect("text").to_owned();
    let port = free_port();
    let mut arguments: Vec<_> = "hcloud-cloud-controller-manager --allow-untagged-cloud \
        --controllers=*,tagging --cloud-reload-period=200ms --bind-address=127.0.0.1 \
        --authorization-always-allow-paths=/healthz,/metrics"
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    arguments.push(format!("--secure-port={port}"));
    arguments.push(format!("--leader-elect-resource-name={}", world.lease()));
    let env = BTreeMap::from([
        ("HCLOUD_TOKEN_FILE".to_owned(), path),
        ("HCLOUD_ENDPOINT".to_owned(), world.url()),
    ]);
    let mut manager = pod::start(&world, &account, &arguments, &env).await;

    let name = unique_name("node");
    world.machine(&name);
    let made = NodeBuilder::new(&name).create(&world.client).await;
    made.expect("the node is made");
    is_tagged(&world, &name, "1").await;

    world.write_file("token", "revoked\n");
    let refused = wait_for_event(&world, "CloudSettingsRefused").await;
    assert!(refused.contains("keeps its current settings"), "{refused}");
    assert!(
        !refused.contains("revoked"),
        "no credential is shown: {refused}"
    );
    exposes(port, "cloudkeel_cloud_settings_stale{cloud=\"hcloud\"} 1.0").await;
    let (code, _) = get(port, "/healthz", None).await;
    assert_eq!(code, 200, "the old credential works");

    world.write_file("token", "token-2\n");
    is_tagged(&world, &name, "2").await;
    wait_for_event(&world, "CloudSettingsReloaded").await;
    exposes(port, "cloudkeel_cloud_settings_stale{cloud=\"hcloud\"} 0.0").await;
    let second = unique_name("node");
    world.machine(&second);
    let made = NodeBuilder::new(&second).create(&world.client).await;
    made.expect("the node is made");
    is_tagged(&world, &second, "2").await;
    assert_eq!(
        pod::lines(&manager, &["ERROR"]).len(),
        1,
        "{}",
        manager.log()
    );
    manager.signal("TERM");
    assert_eq!(manager.ended().await.code(), Some(0), "{}", manager.log());
}
