//! How often the cloud is asked.

use cloudkeel_testkit::simulated_cloud::{Fault, Operation, Settings};
use serde_json::json;

use crate::lab::{HOUR, Lab, MINUTE, SECOND};

#[tokio::test(start_paused = true)]
async fn many_nodes_that_join_over_a_minute_cost_a_list_every_few_seconds() {
    let lab = Lab::settled(1).await;
    for index in 10..70 {
        lab.join(index);
        lab.pass(SECOND).await;
    }
    lab.pass(MINUTE).await;
    assert_eq!(lab.routes().len(), 61);
    let looks = lab.observed().len();
    assert!((10..=14).contains(&looks), "{looks}");
}

#[tokio::test(start_paused = true)]
async fn heartbeats_and_foreign_nodes_cost_nothing() {
    let lab = Lab::settled(1).await;
    let machine = lab.machine(8);
    let foreign = json!({"spec": {"providerID": "hcloud://8"}});
    lab.add_node(&machine, &foreign);
    for round in 0..30 {
        let patch = json!({"metadata": {"annotations": {"round": round.to_string()}}});
        lab.api.world().change("node-0", &patch);
        // The network of a Node never changes, so the foreign one comes again with another.
        lab.api.world().remove("node-8");
        let network = format!("10.244.{}.0/24", 100 + round);
        let spec = json!({"providerID": "hcloud://8", "podCIDRs": [network]});
        lab.add_node(&machine, &json!({"spec": spec}));
        lab.pass(SECOND).await;
    }
    assert_eq!(lab.cloud.calls().total(), 0);
    assert_eq!(lab.written(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cloud_without_nodes_is_not_asked() {
    let lab = Lab::new().await;
    lab.pass(HOUR * 3).await;
    assert_eq!(lab.cloud.calls().total(), 0);
    assert_eq!(lab.observed(), []);
}

#[tokio::test(start_paused = true)]
async fn a_shorter_period_is_honoured() {
    let lab = Lab::with(Settings::default(), |settings| {
        settings.resync = SECOND * 30;
    })
    .await;
    lab.join(1);
    lab.pass(MINUTE).await;
    lab.forget();
    lab.pass(MINUTE * 10).await;
    let lists = lab.cloud.calls().of(Operation::ListRoutes);
    assert!((18..=23).contains(&lists), "{lists}");
    assert_eq!(lab.written(), 0);
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honoured() {
    let lab = Lab::settled(1).await;
    lab.cloud
        .faults()
        .always(Operation::ListRoutes, Fault::too_many_calls(Some(120)));
    lab.join(2);
    lab.pass(SECOND * 3).await;
    let asked = lab.cloud.calls().total();
    assert!(asked >= 1);
    lab.cloud.faults().clear();
    for index in 3..8 {
        // News do not make it impatient.
        lab.join(index);
        lab.pass(SECOND * 20).await;
    }
    assert_eq!(lab.cloud.calls().total(), asked);
    lab.pass(MINUTE).await;
    assert_eq!(lab.routes().len(), 7);
}
