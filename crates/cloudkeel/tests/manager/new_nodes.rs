//! New Nodes that are not what they seem: recreated under an old name, with labels that Kubernetes refuses, with
//! an invalid ID, or one of another cloud.

use cloudkeel_testkit::cluster::{NodeBuilder, eventually, unique_name, wait_for_node};
use cloudkeel_testkit::either_api::EitherApi;
use cloudkeel_testkit::on_both_apis;
use cloudkeel_testkit::simulated_cloud::MachineSpec;
use futures::future::join_all;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::DeleteParams;

use crate::harness::{DEADLINE, World};
use crate::nodes::{builder, provider_id, wait_for_initialized};

on_both_apis![
    nodes_of_machines_that_were_recreated_get_the_ids_of_the_new_ones,
    a_label_that_the_api_server_refuses_costs_only_itself,
    a_node_with_a_malformed_id_is_left_alone_with_an_event,
    the_labels_of_an_unmanaged_node_are_left_alone,
];

const ZONE: &str = "topology.kubernetes.io/zone";
const ZONE_BETA: &str = "failure-domain.beta.kubernetes.io/zone";

async fn create(world: &World, node: NodeBuilder) {
    node.create(&world.client).await.expect("the node is made");
}

async fn version(world: &World, name: &str) -> Option<String> {
    world.node(name).await.metadata.resource_version
}

fn label<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    let labels = node.metadata.labels.as_ref()?;
    labels.get(key).map(String::as_str)
}

async fn nodes_of_machines_that_were_recreated_get_the_ids_of_the_new_ones(on: EitherApi) {
    let world = World::on(on).await;
    let names: Vec<_> = (0..12).map(|_| unique_name("node")).collect();
    let make_machines = || -> Vec<_> { names.iter().map(|name| world.machine(name)).collect() };
    let old = make_machines();
    let join_all = || {
        join_all(
            names
                .iter()
                .map(|name| create(&world, builder(&world, name))),
        )
    };
    join_all().await;
    let _manager = world.start(&[]);
    for name in &names {
        wait_for_initialized(&world, name).await;
    }
    let nodes: Api<Node> = Api::all(world.client.clone());
    for (name, machine) in names.iter().zip(old) {
        world.cloud.destroy(machine).expect("the machine is there");
        let deleted = nodes.delete(name, &DeleteParams::default()).await;
        deleted.expect("the node is deleted");
    }
    let machines = make_machines();
    join_all().await;
    for (name, machine) in names.iter().zip(&machines) {
        let node = wait_for_initialized(&world, name).await;
        let id = format!("local://{}/{machine}", world.id);
        assert_eq!(provider_id(&node), Some(id.as_str()), "{name}");
    }
}

async fn a_label_that_the_api_server_refuses_costs_only_itself(on: EitherApi) {
    let world = World::on(on).await;
    let name = unique_name("node");
    let machine = MachineSpec::named(&name)
        .in_project(&world.id)
        .zone("rack 7")
        .label("local.cloudkeel.dev/-bad", "x")
        .label("local.cloudkeel.dev/good", "x");
    world.cloud.add_machine(machine).expect("a machine");
    create(&world, builder(&world, &name)).await;
    let _manager = world.start(&[]);
    let node = wait_for_initialized(&world, &name).await;
    assert!(provider_id(&node).is_some(), "{node:?}");
    assert_eq!(label(&node, "local.cloudkeel.dev/good"), Some("x"));
    for key in [ZONE, ZONE_BETA, "local.cloudkeel.dev/-bad"] {
        assert_eq!(label(&node, key), None, "{key}");
    }
    let event = eventually("an event that says so", DEADLINE, || async {
        let events = world.events_about(&name, "InvalidLabel").await;
        events.into_iter().next()
    })
    .await;
    let message = event.message.unwrap_or_default();
    for part in [ZONE, "rack 7", "-bad"] {
        assert!(message.contains(part), "{message}");
    }
}

async fn a_node_with_a_malformed_id_is_left_alone_with_an_event(on: EitherApi) {
    let world = World::on(on).await;
    let name = unique_name("node");
    let machine = world.machine(&name);
    let id = format!("local://{}/{machine} ", world.id);
    create(&world, builder(&world, &name).provider_id(&id)).await;
    let before = version(&world, &name).await;
    let _manager = world.start(&[]);
    let event = eventually("an event that says why", DEADLINE, || async {
        let events = world.events_about(&name, "InitializationDelayed").await;
        events.into_iter().next()
    })
    .await;
    let message = event.message.unwrap_or_default();
    assert!(message.contains(id.trim_end()), "{message}");
    assert_eq!(version(&world, &name).await, before);
}

async fn the_labels_of_an_unmanaged_node_are_left_alone(on: EitherApi) {
    let world = World::on(on).await;
    let (unmanaged, ours) = (unique_name("unmanaged"), unique_name("node"));
    let node = |name: &str| {
        let id = format!("local://{}/{}", world.id, world.machine(name));
        let node = builder(&world, name).provider_id(id).initialized();
        node.label(ZONE_BETA, "a")
    };
    let kept = node(&unmanaged).label("cloudkeel.dev/unmanaged", "true");
    create(&world, kept).await;
    let before = version(&world, &unmanaged).await;
    let _manager = world.start(&[]);
    create(&world, node(&ours)).await;
    wait_for_node(&world.client, &ours, DEADLINE, |node| {
        label(node, ZONE) == Some("a")
    })
    .await;
    assert_eq!(version(&world, &unmanaged).await, before);
}
