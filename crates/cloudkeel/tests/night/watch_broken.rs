//! Watches that break in the middle, and watches on which nothing is heard any more.

use std::time::Duration;

use cloudkeel_testkit::control_plane::ControlPlane;

use crate::harness::World;
use crate::people::{count, initialised, join};
use crate::wire::Wire;

/// This is not about the lease.
const PATIENT: [&str; 3] = [
    "--leader-elect-lease-duration=60s",
    "--leader-elect-renew-deadline=50s",
    "--leader-elect-retry-period=1s",
];

/// A world whose managers reach the API server by this wire.
async fn world_behind_a_wire() -> (World, Wire) {
    let plane = ControlPlane::shared().await;
    let wire = Wire::to(plane.url()).await;
    let access = |id: &str| {
        let file = plane.kubeconfig_for(id, &["system:masters"]);
        let text = std::fs::read_to_string(file).expect("the kubeconfig");
        text.replace(plane.url(), &wire.url())
    };
    let world = World::reached_by(plane.client(), access).await;
    (world, wire)
}

#[tokio::test]
async fn a_watch_that_is_cut_is_repaired_and_misses_nothing() {
    let (world, wire) = world_behind_a_wire().await;
    let mut manager = world.start(&PATIENT);
    initialised(&world, &join(&world).await.0).await;
    let holder = world.holder().await;
    wire.cut();
    manager.says("watch broken; it is being repaired").await;
    let (meanwhile, _) = join(&world).await;
    wire.mend();
    initialised(&world, &meanwhile).await;
    manager.says("watch works again").await;
    assert_eq!(world.holder().await, holder, "the lease stays");
    for kind in ["Nodes", "Services"] {
        let times = count(
            &manager.log(),
            &format!("watch broken; it is being repaired of=\"{kind}\""),
        );
        assert!((1..10).contains(&times), "{kind}: {}", manager.log());
    }
    manager.signal("TERM");
    assert_eq!(manager.ended().await.code(), Some(0), "{}", manager.log());
}

#[tokio::test]
async fn a_watch_that_is_dead_is_given_up_and_one_that_is_quiet_is_not() {
    let (world, wire) = world_behind_a_wire().await;
    let flags = [&PATIENT[..], &["--kube-api-read-timeout=8s"]].concat();
    let mut manager = world.start(&flags);
    initialised(&world, &join(&world).await.0).await;
    let holder = world.holder().await;
    // Nobody changes a Service, and no API server promises to say anything then.
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(
        count(&manager.log(), "watch broken"),
        0,
        "{}",
        manager.log()
    );
    wire.go_dead();
    let (meanwhile, _) = join(&world).await;
    initialised(&world, &meanwhile).await;
    manager.says("watch broken; it is being repaired").await;
    assert_eq!(world.holder().await, holder, "the lease stays");
    manager.signal("TERM");
    assert_eq!(manager.ended().await.code(), Some(0), "{}", manager.log());
}
