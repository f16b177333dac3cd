//! Services of a cluster with both families.

use cloudkeel_testkit::control_plane::ControlPlane;
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::compare::{agree_on, cases, embedded};

const RANGES: &str = "--service-cluster-ip-range=10.0.0.0/16,fd00:10::/112";

#[tokio::test]
async fn services_of_both_families_agree() {
    let real = ControlPlane::start_with(&[RANGES]).await;
    agree_on(
        &real.expect("a control plane"),
        &embedded().dual_stack().build(),
        "services of both families",
        cases![
            the_policy_decides_about_families,
            families_in_the_order_that_is_asked_for,
            families_without_a_policy,
            headless,
            addresses_that_are_asked_for,
            addresses_of_other_families,
            one_becomes_two_and_one_again,
            the_second_goes_only_with_the_policy,
            what_is_first_stays,
            a_balancer_of_both_families,
            another_type_and_back,
            replaced_as_a_whole,
            ports_of_both_families,
        ],
    )
    .await;
}

async fn add(b: &Bench, name: &str, mut spec: Value) -> Value {
    spec["ports"] = json!([{"port": 80}]);
    let service = json!({"metadata": {"name": name}, "spec": spec});
    b.post(&b.here("services"), service).await
}

/// Both addresses, asked for.
fn both(first: &str, second: &str) -> Value {
    json!({
        "ipFamilyPolicy": "PreferDualStack",
        "clusterIP": first, "clusterIPs": [first, second],
    })
}

async fn change(b: &Bench, name: &str, spec: Value) -> Value {
    let path = b.here(&format!("services/{name}"));
    b.merge(&path, json!({"spec": spec})).await
}

async fn the_policy_decides_about_families(b: &Bench) {
    add(b, "default", json!({})).await;
    for policy in ["SingleStack", "PreferDualStack", "RequireDualStack", "Both"] {
        let spec = json!({"ipFamilyPolicy": policy});
        add(b, &policy.to_lowercase(), spec).await;
    }
}

async fn families_in_the_order_that_is_asked_for(b: &Bench) {
    for (name, policy, families) in [
        ("single-6", "SingleStack", json!(["IPv6"])),
        ("prefer-6", "PreferDualStack", json!(["IPv6"])),
        ("require-4", "RequireDualStack", json!(["IPv4"])),
        ("require-64", "RequireDualStack", json!(["IPv6", "IPv4"])),
        ("single-46", "SingleStack", json!(["IPv4", "IPv6"])),
    ] {
        let spec = json!({"ipFamilyPolicy": policy, "ipFamilies": families});
        add(b, name, spec).await;
    }
}

async fn families_without_a_policy(b: &Bench) {
    add(b, "six", json!({"ipFamilies": ["IPv6"]})).await;
    add(b, "both", json!({"ipFamilies": ["IPv4", "IPv6"]})).await;
}

async fn headless(b: &Bench) {
    add(b, "plain", json!({"clusterIP": "None"})).await;
    let selector = json!({"a": "b"});
    add(
        b,
        "selects",
        json!({"clusterIP": "None", "selector": selector}),
    )
    .await;
    for policy in ["SingleStack", "PreferDualStack", "RequireDualStack"] {
        let spec = json!({"clusterIP": "None", "selector": selector, "ipFamilyPolicy": policy});
        add(b, &policy.to_lowercase(), spec).await;
    }
}

async fn addresses_that_are_asked_for(b: &Bench) {
    add(b, "six", json!({"clusterIP": "fd00:10::61"})).await;
    let spec = both("10.0.0.62", "fd00:10::62");
    add(b, "both", spec.clone()).await;
    add(b, "taken", spec).await;
    let spec = json!({"ipFamilyPolicy": "RequireDualStack", "clusterIP": "fd00:10::63"});
    add(b, "first", spec).await;
    add(b, "elsewhere", json!({"clusterIP": "fd00:11::1"})).await;
    let mut spec = both("10.0.0.64", "fd00:10::64");
    spec["ipFamilyPolicy"] = Value::Null;
    add(b, "single", spec.clone()).await;
    spec["clusterIP"] = Value::Null;
    add(b, "only-many", spec).await;
}

async fn addresses_of_other_families(b: &Bench) {
    let spec = json!({"ipFamilies": ["IPv4"], "clusterIP": "fd00:10::65"});
    add(b, "other", spec).await;
}

async fn one_becomes_two_and_one_again(b: &Bench) {
    let policies = ["PreferDualStack", "RequireDualStack"];
    for policy in policies {
        let name = policy.to_lowercase();
        add(b, &name, json!({})).await;
        change(b, &name, json!({"ipFamilyPolicy": policy})).await;
        change(b, &name, json!({"selector": {"a": "b"}})).await;
    }
    for policy in policies {
        let single = json!({"ipFamilyPolicy": "SingleStack"});
        change(b, &policy.to_lowercase(), single).await;
    }
}

async fn the_second_goes_only_with_the_policy(b: &Bench) {
    let made = add(b, "s", json!({"ipFamilyPolicy": "RequireDualStack"})).await;
    let first = made["spec"]["clusterIPs"][0].clone();
    let patch = json!({"spec": {"clusterIPs": [first]}});
    let refused = b.unnoted_merge(&b.here("services/s"), patch).await;
    b.note("an address less".to_owned(), refused);
    change(b, "s", json!({"ipFamilies": ["IPv4"]})).await;
}

async fn what_is_first_stays(b: &Bench) {
    add(b, "s", both("10.0.0.70", "fd00:10::70")).await;
    change(b, "s", json!({"ipFamilies": ["IPv6", "IPv4"]})).await;
    let others = json!({"clusterIPs": ["10.0.0.70", "fd00:10::71"]});
    change(b, "s", others).await;
}

async fn a_balancer_of_both_families(b: &Bench) {
    let spec = json!({"type": "LoadBalancer", "ipFamilyPolicy": "PreferDualStack"});
    add(b, "s", spec).await;
    let ingress = json!([{"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}]);
    let status = json!({"status": {"loadBalancer": {"ingress": ingress}}});
    b.merge(&b.here("services/s/status"), status).await;
    change(b, "s", json!({"ipFamilyPolicy": "SingleStack"})).await;
}

async fn another_type_and_back(b: &Bench) {
    add(b, "s", json!({"ipFamilyPolicy": "PreferDualStack"})).await;
    let by_name = json!({"type": "ExternalName", "externalName": "a.example"});
    change(b, "s", by_name).await;
    change(b, "s", json!({"type": "ClusterIP", "externalName": null})).await;
}

/// A client that leaves addresses and families out means those that are there.
async fn replaced_as_a_whole(b: &Bench) {
    let path = b.here("services/s");
    let mut service = add(b, "s", json!({"ipFamilyPolicy": "PreferDualStack"})).await;
    service["metadata"]["resourceVersion"] = Value::Null;
    b.put(&path, service.clone()).await;
    let mut without = service.clone();
    for field in ["clusterIP", "clusterIPs", "ipFamilies"] {
        without["spec"][field] = Value::Null;
    }
    b.put(&path, without).await;
    service["spec"]["ipFamilyPolicy"] = json!("SingleStack");
    b.put(&path, service).await;
}

async fn ports_of_both_families(b: &Bench) {
    let spec = json!({"type": "NodePort", "ipFamilyPolicy": "RequireDualStack"});
    add(b, "nodes", spec).await;
    let spec = json!({
        "type": "LoadBalancer", "ipFamilyPolicy": "PreferDualStack",
        "externalTrafficPolicy": "Local", "loadBalancerSourceRanges": ["10.0.0.0/8", "fd00::/8"],
    });
    add(b, "local", spec).await;
    change(b, "local", json!({"externalTrafficPolicy": "Cluster"})).await;
    let plain = json!({"type": "ClusterIP", "ipFamilyPolicy": "SingleStack"});
    change(b, "nodes", plain).await;
}
