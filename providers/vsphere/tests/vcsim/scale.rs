//! How many calls a large vCenter costs.

use cloudkeel_api::{Priority, Shared};
use cloudkeel_testkit::conformance::FaultInjector as _;
use serde_json::json;

use crate::lab::{Lab, instances, node};

const MACHINES: usize = 1000;

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn a_thousand_machines_cost_two_calls_and_not_one_search_each() {
    let mut lab = Lab::new(1).await;
    lab.settings["labels"] = json!({"zone": "z", "region": "r"});
    lab.vcenters[0].tag("z", "a", "/DC0").await.unwrap();
    lab.vcenters[0].tag("r", "b", "/DC0").await.unwrap();
    let mut nodes = Vec::new();
    for number in 0..MACHINES {
        let name = format!("node-{number}");
        let ip = format!("10.1.{}.{}", number / 250, number % 250 + 1);
        let vm = lab.vcenters[0].add_vm(&name, &[&ip]).await.unwrap();
        nodes.push(node(&name, &vm.uuid));
    }
    let provider = lab.connect().await;
    let count = |work: &str, calls: u64| println!("{work}: {calls} calls");

    let before = lab.interposer.call_totals().total;
    let list = instances(&provider).list().await.unwrap();
    let calls = lab.interposer.call_totals().total - before;
    count("a list of 1,000 machines", calls);
    assert_eq!(list.instances().len(), MACHINES);
    assert_eq!(calls, 2, "two pages, the first with the datacenter");

    let before = lab.interposer.call_totals().total;
    let all = list.instances().cloned().collect();
    let described = instances(&provider).describe(all, Priority::Normal).await;
    let calls = lab.interposer.call_totals().total - before;
    count("everything that 1,000 Nodes are given", calls);
    assert!(described.iter().all(Result::is_ok));
    assert!(calls <= 15, "{calls}");

    let before = lab.interposer.call_totals().total;
    let found = instances(&provider)
        .find_many(&Shared::of_each(&nodes), None)
        .await;
    let calls = lab.interposer.call_totals().total - before;
    count("looking all of them up by ID", calls);
    assert_eq!(found.len(), MACHINES);
    assert!(calls <= 20, "{calls}");

    let before = lab.interposer.call_totals().total;
    for node in nodes.iter().take(10) {
        instances(&provider).find(node, None).await;
    }
    let calls = lab.interposer.call_totals().total - before;
    count("ten searches one by one", calls);
    assert!(calls <= 40, "{calls}");
}
