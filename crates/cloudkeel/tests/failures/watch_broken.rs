//! Watches that are closed, and watches that stall.

use std::time::Duration;

use cloudkeel_testkit::control_plane::ControlPlane;

use crate::cluster::{count, join, wait_for_initialized};
use crate::harness::World;
use crate::proxy::Proxy;

/// A long lease: these tests are not about the lease.
const LONG_LEASE: [&str; 3] = [
    "--leader-elect-lease-duration=60s",
    "--leader-elect-renew-deadline=50s",
    "--leader-elect-retry-period=1s",
];

/// A test world whose managers reach the API server through this proxy.
async fn world_behind_proxy() -> (World, Proxy) {
    let plane = ControlPlane::shared().await;
    let proxy = Proxy::to(plane.url()).await;
    let access = |id: &str| {
        let file = plane.kubeconfig_for(id, &["system:masters"]);
        let text = std::fs::read_to_string(file).expect("the kubeconfig");
        text.replace(plane.url(), &proxy.url())
    };
    let world = World::reached_by(plane.client(), access).await;
    (world, proxy)
}

#[tokio::test]
async fn a_watch_that_is_cut_is_repaired_and_misses_nothing() {
    let (world, proxy) = world_behind_proxy().await;
    let mut manager = world.start(&LONG_LEASE);
    wait_for_initialized(&world, &join(&world).await.0).await;
    let holder = world.holder().await;
    proxy.cut();
    manager.wait_for_log("watch failed, retrying").await;
    let (meanwhile, _) = join(&world).await;
    proxy.restore();
    wait_for_initialized(&world, &meanwhile).await;
    manager.wait_for_log("watch recovered").await;
    assert_eq!(world.holder().await, holder, "the lease stays");
    for kind in ["Nodes", "Services"] {
        let times = count(
            &manager.log(),
            &format!("watch failed, retrying kind=\"{kind}\""),
        );
        assert!((1..10).contains(&times), "{kind}: {}", manager.log());
    }
    manager.signal("TERM");
    assert_eq!(manager.ended().await.code(), Some(0), "{}", manager.log());
}

#[tokio::test]
async fn a_watch_that_is_dead_is_given_up_and_one_that_is_quiet_is_not() {
    let (world, proxy) = world_behind_proxy().await;
    let flags = [&LONG_LEASE[..], &["--kube-api-read-timeout=8s"]].concat();
    let mut manager = world.start(&flags);
    wait_for_initialized(&world, &join(&world).await.0).await;
    let holder = world.holder().await;
    // No Service changes, and the API server need not send anything then.
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(
        count(&manager.log(), "watch failed"),
        0,
        "{}",
        manager.log()
    );
    proxy.stall();
    let (meanwhile, _) = join(&world).await;
    wait_for_initialized(&world, &meanwhile).await;
    manager.wait_for_log("watch failed, retrying").await;
    assert_eq!(world.holder().await, holder, "the lease stays");
    manager.signal("TERM");
    assert_eq!(manager.ended().await.code(), Some(0), "{}", manager.log());
}
