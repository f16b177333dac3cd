//! Nodes with a provider ID that no cloud can read: it can never be changed, so they are left alone and say so.

use cloudkeel_testkit::simulated_cloud::MachineSpec;
use serde_json::json;

use crate::lab::{Lab, TEN_MINUTES, tainted};

const CASES: [(&str, &str); 6] = [
    ("a space", "local://demo/4 2"),
    ("a space at the end", "local://demo/1 "),
    ("a tab", "local://demo/1\t"),
    ("only a space", " "),
    ("no cloud", "nonsense"),
    ("no number", "local://demo/x"),
];

#[tokio::test(start_paused = true)]
async fn a_new_node_with_a_malformed_id_is_left_alone_with_one_event() {
    for (case, id) in CASES {
        let lab = Lab::settled(3).await;
        lab.cloud
            .add_machine(MachineSpec::named("stranger"))
            .unwrap();
        let mut node = tainted();
        node["spec"]["providerID"] = json!(id);
        lab.add_node_with("stranger", "Unknown", &node);
        lab.pass(TEN_MINUTES / 2).await;
        assert_eq!(lab.api.writes(), [], "{case}");
        assert_eq!(lab.cloud.calls().total(), 0, "{case}");
        lab.pass(TEN_MINUTES * 3).await;
        assert_eq!(lab.api.writes(), [], "{case}");
        let events = lab.api.events("InitializationDelayed");
        assert_eq!(events.len(), 1, "{case}: {events:?}");
        assert_eq!((events[0].about.as_str(), events[0].count), ("stranger", 1));
        assert!(events[0].message.contains(id.trim()), "{case}: {events:?}");
        let [waits, _] = lab.reports();
        assert_eq!(waits.waits_for.len(), 1, "{case}: {waits:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_node_whose_id_cannot_be_read_is_kept() {
    for (case, id) in CASES {
        let lab = Lab::settled(3).await;
        let node = json!({"spec": {"providerID": id}});
        lab.add_node_with("stranger", "Unknown", &node);
        lab.pass(TEN_MINUTES * 3).await;
        assert_eq!(lab.api.writes(), [], "{case}");
        assert_eq!(lab.api.events("InitializationDelayed"), [], "{case}");
    }
}
