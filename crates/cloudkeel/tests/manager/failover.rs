//! Who leads, and what happens when that changes.

use std::time::Instant;

use cloudkeel_testkit::cluster::{NodeBuilder, eventually, unique_name, wait_for_node};
use cloudkeel_testkit::either_api::EitherApi;
use cloudkeel_testkit::on_both_apis;
use cloudkeel_testkit::simulated_cloud::{Fault, FaultMatch, Operation};

use crate::harness::{DEADLINE, World};

on_both_apis![
    a_leader_that_is_asked_to_end_hands_over_and_exits_with_success,
    a_leader_that_is_killed_is_followed_when_its_lease_expires,
    a_standby_that_is_asked_to_end_exits_with_success,
    a_second_signal_does_not_wait_for_work_in_flight,
    a_leader_whose_lease_is_taken_stops_and_exits_with_failure,
    controllers_that_move_run_under_a_lease_of_their_own,
];

const SHORT_LEASE: [&str; 3] = [
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=500ms",
];

async fn join(world: &World) -> String {
    let name = unique_name("node");
    world.machine(&name);
    let (key, value) = world.label();
    let node = NodeBuilder::new(&name).label(key, value);
    node.create(&world.client).await.expect("the node is made");
    name
}

async fn wait_for_initialized(world: &World, name: &str) {
    wait_for_node(&world.client, name, DEADLINE, |node| {
        node.spec
            .as_ref()
            .is_some_and(|spec| spec.provider_id.is_some())
    })
    .await;
}

async fn a_leader_that_is_asked_to_end_hands_over_and_exits_with_success(on: EitherApi) {
    let world = World::on(on).await;
    let mut first = world.start(&[]);
    let holder = world.another_holder("").await;
    let second = world.start(&[]);
    second.wait_for_log("starting cloudkeel").await;
    wait_for_initialized(&world, &join(&world).await).await;

    let asked = Instant::now();
    first.signal("TERM");
    world.another_holder(&holder).await;
    eprintln!(
        "hand-over with release: {:.2} s",
        asked.elapsed().as_secs_f64()
    );
    assert_eq!(first.ended().await.code(), Some(0), "{}", first.log());
    wait_for_initialized(&world, &join(&world).await).await;
}

async fn a_leader_that_is_killed_is_followed_when_its_lease_expires(on: EitherApi) {
    let world = World::on(on).await;
    let mut first = world.start(&SHORT_LEASE);
    let holder = world.another_holder("").await;
    let second = world.start(&SHORT_LEASE);
    second.wait_for_log("starting cloudkeel").await;
    let under_way: Vec<_> = futures::future::join_all((0..10).map(|_| join(&world))).await;
    let killed = Instant::now();
    first.signal("KILL");
    let after: Vec<_> = futures::future::join_all((0..10).map(|_| join(&world))).await;
    world.another_holder(&holder).await;
    eprintln!(
        "fail-over of a 4 s lease: {:.2} s",
        killed.elapsed().as_secs_f64()
    );
    for name in under_way.iter().chain(&after) {
        wait_for_initialized(&world, name).await;
        let synced = world.events_about(name, "Synced").await;
        let times: i32 = synced.iter().filter_map(|event| event.count).sum();
        assert!(times <= 1, "{name} was initialised {times} times");
    }
    assert_eq!(first.ended().await.code(), None, "it was killed");
}

async fn a_standby_that_is_asked_to_end_exits_with_success(on: EitherApi) {
    let world = World::on(on).await;
    let _leader = world.start(&[]);
    let _ = world.another_holder("").await;
    let mut standby = world.start(&[]);
    standby.wait_for_log("starting cloudkeel").await;
    standby.signal("INT");
    assert_eq!(standby.ended().await.code(), Some(0), "{}", standby.log());
}

async fn a_second_signal_does_not_wait_for_work_in_flight(on: EitherApi) {
    let world = World::on(on).await;
    let mut manager = world.start(&["--shutdown-grace-period=10m"]);
    manager.wait_for_log("controller started").await;
    world
        .cloud
        .faults()
        .always(FaultMatch::any(), Fault::NoAnswer);
    // Only Nodes are looked for in the list of machines.
    let look_ups = || world.cloud.calls().of(Operation::ListMachines);
    let before = look_ups();
    join(&world).await;
    eventually("a look-up that hangs", DEADLINE, || async {
        look_ups() > before
    })
    .await;
    manager.signal("TERM");
    manager
        .wait_for_log("received shutdown signal, stopping")
        .await;
    manager.signal("TERM");
    assert_eq!(manager.ended().await.code(), Some(130), "{}", manager.log());
}

async fn a_leader_whose_lease_is_taken_stops_and_exits_with_failure(on: EitherApi) {
    use k8s_openapi::api::coordination::v1::Lease;
    use kube::Api;
    use kube::api::{Patch, PatchParams};

    let world = World::on(on).await;
    let mut manager = world.start(&SHORT_LEASE);
    let _ = world.another_holder("").await;
    manager.wait_for_log("controller started").await;
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), "kube-system");
    let taken = serde_json::json!({"spec": {"holderIdentity": "another-replica"}});
    leases
        .patch(world.lease(), &PatchParams::default(), &Patch::Merge(taken))
        .await
        .expect("the lease is patched");
    assert_eq!(manager.ended().await.code(), Some(1), "{}", manager.log());
    assert!(
        manager.log().contains("leaderelection lost"),
        "{}",
        manager.log()
    );
    assert_eq!(
        world.holder().await,
        "another-replica",
        "not given back: it was not ours any more"
    );
}

async fn controllers_that_move_run_under_a_lease_of_their_own(on: EitherApi) {
    use k8s_openapi::api::coordination::v1::Lease;
    use kube::Api;

    let world = World::on(on).await;
    let shared = format!("{}-migration", world.lease());
    let file = world.write_file(
        "migration.yaml",
        &format!(
            "apiVersion: controllermanager.config.k8s.io/v1\nkind: LeaderMigrationConfiguration\n\
             leaderName: {shared}\ncontrollerLeaders:\n- {{name: cloud-node-lifecycle, component: \"*\"}}\n"
        ),
    );
    let flag = format!("--leader-migration-config={}", file.display());
    let mut manager = world.start(&["--enable-leader-migration", &flag]);
    let holder = world.another_holder("").await;
    manager
        .wait_for_log("controller=cloud-node-lifecycle-controller")
        .await;
    manager
        .wait_for_log("controller=cloud-node-controller")
        .await;
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), "kube-system");
    let lease = leases
        .get(&shared)
        .await
        .expect("the shared lease is there");
    let second = lease.spec.and_then(|spec| spec.holder_identity);
    assert_eq!(second, Some(holder), "one identity holds both");
    manager.signal("TERM");
    assert_eq!(manager.ended().await.code(), Some(0), "{}", manager.log());
    assert_eq!(world.holder().await, "", "both are given back");
}

#[tokio::test]
async fn a_leader_without_controllers_leads_until_it_is_asked_to_stop() {
    let world = World::new().await;
    // Which runs only where networks are allocated.
    let mut manager = world.start(&["--controllers=node-ipam-controller"]);
    manager.wait_for_log("started leading").await;
    manager.signal("TERM");
    let code = manager.ended().await.code();
    assert_eq!(code, Some(0), "{}", manager.log());
    assert_eq!(world.holder().await, "", "the lease is released");
}
