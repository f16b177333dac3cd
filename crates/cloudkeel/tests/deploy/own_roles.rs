//! The binary under exactly the roles that are shipped for the controllers that run.

use cloudkeel_testkit::cluster::{
    Kubelet, eventually, unique_name, wait_for_node, wait_for_node_gone,
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;

use crate::account::Account;
use crate::harness::{DEADLINE, Manager};
use crate::kubectl::Kubectl;
use crate::nodes::{
    FAST_DELETION, SHUTDOWN, create_uninitialized, has_taint, is_tainted_as_shut_down, join, lose,
    member, shut_down, wait_for_event, wait_for_initialized,
};
use crate::permissions::{Grant, documents, granted_to, manifests};
use crate::scrape::{free_port, get, listen_on};
use crate::services::Served;
use crate::trial::{Trial, own_grants, warnings, warns};

/// A manager with all its permissions logs no warnings.
fn assert_quiet(manager: &Manager) {
    let warnings = warnings(manager);
    assert!(warnings.is_empty(), "{warnings:#?}");
}

#[tokio::test]
async fn the_node_controller_needs_no_more_than_its_role() {
    let grants = own_grants(&["cluster", "election", "events", "node", "serving"]);
    let trial = Trial::new(&grants).await;
    let world = &trial.world;
    let manager = trial.start(&["--controllers=cloud-node"]);
    let name = unique_name("node");
    join(world, &name).await;
    let node = wait_for_initialized(world, &name).await;
    assert!(node.spec.is_some_and(|spec| spec.provider_id.is_some()));
    create_uninitialized(world, &name).await;
    wait_for_initialized(world, &name).await;
    wait_for_event(world, "default", &name, "Synced", 2).await;
    wait_for_event(world, "kube-system", world.lease(), "LeaderElection", 1).await;
    assert!(!world.holder().await.is_empty());
    assert_quiet(&manager);
}

#[tokio::test]
async fn a_node_that_others_keep_changing_is_read_again_and_initialised() {
    let grants = own_grants(&["cluster", "election", "events", "node", "serving"]);
    let trial = Trial::new(&grants).await;
    let manager = trial.start(&["--controllers=cloud-node"]);
    let contended = crate::contention::Contended::new(&trial.world).await;
    wait_for_initialized(&trial.world, contended.name()).await;
    drop(contended);
    assert_quiet(&manager);
}

#[tokio::test]
async fn the_lifecycle_controller_needs_no_more_than_its_role() {
    let grants = own_grants(&["cluster", "election", "events", "lifecycle", "serving"]);
    let trial = Trial::new(&grants).await;
    let world = &trial.world;
    let [gone, off, stays] = ["gone", "off", "stays"].map(unique_name);
    let gone_machine = member(world, &gone).await;
    let off_machine = member(world, &off).await;
    member(world, &stays).await;
    let mut flags = FAST_DELETION.to_vec();
    flags.push("--controllers=cloud-node-lifecycle");
    let manager = trial.start(&flags);

    shut_down(world, &off, off_machine).await;
    is_tainted_as_shut_down(world, &off).await;
    world.cloud.power_on(off_machine).expect("it is there");
    let kubelet = Kubelet::new(&world.client, &off);
    kubelet.set_ready().await.expect("the status is written");
    wait_for_node(&world.client, &off, DEADLINE, |node| {
        !has_taint(node, SHUTDOWN)
    })
    .await;

    lose(world, &gone, gone_machine).await;
    wait_for_node_gone(&world.client, &gone, DEADLINE).await;
    wait_for_event(world, "default", &gone, "DeletingNode", 1).await;
    world.node(&stays).await;
    assert_quiet(&manager);
}

#[tokio::test]
async fn the_service_controller_needs_no_more_than_its_role() {
    let grants = own_grants(&["cluster", "election", "events", "service", "serving"]);
    let trial = Trial::new(&grants).await;
    let world = &trial.world;
    member(world, &unique_name("node")).await;
    let manager = trial.start(&["--controllers=service"]);
    let served = Served::new(world).await;
    served.address().await;
    served.change_port().await;
    served.wait_for_event("EnsuredLoadBalancer").await;
    served.delete().await;
    assert!(world.cloud.balancers_of(&world.id).is_empty());
    assert_quiet(&manager);
}

#[tokio::test]
async fn metrics_are_served_to_authorized_users() {
    let grants = own_grants(&[
        "cluster", "election", "events", "node", "service", "serving",
    ]);
    let trial = Trial::new(&grants).await;
    let port = free_port();
    let manager = trial.start(&listen_on(port));
    manager.wait_for_log("controller started").await;

    let client = &trial.world.client;
    let (reader, stranger) = (Account::create(client).await, Account::create(client).await);
    reader.grant(&[metrics_reader()]).await;
    for (case, token, expected) in [
        ("a reader", Some(reader.token().await), 200),
        ("another user", Some(stranger.token().await), 403),
        ("anonymous", None, 403),
        ("a forger", Some("not.a.token".to_owned()), 401),
    ] {
        let (code, body) = get(port, "/metrics", token.as_deref()).await;
        assert_eq!(code, expected, "{case}: {body}");
    }
    for path in ["/livez", "/readyz", "/healthz"] {
        eventually(path, DEADLINE, || async {
            get(port, path, None).await.0 == 200
        })
        .await;
    }
    let (code, _) = get(port, "/configz", Some(&reader.token().await)).await;
    assert_eq!(code, 403, "metrics and nothing else");
    assert_quiet(&manager);
}

/// The role of monitoring. It is shipped without a binding.
fn metrics_reader() -> Grant {
    let documents = documents(&manifests().join("extras/metrics-reader.yaml"));
    let [role] = documents.as_slice() else {
        panic!("one role is expected: {documents:?}");
    };
    Grant::Own {
        role: "cloudkeel:metrics-reader".to_owned(),
        namespace: None,
        rules: serde_json::from_value(role["rules"].clone()).expect("rules"),
    }
}

/// The second lease of a migration is an extra of its own.
#[tokio::test]
async fn leader_migration_needs_its_extra_role() {
    let grants = own_grants(&[
        "cluster",
        "election",
        "events",
        "lifecycle",
        "node",
        "service",
        "serving",
    ]);
    let extra = documents(&manifests().join("extras/leader-migration.yaml"));
    let extra = granted_to("cloudkeel", &extra);
    let flags = ["--enable-leader-migration"];

    let trial = Trial::new(&grants).await;
    let manager = trial.start(&flags);
    let lease = "kube-system/cloud-provider-extraction-migration";
    let warned = warns(&manager, &["failed to acquire lease", lease]).await;
    assert!(warned.is_ok(), "{warned:?}");
    drop(manager);

    let trial = Trial::new(&[grants, extra].concat()).await;
    let manager = trial.start(&flags);
    for controller in ["cloud-node-controller", "cloud-node-lifecycle-controller"] {
        let started = format!("\"controller started\",\"controller\":\"{controller}\"");
        manager.wait_for_log(&started).await;
    }
    assert_quiet(&manager);
}

/// Everything as it is shipped: names, account, lease, and the arguments of the container. Only the addresses of the
/// API server and the configuration come from the test.
#[tokio::test]
async fn the_shipped_installation_works_as_it_is() {
    let kubectl = Kubectl::new().await;
    let folder = manifests();
    kubectl
        .run([
            "apply",
            "--server-side",
            "-k",
            folder.to_str().expect("UTF-8"),
        ])
        .ok();

    let mut world = crate::harness::World::new().await;
    let account = Account::existing(&world.client, "cloudkeel");
    account
        .knows_all(&own_grants(&["cluster", "election", "events"]))
        .await;
    account
        .knows_all(&own_grants(&[
            "node",
            "lifecycle",
            "route",
            "service",
            "serving",
        ]))
        .await;
    world.kubeconfig = account.kubeconfig().await;
    let port = free_port();
    let mut flags = crate::workload::arguments("daemonset/daemonset.yaml");
    flags.extend([
        format!("--cloud-config={}", world.config().display()),
        format!("--secure-port={port}"),
        "--leader-elect-resource-name=cloud-controller-manager".to_owned(),
        "--logging-format=json".to_owned(),
    ]);
    flags.extend(FAST_DELETION.map(str::to_owned));
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();
    let manager = world.start(&flags);

    let [gone, stays] = ["gone", "stays"].map(unique_name);
    let machine = join(&world, &gone).await;
    join(&world, &stays).await;
    wait_for_initialized(&world, &gone).await;
    wait_for_initialized(&world, &stays).await;
    let served = Served::new(&world).await;
    served.address().await;
    served.delete().await;
    lose(&world, &gone, machine).await;
    wait_for_node_gone(&world.client, &gone, DEADLINE).await;
    for path in crate::workload::probed("daemonset/daemonset.yaml") {
        eventually(&path, DEADLINE, || async {
            get(port, &path, None).await.0 == 200
        })
        .await;
    }
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), "kube-system");
    let lease = leases.get("cloud-controller-manager").await;
    let holder = lease.expect("the lease is there").spec;
    assert!(holder.is_some_and(|spec| spec.holder_identity.is_some()));
    assert_quiet(&manager);
}
