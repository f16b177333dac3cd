//! Nodes of other clouds behind a network load balancer, and what the cloud says of the health of targets.

use cloudkeel_api::{
    DesiredState, HealthState, HealthSummary, LoadBalancerSpec, NodeAddress, NodeFacts, Outcome,
    Target, TargetBy,
};
use serde_json::{Value, json};

use crate::lab::Lab;

const NLB: (&str, &str) = ("type", "nlb");

/// A Node of another cloud, which becomes a target.
fn add_foreign(spec: &mut LoadBalancerSpec, name: &str, address: [u8; 4]) {
    let node = NodeFacts {
        name: name.to_owned(),
        provider_id: format!("vsphere://{name}").parse().ok(),
        addresses: vec![NodeAddress::internal(address.into())],
        ..NodeFacts::default()
    };
    let target = Target {
        by: TargetBy::Address,
        ..Target::machine(node)
    };
    spec.targets.insert(name.to_owned(), target);
}

/// The only network load balancer, and the names of target groups that nothing leads to.
async fn network(lab: &Lab) -> (Value, Value) {
    let state = lab.moto.state().await.unwrap();
    assert_eq!(state["network"].as_array().unwrap().len(), 1);
    (state["network"][0].clone(), state["target_groups"].clone())
}

#[tokio::test(start_paused = true)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn nodes_of_other_clouds_are_targets_by_address_and_instances_again_without_them() {
    let lab = Lab::with_nodes(2).await;
    let own = lab.service(&[80, 443], &[NLB]);
    lab.settle(&own).await;
    let (before, _) = network(&lab).await;
    assert_eq!(before["target_types"], json!(["instance"]));

    // One is outside the VPC, one is in a subnet of it.
    let mut mixed = own.clone();
    add_foreign(&mut mixed, "far", [192, 168, 7, 7]);
    add_foreign(&mut mixed, "near", [10, 0, 16, 200]);
    lab.settle(&mixed).await;
    let (have, unused) = network(&lab).await;
    assert_eq!(have["target_types"], json!(["ip"]));
    let targets = have["targets"].as_array().unwrap();
    assert_eq!(targets.len(), 4, "{targets:?}");
    for address in ["192.168.7.7", "10.0.16.200"] {
        assert!(targets.contains(&json!(address)), "{targets:?}");
    }
    assert_eq!((&have["arn"], &unused), (&before["arn"], &json!([])));
    let (_, _, mutating) = lab.counted(lab.settle(&mixed)).await;
    assert_eq!(mutating, 0, "equal state costs no mutating call");

    // One more of them, and one less.
    let mut others = own.clone();
    add_foreign(&mut others, "near", [10, 0, 16, 200]);
    add_foreign(&mut others, "farther", [192, 168, 7, 8]);
    lab.settle(&others).await;
    let (have, _) = network(&lab).await;
    let targets = have["targets"].as_array().unwrap();
    let has = |address: &str| targets.contains(&json!(address));
    assert!(has("192.168.7.8") && !has("192.168.7.7"), "{targets:?}");

    lab.settle(&own).await;
    let (have, unused) = network(&lab).await;
    assert_eq!(have["targets"], before["targets"]);
    assert_eq!(
        (&have["target_types"], &unused),
        (&json!(["instance"]), &json!([]))
    );
    lab.remove(&own).await;
    let state = lab.moto.state().await.unwrap();
    assert_eq!(
        (&state["network"], &state["node_rules"]),
        (&json!([]), &json!([]))
    );
}

#[tokio::test(start_paused = true)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn while_the_type_of_targets_changes_each_port_leads_to_targets() {
    let lab = Lab::with_nodes(2).await;
    let own = lab.service(&[80, 443], &[NLB]);
    lab.settle(&own).await;
    let mut mixed = own.clone();
    add_foreign(&mut mixed, "far", [192, 168, 7, 7]);
    let account = lab.moto.fact("account");
    let calls = format!("GET /kit/clouds/{account}/calls");
    lab.moto.ask(&calls, &Value::Null).await.unwrap();
    lab.settle(&mixed).await;
    let made = lab.moto.ask(&calls, &Value::Null).await.unwrap();
    let actions = made.as_array().unwrap().iter();
    let actions: Vec<_> = actions
        .map(|call| call["Action"].as_str().unwrap())
        .collect();
    let changes = [
        "CreateTargetGroup",
        "RegisterTargets",
        "ModifyListener",
        "DeleteTargetGroup",
    ];
    let order = actions
        .into_iter()
        .filter(|action| changes.contains(action));
    let [create, register, switch, delete] = changes;
    let expected = [
        create, register, switch, create, register, switch, delete, delete,
    ];
    assert!(order.eq(expected), "{made}");
}

#[tokio::test(start_paused = true)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn a_classic_balancer_takes_no_node_of_another_cloud_and_serves_its_own() {
    let lab = Lab::with_nodes(1).await;
    let mut spec = lab.service(&[80], &[]);
    add_foreign(&mut spec, "far", [192, 168, 7, 7]);
    let balancers = lab.provider.load_balancers().unwrap();
    assert!(
        !balancers
            .profile(&spec.balancer_ref)
            .features
            .targets_by_address
    );
    lab.settle(&spec).await;
    let state = lab.moto.state().await.unwrap();
    let targets = state["classic"][0]["targets"].as_array().unwrap();
    assert_eq!(targets.len(), 1, "{targets:?}");
}

#[tokio::test(start_paused = true)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn the_health_of_targets_is_that_of_the_cloud() {
    for (kind, per_port) in [("classic", 1), ("nlb", 2)] {
        let lab = Lab::with_nodes(2).await;
        let spec = lab.service(&[80, 443], &[("type", kind)]);
        let summary = HealthSummary::of(&lab.settle(&spec).await.health);
        assert_eq!(
            summary.map(|it| (it.healthy, it.unhealthy)),
            Some((2, 0)),
            "{kind}"
        );
        lab.moto
            .change("fail_checks", &json!(["node-1"]))
            .await
            .unwrap();
        let health = lab.settle(&spec).await.health;
        let failing = health
            .iter()
            .filter(|it| it.state == HealthState::Unhealthy);
        let failing: Vec<_> = failing.map(|it| it.target.as_str()).collect();
        assert_eq!(failing, vec!["node-1"; per_port], "{kind}");
        // A list of many shows the same.
        let specs = [spec];
        let balancers = lab.provider.load_balancers().unwrap();
        let seen = balancers.observe_all(&specs).await.remove(0).unwrap();
        assert_eq!(seen.report.status.health, health, "{kind}");
        assert!(seen.plan.is_empty(), "health plans nothing: {kind}");
        let outcome = balancers.apply(DesiredState::Present(&specs[0])).await;
        assert!(matches!(outcome, Ok(Outcome::Settled { .. })), "{kind}");
    }
}
