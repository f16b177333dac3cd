//! Whose balancer is it, and which cloud serves whom.

use std::sync::Arc;

use cloudkeel_api::{CloudProvider, ProviderContext};
use cloudkeel_controllers::service::ServiceSettings;
use cloudkeel_testkit::simulated_cloud::wire::NewBalancer;
use cloudkeel_testkit::simulated_cloud::{Fault, MachineSpec, Operation, Settings, SimulatedCloud};
use serde_json::{Value, json};

use crate::lab::{FINALIZER, Lab, MINUTE, SECOND, Site};

fn named(name: &str) -> NewBalancer {
    let new = json!({"name": name, "families": ["IPv4"], "listeners": [], "targets": []});
    serde_json::from_value(new).unwrap()
}

fn annotated(annotations: &Value) -> Value {
    json!({"metadata": {"annotations": annotations}})
}

#[tokio::test(start_paused = true)]
async fn a_foreign_balancer_of_the_same_name_is_reported_and_never_touched() {
    let lab = Lab::with_nodes(1).await;
    let theirs = lab.cloud.add_balancer(named("shop")).unwrap();
    let desired = annotated(&json!({"cloudkeel.dev/lb-name": "shop"}));
    lab.api.world().create_service("web", &desired);
    lab.pass(MINUTE * 10).await;
    assert_eq!(lab.cloud.balancers(), std::slice::from_ref(&theirs));
    assert_eq!(lab.cloud.calls().mutations(), 0);
    let events = lab.events("web", "SyncLoadBalancerFailed");
    assert!(
        events[0].contains("does not carry the owner label of default/web"),
        "{events:?}"
    );
    assert!(
        events[0].contains("needs a change of the Service or the configuration"),
        "{events:?}"
    );
    assert_eq!(lab.address("web"), None);
    lab.api.world().delete_service("web");
    lab.pass(MINUTE * 3).await;
    assert_eq!(
        lab.api.world().service("web"),
        None,
        "there was nothing of ours"
    );
    assert_eq!(lab.cloud.balancers(), [theirs]);
}

#[tokio::test(start_paused = true)]
async fn a_balancer_is_adopted_on_request() {
    let lab = Lab::with_nodes(1).await;
    let theirs = lab.cloud.add_balancer(named("shop")).unwrap();
    let desired = json!({
        "cloudkeel.dev/lb-name": "shop",
        "cloudkeel.dev/adopt": theirs.id.to_string(),
    });
    lab.api.world().create_service("web", &annotated(&desired));
    lab.pass(SECOND * 5).await;
    assert_eq!(lab.balancer("web").unwrap().id, theirs.id);
    assert_eq!(lab.address("web"), Some(theirs.addresses[0].to_string()));
    assert_eq!(lab.targets("web"), ["node-000"]);
}

/// A cloud that can do nothing but have a name.
struct Bare;

impl CloudProvider for Bare {
    fn name(&self) -> &'static str {
        "bare"
    }
}

#[tokio::test(start_paused = true)]
async fn a_cloud_without_load_balancers_is_reported_once_on_each_service_that_waits() {
    let mut lab = Lab::idle(1, Settings::default(), ServiceSettings::default()).await;
    lab.set_sites(vec![bare("bare")]);
    lab.start();
    for name in ["one", "two"] {
        lab.api.world().create_service(name, &json!({}));
    }
    lab.pass(MINUTE * 50).await;
    for name in ["one", "two"] {
        let events = lab.events(name, "UnsupportedLoadBalancer");
        assert_eq!(events.len(), 1, "{events:?}");
        assert!(
            events[0].contains("cloud bare has no load balancers"),
            "{events:?}"
        );
        assert!(!lab.has_finalizer(name));
    }
    assert_eq!(lab.api.writes(), []);
}

/// A site of this name whose cloud has no load balancers.
fn bare(name: &'static str) -> Site {
    Site {
        name,
        class: None,
        provider: Arc::new(Bare),
    }
}

#[tokio::test(start_paused = true)]
async fn a_cloud_without_load_balancers_leaves_the_finalizers_of_others_alone() {
    let mut lab = Lab::idle(1, Settings::default(), ServiceSettings::default()).await;
    lab.set_sites(vec![bare("bare")]);
    lab.start();
    let theirs = json!({"metadata": {"finalizers": [FINALIZER]}});
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
    for name in ["deleted", "retyped"] {
        lab.api.world().create_service(name, &theirs);
        lab.api.world().change_service(name, &status);
    }
    lab.pass(SECOND).await;
    lab.api.world().delete_service("deleted");
    lab.api
        .world()
        .change_service("retyped", &json!({"spec": {"type": "ClusterIP"}}));
    lab.pass(MINUTE * 10).await;
    assert_eq!(lab.api.writes(), []);
    for name in ["deleted", "retyped"] {
        assert!(lab.has_finalizer(name), "{name}");
        assert_eq!(lab.events(name, "LoadBalancerFinalizerLeft").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_of_ours_stays_while_its_cloud_has_no_load_balancers_any_more() {
    let mut lab = Lab::with_nodes(1).await;
    lab.serve(1).await;
    let able = Site {
        provider: lab.provider_of(&lab.cloud).await,
        ..bare("local")
    };
    lab.stop().await;
    lab.set_sites(vec![bare("local")]);
    lab.start();
    lab.api.world().delete_service("svc-0");
    lab.pass(MINUTE * 10).await;
    assert!(lab.has_finalizer("svc-0"), "its balancer stands");
    let events = lab.events("svc-0", "SyncLoadBalancerFailed");
    let why = "cloud local is configured without load balancers";
    assert!(events[0].contains(why), "{events:?}");
    lab.stop().await;
    lab.set_sites(vec![able]);
    lab.start();
    lab.pass(MINUTE).await;
    assert_eq!(lab.cloud.balancers(), []);
    assert_eq!(lab.api.world().service("svc-0"), None);
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_of_ours_goes_also_where_nothing_could_ever_be_made() {
    let mut lab = Lab::idle(1, Settings::default(), ServiceSettings::default()).await;
    lab.set_sites(vec![site(&lab, "only", Some("other"), &lab.cloud).await]);
    lab.start();
    let refusal = Fault::status(422);
    lab.cloud
        .faults()
        .always(Operation::CreateBalancer, refusal);
    let of_class = json!({"spec": {"loadBalancerClass": "other"}});
    lab.api.world().create_service("classy", &of_class);
    lab.pass(SECOND * 5).await;
    assert!(lab.has_finalizer("classy"));
    lab.api
        .world()
        .change_service("classy", &json!({"spec": {"type": "ClusterIP"}}));
    lab.pass(MINUTE * 5).await;
    assert!(!lab.has_finalizer("classy"));
    assert_eq!(lab.events("classy", "LoadBalancerFinalizerLeft"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_deleted_when_another_cloud_has_taken_over_leaves_nothing_behind() {
    let (mut lab, other) = two_clouds(1).await;
    lab.api.world().create_service("plain", &json!({}));
    lab.pass(SECOND * 5).await;
    lab.stop().await;
    let sites = vec![
        site(&lab, "first", Some("old"), &lab.cloud).await,
        site(&lab, "second", None, &other).await,
    ];
    lab.set_sites(sites);
    lab.api.world().delete_service("plain");
    lab.start();
    lab.pass(MINUTE * 5).await;
    assert_eq!(lab.cloud.balancers(), []);
    assert_eq!(lab.api.world().service("plain"), None);
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_serves_stays_when_the_token_of_another_cloud_shows_it_too() {
    let (mut lab, _) = two_clouds(1).await;
    lab.api.world().create_service("plain", &json!({}));
    lab.pass(SECOND * 5).await;
    let before = lab.cloud.balancers();
    lab.stop().await;
    let sites = vec![
        site(&lab, "first", None, &lab.cloud).await,
        site(&lab, "second", Some("other"), &lab.cloud).await,
    ];
    lab.set_sites(sites);
    lab.start();
    lab.pass(MINUTE * 150).await;
    assert_eq!(before.len(), 1);
    assert_eq!(lab.cloud.balancers(), before);
}

#[tokio::test(start_paused = true)]
async fn tokens_that_are_exchanged_cost_no_balancer_that_serves_and_keep_the_finalizer() {
    let (mut lab, other) = two_clouds(1).await;
    let label = |cloud| json!({"metadata": {"labels": {"cloudkeel.dev/cloud": cloud}}});
    lab.api.world().change("node-000", &label("first"));
    // Its ID is none that the first cloud has.
    let passing = other.add_machine(MachineSpec::named("passing")).unwrap();
    let machine = other.add_machine(MachineSpec::named("there")).unwrap();
    other.destroy(passing.id).unwrap();
    let mut there = label("second");
    there["spec"]["providerID"] = json!(format!(
        "local://{}/{}",
        SimulatedCloud::PROJECT,
        machine.id
    ));
    there["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    lab.api.world().create("there", &there);
    let exchange = async |lab: &mut Lab, first: &SimulatedCloud, second: &SimulatedCloud| {
        lab.stop().await;
        let sites = vec![
            site(lab, "first", None, first).await,
            site(lab, "second", Some("other"), second).await,
        ];
        lab.set_sites(sites);
        lab.start();
    };
    lab.api.world().create_service("plain", &json!({}));
    lab.pass(SECOND * 5).await;
    let own = lab.cloud.clone();
    exchange(&mut lab, &other, &own).await;
    lab.pass(MINUTE * 50).await;
    assert_eq!((own.balancers().len(), other.balancers()), (1, vec![]));
    let retyped = json!({"spec": {"type": "ClusterIP"}});
    lab.api.world().change_service("plain", &retyped);
    lab.pass(MINUTE * 10).await;
    assert_eq!(own.balancers(), [], "it is found by the UID of its Service");
    assert!(
        lab.has_finalizer("plain"),
        "the cloud that served it shows none of its machines"
    );
    exchange(&mut lab, &own, &other).await;
    lab.pass(MINUTE * 5).await;
    assert!(!lab.has_finalizer("plain"));
}

#[tokio::test(start_paused = true)]
async fn no_balancer_is_created_with_the_token_of_another_cloud_even_before_a_node_has_joined() {
    let (mut lab, other) = two_clouds(0).await;
    let machine = other.add_machine(MachineSpec::named("there")).unwrap();
    let id = format!("local://{}/{}", SimulatedCloud::PROJECT, machine.id);
    let node = json!({
        "metadata": {"labels": {"cloudkeel.dev/cloud": "second"}},
        "spec": {"providerID": id},
    });
    lab.api.world().create("there", &node);
    let restart_with = async |lab: &mut Lab, first: &SimulatedCloud| {
        lab.stop().await;
        let sites = vec![
            site(lab, "first", None, first).await,
            site(lab, "second", Some("other"), &other).await,
        ];
        lab.set_sites(sites);
        lab.start();
    };
    restart_with(&mut lab, &other).await;
    lab.api.world().create_service("plain", &json!({}));
    lab.pass(MINUTE * 3).await;
    assert_eq!(other.balancers(), []);
    let own = lab.cloud.clone();
    restart_with(&mut lab, &own).await;
    lab.pass(MINUTE * 3).await;
    assert_eq!((own.balancers().len(), other.balancers().len()), (1, 0));
}

/// A lab with two clouds: the first is the default, the second has the class `other`.
async fn two_clouds(nodes: usize) -> (Lab, SimulatedCloud) {
    let mut lab = Lab::idle(nodes, Settings::default(), ServiceSettings::default()).await;
    let other = SimulatedCloud::new(Settings::default());
    let sites = vec![
        site(&lab, "first", None, &lab.cloud).await,
        site(&lab, "second", Some("other"), &other).await,
    ];
    lab.set_sites(sites);
    lab.start();
    lab.pass(SECOND).await;
    (lab, other)
}

async fn site(
    lab: &Lab,
    name: &'static str,
    class: Option<&'static str>,
    cloud: &SimulatedCloud,
) -> Site {
    Site {
        name,
        class,
        provider: lab.provider_of(cloud).await,
    }
}

#[tokio::test(start_paused = true)]
async fn the_class_chooses_the_cloud_and_another_class_moves_the_balancer() {
    let (lab, other) = two_clouds(1).await;
    let of_class = json!({"spec": {"loadBalancerClass": "other"}});
    lab.api.world().create_service("classy", &of_class);
    lab.api.world().create_service("plain", &json!({}));
    lab.pass(SECOND * 5).await;
    assert_eq!(
        (lab.cloud.balancers().len(), other.balancers().len()),
        (1, 1)
    );
    // The class can only change together with the type; here both changes are seen at once.
    for kind in ["ClusterIP", "LoadBalancer"] {
        let retyped = json!({"spec": {"type": kind}});
        lab.api.world().change_service("classy", &retyped);
    }
    lab.pass(SECOND * 5).await;
    assert_eq!(
        (lab.cloud.balancers().len(), other.balancers().len()),
        (2, 0)
    );
    assert!(lab.address("classy").is_some());
}

#[tokio::test(start_paused = true)]
async fn another_default_cloud_after_a_restart_takes_the_services_over() {
    let (mut lab, other) = two_clouds(1).await;
    lab.api.world().create_service("plain", &json!({}));
    lab.pass(SECOND * 5).await;
    lab.stop().await;
    let sites = vec![
        site(&lab, "first", Some("old"), &lab.cloud).await,
        site(&lab, "second", None, &other).await,
    ];
    lab.set_sites(sites);
    lab.start();
    lab.pass(SECOND * 10).await;
    assert_eq!(
        (lab.cloud.balancers().len(), other.balancers().len()),
        (0, 1)
    );
    assert_eq!(
        lab.address("plain"),
        Some(other.balancers()[0].addresses[0].to_string())
    );
}

#[tokio::test(start_paused = true)]
async fn a_retyped_service_is_released_only_when_every_cloud_has_answered() {
    let (lab, other) = two_clouds(1).await;
    lab.api.world().create_service("plain", &json!({}));
    lab.pass(SECOND * 5).await;
    other
        .faults()
        .times(Operation::ListBalancers, 2, Fault::MalformedJson);
    lab.api
        .world()
        .change_service("plain", &json!({"spec": {"type": "ClusterIP"}}));
    lab.pass(SECOND * 2).await;
    assert_eq!(
        lab.cloud.balancers(),
        [],
        "one cloud does not wait for the other"
    );
    assert!(
        lab.has_finalizer("plain"),
        "the other cloud may have something of it"
    );
    lab.pass(SECOND * 20).await;
    assert!(!lab.has_finalizer("plain"));
}

#[tokio::test(start_paused = true)]
async fn without_the_clusters_own_uid_orphans_are_not_reported() {
    let mut lab = Lab::idle(1, Settings::default(), ServiceSettings::default()).await;
    let provider = lab
        .cloud
        .provider(&ProviderContext::detached("local"))
        .await;
    lab.set_sites(vec![Site {
        name: "local",
        class: None,
        provider: Arc::new(provider.unwrap()),
    }]);
    lab.start();
    lab.serve(1).await;
    lab.pass(MINUTE * 50).await;
    assert_eq!(*lab.observed.left_over.lock().unwrap(), 0);
    assert_eq!(lab.cloud.balancers().len(), 1);
}
