//! What a CCM made for a Service that is gone, and what balancers leave for others.

use cloudkeel_api::{BalancerRef, LoadBalancerSpec, ResourceKind, ServiceRef};
use serde_json::json;

use crate::lab::{Lab, context};

const NLB: (&str, &str) = ("type", "nlb");

/// What another Service asks for.
fn other_service(lab: &Lab, name: &str, annotations: &[(&str, &str)]) -> LoadBalancerSpec {
    let mut spec = lab.service(&[80, 443], annotations);
    spec.balancer_ref.service = ServiceRef {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        uid: "abcdef01-2345-6789-abcd-ef0123456789".to_owned(),
    };
    spec
}

/// Only the tags and the name tell whose it is: there is no Service any more whose annotations could say which kind.
#[tokio::test(start_paused = true)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn balancers_of_either_kind_are_found_and_removed_with_their_parts() {
    let lab = Lab::with_nodes(1).await;
    let balancers = lab.provider.load_balancers().unwrap();
    let kept = lab.service(&[80], &[]);
    lab.settle(&kept).await;
    let before = lab.moto.state().await.unwrap();
    let own = balancers.owned().await.unwrap();

    for (case, annotations) in [("classic", &[][..]), ("network", &[NLB])] {
        let mut spec = other_service(&lab, case, annotations);
        lab.settle(&spec).await;
        let owned = balancers.owned().await.unwrap();
        let new: Vec<_> = owned.into_iter().filter(|it| !own.contains(it)).collect();
        let services: Vec<_> = new.iter().filter_map(|it| it.service.clone()).collect();
        let service = services.first().unwrap().clone();
        assert!(services.iter().all(|it| *it == service), "{new:?}");
        assert!(new.iter().any(|it| it.kind == ResourceKind::LoadBalancer));
        assert_eq!(service.to_string(), format!("shop/{case}"));
        assert!(service.has_uid(&spec.balancer_ref.service.uid));

        spec.balancer_ref = BalancerRef::of(context().cluster, service);
        lab.remove(&spec).await;
        assert_eq!(balancers.owned().await.unwrap(), own, "{case}");
        assert_eq!(lab.moto.state().await.unwrap(), before, "{case}");
    }
}

/// Its tags name the Service, but not by its UID.
#[tokio::test(start_paused = true)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn target_groups_of_a_lost_balancer_are_found_and_removed_and_no_others() {
    let lab = Lab::with_nodes(1).await;
    let balancers = lab.provider.load_balancers().unwrap();
    let kept = lab.service(&[80], &[NLB]);
    lab.settle(&kept).await;
    let mut before = lab.moto.state().await.unwrap();
    let own = balancers.owned().await.unwrap();
    let mut spec = other_service(&lab, "network", &[NLB]);
    let lost = lab.settle(&spec).await.id.unwrap();
    lab.moto
        .change("lose_balancer", &json!([lost]))
        .await
        .unwrap();

    let owned = balancers.owned().await.unwrap();
    let new: Vec<_> = owned.into_iter().filter(|it| !own.contains(it)).collect();
    assert_eq!(new.len(), 2, "one for each port: {new:?}");
    let service = new[0].service.clone().unwrap();
    for group in &new {
        assert_eq!(group.kind, ResourceKind::TargetGroup);
        assert_eq!(group.service.as_ref(), Some(&service));
    }
    assert_eq!(
        (service.to_string().as_str(), service.uid.as_str()),
        ("shop/network", "")
    );
    // While the Service is there, they are its own.
    assert!(service.is(&spec.balancer_ref.service));

    spec.balancer_ref = BalancerRef::of(context().cluster, service);
    let ((), calls, _) = lab.counted(lab.remove(&spec)).await;
    assert!(calls <= 6, "two lists, two tags, two deletions: {calls}");
    assert_eq!(balancers.owned().await.unwrap(), own);
    let mut after = lab.moto.state().await.unwrap();
    // The rules of Nodes have the name of the balancer, which is not known any more.
    for state in [&mut before, &mut after] {
        state["node_rules"] = json!(null);
    }
    assert_eq!(after, before);
}

#[tokio::test(start_paused = true)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn a_group_of_nodes_without_the_clusters_tag_is_closed_again() {
    let lab = Lab::with_nodes(1).await;
    lab.moto.change("untag_nodes", &json!([])).await.unwrap();
    let before = lab.moto.state().await.unwrap();
    for annotations in [&[][..], &[NLB]] {
        let spec = lab.service(&[80], annotations);
        lab.settle(&spec).await;
        lab.remove(&spec).await;
        assert_eq!(lab.moto.state().await.unwrap(), before, "{annotations:?}");
    }
}

/// Its group has the name of the one that the port gets, and another check.
#[tokio::test(start_paused = true)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn a_lost_balancer_is_made_again_beside_its_target_groups() {
    let lab = Lab::with_nodes(1).await;
    let before = lab.moto.state().await.unwrap();
    let check = |path| {
        [
            NLB,
            ("healthcheck-protocol", "http"),
            ("healthcheck-path", path),
        ]
    };
    let lost = lab.settle(&lab.service(&[80], &check("/old"))).await;
    let lost = json!([lost.id.unwrap()]);
    lab.moto.change("lose_balancer", &lost).await.unwrap();
    let spec = lab.service(&[80], &check("/new"));
    lab.settle(&spec).await;
    let after = lab.moto.state().await.unwrap();
    assert_eq!(after["network"][0]["listeners"][0]["check"]["path"], "/new");
    assert_eq!(after["target_groups"], json!([]));
    lab.remove(&spec).await;
    assert_eq!(lab.moto.state().await.unwrap(), before);
}

#[tokio::test(start_paused = true)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn a_balancer_leaves_the_checks_of_others_open_and_has_its_own_from_its_subnets() {
    let lab = Lab::with_nodes(1).await;
    let before = lab.moto.state().await.unwrap();
    let subnet = lab.moto.facts["subnets"]["public"][0].as_str().unwrap();
    let shared = [NLB, ("healthcheck-port", "10256")];
    let narrow = |mut spec: LoadBalancerSpec| {
        spec.source_ranges = vec!["192.0.2.0/24".parse().unwrap()];
        spec
    };
    let first = narrow(lab.service(&[80], &shared));
    let second = narrow(other_service(&lab, "second", &shared));
    let placed = [&shared[..], &[("subnets", subnet)]].concat();
    lab.settle(&narrow(other_service(&lab, "second", &placed)))
        .await;
    // It stays in its subnet, where a new one would be in three.
    let (_, _, mutating) = lab.counted(lab.settle(&second)).await;
    assert_eq!(mutating, 0);
    lab.settle(&first).await;
    lab.remove(&first).await;
    let (_, _, mutating) = lab.counted(lab.settle(&second)).await;
    assert_eq!(
        mutating, 0,
        "what the second checks was closed with the first"
    );
    lab.remove(&second).await;
    assert_eq!(lab.moto.state().await.unwrap(), before);
}
