//! Each chart in its common variants, as it is.

use std::collections::BTreeMap;

use cloudkeel_testkit::cluster::{NodeBuilder, UNINITIALIZED_TAINT, unique_name, wait_for_node};
use k8s_openapi::api::core::v1::Node;
use kube::Client;

use crate::account::Account;
use crate::harness::{DEADLINE, Manager, TOKEN, World, package};
use crate::permissions::{Grant, documents, granted_to};
use crate::pod;
use crate::scrape::{free_port, get};

const NO_UID: &str = "failed to get the cluster UID";
const NO_WATCH_OF_THE_LEASE: &str = "not allowed to watch the lease";

struct Chart {
    case: &'static str,
    /// Whose role it gets.
    role: &'static str,
    /// The program and its arguments. `CLOUD_CONFIG` stands for the path of the file, as in the manifest.
    arguments: &'static str,
    env: &'static [(&'static str, &'static str)],
    elects: bool,
    /// What its role does not allow, each logged once.
    warnings: &'static [&'static str],
}

const HETZNER: Chart = Chart {
    case: "hetzner: Deployment with one replica",
    role: "hetzner",
    arguments: "/bin/hcloud-cloud-controller-manager --allow-untagged-cloud --cloud-provider=hcloud \
        --feature-gates=CloudControllerManagerWatchBasedRoutesReconciliation=true \
        --route-reconciliation-period=30s --webhook-secure-port=0 --leader-elect=false",
    env: &[],
    elects: false,
    warnings: &[NO_UID],
};

const OPENSTACK: Chart = Chart {
    case: "openstack: manifest of the DaemonSet",
    role: "openstack",
    arguments: "/bin/openstack-cloud-controller-manager --v=1 --cluster-name=kubernetes \
        --cloud-config=CLOUD_CONFIG --cloud-provider=openstack \
        --use-service-account-credentials=false --bind-address=127.0.0.1",
    env: &[("CLUSTER_NAME", "kubernetes")],
    elects: true,
    warnings: &[NO_UID, NO_WATCH_OF_THE_LEASE],
};

const CHARTS: [Chart; 8] = [
    HETZNER,
    Chart {
        case: "hetzner: networks",
        arguments: "/bin/hcloud-cloud-controller-manager --allow-untagged-cloud \
            --cloud-provider=hcloud \
            --feature-gates=CloudControllerManagerWatchBasedRoutesReconciliation=true \
            --route-reconciliation-period=30s --webhook-secure-port=0 --leader-elect=false \
            --allocate-node-cidrs=true --cluster-cidr=10.244.0.0/16",
        env: &[("HCLOUD_NETWORK", "kube")],
        ..HETZNER
    },
    Chart {
        case: "hetzner: DaemonSet with Robot and private networks",
        arguments: "/bin/hcloud-cloud-controller-manager --allow-untagged-cloud \
            --cloud-provider=hcloud \
            --feature-gates=CloudControllerManagerWatchBasedRoutesReconciliation=true \
            --route-reconciliation-period=30s --webhook-secure-port=0",
        env: &[
            ("HCLOUD_NETWORK", "kube"),
            ("HCLOUD_NETWORK_ROUTES_ENABLED", "false"),
            ("ROBOT_ENABLED", "true"),
            ("ROBOT_USER", "user"),
            ("ROBOT_PASSWORD", "password"),
        ],
        elects: true,
        ..HETZNER
    },
    Chart {
        case: "hetzner: the name of the program alone says which cloud",
        arguments: "hcloud-cloud-controller-manager --allow-untagged-cloud --leader-elect=false",
        ..HETZNER
    },
    OPENSTACK,
    Chart {
        case: "openstack: Helm chart",
        arguments: "/bin/openstack-cloud-controller-manager --v=2 --cluster-name=kubernetes \
            --cloud-config=CLOUD_CONFIG --cloud-provider=openstack \
            --use-service-account-credentials=false \
            --controllers=cloud-node,cloud-node-lifecycle,route,service --bind-address=127.0.0.1",
        ..OPENSTACK
    },
    Chart {
        case: "openstack: static Pod with an account per controller",
        arguments: "/bin/openstack-cloud-controller-manager --v=1 --cluster-name=kubernetes \
            --cloud-config=CLOUD_CONFIG --cloud-provider=openstack \
            --use-service-account-credentials=true --bind-address=127.0.0.1",
        ..OPENSTACK
    },
    Chart {
        case: "openstack: an image with an entrypoint of its own gets the program's name as well",
        arguments: "/cloudkeel /bin/openstack-cloud-controller-manager --v=1 \
            --cloud-config=CLOUD_CONFIG --user-agent=one --user-agent=two --bind-address=127.0.0.1",
        ..OPENSTACK
    },
];

fn grants_of(role: &str) -> Vec<Grant> {
    let folder = package().join("tests/deploy/roles");
    let documents = documents(&folder.join(format!("{role}.yaml")));
    let account = documents
        .iter()
        .find(|document| document["kind"] == "ServiceAccount")
        .and_then(|account| account["metadata"]["name"].as_str());
    granted_to(account.expect("a ServiceAccount"), &documents)
}

/// A new account with the role of this chart.
pub(crate) async fn account(client: &Client, role: &str) -> Account {
    let account = Account::create(client).await;
    account.grant(&grants_of(role)).await;
    account
}

/// One after the other: they all use the lease that every Go CCM uses.
#[tokio::test]
async fn every_chart_works_as_it_is() {
    for chart in &CHARTS {
        eprintln!("{}", chart.case);
        works(chart).await;
    }
}

async fn works(chart: &Chart) {
    let case = chart.case;
    let mut world = World::new().await;
    world.lease_name = "cloud-controller-manager".into();
    let account = account(&world.client, chart.role).await;
    let port = free_port();
    let manager = start(chart, &world, &account, port).await;

    let name = unique_name("node");
    world.machine(&name);
    let made = NodeBuilder::new(&name).create(&world.client).await;
    made.expect("the node is made");
    let is_initialized = |node: &Node| {
        let spec = node.spec.clone().unwrap_or_default();
        let mut taints = spec.taints.iter().flatten();
        spec.provider_id.is_some() && taints.all(|taint| taint.key != UNINITIALIZED_TAINT)
    };
    wait_for_node(&world.client, &name, DEADLINE, is_initialized).await;
    let (code, body) = get(port, "/healthz", None).await;
    assert_eq!((code, body.as_str()), (200, "ok"), "{case}");
    let holder = world.holder().await;
    assert_eq!(!holder.is_empty(), chart.elects, "{case}: {holder:?}");
    ends_well(chart, manager).await;
    assert_eq!(world.holder().await, "", "{case}: the lease is given back");
}

async fn start(chart: &Chart, world: &World, account: &Account, port: u16) -> Manager {
    let cloud_config = world.write_file(
        "cloud.conf",
        &format!(
            "[Global]\nauth-url = \"{}\"\napplication-credential-id = \"id\"\n\
             application-credential-secret = \"{TOKEN}\"\n[BlockStorage]\nbs-version = v3\n",
            world.url()
        ),
    );
    let cloud_config = cloud_config.to_str().expect("text");
    let words = chart.arguments.split_whitespace();
    let mut arguments: Vec<_> = words
        .map(|word| word.replace("CLOUD_CONFIG", cloud_config))
        .collect();
    // All processes of this machine share one network, which Pods do not.
    arguments.push(format!("--secure-port={port}"));
    let own = [
        ("HCLOUD_TOKEN", TOKEN),
        ("HCLOUD_ENDPOINT", &world.url()),
        ("CLOUD_CONFIG", cloud_config),
    ];
    let env: BTreeMap<_, _> = own
        .iter()
        .chain(chart.env)
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    pod::start(world, account, &arguments, &env).await
}

async fn ends_well(chart: &Chart, mut manager: Manager) {
    let case = chart.case;
    let errors = pod::lines(&manager, &["ERROR"]);
    assert!(errors.is_empty(), "{case}: {errors:#?}");
    let warnings = pod::lines(&manager, &["WARN"]);
    for expected in chart.warnings {
        let found = warnings.iter().filter(|line| line.contains(expected));
        assert_eq!(found.count(), 1, "{case}: {expected:?} in {warnings:#?}");
    }
    manager.signal("TERM");
    let status = manager.ended().await;
    assert_eq!(status.code(), Some(0), "{case}: {}", manager.log());
}
