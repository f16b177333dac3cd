//! What the route controller reports in `/status`.

use cloudkeel_controllers::Controller as _;
use cloudkeel_controllers::report::RouteUse;
use cloudkeel_testkit::simulated_cloud::{Fault, Operation};

use crate::lab::{HOUR, Lab, SECOND};

/// The routes of the first cloud, as they are reported.
fn reported(lab: &Lab) -> Vec<(String, String, RouteUse)> {
    let routes = lab.controller().report().managed.routes.into_iter();
    let ours = routes.filter(|route| route.cloud == "first");
    ours.map(|route| (route.destination, route.to, route.role))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn routes_are_reported_without_a_call_and_one_that_failed_with_its_reason() {
    let lab = Lab::settled(2).await;
    let serving = |index: u8| {
        let network = format!("10.244.{index}.0/24");
        (network, format!("node-{index}"), RouteUse::Serving)
    };
    assert_eq!(reported(&lab), [serving(0), serving(1)]);
    assert_eq!(lab.cloud.calls().total(), 0, "no cloud was asked");

    lab.cloud
        .faults()
        .always(Operation::BatchRoutes, Fault::status(423));
    lab.join(2);
    lab.pass(SECOND * 3).await;
    let [(network, to, role), rest @ ..] = &reported(&lab)[..] else {
        panic!("no routes at all")
    };
    assert_eq!((network.as_str(), to.as_str()), ("10.244.2.0/24", "node-2"));
    assert!(
        matches!(role, RouteUse::Missing { why } if why.contains("423")),
        "{role:?}"
    );
    assert_eq!(rest, [serving(0), serving(1)]);
}

#[tokio::test(start_paused = true)]
async fn routes_that_cannot_be_listed_are_reported_as_they_were_with_the_reason() {
    let lab = Lab::settled(1).await;
    let before = reported(&lab);
    let faults = lab.cloud.faults();
    faults.always(Operation::ListRoutes, Fault::status(403));
    lab.pass(HOUR * 2).await;
    assert_eq!(reported(&lab), before);
    let waits_for = lab.controller().report().waits_for;
    assert_eq!(waits_for.len(), 1, "{waits_for:?}");
    let beginning = "cloud first: the routes cannot be listed: ";
    assert!(waits_for[0].starts_with(beginning), "{waits_for:?}");
    lab.cloud.faults().clear();
    lab.pass(HOUR * 2).await;
    assert!(lab.controller().report().waits_for.is_empty());
}
