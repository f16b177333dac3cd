//! The stories of a Node and of a Service in each state.

use cloudkeel_diagnose::{Explanation, Met};
use cloudkeel_testkit::cluster::{Kubelet, NotReady, eventually};
use kube::api::DeleteParams;
use serde_json::json;

use crate::harness::DEADLINE;
use crate::lab::Lab;
use crate::world::healthy;

/// The lines of a section.
fn lines(story: &Explanation, title: &str) -> String {
    let mut sections = story.sections.iter();
    let section = sections.find(|section| section.title == title);
    section.expect("a section").lines.join("\n")
}

/// The signs of all conditions of a deletion.
fn met(story: &Explanation) -> String {
    let signs = story.deletion.iter().map(|it| match it.met {
        Met::Yes => 'y',
        Met::No => 'n',
        Met::Unknown => '?',
    });
    signs.collect()
}

/// Waits until nothing happens any more, and tells the story then.
async fn settled(lab: &Lab, service: &str) -> Explanation {
    eventually("the load balancer is settled", DEADLINE, || async {
        let story = lab.explain_service(service).await;
        (story.next.what == "nothing differs").then_some(story)
    })
    .await
}

#[tokio::test]
async fn every_state_of_a_node_and_of_a_service_has_its_story() {
    let lab = Lab::open().await;
    let mut manager = healthy(&lab, &["web"]).await;
    let story = lab.explain_node("n1").await;
    assert_eq!(story.next.what, "nothing differs");
    assert_eq!(story.deletion, [], "there is no question of it");
    assert!(lines(&story, "Owner").starts_with("cloud one, because its provider ID"));
    assert!(lines(&story, "Cloud").contains("running"), "{story:?}");
    assert!(
        story.events.iter().any(|it| it.contains("Synced")),
        "{:?}",
        story.events
    );
    let story = settled(&lab, "web").await;
    assert!(
        lines(&story, "Asks for").contains("3 targets: n1, n2, n3"),
        "{story:?}"
    );
    assert!(
        lines(&story, "Service").contains("1 ready endpoints on 1 Nodes"),
        "{story:?}"
    );
    assert!(
        lines(&story, "Cloud").contains("load balancer"),
        "{story:?}"
    );

    manager.signal("TERM");
    manager.ended().await;
    nodes(&lab).await;
    services(&lab).await;
}

async fn nodes(lab: &Lab) {
    let story = lab.explain_node("n1").await;
    let next = &story.next.what;
    assert!(
        next.starts_with("nothing: no replica holds the lease"),
        "{next}"
    );
    lab.create(lab.node("waits")).await;
    let story = lab.explain_node("waits").await;
    assert!(
        lines(&story, "Cloud").contains("one lists no machine for it"),
        "{story:?}"
    );
    assert_eq!(story.findings[0].id(), "node-no-machine");
    lab.machine("waits");
    let story = lab.explain_node("waits").await;
    assert!(
        lines(&story, "Differs").contains("provider ID: local://"),
        "{story:?}"
    );
    let foreign = lab
        .node("foreign")
        .provider_id("aws:///a/i-1")
        .initialized();
    lab.create(foreign).await;
    let story = lab.explain_node("foreign").await;
    assert_eq!(story.next.what.split(". ").count(), 2, "{story:?}");
    assert!(
        lines(&story, "Owner").starts_with("no cloud here"),
        "{story:?}"
    );

    let off = lab.initialised("off").await;
    let gone = lab.initialised("gone").await;
    for name in ["off", "gone", "n2"] {
        let kubelet = Kubelet::new(&lab.world.client, name);
        kubelet
            .set_not_ready(NotReady::False)
            .await
            .expect("it is not ready");
    }
    lab.world.cloud.power_off(off).expect("it is off");
    let story = lab.explain_node("off").await;
    assert!(story.next.what.contains("shutdown taint"), "{story:?}");
    let story = lab.explain_node("n2").await;
    assert_eq!(met(&story), "yynnyy??", "its machine exists: {story:?}");
    lab.world.cloud.destroy(gone).expect("it is gone");
    let story = lab.explain_node("gone").await;
    assert_eq!(met(&story), "yyy?yy??", "{story:?}");
    assert!(
        story.next.what.contains("the cloud is asked again"),
        "{story:?}"
    );
    let hold = json!({"metadata": {"annotations": {"cloudkeel.dev/hold": "true"}}});
    lab.patch_node("gone", hold).await;
    let story = lab.explain_node("gone").await;
    assert!(
        story.next.what.ends_with("it is held by annotation"),
        "{story:?}"
    );
}

async fn services(lab: &Lab) {
    let new = lab.service("new").port("main", 80);
    new.create(&lab.world.client).await.expect("a service");
    let story = lab.explain_service("new").await;
    assert!(
        story.next.what.contains("the load balancer is made"),
        "{story:?}"
    );
    assert!(lines(&story, "Differs").starts_with("+ "), "{story:?}");
    let balancer = lab.world.cloud.balancers_of(&lab.world.id).remove(0);
    lab.world
        .cloud
        .drop_listener(balancer.id, 80)
        .expect("it is gone");
    let story = lab.explain_service("web").await;
    assert!(
        story.next.what.contains("what differs is repaired"),
        "{story:?}"
    );
    let invalid = json!({"metadata": {"annotations": {"cloudkeel.dev/lb-ip": "here"}}});
    lab.patch_service("new", invalid).await;
    let story = lab.explain_service("new").await;
    assert!(
        lines(&story, "Asks for").contains("cloudkeel.dev/lb-ip"),
        "{story:?}"
    );
    let elsewhere = lab.service("elsewhere").class("other").port("main", 80);
    elsewhere
        .create(&lab.world.client)
        .await
        .expect("a service");
    let story = lab.explain_service("elsewhere").await;
    assert!(
        lines(&story, "Owner").contains("no cloud serves the class"),
        "{story:?}"
    );
    let deleted = lab.services().delete("web", &DeleteParams::default()).await;
    deleted.expect("it is deleted");
    let story = lab.explain_service("web").await;
    let next = &story.next.what;
    assert!(
        next.contains("the load balancer is deleted, then the finalizer"),
        "{next}"
    );
    assert!(lines(&story, "Differs").starts_with("- "), "{story:?}");
}
