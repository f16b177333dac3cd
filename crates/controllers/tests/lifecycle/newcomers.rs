//! Machines that the cloud shows late.

use cloudkeel_testkit::simulated_cloud::LocalId;
use cloudkeel_testkit::simulated_cloud::{Consistency, MachineSpec, SimulatedCloud};
use serde_json::json;
use tokio::time::Duration;

use crate::lab::{Lab, MINUTE, SECOND, TEN_MINUTES, tainted};
use crate::support::gate::What;

const fn lag(list: Duration, get: Duration) -> Consistency {
    Consistency { list, get }
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_that_the_cloud_shows_late_is_initialised_and_not_deleted() {
    let cases = [
        ("lists lag", lag(MINUTE * 3, Duration::ZERO)),
        ("single reads lag", lag(Duration::ZERO, MINUTE * 3)),
        ("both lag a little", Consistency::both(SECOND * 20)),
        ("both lag a lot", Consistency::both(MINUTE * 4)),
    ];
    for (case, consistency) in cases {
        for knows_its_id in [false, true] {
            let lab = Lab::settled(10).await;
            lab.pass(TEN_MINUTES).await;
            lab.api.forget();
            lab.cloud.change_settings(|s| s.consistency = consistency);
            let machine = lab
                .cloud
                .add_machine(MachineSpec::named("newcomer"))
                .unwrap();
            let mut node = tainted();
            if knows_its_id {
                let id = LocalId::new(SimulatedCloud::PROJECT, machine.id).provider_id();
                node["spec"]["providerID"] = json!(id);
            }
            lab.add_new_node_with("newcomer", "False", &node);
            lab.pass(TEN_MINUTES).await;
            let case = format!("{case}, knows its ID: {knows_its_id}");
            assert_eq!(lab.written(What::Delete), 0, "{case}");
            assert!(!lab.is_tainted("newcomer"), "{case}");
            lab.pass(TEN_MINUTES).await;
            assert_eq!(lab.written(What::Delete), 0, "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_never_initialised_is_left_alone_for_the_grace_period() {
    let lab = Lab::settled(10).await;
    let mut node = tainted();
    let id = LocalId::new(SimulatedCloud::PROJECT, 9999).provider_id();
    node["spec"]["providerID"] = json!(id);
    lab.add_new_node_with("newcomer", "False", &node);
    lab.pass(SECOND * 299).await;
    assert_eq!(lab.written(What::Delete), 0);
    lab.pass(MINUTE * 3).await;
    assert_eq!(lab.deleted(), ["newcomer"]);
}
