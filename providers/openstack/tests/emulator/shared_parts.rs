//! Load balancers on which other clients have listeners and members, and what an earlier leader left.

use std::collections::BTreeSet;

use cloudkeel_api::{DesiredState, ErrorKind, LoadBalancerSpec, Outcome, TargetState};
use cloudkeel_emulator_openstack::{Kind, OpenStackCloud, Operation};
use serde_json::{Value, json};

use crate::lab::{Lab, spec};

const EXCLUSIVE: &str = "cloudkeel.dev/lb-exclusive";
const OWN_PARTS: &str = "cloudkeel.dev/lb-own-parts";

async fn settled(lab: &Lab, spec: &mut LoadBalancerSpec) {
    let outcome = lab.settle_written(spec).await.unwrap();
    assert!(matches!(outcome, Outcome::Settled { .. }), "{outcome:?}");
}

/// A load balancer of another client, with its listener of port 9999, a pool and a member.
fn made_by_hand(lab: &Lab) -> String {
    let id = lab
        .cloud
        .add_load_balancer("made-by-hand", &["team=web".to_owned()]);
    let listener = lab.cloud.add(Kind::Listener, json!({
        "loadbalancers": [{"id": id}], "protocol": "HTTP", "protocol_port": 9_999, "tags": [], "name": "theirs",
        "connection_limit": 7,
    }));
    let pool = lab.cloud.add(
        Kind::Pool,
        json!({
            "loadbalancers": [{"id": id}], "listeners": [{"id": listener}], "protocol": "HTTP",
            "lb_algorithm": "LEAST_CONNECTIONS", "name": "theirs",
        }),
    );
    lab.cloud.add(
        Kind::Member,
        json!({"pool_id": pool, "address": "10.6.200.1", "protocol_port": 80, "weight": 1}),
    );
    id
}

/// The Service `web`, which shares a load balancer with its client.
fn adopting(lab: &Lab, ports: &[u16], id: &str) -> LoadBalancerSpec {
    let mut spec = spec(ports, &lab.nodes(2));
    spec.balancer_ref.adopt = Some(id.to_owned());
    let annotations = &mut spec.balancer_ref.annotations;
    annotations.insert(EXCLUSIVE.to_owned(), "false".to_owned());
    spec
}

/// What is called `theirs`, and its members.
fn theirs(lab: &Lab) -> Vec<Value> {
    let mut parts: Vec<_> = [Kind::Listener, Kind::Pool]
        .iter()
        .flat_map(|kind| lab.cloud.all(*kind))
        .collect();
    parts.retain(|part| part["name"] == "theirs");
    let pools: Vec<_> = parts.iter().map(|part| part["id"].clone()).collect();
    let mut members = lab.cloud.all(Kind::Member);
    members.retain(|member| pools.contains(&member["pool_id"]));
    parts.extend(members);
    assert_eq!(parts.len(), 3, "{parts:?}");
    parts
}

fn ports(lab: &Lab) -> BTreeSet<u64> {
    let listeners = lab.cloud.all(Kind::Listener);
    listeners
        .iter()
        .filter_map(|it| it["protocol_port"].as_u64())
        .collect()
}

/// The members of the pool of a port, by address and port.
fn members(lab: &Lab, port: u64) -> BTreeSet<String> {
    let listeners = lab.cloud.all(Kind::Listener);
    let listener = listeners
        .iter()
        .find(|it| it["protocol_port"] == port)
        .unwrap();
    let pools = lab.cloud.all(Kind::Pool);
    let pool = pools
        .iter()
        .find(|it| it["listeners"][0]["id"] == listener["id"])
        .unwrap();
    let members = lab.cloud.all(Kind::Member);
    let its = members.iter().filter(|it| it["pool_id"] == pool["id"]);
    its.map(|it| {
        format!(
            "{}:{}",
            it["address"].as_str().unwrap(),
            it["protocol_port"]
        )
    })
    .collect()
}

#[tokio::test(start_paused = true)]
async fn what_other_clients_have_stays_as_it_is() {
    let external = OpenStackCloud::EXTERNAL;
    let lab = Lab::new(&format!("floating-network-id={external}")).await;
    let id = made_by_hand(&lab);
    let before = theirs(&lab);
    let mut web = adopting(&lab, &[80, 443], &id);
    settled(&lab, &mut web).await;
    let recorded = &web.balancer_ref.annotations[OWN_PARTS];
    assert!(
        recorded.contains("443/TCP") && !recorded.contains("9999"),
        "{recorded}"
    );
    let balancer = lab.only(Kind::LoadBalancer);
    assert_eq!(balancer["name"], "made-by-hand");
    let tags = balancer["tags"].to_string();
    assert!(
        tags.contains("team=web") && tags.contains("cloudkeel.dev/shared=true"),
        "{tags}"
    );
    // Another client adds a member to a pool of the Service, and a Node goes.
    let pools = lab.cloud.all(Kind::Pool);
    let pool = pools.iter().find(|it| it["name"] != "theirs").unwrap();
    lab.cloud.add(Kind::Member, json!({
        "pool_id": pool["id"], "address": "10.6.200.2", "protocol_port": 81, "weight": 3, "backup": true,
    }));
    let gone = web.targets.keys().next().unwrap().clone();
    let mut fewer = web.clone();
    fewer.targets.remove(&gone);
    lab.cloud.reset_calls();
    settled(&lab, &mut fewer).await;
    let calls = lab.cloud.calls();
    assert_eq!(
        (calls.of(Operation::DeleteMember), calls.mutations()),
        (2, 2),
        "{calls:?}"
    );
    let added = lab
        .cloud
        .all(Kind::Member)
        .into_iter()
        .find(|it| it["address"] == "10.6.200.2");
    assert_eq!(added.unwrap()["backup"], true);
    assert_eq!(
        (
            members(&lab, 80).len() + members(&lab, 443).len(),
            ports(&lab).len()
        ),
        (3, 3)
    );
    // A port is given up, and the Service goes.
    fewer.listeners.retain(|it| it.port == 443);
    settled(&lab, &mut fewer).await;
    assert_eq!(ports(&lab), BTreeSet::from([443, 9_999]));
    assert_eq!(theirs(&lab), before);
    lab.remove(&fewer.balancer_ref).await;
    assert_eq!(ports(&lab), BTreeSet::from([9_999]));
    assert_eq!(theirs(&lab), before);
    let left = lab.only(Kind::LoadBalancer);
    assert_eq!(
        (&left["name"], &left["tags"]),
        (&json!("made-by-hand"), &json!(["team=web"]))
    );
    let description = lab.only(Kind::FloatingIp)["description"].to_string();
    assert!(!description.contains("UID"), "{description}");
    assert_eq!(lab.reasons(), ["SharedLoadBalancerLeft"]);
}

#[tokio::test(start_paused = true)]
async fn a_shared_load_balancer_is_not_changed_as_a_whole() {
    let lab = Lab::new("internal-lb=true").await;
    let id = made_by_hand(&lab);
    let before = theirs(&lab);
    // One port is another client's.
    let mut web = adopting(&lab, &[80, 9_999], &id);
    let outcome = lab.settle_written(&mut web).await.unwrap();
    let Outcome::Incomplete { failures, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(
        failures.message.contains("9999/TCP"),
        "{}",
        failures.message
    );
    assert_eq!(theirs(&lab), before);
    web.listeners.retain(|it| it.port == 80);
    settled(&lab, &mut web).await;
    let mut renamed = web.clone();
    renamed.options.name = Some("ours".to_owned());
    let refused = lab
        .apply(DesiredState::Present(&renamed))
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    // One that failed is not built again, although it has never served.
    lab.cloud.set(
        Kind::LoadBalancer,
        &id,
        &json!({"provisioning_status": "ERROR"}),
    );
    web.balancer_ref.ingress.clear();
    let failed = lab.apply(DesiredState::Present(&web)).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Unavailable, "{failed}");
    lab.cloud.set(
        Kind::LoadBalancer,
        &id,
        &json!({"provisioning_status": "ACTIVE"}),
    );
    // Released, it stays as it is, and says that it is shared.
    lab.apply(DesiredState::Released(&web.balancer_ref))
        .await
        .unwrap();
    assert_eq!(ports(&lab), BTreeSet::from([80, 9_999]));
    assert_eq!(
        lab.only(Kind::LoadBalancer)["tags"],
        json!(["team=web", "cloudkeel.dev/shared=true"])
    );
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_of_the_service_alone_goes_although_it_may_be_shared() {
    let lab = Lab::new("internal-lb=true").await;
    let mut web = adopting(&lab, &[80], "");
    web.balancer_ref.adopt = None;
    settled(&lab, &mut web).await;
    let tags = lab.only(Kind::LoadBalancer)["tags"].to_string();
    assert!(tags.contains("cloudkeel.dev/shared=true"), "{tags}");
    // What the annotation said stays so until it says something else.
    web.balancer_ref.annotations.remove(EXCLUSIVE);
    settled(&lab, &mut web).await;
    assert!(web.balancer_ref.annotations.contains_key(OWN_PARTS));
    web.balancer_ref
        .annotations
        .insert(EXCLUSIVE.to_owned(), "true".to_owned());
    settled(&lab, &mut web).await;
    let tags = lab.only(Kind::LoadBalancer)["tags"].to_string();
    assert!(!tags.contains("cloudkeel.dev/shared"), "{tags}");
    assert!(!web.balancer_ref.annotations.contains_key(OWN_PARTS));
    web.balancer_ref
        .annotations
        .insert(EXCLUSIVE.to_owned(), "false".to_owned());
    settled(&lab, &mut web).await;
    lab.remove(&web.balancer_ref).await;
    assert_eq!(lab.cloud.all(Kind::LoadBalancer), Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_leader_drains_stays_until_the_time_is_over() {
    for (case, more, shared) in [
        ("all members at once", "internal-lb=true", false),
        (
            "one by one",
            "internal-lb=true\nprovider-requires-serial-api-calls=true",
            false,
        ),
        ("shared", "internal-lb=true", true),
    ] {
        let lab = Lab::new(more).await;
        let mut web = spec(&[80], &lab.nodes(3));
        if shared {
            web.balancer_ref
                .annotations
                .insert(EXCLUSIVE.to_owned(), "false".to_owned());
        }
        settled(&lab, &mut web).await;
        let mut leaving = web.clone();
        let (name, target) = leaving.targets.iter_mut().next().unwrap();
        target.state = TargetState::Draining;
        let name = name.clone();
        settled(&lab, &mut leaving).await;
        let weights = || {
            let members = lab.cloud.all(Kind::Member);
            let mut weights: Vec<_> = members
                .iter()
                .map(|it| it["weight"].as_u64().unwrap())
                .collect();
            weights.sort_unstable();
            weights
        };
        assert_eq!(weights(), [0, 1, 1], "{case}");
        // The next leader does not know it any more, and another Node joins.
        let mut next = leaving.clone();
        next.targets.remove(&name);
        next.options.keeps_draining = true;
        lab.cloud.reset_calls();
        let Outcome::Settled { status, .. } = lab.settle_written(&mut next).await.unwrap() else {
            panic!("{case}");
        };
        assert_eq!((status.draining, lab.mutating()), (1, 0), "{case}");
        let node = lab.node("new");
        let target = cloudkeel_api::Target::machine(node.clone());
        next.targets.insert(node.name, target);
        settled(&lab, &mut next).await;
        assert_eq!(weights(), [0, 1, 1, 1], "{case}");
        next.options.keeps_draining = false;
        let Outcome::Settled { status, .. } = lab.settle_written(&mut next).await.unwrap() else {
            panic!("{case}");
        };
        assert_eq!((weights(), status.draining), (vec![1, 1, 1], 0), "{case}");
    }
}
