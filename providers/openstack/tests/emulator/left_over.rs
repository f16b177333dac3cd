//! What is left over of Services that are gone: what is found, what is removed, and what never is.

use cloudkeel_api::{BalancerRef, DesiredState, LoadBalancerSpec, Outcome, ServiceRef};
use cloudkeel_emulator_openstack::{Kind, OpenStackCloud};
use serde_json::{Value, json};

use crate::lab::{Lab, NAME, UID, annotate, balancer_ref, cluster, spec};

const PLAIN_IP: &str =
    "Floating IP for Kubernetes external service default/web from cluster kubernetes";
const PLAIN_GROUP: &str =
    "Security Group for default/web Service LoadBalancer in cluster kubernetes";

/// What stands behind a description.
fn owner() -> String {
    let cluster = cluster("").uid.unwrap();
    format!(" (Service UID {UID}, cluster UID {cluster})")
}

async fn lab() -> Lab {
    let external = OpenStackCloud::EXTERNAL;
    Lab::new(&format!(
        "floating-network-id={external}\nmanage-security-groups=true"
    ))
    .await
}

/// The Service as `plan --orphans` knows it: by what is written in the cloud.
fn gone() -> BalancerRef {
    balancer_ref("web", UID)
}

async fn settled(lab: &Lab, spec: &mut LoadBalancerSpec) {
    let outcome = lab.settle_written(spec).await.unwrap();
    assert!(matches!(outcome, Outcome::Settled { .. }), "{outcome:?}");
}

/// Another client deletes the load balancer: its floating IP leads nowhere.
fn lose_balancer(lab: &Lab) {
    for kind in [Kind::Listener, Kind::Pool, Kind::LoadBalancer] {
        for part in lab.cloud.all(kind) {
            lab.cloud.remove(kind, part["id"].as_str().unwrap());
        }
    }
    for ip in lab.cloud.all(Kind::FloatingIp) {
        let id = ip["id"].as_str().unwrap();
        lab.cloud
            .set(Kind::FloatingIp, id, &json!({"port_id": null}));
    }
}

fn describe(kind: Kind, lab: &Lab) -> String {
    lab.only(kind)["description"].as_str().unwrap().to_owned()
}

/// What is found with a proof, and without: kind and name.
async fn found(lab: &Lab) -> (Vec<String>, Vec<String>) {
    let owned = lab.balancers().owned().await.unwrap();
    let unproven = lab.balancers().unproven().await.unwrap();
    let unproven = unproven.into_iter().map(|it| it.resource);
    let words = |service: &Option<ServiceRef>| {
        let service = service.as_ref().unwrap();
        format!("{service} {:?}", service.uid)
    };
    (
        owned
            .iter()
            .map(|it| format!("{} of {}", it.kind.as_str(), words(&it.service)))
            .collect(),
        unproven
            .map(|it| format!("{} of {}", it.kind.as_str(), words(&it.service)))
            .collect(),
    )
}

fn of_web(kind: &str, uid: &str) -> String {
    format!("{kind} of default/web {uid:?}")
}

#[tokio::test(start_paused = true)]
async fn what_outlives_its_load_balancer_is_found_and_removed() {
    let lab = lab().await;
    let mut spec = spec(&[80], &lab.nodes(2));
    settled(&lab, &mut spec).await;
    assert_eq!(
        describe(Kind::FloatingIp, &lab),
        format!("{PLAIN_IP}{}", owner())
    );
    assert_eq!(
        describe(Kind::SecurityGroup, &lab),
        format!("{PLAIN_GROUP}{}", owner())
    );
    let [balancer, group, address] =
        ["load balancer", "security group", "address"].map(|kind| of_web(kind, UID));
    let (owned, unproven) = found(&lab).await;
    assert_eq!(
        owned,
        [balancer, group.clone()],
        "a floating IP in use goes with its load balancer"
    );
    assert_eq!(unproven, Vec::<String>::new());
    lose_balancer(&lab);
    assert_eq!(found(&lab).await.0, [group, address]);
    // It is in use again, by whatever it leads to.
    let ip = lab.only(Kind::FloatingIp);
    let id = ip["id"].as_str().unwrap();
    lab.cloud
        .set(Kind::FloatingIp, id, &json!({"port_id": "router-port"}));
    assert_eq!(found(&lab).await.0.len(), 1);
    lab.remove(&gone()).await;
    assert_eq!(lab.cloud.all(Kind::SecurityGroup), Vec::<Value>::new());
    assert_eq!(lab.cloud.all(Kind::FloatingIp).len(), 1);
    lab.cloud
        .set(Kind::FloatingIp, id, &json!({"port_id": null}));
    lab.remove(&gone()).await;
    assert_eq!(lab.cloud.all(Kind::FloatingIp), Vec::<Value>::new());
    assert_eq!(found(&lab).await, (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_or_retained_is_never_removed_for_a_service_that_is_gone() {
    let keep = |spec: &mut LoadBalancerSpec| annotate(spec, "keep-floatingip", "true");
    for case in [
        "kept from the start",
        "kept later",
        "kept when it goes",
        "kept, and its finalizer removed by hand",
        "retained",
    ] {
        let lab = lab().await;
        let mut spec = spec(&[80], &lab.nodes(1));
        if case == "kept from the start" {
            keep(&mut spec);
        }
        settled(&lab, &mut spec).await;
        match case {
            "kept when it goes" => {
                keep(&mut spec);
                lab.remove(&spec.balancer_ref).await;
            }
            "retained" => {
                let released = DesiredState::Released(&spec.balancer_ref);
                lab.apply(released).await.unwrap();
                assert_eq!(describe(Kind::SecurityGroup, &lab), PLAIN_GROUP);
            }
            _ => {
                keep(&mut spec);
                settled(&lab, &mut spec).await;
                assert_eq!(describe(Kind::FloatingIp, &lab), PLAIN_IP, "{case}");
            }
        }
        if case.ends_with("by hand") {
            lab.remove(&gone()).await;
        }
        lose_balancer(&lab);
        let (owned, unproven) = found(&lab).await;
        assert!(
            !owned.contains(&of_web("address", UID)),
            "{case}: {owned:?}"
        );
        assert!(
            unproven.contains(&of_web("address", "")),
            "{case}: {unproven:?}"
        );
        if case != "retained" {
            lab.remove(&gone()).await;
        }
        assert_eq!(describe(Kind::FloatingIp, &lab), PLAIN_IP, "{case}");
        assert_eq!(
            lab.cloud.all(Kind::SecurityGroup).len(),
            usize::from(case == "retained"),
            "{case}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_is_given_up_again_if_the_service_keeps_it_no_more() {
    let lab = lab().await;
    let mut spec = spec(&[80], &lab.nodes(1));
    annotate(&mut spec, "keep-floatingip", "true");
    settled(&lab, &mut spec).await;
    assert_eq!(describe(Kind::FloatingIp, &lab), PLAIN_IP);
    annotate(&mut spec, "keep-floatingip", "false");
    settled(&lab, &mut spec).await;
    assert_eq!(
        describe(Kind::FloatingIp, &lab),
        format!("{PLAIN_IP}{}", owner())
    );
    // A Service that becomes internal lets go of a floating IP that it keeps.
    annotate(&mut spec, "keep-floatingip", "true");
    let internal = "service.beta.kubernetes.io/openstack-internal-load-balancer";
    spec.balancer_ref
        .annotations
        .insert(internal.to_owned(), "true".to_owned());
    settled(&lab, &mut spec).await;
    assert_eq!(describe(Kind::FloatingIp, &lab), PLAIN_IP);
    assert_eq!(lab.only(Kind::FloatingIp)["port_id"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn what_the_go_ccm_left_is_listed_and_nothing_says_that_it_is_ours() {
    let lab = lab().await;
    let address = |description: &str, port: Value| {
        let ip = json!({"floating_ip_address": "203.0.113.9", "port_id": port, "description": description});
        lab.cloud.add(Kind::FloatingIp, ip)
    };
    let group = |name: &str, description: &str| {
        let group = json!({"name": name, "description": description, "security_group_rules": []});
        lab.cloud.add(Kind::SecurityGroup, group)
    };
    address(PLAIN_IP, Value::Null);
    group(&format!("lb-sg-{UID}-default-web"), PLAIN_GROUP);
    lab.cloud.add_load_balancer(NAME, &[NAME.to_owned()]);
    // None of these is a left-over of this cluster.
    address(PLAIN_IP, json!("router-port"));
    address("mine", Value::Null);
    address(&PLAIN_IP.replace("kubernetes", "prod"), Value::Null);
    address(
        &format!("{PLAIN_IP}{}", owner().replace("1111", "9999")),
        Value::Null,
    );
    group("default", "Default security group");
    group(
        "lb-sg-u-default-web",
        &PLAIN_GROUP.replace("kubernetes", "prod"),
    );
    lab.cloud.add_load_balancer("made-by-hand", &[]);
    lab.cloud
        .add_load_balancer(NAME, &["cloudkeel.dev/cluster-uid=another".to_owned()]);
    let (owned, unproven) = found(&lab).await;
    assert_eq!(owned, Vec::<String>::new());
    let expected = [
        of_web("load balancer", ""),
        of_web("security group", UID),
        of_web("address", ""),
    ];
    assert_eq!(unproven, expected);
    let why = lab.balancers().unproven().await.unwrap().remove(0).why;
    assert!(why.contains("cluster \"kubernetes\""), "{why}");
}

#[tokio::test(start_paused = true)]
async fn the_floating_ip_of_a_shared_load_balancer_is_its_owners_until_that_goes() {
    let lab = lab().await;
    let nodes = lab.nodes(1);
    let mut web = spec(&[80], &nodes);
    settled(&lab, &mut web).await;
    let mut other = spec(&[81], &nodes);
    other.balancer_ref = balancer_ref("other", "u-2");
    let id = lab.only(Kind::LoadBalancer)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    annotate(&mut other, "load-balancer-id", &id);
    settled(&lab, &mut other).await;
    let released = DesiredState::Released(&other.balancer_ref);
    lab.apply(released).await.unwrap();
    let owned = format!("{PLAIN_IP}{}", owner());
    assert_eq!(describe(Kind::FloatingIp, &lab), owned);
    // The other is served by it when its owner goes.
    settled(&lab, &mut other).await;
    lab.remove(&web.balancer_ref).await;
    assert_eq!(lab.cloud.all(Kind::Listener).len(), 1);
    assert_eq!(describe(Kind::FloatingIp, &lab), PLAIN_IP);
}
