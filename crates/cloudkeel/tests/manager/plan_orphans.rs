//! `cloudkeel plan --orphans` and `--teardown`: what is found, what is removed, and what never is.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Output, Stdio};
use std::time::Duration;

use cloudkeel_api::{Clock as _, SystemClock};
use cloudkeel_testkit::cluster::eventually;
use cloudkeel_testkit::simulated_cloud::wire::{Hop, NewBalancer, NewRoute};
use cloudkeel_testkit::simulated_cloud::{Fault, FaultMatch, MachineSpec, SimulatedCloud};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::harness::DEADLINE;
use crate::nodes::builder;
use crate::plan_fixture::PlanWorld;

/// A cluster with balancers of every owner, in the project that all of them share.
struct OrphanWorld {
    plans: PlanWorld,
    uid: String,
}

impl OrphanWorld {
    async fn new() -> Self {
        let plans = PlanWorld::new().await;
        plans.world.write_config(SimulatedCloud::TOKEN);
        let namespaces: Api<Namespace> = Api::all(plans.world.client.clone());
        let system = namespaces.get("kube-system").await.expect("kube-system");
        let uid = system.metadata.uid.expect("a UID");
        Self { plans, uid }
    }

    /// A balancer with these owner labels.
    fn balancer(&self, name: &str, labels: &[(&str, &str)]) {
        let labels = labels
            .iter()
            .map(|(key, value)| (format!("cloudkeel.dev/{key}"), (*value).to_owned()));
        let new = NewBalancer {
            name: name.to_owned(),
            labels: labels.collect::<BTreeMap<_, _>>(),
            ..NewBalancer::default()
        };
        self.plans
            .world
            .cloud
            .add_balancer(new)
            .expect("a balancer");
    }

    /// One of a Service of this cluster.
    fn balancer_of(&self, name: &str, service_uid: &str) {
        let service = format!("default/{name}");
        let labels = [
            ("service-uid", service_uid),
            ("cluster-uid", self.uid.as_str()),
            ("service", service.as_str()),
        ];
        self.balancer(name, &labels);
    }

    /// Orphans, and balancers that must stay: of a Service that is there, of another cluster, without labels.
    async fn with_orphans(&self, orphans: &[&str]) {
        let made = self
            .plans
            .service("wanted")
            .create(&self.plans.world.client)
            .await;
        let made = made.expect("the service is made");
        let uid = made.metadata.uid.expect("a UID");
        self.balancer_of("wanted", &uid);
        let labels = [
            ("service-uid", "gone-foreign"),
            ("cluster-uid", "another-cluster"),
            ("service", "default/foreign"),
        ];
        self.balancer("foreign", &labels);
        self.balancer("unlabelled", &[]);
        self.add_orphans(orphans);
    }

    fn add_orphans(&self, names: &[&str]) {
        for name in names {
            self.balancer_of(name, &format!("gone-{name}"));
        }
    }

    /// A machine with its Node, and routes to it: one of its Pod network, and another owner's.
    async fn with_routes(&self) {
        let cloud = &self.plans.world.cloud;
        let worker = cloud
            .add_machine(MachineSpec::named("worker"))
            .expect("a machine")
            .id;
        let node =
            builder(&self.plans.world, "worker").provider_id(format!("local://demo/{worker}"));
        let node = node.pod_cidr("10.244.5.0/24").initialized();
        node.create(&self.plans.world.client)
            .await
            .expect("the node is made");
        for destination in ["10.244.5.0/24", "10.99.0.0/24"] {
            let destination = destination.parse().expect("a network");
            let hop = Hop::Machine(worker);
            cloud
                .add_route(NewRoute { destination, hop })
                .expect("a route");
        }
    }

    fn balancers(&self) -> BTreeSet<String> {
        let balancers = self.plans.world.cloud.balancers().into_iter();
        balancers.map(|balancer| balancer.name).collect()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut program = Command::new(env!("CARGO_BIN_EXE_cloudkeel"));
        program.arg("plan").args(arguments).args(self.plans.flags());
        program.kill_on_drop(true);
        program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        program
    }

    /// Runs it with this on its standard input.
    async fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = self.command(arguments).spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        // It may end without reading.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        child.wait_with_output().await.expect("it runs")
    }
}

const STAY: [&str; 3] = ["foreign", "unlabelled", "wanted"];

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn orphans_are_listed_and_removed_only_when_confirmed() {
    let world = OrphanWorld::new().await;
    world.with_orphans(&["one", "two"]).await;
    let all = names(&["foreign", "one", "two", "unlabelled", "wanted"]);
    let before = world.plans.versions().await;

    let listed = world
        .run(&["--orphans", "--exit-code", "--output=json"], "")
        .await;
    assert_eq!(listed.status.code(), Some(2), "{}", errors(&listed));
    let report: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let objects: Vec<_> = report["removals"]
        .as_array()
        .expect("a list")
        .iter()
        .collect();
    let found: Vec<_> = objects
        .iter()
        .map(|it| it["object"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(
        found,
        ["Service default/one", "Service default/two"],
        "{report:#}"
    );
    assert_eq!(objects[0]["steps"][0]["action"], "delete", "{report:#}");

    for (case, input) in [("no", "no\n"), ("nothing", "")] {
        let refused = world.run(&["--orphans", "--apply"], input).await;
        assert_eq!(refused.status.code(), Some(1), "{case}");
        assert!(
            errors(&refused).contains("nothing was removed"),
            "{case}: {}",
            errors(&refused)
        );
    }
    assert_eq!(world.plans.world.cloud.calls().mutations(), 0);
    assert_eq!(world.balancers(), all);

    let removed = world.run(&["--orphans", "--apply"], "yes\n").await;
    assert_eq!(removed.status.code(), Some(0), "{}", errors(&removed));
    assert_eq!(world.balancers(), names(&STAY));
    let again = world.run(&["--orphans", "--exit-code"], "").await;
    assert_eq!(again.status.code(), Some(0), "{}", errors(&again));
    assert_eq!(
        world.plans.versions().await,
        before,
        "nothing was written to the cluster"
    );
}

#[tokio::test]
async fn after_a_crash_at_any_call_the_next_run_finishes_and_nothing_else_is_touched() {
    let world = OrphanWorld::new().await;
    let orphans = ["a", "b", "c", "d", "e", "f"];
    world.with_orphans(&orphans).await;
    let cloud = &world.plans.world.cloud;
    let arguments = ["--orphans", "--apply", "--yes"];
    cloud.reset_calls();
    let whole = world.run(&arguments, "").await;
    assert_eq!(whole.status.code(), Some(0), "{}", errors(&whole));
    let calls = cloud.calls().total();
    assert!(calls > orphans.len() as u64, "{calls}");

    for served in 0..calls {
        world.add_orphans(&orphans);
        cloud.reset_calls();
        // So many calls are answered; the process dies while it waits for the next ones.
        if served > 0 {
            let by = Duration::ZERO;
            cloud
                .faults()
                .times(FaultMatch::any(), served, Fault::Slow { by });
        }
        cloud.faults().always(FaultMatch::any(), Fault::NoAnswer);
        let mut crashed = world.command(&arguments).spawn().expect("it starts");
        eventually(&format!("call {served}"), DEADLINE, || async {
            cloud.calls().total() > served
        })
        .await;
        crashed.kill().await.expect("it is killed");
        cloud.faults().clear();
        let left = world.balancers();
        assert!(
            left.is_superset(&names(&STAY)),
            "after {served} calls: {left:?}"
        );

        let next = world.run(&arguments, "").await;
        assert_eq!(
            next.status.code(),
            Some(0),
            "after {served} calls: {}",
            errors(&next)
        );
        assert_eq!(world.balancers(), names(&STAY), "after {served} calls");
    }
}

#[tokio::test]
async fn a_teardown_removes_what_is_this_clusters_and_nothing_else() {
    let world = OrphanWorld::new().await;
    world.with_orphans(&["left"]).await;
    let cloud = &world.plans.world.cloud;
    world.with_routes().await;
    let shown = world.run(&["--teardown", "--exit-code"], "").await;
    assert_eq!(shown.status.code(), Some(2), "{}", errors(&shown));

    let uid = format!("--cluster-uid={}", world.uid);
    for (case, arguments, input, expected) in [
        (
            "another cluster",
            vec!["--yes", "--cluster-uid=another"],
            "",
            "the UID of this cluster",
        ),
        (
            "a script without a UID",
            vec!["--yes"],
            "",
            "expects --cluster-uid",
        ),
        ("yes is not enough", vec![], "yes\n", "nothing was removed"),
    ] {
        let arguments = [vec!["--teardown", "--apply"], arguments].concat();
        let refused = world.run(&arguments, input).await;
        assert_eq!(refused.status.code(), Some(1), "{case}");
        assert!(
            errors(&refused).contains(expected),
            "{case}: {}",
            errors(&refused)
        );
    }
    hold_lease(&world).await;
    let refused = world
        .run(&["--teardown", "--apply", "--yes", &uid], "")
        .await;
    assert!(
        errors(&refused).contains("holds lease"),
        "{}",
        errors(&refused)
    );
    assert_eq!(cloud.calls().mutations(), 0, "refused four times");

    let removed = world
        .run(&["--teardown", "--apply", "--yes", &uid, "--force"], "")
        .await;
    assert_eq!(removed.status.code(), Some(0), "{}", errors(&removed));
    assert_eq!(world.balancers(), names(&["foreign", "unlabelled"]));
    let routes: Vec<_> = cloud
        .routes()
        .iter()
        .map(|it| it.destination.to_string())
        .collect();
    assert_eq!(
        routes,
        ["10.99.0.0/24"],
        "outside the cluster CIDR it is another owner's"
    );
}

/// A manager that has just renewed its lease.
async fn hold_lease(world: &OrphanWorld) {
    let leases: Api<Lease> = Api::namespaced(world.plans.world.client.clone(), "kube-system");
    let lease = Lease {
        metadata: ObjectMeta {
            name: Some("cloud-controller-manager".to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some("manager-1".to_owned()),
            lease_duration_seconds: Some(600),
            renew_time: Some(MicroTime(SystemClock.now())),
            ..LeaseSpec::default()
        }),
    };
    let made = leases.create(&PostParams::default(), &lease).await;
    made.expect("the lease is made");
}
