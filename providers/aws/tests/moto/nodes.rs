//! Nodes of the less usual kinds, and the proof that an instance is gone.

use cloudkeel_api::{AddressKind, Existence, NodeFacts, Shared};
use serde_json::json;

use crate::lab::Lab;

async fn find(lab: &Lab, node: &NodeFacts) -> Existence {
    let nodes = Shared::of_each(std::slice::from_ref(node));
    let instances = lab.provider.instances().unwrap();
    instances.find_many(&nodes, None).await.remove(0)
}

#[tokio::test(start_paused = true)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn a_terminated_instance_proves_by_itself_that_it_is_gone() {
    // There is no other instance that could confirm it.
    let lab = Lab::with_nodes(1).await;
    let node = &lab.nodes[0];
    let before = find(&lab, node).await;
    assert!(before.instance().is_some(), "{before:?}");
    lab.moto
        .change("terminate", &json!(["node-1"]))
        .await
        .unwrap();
    match find(&lab, node).await {
        Existence::Gone(proof) => {
            let proof = json!(proof);
            assert!(
                proof["evidence"].to_string().contains("terminated"),
                "{proof}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn a_missing_instance_is_gone_only_if_another_one_is_shown() {
    let lab = Lab::with_nodes(1).await;
    find(&lab, &lab.nodes[0]).await;
    lab.moto
        .change("destroy", &json!(["node-1"]))
        .await
        .unwrap();
    let alone = find(&lab, &lab.nodes[0]).await;
    assert!(matches!(alone, Existence::Unknown(_)), "{alone:?}");
}

#[tokio::test(start_paused = true)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn a_fargate_node_is_the_network_interface_of_its_address() {
    let lab = Lab::with_nodes(1).await;
    let address = json!(["10.0.16.77"]);
    let interface = lab.moto.change("add_fargate", &address).await.unwrap();
    let node = NodeFacts {
        name: "fargate-ip-10-0-16-77.ec2.internal".to_owned(),
        provider_id: "aws:///us-east-1a/fargate-ip-10-0-16-77.ec2.internal"
            .parse()
            .ok(),
        ..lab.nodes[0].clone()
    };
    let found = find(&lab, &node).await;
    let instance = found.instance();
    let instance = instance.unwrap_or_else(|| panic!("{found:?}"));
    assert_eq!(instance.zone.as_deref(), Some("us-east-1a"));
    let internal = instance
        .addresses
        .iter()
        .find(|it| it.kind == AddressKind::InternalIp);
    assert_eq!(internal.unwrap().address, "10.0.16.77");
    // It has no type, so nothing asks for a topology.
    assert_eq!(instance.instance_type, None);

    let other = NodeFacts {
        provider_id: "aws:///us-east-1a/fargate-10.0.16.78".parse().ok(),
        ..node.clone()
    };
    assert!(find(&lab, &other).await.instance().is_none());
    lab.moto
        .change("remove_fargate", &json!([interface]))
        .await
        .unwrap();
    assert!(find(&lab, &node).await.instance().is_none());
}

#[tokio::test(start_paused = true)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn instances_for_hpc_have_the_layers_of_the_network_as_labels() {
    let moto = crate::support::Moto::new(None).await;
    for (name, kind) in [("hpc", "p4d.24xlarge"), ("plain", "m5.large")] {
        moto.change("add_instance", &json!([name, kind]))
            .await
            .unwrap();
    }
    let config = moto.config();
    let lab = Lab::of(moto, &config).await;
    for node in &lab.nodes {
        let found = find(&lab, node).await;
        let labels = &found.instance().unwrap().labels;
        let layers = labels
            .keys()
            .filter(|key| key.contains("network-node-layer-"));
        let expected = if node.name == "hpc" { 3 } else { 0 };
        assert_eq!(layers.count(), expected, "{}: {labels:?}", node.name);
        assert!(labels.contains_key("topology.k8s.aws/zone-id"));
    }
}
