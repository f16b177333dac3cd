//! Load balancers in what is DigitalOcean's own: disowned ones, renewed certificates, what cannot change, and refusals.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    AddressKind, CloudProvider as _, DesiredState, ErrorKind, Ingress, IpMode, OtherService,
    OtherServices, Outcome, ServiceRef, ServiceSearch,
};
use cloudkeel_emulator_digitalocean::{Fault, Operation};
use cloudkeel_provider_digitalocean::BalancerType;

use crate::lab::{ID, Lab, annotate, attempt, balancers, refused, settle, spec, unmet};

const DISOWN: &str = "service.kubernetes.io/do-loadbalancer-disown";

#[tokio::test(start_paused = true)]
async fn id_and_type_are_written_to_the_service_and_a_tag_to_the_load_balancer() {
    let lab = Lab::new(2);
    let provider = lab
        .provider_with(|config| {
            config.cluster_id = Some("prod".to_owned());
            config.vpc_id = Some("v-1".to_owned());
        })
        .await;
    let nodes = lab.nodes(&provider).await;
    let mut desired = spec(&[80], &nodes);
    settle(&provider, &mut desired).await;
    let balancer = lab.balancer();
    let annotations = &desired.balancer_ref.annotations;
    assert_eq!(annotations[ID], balancer.id);
    let uid = "3f0f2d2e-7d5c-4f0e-9c57-0d9f1a1b2c3d";
    let cluster = "11111111-2222-3333-4444-555555555555";
    let owner = format!("cloudkeel:{uid}:{cluster}:default:web");
    assert_eq!(balancer.tags, [owner.as_str(), "k8s:prod"]);
    assert_eq!(balancer.vpc_uuid, "v-1");
    let absent = DesiredState::Absent(&desired.balancer_ref);
    balancers(&provider).apply(absent).await.unwrap();
    assert_eq!(lab.cloud.tags(), ["k8s:prod"], "the owner tag goes with it");
}

#[tokio::test(start_paused = true)]
async fn a_disowned_load_balancer_stays_as_it_is_and_another_cluster_may_take_it() {
    let lab = Lab::new(2);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    let mut desired = spec(&[80], &nodes);
    settle(&provider, &mut desired).await;
    let before = lab.balancer();
    let ingress = desired.balancer_ref.ingress.clone();
    let mut changed = spec(&[443], &nodes[..1]);
    changed.balancer_ref = desired.balancer_ref.clone();
    annotate(&mut changed, &[(DISOWN, "true")]);
    let Outcome::Settled { status, .. } = attempt(&provider, &changed).await else {
        panic!("it does not settle");
    };
    assert_eq!(status.ingress, ingress);
    let after = lab.balancer();
    assert_eq!(
        (&after.forwarding_rules, &after.droplet_ids),
        (&before.forwarding_rules, &before.droplet_ids)
    );
    assert!(after.tags.is_empty(), "it has no owner any more");
    lab.cloud.reset_calls();
    attempt(&provider, &changed).await;
    let absent = DesiredState::Absent(&changed.balancer_ref);
    let Outcome::Gone { kept, .. } = balancers(&provider).apply(absent).await.unwrap() else {
        panic!("the Service does not go");
    };
    assert_eq!((kept.len(), lab.mutations()), (1, 0));
    let mut successor = spec(&[443], &nodes);
    successor.balancer_ref.service.uid = "99999999-0000-0000-0000-000000000000".to_owned();
    annotate(&mut successor, &[(ID, &before.id)]);
    settle(&provider, &mut successor).await;
    assert_eq!(lab.balancer().id, before.id);
    assert_eq!(lab.balancer().forwarding_rules[0].entry_port, 443);
}

/// A Service of another tenant, with the load balancer that a Go CCM made for it: without an owner tag.
struct Neighbour(ServiceRef, Vec<Ingress>);

impl ServiceSearch for Neighbour {
    fn find(&self, fits: &dyn Fn(OtherService<'_>) -> bool) -> Option<ServiceRef> {
        let other = OtherService {
            service: &self.0,
            annotations: &BTreeMap::new(),
            ingress: &self.1,
        };
        fits(other).then(|| self.0.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn an_untagged_load_balancer_of_another_service_is_neither_taken_nor_deleted() {
    let neighbour = ServiceRef {
        namespace: "b".to_owned(),
        name: "shop".to_owned(),
        uid: "99999999-0000-0000-0000-000000000000".to_owned(),
    };
    for (case, name, is_published) in [
        ("its name", neighbour.default_balancer_name(), false),
        ("its address", "shop".to_owned(), true),
    ] {
        let lab = Lab::new(1);
        let provider = lab.provider().await;
        let nodes = lab.nodes(&provider).await;
        let theirs = lab.cloud.add_load_balancer(&name, &[]);
        let before = lab.balancer();
        let ip = before.addresses()[0];
        let mode = IpMode::Vip;
        let ingress = Some(Ingress::Ip { ip, mode });
        let published = ingress.clone().filter(|_| is_published);
        let search = Neighbour(neighbour.clone(), published.into_iter().collect());
        let others = OtherServices::new(Arc::new(search));
        let mut desired = spec(&[443], &nodes);
        desired.balancer_ref.others = others;
        let mut adopting = desired.clone();
        adopting.balancer_ref.adopt = Some(theirs.clone());
        let why = refused(&provider, &adopting).await;
        assert!(why.contains("belongs to Service b/shop"), "{case}: {why}");
        // The Service goes, and points at the other's load balancer in every way.
        annotate(&mut desired, &[(ID, &theirs)]);
        desired.balancer_ref.ingress.extend(ingress);
        let absent = DesiredState::Absent(&desired.balancer_ref);
        balancers(&provider).apply(absent).await.unwrap();
        assert_eq!(lab.balancer(), before, "{case}");
        assert_eq!(lab.mutations(), 0, "{case}");
        // It comes back, and gets one of its own.
        settle(&provider, &mut desired).await;
        let own = desired.balancer_ref.annotations[ID].clone();
        assert_ne!(own, theirs, "{case}");
        let absent = DesiredState::Absent(&desired.balancer_ref);
        balancers(&provider).apply(absent).await.unwrap();
        assert_eq!(lab.balancer(), before, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_in_an_annotation_cannot_lead_to_another_path_of_the_api() {
    let lab = Lab::new(1);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    for id in [
        "../droplets/1",
        "..",
        "1?page=9",
        "a/b",
        "%2e%2e%2fdroplets",
    ] {
        lab.cloud.reset_calls();
        for key in [ID, "certificate-id"] {
            let mut asked = spec(&[443], &nodes);
            annotate(&mut asked, &[(key, id)]);
            let absent = DesiredState::Absent(&asked.balancer_ref);
            let _ = balancers(&provider).apply(absent).await;
            let _ = balancers(&provider)
                .plan(DesiredState::Present(&asked))
                .await;
        }
        assert_eq!(lab.mutations(), 0, "{id}");
        let calls = lab.cloud.call_log();
        let is_strange = |resource: &String| resource != id && !resource.starts_with("cloudkeel:");
        let mut resources = calls.iter().filter_map(|call| call.resource.as_ref());
        assert!(!resources.any(is_strange), "{id}: {calls:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_with_the_id_of_anothers_load_balancer_gets_its_own() {
    let lab = Lab::new(1);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    let mut first = spec(&[80], &nodes);
    settle(&provider, &mut first).await;
    let mut copy = spec(&[443], &nodes);
    copy.balancer_ref.service.uid = "99999999-0000-0000-0000-000000000000".to_owned();
    annotate(&mut copy, &[(ID, &lab.balancer().id)]);
    lab.cloud.reset_calls();
    settle(&provider, &mut copy).await;
    assert_eq!(lab.cloud.load_balancers().len(), 2, "it gets its own");
    let first_now = balancers(&provider)
        .plan(DesiredState::Present(&first))
        .await;
    assert!(
        first_now.unwrap().is_empty(),
        "the other one's is untouched"
    );
}

#[tokio::test(start_paused = true)]
async fn a_renewed_certificate_is_kept_and_its_id_written_to_the_service() {
    let lab = Lab::new(1);
    let regional = BalancerType::Regional;
    let provider = lab
        .provider_with(|config| config.balancer_type = regional)
        .await;
    let nodes = lab.nodes(&provider).await;
    let old = lab.cloud.add_certificate("shop", "lets_encrypt");
    let mut desired = spec(&[443], &nodes);
    annotate(&mut desired, &[("certificate-id", &old)]);
    settle(&provider, &mut desired).await;
    let new = lab.cloud.add_certificate("shop-2", "lets_encrypt");
    lab.cloud.remove_certificate(&old);
    let id = lab.balancer().id;
    lab.cloud.change_load_balancer(&id, |balancer| {
        balancer.forwarding_rules[0].certificate_id.clone_from(&new);
    });
    lab.cloud.reset_calls();
    settle(&provider, &mut desired).await;
    assert_eq!(lab.mutations(), 0, "the load balancer has it already");
    let key = format!("{}certificate-id", crate::lab::PREFIX);
    assert_eq!(desired.balancer_ref.annotations[&key], new);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_change_is_reported_and_keeps_nothing_else_back() {
    let lab = Lab::new(2);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    let mut desired = spec(&[80], &nodes[..1]);
    settle(&provider, &mut desired).await;
    let mut changed = spec(&[80, 443], &nodes);
    changed.balancer_ref = desired.balancer_ref;
    annotate(&mut changed, &[("network", "INTERNAL")]);
    let failures = unmet(&provider, &changed).await;
    assert_eq!(failures.kind, ErrorKind::Invalid);
    assert!(
        failures
            .message
            .contains("it is EXTERNAL, which cannot change"),
        "{failures:?}"
    );
    let balancer = lab.balancer();
    assert_eq!(
        (balancer.droplet_ids.len(), balancer.forwarding_rules.len()),
        (2, 2)
    );
}

#[tokio::test(start_paused = true)]
async fn a_wrong_annotation_or_a_refused_resize_keeps_no_node_waiting() {
    let lab = Lab::new(3);
    lab.cloud
        .change_settings(|settings| settings.resize_after = Duration::from_hours(1));
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    let mut desired = spec(&[80], &nodes[..1]);
    settle(&provider, &mut desired).await;
    let mut more = spec(&[80], &nodes[..2]);
    more.balancer_ref = desired.balancer_ref.clone();
    annotate(&mut more, &[("size-unit", "x")]);
    assert!(
        unmet(&provider, &more)
            .await
            .message
            .contains("size-unit: \"x\"")
    );
    assert_eq!(lab.balancer().droplet_ids.len(), 2);
    assert!(
        lab.reported()
            .iter()
            .any(|it| it.starts_with("LoadBalancerConfigError: "))
    );
    let mut bigger = spec(&[80, 443], &nodes);
    bigger.balancer_ref = desired.balancer_ref;
    annotate(&mut bigger, &[("size-unit", "2")]);
    assert!(
        unmet(&provider, &bigger)
            .await
            .message
            .contains("once per hour")
    );
    let balancer = lab.balancer();
    assert_eq!(
        (balancer.droplet_ids.len(), balancer.forwarding_rules.len()),
        (3, 2)
    );
    tokio::time::sleep(Duration::from_hours(1)).await;
    settle(&provider, &mut bigger).await;
    assert_eq!(lab.balancer().size_unit, 2);
}

#[tokio::test(start_paused = true)]
async fn nodes_that_packets_cannot_reach_are_no_targets() {
    let lab = Lab::new(2);
    let provider = lab.provider().await;
    let mut nodes = lab.nodes(&provider).await;
    nodes[0]
        .addresses
        .retain(|address| address.kind != AddressKind::ExternalIp);
    let mut desired = spec(&[80], &nodes);
    settle(&provider, &mut desired).await;
    assert_eq!(lab.balancer().droplet_ids.len(), 1);
    nodes[1]
        .addresses
        .retain(|address| address.kind != AddressKind::ExternalIp);
    let mut none = spec(&[80], &nodes);
    none.balancer_ref.service.uid = "99999999-0000-0000-0000-000000000000".to_owned();
    let why = refused(&provider, &none).await;
    assert!(why.contains("it has no public address"), "{why}");
    // Nodes that are being initialized have neither an ID nor an address yet, and join later.
    let mut waiting = nodes.clone();
    for node in &mut waiting {
        node.provider_id = None;
    }
    let mut early = spec(&[80], &waiting);
    early.balancer_ref.service.uid = "88888888-0000-0000-0000-000000000000".to_owned();
    settle(&provider, &mut early).await;
    assert!(
        lab.cloud
            .load_balancers()
            .last()
            .unwrap()
            .droplet_ids
            .is_empty()
    );
    annotate(&mut none, &[("type", "REGIONAL")]);
    settle(&provider, &mut none).await;
    assert_eq!(
        lab.cloud.load_balancers().last().unwrap().droplet_ids.len(),
        2
    );
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_at_work_is_waited_for_and_one_that_is_errored_is_reported() {
    let lab = Lab::new(2);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    lab.cloud
        .change_settings(|settings| settings.balancer_duration = Duration::from_mins(1));
    let mut desired = spec(&[80], &nodes[..1]);
    let Outcome::Pending { changes, .. } = attempt(&provider, &desired).await else {
        panic!("it is not new");
    };
    assert!(changes.is_empty(), "its ID is written when it is seen");
    settle(&provider, &mut desired).await;
    let mut more = spec(&[80, 443], &nodes);
    more.balancer_ref = desired.balancer_ref.clone();
    let outcome = attempt(&provider, &more).await;
    assert!(matches!(outcome, Outcome::Pending { .. }), "{outcome:?}");
    settle(&provider, &mut more).await;
    lab.cloud
        .change_settings(|settings| settings.balancer_duration = Duration::ZERO);
    let id = lab.balancer().id;
    lab.cloud
        .change_load_balancer(&id, |it| "errored".clone_into(&mut it.status));
    assert!(unmet(&provider, &more).await.message.contains("errored"));
}

#[tokio::test(start_paused = true)]
async fn a_token_that_may_not_read_its_account_is_good_for_droplets() {
    let lab = Lab::new(1);
    let denied = Fault::status(403);
    lab.cloud.faults().always(Operation::GetAccount, denied);
    let provider = lab.provider().await;
    assert!(provider.check().await.is_ok());
    lab.cloud
        .faults()
        .always(Operation::ListDroplets, Fault::status(403));
    let kind = provider.check().await.unwrap_err().kind();
    assert_eq!(kind, ErrorKind::Denied);
}

#[tokio::test(start_paused = true)]
async fn certificates_that_cannot_be_listed_are_no_mistake_of_the_service() {
    let lab = Lab::new(1);
    let regional = BalancerType::Regional;
    let provider = lab
        .provider_with(|config| config.balancer_type = regional)
        .await;
    let nodes = lab.nodes(&provider).await;
    lab.cloud
        .faults()
        .always(Operation::ListCertificates, Fault::status(503));
    let mut desired = spec(&[443], &nodes);
    annotate(&mut desired, &[("certificate-name", "shop")]);
    let applied = balancers(&provider).apply(DesiredState::Present(&desired));
    assert_eq!(applied.await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(lab.reported(), Vec::<String>::new());
    assert_eq!(lab.mutations(), 0);
}

#[tokio::test(start_paused = true)]
async fn nodes_of_an_internal_load_balancer_stay_whatever_its_annotation_says_later() {
    let lab = Lab::new(2);
    let provider = lab.provider().await;
    let mut nodes = lab.nodes(&provider).await;
    nodes[0]
        .addresses
        .retain(|address| address.kind != AddressKind::ExternalIp);
    let mut desired = spec(&[80], &nodes);
    annotate(&mut desired, &[("network", "INTERNAL")]);
    settle(&provider, &mut desired).await;
    assert_eq!(lab.balancer().droplet_ids.len(), 2);
    let key = format!("{}network", crate::lab::PREFIX);
    desired.balancer_ref.annotations.remove(&key);
    settle(&provider, &mut desired).await;
    annotate(&mut desired, &[("network", "internal")]);
    let failures = unmet(&provider, &desired).await;
    assert!(
        failures.message.contains("network: \"internal\""),
        "{failures:?}"
    );
    let balancer = lab.balancer();
    assert_eq!((balancer.droplet_ids.len(), lab.mutations()), (2, 1));
}
