//! Load balancers that several Services use.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloudkeel_api::{
    DesiredState, ErrorKind, LoadBalancerSpec, OtherService, OtherServices, Outcome, ServiceRef,
    ServiceSearch,
};
use cloudkeel_emulator_openstack::Kind;
use serde_json::json;

use crate::lab::{Lab, annotate, balancer_ref, spec};

fn named(mut spec: LoadBalancerSpec, name: &str) -> LoadBalancerSpec {
    spec.balancer_ref = balancer_ref(name, &format!("uid-of-{name}"));
    spec
}

fn ports(lab: &Lab) -> Vec<u64> {
    let mut ports: Vec<_> = lab
        .cloud
        .all(Kind::Listener)
        .iter()
        .filter_map(|l| l["protocol_port"].as_u64())
        .collect();
    ports.sort_unstable();
    ports
}

#[tokio::test(start_paused = true)]
async fn no_more_services_share_than_configured_and_taken_ports_are_reported() {
    let lab = Lab::new("max-shared-lb=2").await;
    let nodes = lab.nodes(2);
    let Outcome::Settled { status, .. } = lab.settle(&named(spec(&[80], &nodes), "first")).await
    else {
        unreachable!("settle checks it");
    };
    let id = status.id.unwrap();
    let mut second = named(spec(&[80, 8080], &nodes), "second");
    annotate(&mut second, "load-balancer-id", &id);
    let outcome = lab.apply(DesiredState::Present(&second)).await.unwrap();
    let Outcome::Incomplete { failures, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(
        failures.message.contains("80/TCP already exists"),
        "{}",
        failures.message
    );
    assert_eq!(ports(&lab), [80, 8080]);
    let mut third = named(spec(&[9090], &nodes), "third");
    annotate(&mut third, "load-balancer-id", &id);
    let refused = lab.apply(DesiredState::Present(&third)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.message().contains("max-shared-lb"), "{refused}");
    // The first goes: the second keeps its listener and the load balancer.
    lab.remove(&named(spec(&[80], &[]), "first").balancer_ref)
        .await;
    assert_eq!(ports(&lab), [8080]);
    lab.remove(&second.balancer_ref).await;
    assert_eq!(lab.cloud.all(Kind::Listener).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_of_the_users_is_shared_and_stays() {
    let lab = Lab::new("").await;
    let id = lab
        .cloud
        .add_load_balancer("made-by-hand", &["team=web".to_owned()]);
    lab.cloud.add(Kind::Listener, json!({
        "loadbalancers": [{"id": id}], "protocol": "HTTP", "protocol_port": 80, "tags": [], "name": "theirs",
    }));
    let mut service = spec(&[8080], &lab.nodes(1));
    annotate(&mut service, "load-balancer-id", &id);
    let outcome = lab.apply(DesiredState::Present(&service)).await.unwrap();
    assert!(
        matches!(&outcome, Outcome::Incomplete { failures, .. } if failures.message.contains("floating IP")),
        "{outcome:?}"
    );
    let port = lab.only(Kind::LoadBalancer)["vip_port_id"].clone();
    lab.cloud.add(
        Kind::FloatingIp,
        json!({"floating_ip_address": "203.0.113.9", "port_id": port, "description": ""}),
    );
    lab.settle(&service).await;
    assert_eq!(ports(&lab), [80, 8080]);
    lab.remove(&service.balancer_ref).await;
    assert_eq!(ports(&lab), [80]);
    let left = lab.only(Kind::LoadBalancer);
    assert_eq!(
        (left["name"].as_str(), &left["tags"]),
        (Some("made-by-hand"), &json!(["team=web"]))
    );
    assert_eq!(lab.cloud.all(Kind::FloatingIp).len(), 1);
}

/// Another Service of the cluster.
struct Neighbour(ServiceRef);

impl ServiceSearch for Neighbour {
    fn find(&self, fits: &dyn Fn(OtherService<'_>) -> bool) -> Option<ServiceRef> {
        let other = OtherService {
            service: &self.0,
            annotations: &BTreeMap::new(),
            ingress: &[],
        };
        fits(other).then(|| self.0.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_go_ccm_made_for_another_service_is_not_adopted() {
    let lab = Lab::new("").await;
    let name = "kube_service_kubernetes_default_theirs";
    let id = lab.cloud.add_load_balancer(name, &[name.to_owned()]);
    let mut evil = spec(&[80], &lab.nodes(1));
    let neighbour = Neighbour(balancer_ref("theirs", "u-2").service);
    evil.balancer_ref.others = OtherServices::new(Arc::new(neighbour));
    evil.balancer_ref.adopt = Some(id);
    lab.cloud.reset_calls();
    let refused = lab.apply(DesiredState::Present(&evil)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotOurs);
    let expected = "belongs to Service default/theirs";
    assert!(refused.message().contains(expected), "{refused}");
    lab.remove(&evil.balancer_ref).await;
    assert_eq!(lab.mutating(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_that_was_made_for_another_service_is_never_deleted() {
    let lab = Lab::new("").await;
    let address = "203.0.113.77";
    let description =
        "Floating IP for Kubernetes external service default/theirs from cluster kubernetes";
    // It was kept when its Service went.
    lab.cloud.add(
        Kind::FloatingIp,
        json!({
            "floating_ip_address": address, "port_id": null, "description": description,
        }),
    );
    let mut evil = spec(&[80], &lab.nodes(1));
    evil.address = Some(address.parse().unwrap());
    lab.settle(&evil).await;
    let attached = lab.only(Kind::FloatingIp);
    assert!(attached["port_id"].is_string(), "{attached}");
    lab.remove(&evil.balancer_ref).await;
    assert_eq!(lab.cloud.all(Kind::LoadBalancer).len(), 0);
    assert_eq!(lab.only(Kind::FloatingIp)["floating_ip_address"], address);
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_that_another_service_uses_cannot_be_had() {
    let lab = Lab::new("").await;
    let nodes = lab.nodes(1);
    lab.settle(&named(spec(&[80], &nodes), "theirs")).await;
    let before = lab.only(Kind::FloatingIp);
    let mut evil = named(spec(&[80], &nodes), "evil");
    let address = before["floating_ip_address"].as_str().unwrap();
    evil.address = Some(address.parse().unwrap());
    let outcome = lab.apply(DesiredState::Present(&evil)).await.unwrap();
    let Outcome::Incomplete { failures, .. } = outcome else {
        panic!("{outcome:?}");
    };
    let expected = "is not available: it is attached to another port";
    assert!(failures.message.contains(expected), "{}", failures.message);
    lab.remove(&evil.balancer_ref).await;
    assert_eq!(lab.only(Kind::FloatingIp)["port_id"], before["port_id"]);
}
