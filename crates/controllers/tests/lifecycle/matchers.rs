//! How machines of Nodes without a provider ID of the cloud are found, as the configuration says, and what Nodes with a
//! foreign one get.

use cloudkeel_controllers::clouds::NodeMatcher::{self, InternalIp, Name, ShortName};
use cloudkeel_testkit::simulated_cloud::MachineSpec;
use serde_json::{Value, json};
use tokio::time::Duration;

use crate::lab::{Lab, MINUTE, TEN_MINUTES, tainted};
use crate::support::gate::What;

const ZONE: &str = "topology.kubernetes.io/zone";
const TYPE: &str = "node.kubernetes.io/instance-type";

/// Between two lists of the cloud, with their jitter.
const UNTIL_THE_NEXT_LIST: Duration = Duration::from_mins(11);

fn machine(name: &str, last: u8) -> MachineSpec {
    MachineSpec::named(name)
        .zone("zone-a")
        .size("medium")
        .private([10, 0, 7, last].into())
}

/// A Node that waits to be initialised, and whose kubelet reports this address.
fn waiting(ip: &str) -> Value {
    let mut node = tainted();
    node["status"]["addresses"] = json!([{"type": "InternalIP", "address": ip}]);
    node
}

fn provider_id(lab: &Lab, node: &str) -> Value {
    lab.api.world().node(node).unwrap()["spec"]["providerID"].clone()
}

#[tokio::test(start_paused = true)]
async fn the_configured_order_finds_the_machine_of_a_node() {
    for (case, matchers, expected) in [
        ("as the provider does", &[][..], Some(0)),
        ("by address, then by name", &[InternalIp, Name], Some(1)),
        ("by name, then by address", &[Name, InternalIp], Some(0)),
        ("by nothing that is there", &[NodeMatcher::Fqdn], None),
    ] {
        let lab = Lab::matching(None, matchers).await;
        let named = lab.cloud.add_machine(machine("web", 1)).unwrap();
        let addressed = lab.cloud.add_machine(machine("other", 2)).unwrap();
        lab.add_node_with("web", "True", &waiting("10.0.7.2"));
        lab.pass(MINUTE).await;
        let found = [named, addressed].map(|machine| format!("local://demo/{}", machine.id));
        let expected = expected.map(|index: usize| found[index].clone());
        assert_eq!(provider_id(&lab, "web"), json!(expected), "{case}");
        assert_eq!(lab.is_tainted("web"), expected.is_none(), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn several_machines_are_no_match_and_are_named() {
    let lab = Lab::matching(None, &[ShortName]).await;
    for (name, last) in [("web.one", 1), ("web.two", 2)] {
        lab.cloud.add_machine(machine(name, last)).unwrap();
    }
    lab.add_node_with("web", "True", &tainted());
    lab.pass(MINUTE).await;
    assert_eq!(provider_id(&lab, "web"), Value::Null);
    let events = lab.api.events("InitializationDelayed");
    let message = &events.first().expect("an Event").message;
    for part in ["nodes.match (shortName)", "(web.one)", "(web.two)"] {
        assert!(message.contains(part), "{message}");
    }
    // One of them goes, and the other is the Node's.
    let machines = lab.cloud.machines();
    lab.cloud.destroy(machines[0].id).unwrap();
    lab.pass(TEN_MINUTES).await;
    let expected = format!("local://demo/{}", machines[1].id);
    assert_eq!(provider_id(&lab, "web"), expected);
}

#[tokio::test(start_paused = true)]
async fn a_node_with_a_foreign_id_gets_the_labels_that_it_lacks_only_if_it_is_given_to_the_cloud() {
    for (case, labels, is_given) in [
        ("by a selector", json!({"site": "here", TYPE: "k3s"}), true),
        (
            "by a label",
            json!({"cloudkeel.dev/cloud": "local", TYPE: "k3s"}),
            true,
        ),
        (
            "to another cloud",
            json!({"cloudkeel.dev/cloud": "x", TYPE: "k3s"}),
            false,
        ),
        ("to none", json!({TYPE: "k3s"}), false),
    ] {
        let lab = Lab::matching(Some("site=here"), &[]).await;
        let machine = lab.cloud.add_machine(machine("web", 1)).unwrap();
        let node = json!({"metadata": {"labels": labels}, "spec": {"providerID": "k3s://web"}});
        lab.add_node_with("web", "True", &node);
        lab.pass(UNTIL_THE_NEXT_LIST).await;
        let now = lab.api.world().node("web").unwrap();
        let zone = is_given.then_some("zone-a");
        assert_eq!(now["metadata"]["labels"][ZONE], json!(zone), "{case}");
        assert_eq!(now["metadata"]["labels"][TYPE], "k3s", "{case}: it stays");
        assert_eq!(now["spec"]["providerID"], "k3s://web", "{case}");
        let writes = usize::from(is_given);
        assert_eq!(
            lab.api.writes().len(),
            writes,
            "{case}: {:?}",
            lab.api.writes()
        );
        // It is another manager's, and never deleted here.
        lab.cloud.destroy(machine.id).unwrap();
        lab.set_ready_of("web", "Unknown");
        lab.pass(TEN_MINUTES * 2).await;
        assert_eq!(lab.written(What::Delete), 0, "{case}");
        assert_eq!(lab.api.world().nodes(), ["web"], "{case}");
    }
}
