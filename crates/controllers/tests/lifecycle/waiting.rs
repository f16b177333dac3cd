//! A newcomer that has to wait says why, once.

use cloudkeel_testkit::simulated_cloud::{
    Fault, FaultMatch, MachineSpec, Settings, SimulatedCloud,
};

use crate::lab::{Lab, MINUTE, SECOND, TEN_MINUTES};
use crate::support::gate::What;

type Trouble = fn(&SimulatedCloud);

#[tokio::test(start_paused = true)]
async fn a_node_that_waits_longer_than_ten_seconds_gets_one_event() {
    let cases: [(&str, Trouble, &str); 4] = [
        ("no machine", |_| {}, "no machine"),
        (
            "two machines",
            |cloud| {
                let twin = |_| MachineSpec::named("newcomer");
                cloud.add_machines(2, twin).unwrap();
            },
            "2 machines",
        ),
        (
            "a credential that may not look",
            |cloud| {
                cloud.faults().always(FaultMatch::any(), Fault::status(403));
            },
            "403",
        ),
        (
            "too many calls",
            |cloud| {
                let throttled = Fault::too_many_calls(Some(40));
                cloud.faults().always(FaultMatch::any(), throttled);
            },
            "request budget",
        ),
    ];
    for (case, trouble, why) in cases {
        let lab = Lab::empty(Settings::default()).await;
        trouble(&lab.cloud);
        lab.add_node("newcomer", "False");
        lab.pass(SECOND * 9).await;
        assert_eq!(lab.api.events("InitializationDelayed"), [], "{case}");
        lab.pass(MINUTE * 2).await;
        let events = lab.api.events("InitializationDelayed");
        assert_eq!(events.len(), 1, "{case}: {events:?}");
        assert!(events[0].message.contains(why), "{case}: {events:?}");
        lab.pass(TEN_MINUTES).await;
        let events = lab.api.events("InitializationDelayed");
        assert_eq!(
            (events.len(), events[0].count),
            (1, 1),
            "{case}: {events:?}"
        );
        assert_eq!(lab.written(What::Write), 0, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_ready_node_whose_machine_is_gone_is_reported_once_and_kept() {
    let lab = Lab::settled(10).await;
    lab.destroy(3);
    lab.pass(MINUTE * 60).await;
    let events = lab.api.events("MachineNotListed");
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(
        (events[0].about.as_str(), events[0].count),
        (lab.name(3), 1)
    );
    assert_eq!(lab.written(What::Delete), 0);
}

#[tokio::test(start_paused = true)]
async fn the_only_node_of_a_cluster_is_kept_with_an_event() {
    let lab = Lab::settled(1).await;
    lab.lose([0]);
    lab.pass(TEN_MINUTES * 3).await;
    assert_eq!(lab.written(What::Delete), 0);
    assert!(lab.are_deletions_stopped());
    assert_eq!(lab.api.events("NodeKept").len(), 1);
}
