//! Load balancers from their making to their end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    DesiredState, ErrorKind, Ingress, IpMode, OtherService, OtherServices, Outcome, ServiceRef,
    ServiceSearch,
};
use cloudkeel_emulator_hetzner::{
    Destination, Fault, HetznerCloud, Operation, Permission, ServerSpec, Settings,
};
use serde_json::json;

use crate::lab::{
    Lab, annotate, attempt, balancer_ref, balancers, drift, planned, refused, settle, spec,
};

#[tokio::test(start_paused = true)]
async fn a_service_gets_its_balancer_and_a_second_pass_changes_nothing() {
    let lab = Lab::new(3);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    let spec = spec(&[80, 443], &nodes);
    let Outcome::Settled { status, done, .. } = settle(&provider, &spec).await else {
        panic!("settled");
    };
    let made = lab.balancer();
    assert_eq!(made.name, "au1");
    assert_eq!(made.location.name, "fsn1");
    assert_eq!(made.labels["hcloud-ccm/service-uid"], "u-1");
    assert_eq!(made.labels["cloudkeel.dev/cluster-uid"], "c-1");
    let ports: Vec<_> = made.services.iter().map(|s| s.listen_port).collect();
    assert_eq!(ports, [80, 443]);
    assert_eq!(made.services[0].destination_port, 30_080);
    assert_eq!(made.services[0].health_check.protocol, "tcp");
    assert_eq!(made.services[0].health_check.port, 30_080);
    assert_eq!(made.targets.len(), 3);
    assert_eq!(done.len(), 1, "{done}");
    let public = made.public.unwrap();
    let vip = |ip| Ingress::Ip {
        ip,
        mode: IpMode::Vip,
    };
    assert_eq!(
        status.ingress,
        [vip(public.ipv4.into()), vip(public.ipv6.into())]
    );

    lab.cloud.reset_calls();
    let Outcome::Settled { done, .. } = settle(&provider, &spec).await else {
        panic!("settled");
    };
    assert!(done.is_empty(), "{done}");
    assert_eq!(lab.cloud.calls().total(), 1, "one read");

    // A restart, or another leader, knows nothing and changes nothing.
    let restarted = lab.provider().await;
    settle(&restarted, &spec).await;
    assert_eq!(lab.mutations(), 0);
}

#[tokio::test(start_paused = true)]
async fn ports_and_nodes_that_come_and_go_are_followed() {
    let lab = Lab::new(4);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    settle(&provider, &spec(&[80, 443], &nodes[..3])).await;
    lab.cloud.reset_calls();
    settle(&provider, &spec(&[443, 8080], &nodes[1..])).await;
    let have = lab.balancer();
    let ports: Vec<_> = have.services.iter().map(|s| s.listen_port).collect();
    assert_eq!(ports, [443, 8080]);
    let wanted: Vec<_> = lab.cloud.servers()[1..]
        .iter()
        .map(|server| Destination::Server(server.id))
        .collect();
    let mut targets: Vec<_> = have.targets.into_iter().map(|target| target.to).collect();
    targets.sort_by_key(|to| match to {
        Destination::Server(id) => *id,
        Destination::LabelSelector(_) | Destination::Ip(_) => 0,
    });
    assert_eq!(targets, wanted);
    assert_eq!(lab.mutations(), 4, "only what differs");
}

#[tokio::test(start_paused = true)]
async fn what_another_client_changed_is_repaired() {
    let lab = Lab::new(2);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    let spec = spec(&[80], &nodes);
    settle(&provider, &spec).await;
    let before = lab.balancer();
    let change = |cloud: &HetznerCloud| {
        cloud
            .change_load_balancer(before.id, |balancer| {
                balancer.services[0].destination_port = 1;
                balancer.targets.remove(0);
            })
            .unwrap();
    };
    change(&lab.cloud);
    assert_eq!(drift(&provider, std::slice::from_ref(&spec)).await, [2]);
    lab.cloud.reset_calls();
    settle(&provider, &spec).await;
    let after = lab.balancer();
    assert_eq!(after.services, before.services);
    assert_eq!(after.targets.len(), 2);
    assert_eq!(lab.mutations(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_survey_of_many_services_costs_one_list() {
    let lab = Lab::new(1);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    let mut specs = Vec::new();
    for number in 0..5 {
        let mut spec = spec(&[80], &nodes);
        spec.balancer_ref.service.uid = format!("u-{number}");
        settle(&provider, &spec).await;
        specs.push(spec);
    }
    lab.cloud.reset_calls();
    assert_eq!(drift(&provider, &specs).await, [0; 5]);
    assert_eq!(lab.cloud.calls().total(), 1);
    let owned = balancers(&provider).owned().await.unwrap();
    assert_eq!(owned.len(), 5);
    assert_eq!(owned[0].service.as_ref().unwrap().name, "web");
}

#[tokio::test(start_paused = true)]
async fn at_the_limit_of_its_type_a_balancer_keeps_its_targets_and_the_service_says_so() {
    let lab = Lab::new(30);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    let desired = spec(&[80], &nodes);
    let limit = "the load balancer accepts at most 25 targets: 5 Nodes get no traffic from it";
    let first = attempt(&provider, &desired).await;
    assert_eq!(refused(&first).kind, ErrorKind::LimitExceeded);
    assert_eq!(refused(&first).message, limit);
    let before = lab.balancer().targets;
    assert_eq!(before.len(), 25);
    assert_eq!(lab.reasons(), ["MaxTargetsReached"]);
    lab.cloud.reset_calls();
    let restarted = lab.provider().await;
    for provider in [&provider, &restarted] {
        let again = attempt(provider, &desired).await;
        assert_eq!(refused(&again).message, limit);
        assert!(again.done().is_empty(), "{again:?}");
    }
    assert_eq!(lab.mutations(), 0);
    assert_eq!(lab.balancer().targets, before);

    // With a bigger type there is room for all.
    let mut bigger = desired;
    annotate(&mut bigger, &[("type", "lb21")]);
    settle(&provider, &bigger).await;
    assert_eq!(lab.balancer().targets.len(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_refused_in_one_way_is_tried_in_the_other_at_once() {
    let lab = Lab::new(1);
    lab.cloud.add_server(ServerSpec::named("outside")).unwrap();
    let provider = lab.networked().await;
    let nodes = lab.nodes(&provider).await;
    let mut desired = spec(&[80], &nodes);
    annotate(&mut desired, &[("use-private-ip", "true")]);
    attempt(&provider, &desired).await;
    assert_eq!(lab.balancer().targets.len(), 1);
    assert_eq!(lab.reasons(), ["TargetRefused"]);
    annotate(&mut desired, &[("use-private-ip", "false")]);
    settle(&provider, &desired).await;
    assert_eq!(lab.balancer().targets.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_was_full_takes_a_target_for_each_that_goes() {
    let lab = Lab::new(3);
    let provider = lab.networked().await;
    let nodes = lab.nodes(&provider).await;
    settle(&provider, &spec(&[80], &nodes[..2])).await;
    let fill = || async {
        let full = Fault::code("resource_limit_exceeded");
        lab.cloud.faults().once(Operation::AddTarget, full);
        attempt(&provider, &spec(&[80], &nodes)).await;
        assert_eq!(lab.balancer().targets.len(), 2, "there is no more room");
    };
    fill().await;
    let mut desired = spec(&[80], &nodes[1..]);
    settle(&provider, &desired).await;
    assert_eq!(lab.balancer().targets.len(), 2, "one for another");
    fill().await;
    annotate(&mut desired, &[("use-private-ip", "true")]);
    settle(&provider, &desired).await;
    let targets = lab.balancer().targets;
    let private = targets.iter().filter(|target| target.use_private_ip);
    assert_eq!(private.count(), 2, "the same in another way");
}

#[tokio::test(start_paused = true)]
async fn a_balancer_goes_with_its_service() {
    let lab = Lab::new(1);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    settle(&provider, &spec(&[80], &nodes)).await;
    let balancer_ref = balancer_ref("u-1");
    let gone = || async {
        balancers(&provider)
            .apply(DesiredState::Absent(&balancer_ref))
            .await
            .unwrap()
    };
    let Outcome::Gone {
        done, acknowledged, ..
    } = gone().await
    else {
        panic!("gone");
    };
    assert!(done.len() == 1 && acknowledged);
    assert_eq!(lab.cloud.load_balancers(), []);
    lab.cloud.reset_calls();
    assert!(matches!(gone().await, Outcome::Gone { .. }));
    assert_eq!(lab.mutations(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_protected_balancer_stays() {
    let lab = Lab::new(0);
    let provider = lab.provider().await;
    settle(&provider, &spec(&[80], &[])).await;
    let id = lab.balancer().id;
    let protect = |balancer: &mut cloudkeel_emulator_hetzner::LoadBalancer| {
        balancer.protected = true;
    };
    lab.cloud.change_load_balancer(id, protect).unwrap();
    lab.cloud.reset_calls();
    let balancer_ref = balancer_ref("u-1");
    let outcome = balancers(&provider)
        .apply(DesiredState::Absent(&balancer_ref))
        .await;
    assert!(matches!(outcome, Ok(Outcome::Gone { .. })));
    assert_eq!(lab.mutations(), 0);
    assert_eq!(lab.reasons(), ["LoadBalancerProtected"]);
    assert_eq!(lab.balancer().id, id);
}

#[tokio::test(start_paused = true)]
async fn a_foreign_balancer_of_our_name_is_left_alone_until_it_is_given_to_us() {
    let lab = Lab::new(1);
    let body = json!({"name": "web", "load_balancer_type": "lb11", "location": "fsn1"});
    let made = lab.post("/load_balancers", body).await;
    let id = made["load_balancer"]["id"].as_u64().unwrap();
    let service = json!({"protocol": "tcp", "listen_port": 9, "destination_port": 9});
    lab.post(
        &format!("/load_balancers/{id}/actions/add_service"),
        service,
    )
    .await;
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    let mut desired = spec(&[80], &nodes);
    annotate(&mut desired, &[("name", "web")]);
    let error = balancers(&provider)
        .apply(DesiredState::Present(&desired))
        .await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotOurs);
    assert_eq!(lab.mutations(), 0);

    desired.balancer_ref.adopt = Some(id.to_string());
    settle(&provider, &desired).await;
    let have = lab.balancer();
    assert_eq!((have.id, have.services.len()), (id, 1));
    assert_eq!(have.services[0].listen_port, 80);
    assert_eq!(have.labels["hcloud-ccm/service-uid"], "u-1");
    desired.balancer_ref.adopt = None;
    lab.cloud.reset_calls();
    settle(&provider, &desired).await;
    assert_eq!(lab.mutations(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_go_ccms_way_of_adopting_is_a_setting() {
    let lab = Lab::new(0);
    let labels = json!({"hcloud-ccm/service-uid": "stale", "team": "a"});
    let body = json!({
        "name": "web", "load_balancer_type": "lb11", "location": "fsn1", "labels": labels,
    });
    lab.post("/load_balancers", body).await;
    let provider = lab
        .provider_with(|config| config.load_balancers.adopt_by_name = true)
        .await;
    let mut desired = spec(&[80], &[]);
    annotate(&mut desired, &[("name", "web")]);
    settle(&provider, &desired).await;
    let have = lab.balancer();
    assert_eq!(have.labels["hcloud-ccm/service-uid"], "u-1");
    assert_eq!(have.labels["team"], "a");
}

/// Another Service of the cluster, which publishes nothing yet.
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
async fn the_balancer_of_a_service_that_is_there_is_not_adopted_by_its_name() {
    let lab = Lab::new(0);
    let labels = json!({"hcloud-ccm/service-uid": "u-2"});
    let body = json!({
        "name": "web", "load_balancer_type": "lb11", "location": "fsn1", "labels": labels,
    });
    lab.post("/load_balancers", body).await;
    let before = lab.balancer();
    let provider = lab
        .provider_with(|config| config.load_balancers.adopt_by_name = true)
        .await;
    let mut desired = spec(&[80], &[]);
    annotate(&mut desired, &[("name", "web")]);
    let neighbour = Neighbour(balancer_ref("u-2").service);
    desired.balancer_ref.others = OtherServices::new(Arc::new(neighbour));
    let applied = balancers(&provider).apply(DesiredState::Present(&desired));
    let error = applied.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotOurs);
    assert!(
        error.message().contains("belongs to Service default/web"),
        "{error}"
    );
    assert_eq!(lab.balancer().labels, before.labels);
    assert_eq!(lab.mutations(), 0);
}

#[tokio::test(start_paused = true)]
async fn slow_work_is_waited_for_without_holding_anybody_up() {
    let settings = Settings {
        action_duration: Duration::from_secs(40),
        ..Settings::default()
    };
    let lab = Lab::with(1, settings);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    let desired = spec(&[80], &nodes);
    let outcome = balancers(&provider)
        .apply(DesiredState::Present(&desired))
        .await;
    let Ok(Outcome::Pending { why, .. }) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(why.contains("create load balancer"), "{why}");
    settle(&provider, &desired).await;
    assert_eq!(planned(&provider, &desired).await, "nothing to do");
    assert_eq!(lab.cloud.calls().of(Operation::CreateLoadBalancer), 1);
    assert_eq!(lab.balancer().targets.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_token_of_another_project_sees_no_balancer_and_takes_none_away() {
    let lab = Lab::new(1);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    settle(&provider, &spec(&[80], &nodes)).await;
    lab.cloud.add_project("other");
    let token = HetznerCloud::TOKEN;
    lab.cloud.grant(token, "other", Permission::ReadOnly);
    let balancer_ref = balancer_ref("u-1");
    let outcome = balancers(&provider)
        .apply(DesiredState::Absent(&balancer_ref))
        .await;
    assert!(outcome.is_ok());
    assert_eq!(lab.cloud.load_balancers().len(), 1);
}
