//! The program itself in the place of hcloud-cloud-controller-manager, in a cluster that this made.

use std::collections::BTreeSet;
use std::process::Command;

use cloudkeel_emulator_hetzner::{Destination, HetznerCloud, LoadBalancer, Operation};
use cloudkeel_testkit::cluster::{NodeBuilder, eventually, wait_for_node, wait_for_service_gone};
use cloudkeel_testkit::control_plane::Write;
use k8s_openapi::api::core::v1::Node;
use serde_json::Value;
use tempfile::TempDir;

use crate::account::Account;
use crate::charts::account;
use crate::go_hetzner::GoCluster;
use crate::go_services::SERVICES;
use crate::harness::{DEADLINE, Manager};
use crate::pod;

/// The arguments of the chart with `networking.enabled`.
const ONE_REPLICA: [&str; 8] = [
    "--allow-untagged-cloud",
    "--cloud-provider=hcloud",
    "--feature-gates=CloudControllerManagerWatchBasedRoutesReconciliation=true",
    "--leader-elect=false",
    "--route-reconciliation-period=30s",
    "--webhook-secure-port=0",
    "--allocate-node-cidrs=true",
    "--cluster-cidr=10.244.0.0/16",
];

/// The same for a `DaemonSet` or several replicas, which hold an election.
const SEVERAL: [&str; 7] = [
    "--allow-untagged-cloud",
    "--cloud-provider=hcloud",
    "--feature-gates=CloudControllerManagerWatchBasedRoutesReconciliation=true",
    "--route-reconciliation-period=30s",
    "--webhook-secure-port=0",
    "--allocate-node-cidrs=true",
    "--cluster-cidr=10.244.0.0/16",
];

/// The environment of the chart, with what people add in its `env`.
const ENV: [(&str, &str); 3] = [
    ("HCLOUD_TOKEN", HetznerCloud::TOKEN),
    ("HCLOUD_NETWORK", "kube"),
    ("HCLOUD_LOAD_BALANCERS_LOCATION", "fsn1"),
];

struct Swap {
    cluster: GoCluster,
    account: Account,
    folder: TempDir,
}

impl Swap {
    async fn new() -> Self {
        let cluster = GoCluster::new().await;
        Self {
            account: account(&cluster.client, "hetzner").await,
            folder: TempDir::new().expect("a temporary folder"),
            cluster,
        }
    }

    /// As the chart starts it, but for what Pods of one machine do not share and processes do.
    async fn start(&self, arguments: &[&str]) -> Manager {
        let container = self.container(arguments).await;
        Manager::spawn(container, self.folder.path().join("log"))
    }

    async fn container(&self, arguments: &[&str]) -> Command {
        let plane = &self.cluster.plane;
        let program = env!("CARGO_BIN_EXE_cloudkeel");
        let mut container = pod::container(plane, &self.account, self.folder.path(), program).await;
        container
            .args(arguments)
            .arg("--secure-port=0")
            .envs(ENV)
            .env("HCLOUD_ENDPOINT", self.cluster.served.api_url())
            .env("HCLOUD_METRICS_ADDRESS", "127.0.0.1:0")
            // This machine is none of the cloud, and nothing answers at 169.254.169.254.
            .env("HCLOUD_NETWORK_DISABLE_ATTACHED_CHECK", "true");
        container
    }

    /// What `cloudkeel plan` prints in the place of the Go CCM, under its chart's role.
    async fn plan(&self) -> Value {
        let arguments = [
            &["plan", "--output=json", "--exit-code"],
            ONE_REPLICA.as_slice(),
        ]
        .concat();
        // The cloud is served by this thread, which must not wait.
        let container = self.container(&arguments).await;
        let output = tokio::process::Command::from(container).output();
        let output = output.await.expect("it runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        let plan = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{errors}\n{plan}");
        serde_json::from_str(&plan).expect("JSON")
    }

    /// Waits until servers, balancers, certificates and routes have been looked at.
    async fn first_pass(&self) {
        let looks = [
            Operation::ListServers,
            Operation::ListLoadBalancers,
            Operation::ListCertificates,
            Operation::GetNetwork,
        ];
        eventually("a look at everything", DEADLINE, || async {
            let calls = self.cluster.cloud.calls();
            let missing = looks.iter().find(|look| calls.of(**look) == 0);
            missing.map_or(Ok(true), |look| Err(format!("no {look} yet")))
        })
        .await;
    }

    /// What managers wrote besides Events, in words. A new Node is replaced, or patched if another client has just
    /// changed it.
    fn written(&self) -> BTreeSet<String> {
        let writes = self.cluster.plane.writes_of(&self.account.user());
        let writes = writes.expect("a record").into_iter();
        let writes = writes.filter(|write| write.resource != "events");
        let in_words = |write: Write| {
            let verb = match write.verb.as_str() {
                "patch" | "update" => "change",
                other => other,
            };
            format!("{verb} {} {}", write.resource, write.name)
        };
        writes.map(in_words).collect()
    }
}

fn leads_to(balancer: &LoadBalancer, server: u64) -> bool {
    let mut targets = balancer.targets.iter();
    targets.any(|target| target.to == Destination::Server(server))
}

#[tokio::test]
async fn a_cluster_of_the_go_ccm_is_taken_over_without_a_write_and_then_followed() {
    let swap = Swap::new().await;
    let cluster = &swap.cluster;
    let balancers = cluster.cloud.load_balancers();
    assert_eq!(balancers.len(), SERVICES.len());

    let plan = swap.plan().await;
    assert_eq!(plan["steps"], serde_json::json!([]), "{plan:#}");
    assert_eq!(plan["complete"], true, "{plan:#}");
    assert_eq!(swap.written(), BTreeSet::new(), "a plan writes nothing");

    ends_well(changes_nothing(&swap, &SEVERAL).await).await;
    let lease = "leases cloud-controller-manager";
    let written = swap.written();
    let others: Vec<_> = written.iter().filter(|it| !it.ends_with(lease)).collect();
    assert_eq!(others, [] as [&String; 0], "an election writes its lease");
    assert!(!written.is_empty(), "there was an election");

    let manager = changes_nothing(&swap, &ONE_REPLICA).await;
    assert_eq!(swap.written(), written);
    assert_eq!(cluster.cloud.load_balancers(), balancers);

    a_new_machine_is_followed(cluster).await;
    a_service_that_goes_takes_its_balancer_along(cluster).await;
    // Everything that was written at all, so also what came late.
    let later: Vec<_> = swap.written().difference(&written).cloned().collect();
    let expected = [
        "change nodes node-4",
        "change nodes/status node-4",
        "change services/status plain",
    ];
    assert_eq!(later, expected);
    let calls = cluster.cloud.calls();
    let changes = calls
        .iter()
        .filter(|(operation, _)| operation.is_mutating());
    let changes: Vec<_> = changes.collect();
    let expected = [
        (Operation::AddRoute, 1),
        (Operation::DeleteLoadBalancer, 1),
        // One of them takes only Nodes with a label.
        (Operation::AddTarget, SERVICES.len() as u64 - 1),
    ];
    assert_eq!(changes, expected);
    ends_well(manager).await;
}

/// Starts a manager and waits for its first pass, in which it changes neither cloud nor cluster.
async fn changes_nothing(swap: &Swap, arguments: &[&str]) -> Manager {
    let cluster = &swap.cluster;
    let before = cluster.versions().await;
    cluster.cloud.reset_calls();
    let manager = swap.start(arguments).await;
    swap.first_pass().await;
    let calls = cluster.cloud.calls();
    assert_eq!(calls.mutations(), 0, "{:#?}", cluster.cloud.call_log());
    assert_eq!(cluster.versions().await, before, "{}", manager.log());
    manager
}

async fn ends_well(mut manager: Manager) {
    manager.signal("TERM");
    assert_eq!(manager.ended().await.code(), Some(0), "{}", manager.log());
    let errors = pod::lines(&manager, &["ERROR"]);
    assert!(errors.is_empty(), "{errors:#?}");
}

async fn a_new_machine_is_followed(cluster: &GoCluster) {
    let (server, ip) = cluster.server("node-4");
    let node = NodeBuilder::new("node-4")
        .node_ip(ip.into())
        .pod_cidr("10.244.9.0/24");
    node.create(&cluster.client)
        .await
        .expect("the node is made");
    let has_network = |node: &Node| {
        let status = node.status.as_ref();
        let mut conditions = status
            .iter()
            .flat_map(|status| status.conditions.iter().flatten());
        conditions.any(|it| it.type_ == "NetworkUnavailable" && it.status == "False")
    };
    wait_for_node(&cluster.client, "node-4", DEADLINE, has_network).await;
    let network = cluster.cloud.networks().remove(0);
    let route = network.routes.iter().find(|route| route.gateway == ip);
    assert_eq!(
        route.map(|route| route.destination.to_string()).as_deref(),
        Some("10.244.9.0/24")
    );
    for made in &SERVICES {
        // One Service takes only Nodes with a label.
        let expected = made.name != "local";
        eventually(
            &format!("the new target of {}", made.name),
            DEADLINE,
            || async { leads_to(&cluster.balancer_of(made.name).await, server.id) == expected },
        )
        .await;
    }
}

async fn a_service_that_goes_takes_its_balancer_along(cluster: &GoCluster) {
    let gone = cluster.balancer_of("plain").await.id;
    let rest: Vec<_> = cluster.cloud.load_balancers();
    let rest: Vec<_> = rest.into_iter().filter(|it| it.id != gone).collect();
    cluster.delete_service("plain").await;
    wait_for_service_gone(&cluster.client, "default", "plain", DEADLINE).await;
    assert_eq!(cluster.cloud.load_balancers(), rest);
}
