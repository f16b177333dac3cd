//! What a CCM made for a Service that is gone.

use cloudkeel_api::{BalancerRef, ResourceKind, ServiceRef};

use crate::lab::{Lab, context};

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

    for (case, annotations) in [("classic", &[][..]), ("network", &[("type", "nlb")])] {
        let mut spec = lab.service(&[80, 443], annotations);
        spec.balancer_ref.service = ServiceRef {
            namespace: "shop".to_owned(),
            name: case.to_owned(),
            uid: "abcdef01-2345-6789-abcd-ef0123456789".to_owned(),
        };
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
