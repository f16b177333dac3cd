//! Labels and addresses that the API server would refuse: only the bad one is left out, and the Node says so.

use cloudkeel_testkit::simulated_cloud::wire::MachineAddress;
use cloudkeel_testkit::simulated_cloud::{MachineSpec, Settings};
use serde_json::Value;
use tokio::time::Duration;

use crate::lab::{Lab, MINUTE};
use crate::support::gate::What;

const ZONE: &str = "topology.kubernetes.io/zone";
const TYPE: &str = "node.kubernetes.io/instance-type";
const EXTRA: &str = "local.cloudkeel.dev/rack";

/// Between two lists of the cloud, with their jitter.
const UNTIL_THE_NEXT_LIST: Duration = Duration::from_mins(11);

fn labels(lab: &Lab, node: &str) -> Value {
    lab.api.world().node(node).unwrap()["metadata"]["labels"].clone()
}

/// The cases: what the machine is like, which label is refused, with which value.
fn cases() -> Vec<(&'static str, MachineSpec, &'static str, String)> {
    let machine = || MachineSpec::named("node").label(EXTRA, "r1");
    let long = "z".repeat(64);
    let bad_key = "local.cloudkeel.dev/-rack";
    vec![
        ("zone", machine().zone("rack 7"), ZONE, "rack 7".into()),
        ("long zone", machine().zone(&long), ZONE, long.clone()),
        ("zone", machine().zone("zürich"), ZONE, "zürich".into()),
        ("type", machine().size("big (8)"), TYPE, "big (8)".into()),
        ("end", machine().size("big-"), TYPE, "big-".into()),
        ("extra", machine().label(EXTRA, "a/b"), EXTRA, "a/b".into()),
        ("key", machine().label(bad_key, "v"), bad_key, "v".into()),
    ]
}

#[tokio::test(start_paused = true)]
async fn one_bad_label_costs_only_itself() {
    for (case, machine, key, value) in cases() {
        let lab = Lab::empty(Settings::default()).await;
        lab.cloud.add_machine(machine).unwrap();
        lab.add_node("node", "True");
        lab.pass(MINUTE).await;
        let case = format!("{case} {key}={value}");
        assert!(!lab.is_tainted("node"), "{case}");
        let written = labels(&lab, "node");
        assert_eq!(written[key], Value::Null, "{case}: {written}");
        let others = [ZONE, TYPE, EXTRA]
            .into_iter()
            .filter(|other| *other != key);
        for other in others {
            assert!(written[other].is_string(), "{case}: {written}");
        }
        lab.pass(UNTIL_THE_NEXT_LIST * 3).await;
        let events = lab.api.events("InvalidLabel");
        assert_eq!(events.len(), 1, "{case}: {events:?}");
        assert_eq!((events[0].about.as_str(), events[0].count), ("node", 1));
        let message = &events[0].message;
        for part in [key, value.as_str(), "63"] {
            assert!(message.contains(part), "{case}: {message}");
        }
        let refused = lab.api.writes().iter().any(|write| write.status == 422);
        assert!(!refused, "{case}: {:?}", lab.api.writes());
    }
}

#[tokio::test(start_paused = true)]
async fn a_type_that_is_no_label_is_not_followed_and_everything_else_is() {
    let lab = Lab::settled(3).await;
    let (before, id) = (labels(&lab, lab.name(1)), lab.machines[1].id);
    lab.cloud.resize(id, "big (8)").unwrap();
    let addresses = vec![MachineAddress::private([10, 9, 9, 9].into())];
    lab.cloud.set_addresses(id, addresses).unwrap();
    lab.pass(UNTIL_THE_NEXT_LIST * 3).await;
    assert_eq!(labels(&lab, lab.name(1)), before);
    let writes = lab.api.writes();
    let writes: Vec<_> = writes.iter().map(|w| (w.what, w.status)).collect();
    assert_eq!(writes, [(What::WriteStatus, 200)]);
    let events = lab.api.events("InvalidLabel");
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].message.contains("big (8)"), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn an_address_that_the_cloud_gives_twice_is_written_once() {
    let lab = Lab::empty(Settings::default()).await;
    let ip = [10, 9, 9, 9].into();
    let machine = MachineSpec::named("node").private(ip).private(ip);
    lab.cloud.add_machine(machine).unwrap();
    lab.add_node("node", "True");
    lab.pass(MINUTE).await;
    assert!(!lab.is_tainted("node"));
    let node = lab.api.world().node("node").unwrap();
    let addresses = node["status"]["addresses"].as_array().unwrap();
    let same = addresses.iter().filter(|a| a["address"] == "10.9.9.9");
    assert_eq!(same.count(), 1, "{addresses:?}");
}
