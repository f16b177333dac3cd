//! A swap: what the Go CCM made is taken over as it is.

use std::time::Duration;

use cloudkeel_api::{
    CloudError, DesiredState, ErrorKind, Ingress, IpMode, LoadBalancerSpec, Outcome,
};
use cloudkeel_emulator_openstack::emulation::{CommonFault, FaultInjector as _, FaultTiming};
use cloudkeel_emulator_openstack::{Kind, OpenStackCloud};
use serde_json::json;

use crate::lab::{Lab, NAME, annotate, balancer_ref, connect, spec};

const FLOATING: &str = "203.0.113.20";

/// Everything as the Go CCM makes it for a Service with two ports, by its exact names, tags and descriptions.
async fn made_by_go() -> (Lab, LoadBalancerSpec, String) {
    let lab = Lab::new("create-monitor=true").await;
    let nodes = lab.nodes(3);
    let spec = spec(&[80, 443], &nodes);
    let id = lab.cloud.add_load_balancer(NAME, &[NAME.to_owned()]);
    let description = "Kubernetes external service default/web from cluster kubernetes";
    lab.cloud.set(
        Kind::LoadBalancer,
        &id,
        &json!({"description": description}),
    );
    for (index, port) in spec.listeners.iter().enumerate() {
        let listener = lab.cloud.add(Kind::Listener, json!({
            "name": format!("listener_{index}_{NAME}"), "loadbalancers": [{"id": id}], "tags": [NAME],
            "protocol": "TCP", "protocol_port": port.port, "connection_limit": -1, "insert_headers": {},
            "allowed_cidrs": ["0.0.0.0/0"], "default_tls_container_ref": null, "timeout_client_data": 50_000,
            "timeout_member_connect": 5_000, "timeout_member_data": 50_000, "timeout_tcp_inspect": 0,
        }));
        let monitor = json!({
            "name": format!("monitor_{index}_{NAME}"), "type": "TCP", "delay": 5, "timeout": 3, "max_retries": 1,
            "max_retries_down": 3, "url_path": null, "http_method": null, "expected_codes": null,
        });
        let monitor = lab.cloud.add(Kind::Monitor, monitor);
        let pool = lab.cloud.add(Kind::Pool, json!({
            "name": format!("pool_{index}_{NAME}"), "loadbalancers": [{"id": id}], "listeners": [{"id": listener}],
            "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "session_persistence": null, "healthmonitor_id": monitor,
        }));
        lab.cloud
            .set(Kind::Monitor, &monitor, &json!({"pools": [{"id": pool}]}));
        for node in &nodes {
            lab.cloud.add(Kind::Member, json!({
                "pool_id": pool, "name": node.name, "address": node.addresses[0].address, "weight": 1,
                "protocol_port": port.node_port, "monitor_port": null, "subnet_id": OpenStackCloud::SUBNET,
            }));
        }
    }
    let balancer = lab.only(Kind::LoadBalancer);
    lab.cloud.add(Kind::FloatingIp, json!({
        "floating_ip_address": FLOATING, "port_id": balancer["vip_port_id"],
        "description": "Floating IP for Kubernetes external service default/web from cluster kubernetes",
    }));
    lab.cloud.reset_calls();
    (lab, spec, id)
}

fn published() -> Vec<Ingress> {
    vec![Ingress::Ip {
        ip: FLOATING.parse().unwrap(),
        mode: IpMode::Vip,
    }]
}

#[tokio::test(start_paused = true)]
async fn what_the_go_ccm_made_is_taken_over_without_a_mutating_call() {
    for points_by_annotation in [true, false] {
        let (lab, mut spec, id) = made_by_go().await;
        spec.balancer_ref.ingress = published();
        if points_by_annotation {
            annotate(&mut spec, "load-balancer-id", &id);
        }
        let Outcome::Settled {
            status,
            changes,
            done,
        } = lab.settle(&spec).await
        else {
            unreachable!("settle checks it");
        };
        assert_eq!(
            (lab.mutating(), done.to_string()),
            (0, "nothing to do".to_owned())
        );
        assert_eq!(
            (status.id.as_ref(), &status.ingress),
            (Some(&id), &published())
        );
        let key = "loadbalancer.openstack.org/load-balancer-id";
        assert_eq!(changes.annotations[key].as_ref(), Some(&id));
        // So does the first look after a start.
        let looked = lab
            .balancers()
            .observe_all(&[spec.clone(), spec.clone()])
            .await;
        assert!(
            looked
                .iter()
                .all(|look| look.as_ref().unwrap().plan.is_empty())
        );
        lab.remove(&spec.balancer_ref).await;
        assert!(
            lab.cloud.all(Kind::LoadBalancer).is_empty()
                && lab.cloud.all(Kind::FloatingIp).is_empty()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn another_cluster_of_the_same_name_never_takes_it() {
    let (lab, spec, id) = made_by_go().await;
    // Neither annotation nor status: a namesake in another cluster that is called `kubernetes`, too.
    let refused = lab.apply(DesiredState::Present(&spec)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotOurs, "{refused}");
    lab.remove(&spec.balancer_ref).await;
    assert_eq!(
        (lab.mutating(), lab.only(Kind::LoadBalancer)["id"].as_str()),
        (0, Some(id.as_str()))
    );
}

#[tokio::test(start_paused = true)]
async fn a_service_copied_from_another_cluster_does_not_take_its_load_balancer() {
    let lab = Lab::new("").await;
    let tags = [
        NAME.to_owned(),
        "cloudkeel.dev/cluster-uid=another-cluster".to_owned(),
        "cloudkeel.dev/service-uid=another-service".to_owned(),
    ];
    let id = lab.cloud.add_load_balancer(NAME, &tags);
    let mut spec = spec(&[80], &lab.nodes(1));
    annotate(&mut spec, "load-balancer-id", &id);
    let refused = lab.apply(DesiredState::Present(&spec)).await.unwrap_err();
    assert_eq!(
        (refused.kind(), lab.mutating()),
        (ErrorKind::NotOurs, 0),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_crash_between_creation_and_annotation_is_healed_by_the_tag() {
    let lab = Lab::new("").await;
    let spec = spec(&[80], &lab.nodes(1));
    let first = lab
        .balancers()
        .apply(DesiredState::Present(&spec))
        .await
        .unwrap();
    assert!(!first.done().is_empty());
    // The annotation was never written, and the next provider remembers nothing.
    lab.settle(&spec).await;
    let tags = lab.only(Kind::LoadBalancer)["tags"].to_string();
    assert!(
        tags.contains(&spec.balancer_ref.service.uid) && tags.contains(NAME),
        "{tags}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_second_one_from_a_lagging_list_is_deleted_by_its_tag() {
    for is_published in [false, true] {
        let lab = Lab::new("").await;
        let mut spec = spec(&[80], &lab.nodes(1));
        let lag = Duration::from_secs(30);
        tokio::time::sleep(2 * lag).await;
        let Outcome::Settled { status, .. } = lab.settle(&spec).await else {
            unreachable!("settle checks it");
        };
        // The program ended before it wrote the annotation, and lists do not show the load balancer yet.
        let stale = CommonFault::Stale { by: lag };
        assert!(lab.cloud.inject(FaultTiming::Always, stale));
        let restarted = connect(&lab.cloud, &lab.events, "").await;
        let balancers = restarted.load_balancers().unwrap();
        let _: Result<Outcome, CloudError> = balancers.apply(DesiredState::Present(&spec)).await;
        lab.cloud.clear_faults();
        assert_eq!(lab.cloud.all(Kind::LoadBalancer).len(), 2);
        if is_published {
            spec.balancer_ref.ingress.clone_from(&status.ingress);
        }
        tokio::time::sleep(2 * lag).await;
        lab.settle(&spec).await;
        let left = lab.only(Kind::LoadBalancer);
        assert_eq!(left["id"].as_str(), status.id.as_deref());
        assert_eq!(lab.cloud.all(Kind::FloatingIp).len(), 1);
        lab.cloud.reset_calls();
        lab.settle(&spec).await;
        assert_eq!(lab.mutating(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_got_another_name_renames_what_it_has() {
    let (lab, mut spec, id) = made_by_go().await;
    annotate(&mut spec, "load-balancer-id", &id);
    spec.balancer_ref.cluster.name = "prod".to_owned();
    lab.settle(&spec).await;
    let new = "kube_service_prod_default_web";
    assert_eq!(lab.only(Kind::LoadBalancer)["name"], new);
    assert_eq!(lab.only(Kind::LoadBalancer)["tags"], json!([new]));
    for (kind, part) in [
        (Kind::Listener, "listener"),
        (Kind::Pool, "pool"),
        (Kind::Monitor, "monitor"),
    ] {
        let names: Vec<_> = lab
            .cloud
            .all(kind)
            .iter()
            .map(|part| part["name"].to_string())
            .collect();
        assert!(
            names
                .iter()
                .all(|name| name.contains(new) && name.contains(part)),
            "{names:?}"
        );
    }
    lab.cloud.reset_calls();
    lab.settle(&spec).await;
    assert_eq!(lab.mutating(), 0);
    // A Service of another name does not have its load balancer renamed.
    let other = balancer_ref("other", "u-2");
    lab.remove(&other).await;
    assert_eq!(lab.mutating(), 0);
}
