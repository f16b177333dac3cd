//! Leader migration with a real kube-controller-manager: the node IPAM controller, which both of them have, moves to
//! cloudkeel and back, under one lease.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudkeel_testkit::cluster::{NodeBuilder, eventually, wait_for_node};
use cloudkeel_testkit::control_plane::{ControlPlane, Tool, provide};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::harness::{DEADLINE, Manager, World};

/// The lease that both components share.
const LEASE: &str = "cloud-provider-extraction-migration";

/// The file of `--leader-migration-config`, the same for both.
const CONFIG: &str = "apiVersion: controllermanager.config.k8s.io/v1
kind: LeaderMigrationConfiguration
leaderName: cloud-provider-extraction-migration
controllerLeaders:
- name: node-ipam-controller
  component: \"*\"
";

/// What both are given. Leases expire sooner than by default.
const FLAGS: [&str; 8] = [
    "--enable-leader-migration",
    "--controllers=node-ipam-controller",
    "--allocate-node-cidrs=true",
    "--cluster-cidr=10.244.0.0/16",
    "--service-cluster-ip-range=10.0.0.0/16",
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=1s",
];

/// A state of the lease, and when it was first seen.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    at: Duration,
    holder: String,
    spec: LeaseSpec,
}

/// Follows the lease.
struct Recorder {
    seen: Arc<Mutex<Vec<Seen>>>,
    following: JoinHandle<()>,
}

impl Recorder {
    fn of(client: &Client) -> Self {
        let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
        let seen = Arc::new(Mutex::new(Vec::<Seen>::new()));
        let (all, began) = (Arc::clone(&seen), Instant::now());
        let following = tokio::spawn(async move {
            loop {
                if let Ok(Some(lease)) = leases.get_opt(LEASE).await {
                    let spec = lease.spec.unwrap_or_default();
                    let holder = spec.holder_identity.clone().unwrap_or_default();
                    let mut all = all.lock().expect("no panic");
                    if all.last().is_none_or(|last| last.spec != spec) {
                        let at = began.elapsed();
                        all.push(Seen { at, holder, spec });
                    }
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        Self { seen, following }
    }

    fn all(&self) -> Vec<Seen> {
        self.seen.lock().expect("no panic").clone()
    }

    /// The holder now, if there is one.
    fn holder(&self) -> Option<String> {
        let last = self.all().pop()?;
        Some(last.holder).filter(|holder| !holder.is_empty())
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.following.abort();
    }
}

struct Migration {
    plane: ControlPlane,
    world: World,
    config: PathBuf,
    access: PathBuf,
    program: PathBuf,
}

impl Migration {
    async fn new() -> Self {
        let program = provide(Tool::KubeControllerManager).await;
        let plane = ControlPlane::start().await.expect("a control plane");
        let access = plane.kubeconfig_for("migration", &["system:masters"]);
        let text = std::fs::read_to_string(&access).expect("a kubeconfig");
        let world = World::reached_by(plane.client(), |_| text).await;
        let config = world.write_file("migration.yaml", CONFIG);
        Self {
            program: program.expect("kube-controller-manager").path,
            plane,
            world,
            config,
            access,
        }
    }

    fn access(&self, program: &mut Command) {
        let config = &self.config;
        program
            .args(
                ["", "authentication-", "authorization-"]
                    .map(|which| format!("--{which}kubeconfig={}", Path::display(&self.access))),
            )
            .arg(format!("--leader-migration-config={}", config.display()))
            .arg("--secure-port=0")
            .args(FLAGS);
    }

    fn kube_controller_manager(&self) -> Manager {
        let mut program = Command::new(&self.program);
        self.access(&mut program);
        // Without a key, version 1.35 panics under leader migration: it starts the controller of tokens in any case.
        let key = self.plane.run_dir().join("kube-apiserver/tokens.key");
        let key = key.display();
        program.arg(format!("--service-account-private-key-file={key}"));
        program.arg("--v=2");
        Manager::spawn(program, self.world.log_file())
    }

    fn cloudkeel(&self) -> Manager {
        let mut program = Command::new(env!("CARGO_BIN_EXE_cloudkeel"));
        self.access(&mut program);
        let config = self.world.config();
        program
            .arg(format!("--cloud-config={}", config.display()))
            .arg("-v=2");
        Manager::spawn(program, self.world.log_file())
    }

    /// The network that a new Node gets, and the component that wrote it.
    async fn allocation(&self, name: &str) -> (String, String) {
        let client = self.plane.client();
        let node = NodeBuilder::new(name).initialized().create(&client).await;
        node.expect("the Node is made");
        let node = wait_for_node(&client, name, DEADLINE, |node| network_of(node).is_some());
        let node = node.await;
        let network = network_of(&node).expect("it has one").to_owned();
        let mut writers = node.metadata.managed_fields.unwrap_or_default().into_iter();
        let wrote_it = writers.find(|writer| {
            let fields = writer.fields_v1.as_ref().map(|fields| fields.0.to_string());
            fields.is_some_and(|fields| fields.contains("f:podCIDR"))
        });
        let writer = wrote_it.and_then(|it| it.manager).unwrap_or_default();
        (network, writer)
    }
}

fn network_of(node: &Node) -> Option<&str> {
    node.spec.as_ref()?.pod_cidr.as_deref()
}

/// Each holder took the lease after the one before had released it, or had not renewed it for as long as it is good.
fn assert_one_leader_at_a_time(seen: &[Seen]) {
    for pair in seen.windows(2) {
        let [before, after] = pair else {
            continue;
        };
        if before.holder.is_empty() || after.holder == before.holder || after.holder.is_empty() {
            continue;
        }
        let time = |time: &Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime>| {
            time.as_ref().expect("a time").0
        };
        let unrenewed = time(&after.spec.acquire_time) - time(&before.spec.renew_time);
        let seconds = before.spec.lease_duration_seconds.expect("a duration");
        let unrenewed = unrenewed.total(jiff::Unit::Second).expect("a number");
        assert!(
            unrenewed >= f64::from(seconds) - 1.0,
            "{before:?} {after:?}"
        );
    }
}

/// The record in the words of the page.
fn as_table(seen: &[Seen], names: &[(&str, &str)]) -> String {
    let mut table =
        "| seconds | holder of the lease | renewed last, seconds before |\n|---|---|---|\n"
            .to_owned();
    let mut last: Option<&Seen> = None;
    for state in seen {
        if last.is_none_or(|last| last.holder != state.holder) {
            let known = names.iter().find(|(holder, _)| *holder == state.holder);
            let name = known.map_or("none: released", |(_, name)| name);
            let pause = last.map_or(String::new(), |last| {
                format!("{:.1}", state.at.saturating_sub(last.at).as_secs_f64())
            });
            let at = state.at.as_secs_f64();
            table = format!("{table}| {at:.1} | {name} | {pause} |\n");
        }
        last = Some(state);
    }
    table
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_moves_from_kube_controller_manager_to_cloudkeel_and_back() {
    let migration = Migration::new().await;
    let recorder = Recorder::of(&migration.plane.client());
    let other_holder = async |than: &str| {
        eventually(
            "another holder of the migration lease",
            DEADLINE,
            || async { recorder.holder().filter(|holder| holder != than) },
        )
        .await
    };

    let mut go = migration.kube_controller_manager();
    let first = other_holder("").await;
    let (before, by) = migration.allocation("before").await;
    assert!(by.contains("kube-controller-manager"), "{by}");

    // It stands by: the lease is held.
    let mut ours = migration.cloudkeel();
    ours.wait_for_log("started leading").await;
    assert_eq!(recorder.holder().as_deref(), Some(first.as_str()));

    go.signal("TERM");
    go.ended().await;
    let second = other_holder(&first).await;
    let (moved, by) = migration.allocation("moved").await;
    assert!(by.contains("cloudkeel"), "{by}");

    let go = migration.kube_controller_manager();
    // It leads its own lease first, which the process before it has not released.
    go.wait_for_log(&format!("lock=\"kube-system/{LEASE}\""))
        .await;
    assert_eq!(recorder.holder().as_deref(), Some(second.as_str()));
    ours.signal("TERM");
    ours.ended().await;
    let log = ours.log();
    assert!(!log.contains("observed a panic"), "{log}");
    let released = |line: &str| line.contains(LEASE) && line.contains("released=true");
    assert!(log.lines().any(released), "{log}");
    let third = other_holder(&second).await;
    let (back, by) = migration.allocation("back").await;
    assert!(by.contains("kube-controller-manager"), "{by}");

    let mut networks = vec![before, moved, back];
    networks.sort();
    networks.dedup();
    assert_eq!(networks.len(), 3, "no network is given twice: {networks:?}");
    assert_ne!(first, third, "it is a new process");
    let seen = recorder.all();
    assert_one_leader_at_a_time(&seen);
    let go_name = "kube-controller-manager";
    let names = [
        (&*first, go_name),
        (&*second, "cloudkeel"),
        (&*third, go_name),
    ];
    println!("{}", as_table(&seen, &names));
}
