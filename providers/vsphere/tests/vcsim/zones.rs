//! Zones and regions from tags.

use cloudkeel_api::Instance;
use serde_json::json;

use crate::lab::{Lab, instances, node, present};

async fn located(lab: &Lab) -> Instance {
    let vm = lab.vcenters[0]
        .add_vm("node-1", &["10.0.0.1"])
        .await
        .unwrap();
    let provider = lab.connect().await;
    present(
        instances(&provider)
            .find(&node("node-1", &vm.uuid), None)
            .await,
    )
}

async fn lab() -> Lab {
    let mut lab = Lab::new(1).await;
    lab.settings["labels"] = json!({"zone": "k8s-zone", "region": "k8s-region"});
    lab
}

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn tags_name_zone_and_region_wherever_they_are_attached() {
    for (case, zone_at, region_at) in [
        (
            "both on the host",
            "/DC0/host/DC0_C0/DC0_C0_H0",
            "/DC0/host/DC0_C0/DC0_C0_H0",
        ),
        ("cluster and datacenter", "/DC0/host/DC0_C0", "/DC0"),
        ("the root folder", "/DC0/host", "/"),
        (
            "the resource pool",
            "/DC0/host/DC0_C0/Resources",
            "/DC0/host/DC0_C0/Resources",
        ),
        ("the folder of machines", "/DC0/vm", "/DC0"),
    ] {
        let lab = lab().await;
        let vcenter = &lab.vcenters[0];
        vcenter
            .tag("other", "noise", "/DC0/host/DC0_C0")
            .await
            .unwrap();
        vcenter.tag("k8s-zone", "z1", zone_at).await.unwrap();
        vcenter.tag("k8s-region", "r1", region_at).await.unwrap();
        let found = located(&lab).await;
        assert_eq!(found.not_ready, None, "{case}");
        let places = (found.zone.as_deref(), found.region.as_deref());
        assert_eq!(places, (Some("z1"), Some("r1")), "{case}");
    }
}

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn one_tag_alone_holds_the_node_back_and_without_settings_tags_mean_nothing() {
    let mut lab = lab().await;
    lab.vcenters[0]
        .tag("k8s-region", "r1", "/DC0")
        .await
        .unwrap();
    let why = located(&lab).await.not_ready.unwrap();
    assert!(
        why.contains("k8s-zone") && why.contains("k8s-region"),
        "{why}"
    );
    lab.settings["labels"] = json!({"region": "k8s-region"});
    let found = located(&lab).await;
    assert_eq!(
        (found.zone, found.region, found.not_ready),
        (None, None, None)
    );
}
