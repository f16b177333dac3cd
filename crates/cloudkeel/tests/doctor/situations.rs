//! Broken situations, each with the finding that doctor has to report.

use cloudkeel_diagnose::Finding;
use cloudkeel_testkit::cluster::{Kubelet, NotReady};
use cloudkeel_testkit::simulated_cloud::wire::{Hop, NewRoute};
use cloudkeel_testkit::simulated_cloud::{Fault, MachineSpec, Operation, Permission};
use jiff::SignedDuration;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::harness::{Manager, TOKEN};
use crate::lab::{Lab, assert_found, has};
use crate::world::healthy;

/// Services that are made well and broken later.
const SERVICES: [&str; 8] = [
    "web", "missing", "address", "differs", "orphan", "stuck", "foreign", "local",
];

#[tokio::test]
async fn a_healthy_cluster_has_no_findings_and_every_broken_situation_has_its_own() {
    let mut lab = Lab::open().await;
    let nothing = lab.doctor().await;
    let lease = format!("Lease kube-system/{}", lab.world.lease());
    assert_found(&nothing, &[("manager-missing", &lease)]);

    let mut manager = healthy(&lab, &SERVICES).await;
    let diagnosis = lab.doctor().await;
    assert_eq!(diagnosis.findings, [], "a healthy cluster");
    assert_eq!(diagnosis.worst, None);

    stop(&mut manager).await;
    assert_found(&lab.doctor().await, &[("manager-missing", &lease)]);

    break_nodes(&lab).await;
    break_routes(&lab).await;
    break_services(&lab).await;
    lab.ahead = SignedDuration::from_mins(10);
    let diagnosis = lab.doctor().await;
    assert_found(&diagnosis, NODES);
    assert_found(&diagnosis, ROUTES);
    assert_found(&diagnosis, SERVICE_FINDINGS);
    for (untouched, expected) in [
        ("Node n1", &[][..]),
        // All the new Nodes are its targets, and no leader has added them.
        ("Service default/web", &["service-differs"]),
    ] {
        let about = diagnosis
            .findings
            .iter()
            .filter(|it| it.object == untouched);
        let about: Vec<_> = about.map(Finding::id).collect();
        assert_eq!(about, expected, "{untouched}");
    }

    broken_clouds(&lab).await;
    broken_managers(&lab).await;
    broken_lease(&lab).await;
    broken_access(&lab).await;
}

async fn stop(manager: &mut Manager) {
    manager.signal("TERM");
    assert_eq!(manager.ended().await.code(), Some(0));
}

const NODES: &[(&str, &str)] = &[
    ("node-no-machine", "Node no-machine"),
    ("node-paused", "Node held"),
    ("node-wrong-name", "Node wrong-name"),
    ("node-two-machines", "Node two-machines"),
    ("node-two-clouds", "Node two-clouds"),
    ("node-foreign-id", "Node foreign-id"),
    ("node-malformed-id", "Node malformed-id"),
    ("node-duplicate-id", "Node duplicate-1"),
    ("node-unmanaged", "Node unmanaged"),
    ("node-unmanaged", "Node unselected"),
    ("node-address-unknown", "Node address-unknown"),
    ("node-waits", "Node waits"),
    ("kubelet-not-external", "Node not-external"),
    ("node-not-ready", "Node not-ready"),
    ("node-shut-down", "Node shut-down"),
    ("node-machine-gone", "Node machine-gone"),
    ("node-held", "Node held"),
    ("node-ready-not-listed", "Node not-listed"),
    ("node-addresses-differ", "Node addresses"),
    ("node-topology-differs", "Node moved"),
    ("version-skew", "kubelet v1.20.0"),
    ("machine-without-node", "cloud one"),
];

async fn break_nodes(lab: &Lab) {
    let ip = |text: &str| text.parse().expect("an address");
    lab.create(lab.node("no-machine")).await;
    lab.machine_of(MachineSpec::named("other-name").private(ip("10.9.9.9")));
    lab.create(lab.node("wrong-name").node_ip(ip("10.9.9.9")))
        .await;
    lab.machine("two-machines");
    lab.machine("two-machines");
    lab.create(lab.node("two-machines")).await;
    lab.machine("two-clouds");
    let second = MachineSpec::named("two-clouds").in_project("second");
    lab.world.cloud.add_machine(second).expect("a machine");
    lab.create(lab.node("two-clouds").label("in-two", "")).await;
    let foreign = lab
        .node("foreign-id")
        .provider_id("aws:///eu-central-1a/i-0abc");
    lab.create(foreign).await;
    let malformed = format!("{} 2", lab.id(4));
    lab.create(lab.node("malformed-id").provider_id(malformed))
        .await;
    let (_, id) = lab.machine("duplicate-1");
    for name in ["duplicate-1", "duplicate-2"] {
        lab.create(lab.node(name).provider_id(&id).initialized())
            .await;
    }
    let unmanaged = lab
        .node("unmanaged")
        .label("cloudkeel.dev/unmanaged", "true");
    lab.create(unmanaged).await;
    lab.create(cloudkeel_testkit::cluster::NodeBuilder::new("unselected"))
        .await;
    lab.machine("address-unknown");
    let unknown = lab.node("address-unknown").node_ip(ip("192.0.2.7"));
    lab.create(unknown).await;
    lab.machine("waits");
    lab.create(lab.node("waits")).await;
    lab.create(lab.node("not-external").initialized()).await;
    break_initialised_nodes(lab).await;
}

async fn break_initialised_nodes(lab: &Lab) {
    let not_ready = async |name: &str| {
        let kubelet = Kubelet::new(&lab.world.client, name);
        let done = kubelet.set_not_ready(NotReady::False).await;
        done.expect("the node is not ready");
    };
    lab.initialised("not-ready").await;
    not_ready("not-ready").await;
    let off = lab.initialised("shut-down").await;
    not_ready("shut-down").await;
    lab.world.cloud.power_off(off).expect("it is off");
    for name in ["machine-gone", "held"] {
        let gone = lab.initialised(name).await;
        not_ready(name).await;
        lab.world.cloud.destroy(gone).expect("it is gone");
    }
    let hold = json!({"metadata": {"annotations": {"cloudkeel.dev/hold": "true", "cloudkeel.dev/paused": "true"}}});
    lab.patch_node("held", hold).await;
    let gone = lab.initialised("not-listed").await;
    lab.world.cloud.destroy(gone).expect("it is gone");
    // Its builder gives it no address, as a kubelet without --node-ip does.
    let addressed =
        MachineSpec::named("addresses").private("10.9.1.1".parse().expect("an address"));
    let id = lab.id(lab.machine_of(addressed));
    lab.create(lab.node("addresses").provider_id(id).initialized())
        .await;
    let moved = lab.machine_of(MachineSpec::named("moved").zone("b"));
    let node = lab.node("moved").provider_id(lab.id(moved)).initialized();
    lab.create(node.label("topology.kubernetes.io/zone", "a"))
        .await;
    lab.initialised("old").await;
    let info = json!({"nodeInfo": {"kubeletVersion": "v1.20.0"}});
    lab.patch_node_status("old", info).await;
}

const ROUTES: &[(&str, &str)] = &[
    ("route-missing", "Node no-route"),
    ("route-wrong", "route 10.77.2.0/24 of cloud one"),
    ("route-suspect", "route 10.77.99.0/24 of cloud one"),
    ("pod-cidr-conflict", "Node same-network"),
    ("pod-cidr-missing", "Node no-network"),
    ("network-unavailable", "Node no-route"),
];

async fn break_routes(lab: &Lab) {
    let node = async |name: &str, cidr: &str| {
        lab.initialised_as(name, |node| node.pod_cidr(cidr)).await;
    };
    node("no-route", "10.77.20.0/24").await;
    let unavailable = json!({"conditions": [{
        "type": "NetworkUnavailable", "status": "True", "reason": "NoRouteCreated", "message": "x",
    }]});
    lab.patch_node_status("no-route", unavailable).await;
    node("same-network", "10.77.1.0/24").await;
    lab.initialised("no-network").await;
    let cloud = &lab.world.cloud;
    let routes = cloud.routes_of(&lab.world.id);
    let of = |network: &str| {
        let mut routes = routes.iter();
        let route = routes.find(|route| route.destination.to_string() == network);
        route.expect("a route").clone()
    };
    let (first, second) = (of("10.77.1.0/24"), of("10.77.2.0/24"));
    cloud.drop_route(second.id).expect("it is gone");
    let route = |destination: &str, hop| NewRoute {
        destination: destination.parse().expect("a network"),
        hop,
    };
    let add = |route| cloud.add_route_to(&lab.world.id, route).expect("a route");
    add(route("10.77.2.0/24", first.hop));
    let (lost, _) = lab.machine("lost");
    add(route("10.77.99.0/24", Hop::Machine(lost)));
    cloud.destroy(lost).expect("it is gone");
}

const SERVICE_FINDINGS: &[(&str, &str)] = &[
    ("service-pending", "Service default/pending"),
    ("service-paused", "Service default/typo"),
    ("service-no-endpoints", "Service default/pending"),
    ("service-not-served", "Service default/not-served"),
    ("service-invalid", "Service default/invalid"),
    ("service-option-ignored", "Service default/typo"),
    ("service-no-targets", "Service default/no-targets"),
    ("service-targets-down", "Service default/down"),
    ("service-local-elsewhere", "Service default/local"),
    ("service-balancer-missing", "Service default/missing"),
    ("service-address-differs", "Service default/address"),
    ("service-differs", "Service default/differs"),
    ("service-not-ours", "Service default/adopts"),
    ("service-stuck", "Service default/stuck"),
    ("service-foreign-finalizer", "Service default/foreign"),
    ("balancer-orphaned", "cloud one"),
];

async fn break_services(lab: &Lab) {
    misconfigure_services(lab).await;
    break_balancers(lab).await;
}

/// What the Services themselves ask for is wrong.
async fn misconfigure_services(lab: &Lab) {
    let make = async |name: &str, key: &str, value: &str| {
        let service = lab.service(name).annotation(key, value);
        lab.serve(service, name, "n1").await;
    };
    let pending = lab.service("pending").port("main", 80);
    pending.create(&lab.world.client).await.expect("a service");
    let not_served = lab
        .service("not-served")
        .class("elsewhere")
        .port("main", 80);
    not_served
        .create(&lab.world.client)
        .await
        .expect("a service");
    make("invalid", "cloudkeel.dev/lb-health-check-port", "http").await;
    make("typo", "cloudkeel.dev/lb-nmae", "x").await;
    let pause = json!({"metadata": {"annotations": {"cloudkeel.dev/paused": "true"}}});
    lab.patch_service("typo", pause).await;
    make("no-targets", "cloudkeel.dev/lb-node-selector", "pool=none").await;
    lab.patch_node(
        "not-ready",
        json!({"metadata": {"labels": {"pool": "down"}}}),
    )
    .await;
    make("down", "cloudkeel.dev/lb-node-selector", "pool=down").await;
    lab.patch_service("local", json!({"spec": {"externalTrafficPolicy": "Local"}}))
        .await;
    let elsewhere =
        json!({"metadata": {"annotations": {"cloudkeel.dev/lb-node-selector": "pool=down"}}});
    lab.patch_service("local", elsewhere).await;
}

/// The balancers are not what was made of their Services.
async fn break_balancers(lab: &Lab) {
    let balancer = async |service: &str| {
        let uid = lab
            .services()
            .get(service)
            .await
            .expect("a service")
            .metadata
            .uid;
        let uid = uid.expect("a UID");
        let mut all = lab.world.cloud.balancers_of(&lab.world.id).into_iter();
        let found = all.find(|it| it.labels.values().any(|label| *label == uid));
        found.unwrap_or_else(|| panic!("a balancer of {service}"))
    };
    let web = balancer("web").await;
    let adopts = lab.service("adopts");
    let adopts = adopts.annotation("cloudkeel.dev/adopt", web.id.to_string());
    lab.serve(adopts, "adopts", "n1").await;
    let missing = balancer("missing").await;
    lab.world
        .cloud
        .drop_balancer(missing.id)
        .expect("it is gone");
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.99"}]}}});
    let patch = Patch::Merge(status);
    let patched = lab
        .services()
        .patch_status("address", &PatchParams::default(), &patch)
        .await;
    patched.expect("the status is written");
    let differs = balancer("differs").await;
    lab.world
        .cloud
        .drop_listener(differs.id, 80)
        .expect("it is gone");
    lab.patch_service("orphan", json!({"metadata": {"finalizers": null}}))
        .await;
    let foreign = json!({"metadata": {"finalizers": ["example.com/other"]}});
    lab.patch_service("foreign", foreign).await;
    for name in ["orphan", "stuck", "foreign"] {
        let deleted = lab.services().delete(name, &DeleteParams::default()).await;
        deleted.expect("it is deleted");
    }
}

async fn broken_clouds(lab: &Lab) {
    let cloud = &lab.world.cloud;
    let one = &[("cloud-credential", "cloud one")];
    lab.write_config("no-such-token");
    assert_found(&lab.doctor().await, one);
    cloud.add_project("strangers");
    cloud.grant("strange-token", "strangers", Permission::ReadWrite);
    lab.write_config("strange-token");
    // By their IDs its Nodes are of another project: with that token no cloud here knows them.
    let diagnosis = lab.doctor().await;
    assert!(
        !has(&diagnosis, "node-machine-gone", "Node n1"),
        "nothing is said of its Nodes"
    );
    lab.write_config(TOKEN);
    for (status, finding) in [
        (403, "cloud-denied"),
        (429, "cloud-throttled"),
        (503, "cloud-unreachable"),
    ] {
        cloud
            .faults()
            .always(Operation::ListMachines, Fault::status(status));
        assert_found(&lab.doctor().await, &[(finding, "cloud one")]);
        cloud.faults().clear();
    }
    let all = cloud.machines_of(&lab.world.id);
    let all = all.iter().map(|machine| machine.id).collect();
    cloud.change_settings(|settings| settings.hidden = all);
    assert_found(&lab.doctor().await, &[("cloud-other-project", "cloud one")]);
    cloud.change_settings(|settings| settings.hidden.clear());
}

/// A container of this image.
fn spec(image: &str, more: &Value) -> Value {
    let mut spec = json!({"containers": [{"name": "main", "image": image}]});
    let fields = spec.as_object_mut().expect("an object");
    fields.extend(more.as_object().expect("an object").clone());
    spec
}

async fn broken_managers(lab: &Lab) {
    lab.service_account("default").await;
    lab.service_account("cloudkeel").await;
    let everywhere = json!({
        "hostNetwork": true, "serviceAccountName": "cloudkeel",
        "tolerations": [{"operator": "Exists"}],
    });
    let running = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    lab.pod("ccm-1", spec("cloudkeel:1", &everywhere), running.clone())
        .await;
    lab.pod("ccm-2", spec("cloudkeel:2", &everywhere), running.clone())
        .await;
    let diagnosis = lab.doctor().await;
    let lease = format!("Lease kube-system/{}", lab.world.lease());
    assert_found(
        &diagnosis,
        &[
            ("lease-not-held", &lease),
            ("manager-versions", "Pods of cloudkeel"),
            ("permission-missing", "account kube-system/cloudkeel"),
        ],
    );
    let unscheduled = json!({"phase": "Pending", "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/3 nodes are available: 3 node(s) had untolerated taint",
    }]});
    let go = "example.com/some-cloud-controller-manager:v1";
    lab.pod("go-1", spec(go, &json!({})), unscheduled).await;
    let crashing = json!({"phase": "Running", "containerStatuses": [{
        "name": "main", "image": go, "imageID": "", "ready": false, "restartCount": 5,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}},
    }]});
    lab.pod("go-2", spec(go, &json!({"hostNetwork": true})), crashing)
        .await;
    let alone = json!({"containers": [{
        "name": "main", "image": go, "args": ["--leader-elect=false"],
    }]});
    lab.pod("go-3", alone, running).await;
    assert_found(
        &lab.doctor().await,
        &[
            ("manager-unscheduled", "Pod kube-system/go-1"),
            ("manager-failing", "Pod kube-system/go-2"),
            (
                "manager-no-toleration",
                "Pod template of some-cloud-controller-manager",
            ),
            (
                "manager-needs-cni",
                "Pod template of some-cloud-controller-manager",
            ),
            ("manager-second", "cloud-controller-managers"),
        ],
    );
    let pods: Api<Pod> = Api::namespaced(lab.client(), "kube-system");
    let now = DeleteParams::default().grace_period(0);
    for name in ["ccm-1", "ccm-2", "go-1", "go-2", "go-3"] {
        pods.delete(name, &now).await.expect("the pod is there");
    }
}

async fn broken_lease(lab: &Lab) {
    let leases: Api<Lease> = Api::namespaced(lab.client(), "kube-system");
    let future = jiff::Timestamp::from_second(4_000_000_000).expect("a time");
    let held = json!({"spec": {"holderIdentity": "other", "renewTime": format!("{future:.6}")}});
    let patched = leases
        .patch(
            lab.world.lease(),
            &PatchParams::default(),
            &Patch::Merge(held),
        )
        .await;
    patched.expect("the lease is written");
    let name = format!("Lease {}", lab.world.lease());
    assert_found(&lab.doctor().await, &[("lease-clock", &name)]);
}

async fn broken_access(lab: &Lab) {
    let with = |more: &[&str]| {
        let more = more.iter().map(ToString::to_string);
        lab.flags().into_iter().chain(more).collect::<Vec<_>>()
    };
    let object = "command line and configuration";
    let diagnosis = lab.doctor_with(&with(&["--no-such-flag=1"])).await;
    assert_found(&diagnosis, &[("config-invalid", object)]);
    let diagnosis = lab.doctor_with(&with(&["--kube-api-burst=7"])).await;
    assert_found(&diagnosis, &[("config-deprecated", object)]);
    let url = lab.world.url();
    let wrong = format!(
        "apiVersion: cloudkeel.dev/v1\nkind: CloudConfig\nclouds:\n- name: one\n  provider: local\n  \
         config: {{endpoint: \"{url}\", tokne: x}}\n"
    );
    let wrong = lab.world.write_file("wrong.yaml", &wrong);
    let wrong = format!("--cloud-config={}", wrong.display());
    let diagnosis = lab.doctor_with(&with(&[&wrong])).await;
    let expected = [("config-invalid", object), ("cloud-not-built", "cloud one")];
    assert_found(&diagnosis, &expected);
    let down = "--master=https://127.0.0.1:1";
    let diagnosis = lab.doctor_with(&with(&[down])).await;
    assert_found(&diagnosis, &[("api-unreachable", "API server")]);
    assert!(diagnosis.findings.len() < 5, "{:?}", diagnosis.findings);
}
