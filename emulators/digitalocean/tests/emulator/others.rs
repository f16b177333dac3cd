//! Tags, firewalls, certificates and the metadata service.

use cloudkeel_emulator_digitalocean::Operation;
use http::Method;
use serde_json::{Value, json};

use crate::support::{balancer, lab};

#[tokio::test(start_paused = true)]
async fn tags_are_made_put_on_taken_off_and_deleted() {
    let (cloud, rest) = lab(0);
    let made = rest.post("/v2/load_balancers", balancer("web")).await;
    let id = made.body["load_balancer"]["id"].clone();
    let on = json!({"resources": [{"resource_id": id, "resource_type": "load_balancer"}]});
    let path = "/v2/tags/k8s:c/resources";
    assert_eq!(
        rest.post(path, on.clone()).await.status,
        404,
        "there is no such tag"
    );
    let created = rest.post("/v2/tags", json!({"name": "k8s:c"})).await;
    assert_eq!(created.status, 201);
    assert_eq!(rest.post(path, on.clone()).await.status, 204);
    assert_eq!(cloud.load_balancers()[0].tags, ["k8s:c"]);
    let tag = rest.get("/v2/tags/k8s:c").await.body["tag"].clone();
    assert_eq!(tag["resources"]["count"], 1);
    assert_eq!(
        rest.call(Method::DELETE, path, on.clone()).await.status,
        204
    );
    assert!(cloud.load_balancers()[0].tags.is_empty());
    rest.post(path, on).await;
    assert_eq!(rest.delete("/v2/tags/k8s:c").await.status, 204);
    assert!(cloud.load_balancers()[0].tags.is_empty() && cloud.tags().is_empty());
    assert_eq!(rest.delete("/v2/tags/k8s:c").await.status, 404);
    let missing = json!({"resources": [{"resource_id": "x", "resource_type": "load_balancer"}]});
    rest.post("/v2/tags", json!({"name": "k8s:c"})).await;
    assert_eq!(rest.post(path, missing).await.status, 404);
    assert_eq!(
        rest.post("/v2/tags", json!({"name": "a b"})).await.status,
        422
    );
}

fn firewall(inbound: &Value) -> Value {
    json!({"name": "open", "inbound_rules": inbound, "tags": ["workers"]})
}

fn rule(protocol: &str, ports: &str) -> Value {
    json!([{"protocol": protocol, "ports": ports, "sources": {"addresses": ["0.0.0.0/0"]}}])
}

#[tokio::test(start_paused = true)]
async fn firewalls_show_zero_for_all_ports_and_have_one_name_each() {
    let (cloud, rest) = lab(0);
    let made = rest
        .post("/v2/firewalls", firewall(&rule("tcp", "all")))
        .await;
    assert_eq!(made.status, 202);
    let made = &made.body["firewall"];
    assert_eq!(made["inbound_rules"][0]["ports"], "0");
    let again = rest
        .post("/v2/firewalls", firewall(&rule("tcp", "80")))
        .await;
    assert_eq!(again.said(), (409, "conflict", "duplicate name"));
    let one = format!("/v2/firewalls/{}", made["id"].as_str().unwrap());
    for (protocol, ports) in [("tcp", "0"), ("tcp", ""), ("tcp", "http"), ("sctp", "80")] {
        let refused = rest.put(&one, firewall(&rule(protocol, ports))).await;
        assert_eq!(refused.status, 422, "{protocol} {ports}");
    }
    assert_eq!(
        rest.put(&one, firewall(&rule("udp", "53-54"))).await.status,
        200
    );
    assert_eq!(cloud.firewalls()[0].inbound_rules[0]["ports"], "53-54");
    assert_eq!(
        rest.put("/v2/firewalls/x", firewall(&json!([])))
            .await
            .status,
        404
    );
    assert_eq!(rest.get("/v2/firewalls").await.body["meta"]["total"], 1);
}

#[tokio::test(start_paused = true)]
async fn certificates_are_found_by_name_and_id() {
    let (cloud, rest) = lab(0);
    let id = cloud.add_certificate("shop", "lets_encrypt");
    cloud.add_certificate("blog", "custom");
    let named = rest
        .get("/v2/certificates?name=shop&page=1&per_page=1")
        .await;
    assert_eq!(named.body["certificates"][0]["id"], json!(id));
    let one = rest.get(&format!("/v2/certificates/{id}")).await;
    assert_eq!(one.body["certificate"]["type"], "lets_encrypt");
    cloud.remove_certificate(&id);
    assert_eq!(
        rest.get(&format!("/v2/certificates/{id}")).await.status,
        404
    );
}

#[tokio::test(start_paused = true)]
async fn the_metadata_service_knows_its_region_and_control_counts_calls() {
    let (cloud, rest) = lab(0);
    let region = rest.get("/metadata/v1/region").await;
    assert_eq!(region.status, 200);
    assert_eq!(cloud.calls().of(Operation::GetOwnRegion), 1);
    let counted = rest.get("/control/calls").await;
    assert_eq!(counted.body["byOperation"]["get-own-region"], 1);
    assert_eq!(
        rest.get("/v2/regions").await.body["regions"][0]["slug"],
        "nyc3"
    );
}
