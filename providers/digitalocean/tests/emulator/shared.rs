//! Load balancers that other clients use too.

use cloudkeel_api::{DesiredState, ErrorKind, Outcome, names};
use cloudkeel_emulator_digitalocean::{ForwardingRule, LoadBalancer};
use cloudkeel_provider_digitalocean::DigitalOceanProvider;

use crate::lab::{Lab, annotate, balancers, refused, settle, spec, unmet};

const EXCLUSIVE: &str = names::LB_EXCLUSIVE.name();
const SHARED_TAG: &str = "cloudkeel-shared";

/// The ports of the one load balancer, in their order.
fn ports(lab: &Lab) -> Vec<u16> {
    let rules = lab.balancer().forwarding_rules;
    let mut ports: Vec<_> = rules.iter().map(|rule| rule.entry_port).collect();
    ports.sort_unstable();
    ports
}

fn rule(port: u16) -> ForwardingRule {
    ForwardingRule {
        entry_protocol: "tcp".to_owned(),
        entry_port: port,
        target_protocol: "tcp".to_owned(),
        target_port: port,
        certificate_id: String::new(),
        tls_passthrough: false,
    }
}

/// A load balancer made by hand, with port 1 and these too.
fn made_by_hand(lab: &Lab, ports: &[u16]) -> String {
    let id = lab.cloud.add_load_balancer("by-hand", &[]);
    edit(lab, &id, |it| {
        it.forwarding_rules.extend(ports.iter().copied().map(rule));
    });
    id
}

fn edit(lab: &Lab, id: &str, change: impl FnOnce(&mut LoadBalancer)) {
    assert!(lab.cloud.change_load_balancer(id, change));
}

/// Deletes it. What was kept, if it is gone.
async fn delete(
    provider: &DigitalOceanProvider,
    desired: &cloudkeel_api::LoadBalancerSpec,
) -> Option<Vec<String>> {
    let absent = DesiredState::Absent(&desired.balancer_ref);
    match balancers(provider).apply(absent).await {
        Ok(Outcome::Gone { kept, .. }) => Some(kept),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn ports_and_droplets_of_others_stay_and_the_rest_is_not_changed() {
    let lab = Lab::new(3);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    let id = made_by_hand(&lab, &[22]);
    let foreign = lab.cloud.droplets()[2].id;
    edit(&lab, &id, |it| {
        it.droplet_ids = vec![foreign];
        it.health_check.port = 4_711;
    });
    let mut desired = spec(&[80, 443], &nodes[..1]);
    desired.balancer_ref.adopt = Some(id.clone());
    annotate(&mut desired, &[(EXCLUSIVE, "false")]);
    settle(&provider, &mut desired).await;
    let balancer = lab.balancer();
    assert_eq!(ports(&lab), [1, 22, 80, 443]);
    assert!(balancer.droplet_ids.contains(&foreign), "{balancer:?}");
    assert_eq!(balancer.droplet_ids.len(), 2);
    assert_eq!(balancer.name, "by-hand");
    assert_eq!(balancer.health_check.port, 4_711);
    assert!(balancer.tags.iter().any(|tag| tag == SHARED_TAG));
    lab.cloud.reset_calls();
    settle(&provider, &mut desired).await;
    assert_eq!(lab.mutations(), 0, "nothing differs");

    let mut fewer = spec(&[443], &nodes[1..2]);
    fewer.balancer_ref = desired.balancer_ref;
    settle(&provider, &mut fewer).await;
    assert_eq!(ports(&lab), [1, 22, 443]);
    assert_eq!(lab.balancer().droplet_ids.len(), 2);

    // The tag alone says that it is shared: what is the Service's goes, nothing else, however often it is asked for.
    fewer.balancer_ref.annotations.remove(EXCLUSIVE);
    let kept = delete(&provider, &fewer).await.expect("it is gone");
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(ports(&lab), [1, 22]);
    assert_eq!(lab.balancer().droplet_ids, [foreign]);
    lab.cloud.reset_calls();
    assert!(delete(&provider, &fewer).await.is_some());
    assert_eq!((lab.balancer().id, lab.mutations()), (id, 0));
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_of_the_whole_and_a_tag_of_droplets_are_refused() {
    for (annotation, value, what) in [
        ("name", "front", "another name"),
        (
            "redirect-http-to-https",
            "true",
            "another redirect to HTTPS",
        ),
        ("size-unit", "3", "another size"),
        ("allow-rules", "ip:192.0.2.1", "another client rules"),
        ("hostname", "x.example", ""),
    ] {
        let lab = Lab::new(1);
        let provider = lab.provider().await;
        let nodes = lab.nodes(&provider).await;
        let id = made_by_hand(&lab, &[]);
        let mut desired = spec(&[80], &nodes);
        desired.balancer_ref.adopt = Some(id.clone());
        annotate(&mut desired, &[(EXCLUSIVE, "false"), (annotation, value)]);
        if what.is_empty() {
            settle(&provider, &mut desired).await;
            continue;
        }
        let why = refused(&provider, &desired).await;
        assert!(why.contains(what), "{annotation}: {why}");
        assert_eq!(lab.mutations(), 0, "{annotation}");
        let key = format!("{}{annotation}", crate::lab::PREFIX);
        desired.balancer_ref.annotations.remove(&key);
        edit(&lab, &id, |it| "workers".clone_into(&mut it.tag));
        let why = refused(&provider, &desired).await;
        assert!(why.contains("another tag of droplets"), "{why}");
        assert_eq!(lab.mutations(), 0, "{annotation}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_port_of_another_client_is_named_and_the_service_may_take_the_load_balancer_whole() {
    let lab = Lab::new(1);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    let id = made_by_hand(&lab, &[80]);
    let mut desired = spec(&[80, 443], &nodes);
    desired.balancer_ref.adopt = Some(id);
    annotate(&mut desired, &[(EXCLUSIVE, "false")]);
    // What is the Service's is written down first.
    let applied = balancers(&provider).apply(DesiredState::Present(&desired));
    let Outcome::Pending { changes, .. } = applied.await.unwrap() else {
        panic!("nothing is written down");
    };
    assert_eq!(lab.mutations(), 0);
    crate::lab::write(&mut desired, &changes);
    let failures = unmet(&provider, &desired).await;
    assert_eq!(failures.kind, ErrorKind::Invalid);
    assert!(failures.message.contains("80/TCP"), "{failures:?}");
    assert_eq!(ports(&lab), [1, 80, 443]);
    annotate(&mut desired, &[(EXCLUSIVE, "true")]);
    settle(&provider, &mut desired).await;
    assert_eq!(ports(&lab), [80, 443]);
    assert!(!lab.balancer().tags.iter().any(|tag| tag == SHARED_TAG));
    let own_parts = names::LB_OWN_PARTS.name();
    assert!(!desired.balancer_ref.annotations.contains_key(own_parts));
    assert_eq!(delete(&provider, &desired).await, Some(Vec::new()));
    assert!(lab.cloud.load_balancers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_adopted_load_balancer_keeps_a_port_if_all_are_the_services() {
    let lab = Lab::new(1);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    let id = made_by_hand(&lab, &[]);
    let mut desired = spec(&[80], &nodes);
    desired.balancer_ref.adopt = Some(id.clone());
    annotate(&mut desired, &[(EXCLUSIVE, "false")]);
    settle(&provider, &mut desired).await;
    edit(&lab, &id, |it| {
        it.forwarding_rules.retain(|rule| rule.entry_port == 80);
    });
    assert!(delete(&provider, &desired).await.is_some());
    assert_eq!(ports(&lab), [80], "the API wants one");
    assert!(lab.balancer().droplet_ids.is_empty());
}
