//! Nodes in network namespaces of their own: node ports behind a balancer, and routes of the kernel.
//!
//! It needs root and network namespaces, so it is a program of its own.
#![expect(
    clippy::expect_used,
    reason = "a test fails by panicking, with a sentence that says what was expected"
)]

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use cloudkeel_local_cloud::simulated_cloud::MachineSpec;
use cloudkeel_local_cloud::simulated_cloud::wire::{
    HealthCheck, Hop, Listener, Machine, NewBalancer, NewRoute, Protocol, Target, TargetAt,
    TargetState,
};
use cloudkeel_local_cloud::{Health, LocalCloud, Options, PlaneSettings, RouteMode};
use cloudkeel_testkit::namespaces::{self, Alone, NodeProcess, ROLE, hide_names};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

const TEST: Alone = Alone {
    name: "nodes_in_namespaces_are_served_and_routed_to",
    unshared: &["--net", "--mount"],
    needs: &[("ip", "-V"), ("mount", "--version")],
};
const NODE_PORT: u16 = 30_080;
const DEADLINE: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    match std::env::var(ROLE).as_deref() {
        Ok("inside") => runtime.block_on(inside()),
        Ok(name) => runtime.block_on(node(name.to_owned())),
        Err(_) => return runtime.block_on(TEST.run(async { passes() })),
    }
    ExitCode::SUCCESS
}

fn passes() -> bool {
    let mut inside = TEST.inside().expect("this program");
    inside.status().expect("unshare starts").success()
}

/// A node: says its name on its node port.
async fn node(name: String) {
    let at = (Ipv4Addr::UNSPECIFIED, NODE_PORT);
    let listener = TcpListener::bind(at).await.expect("the node port");
    while let Ok((mut stream, _)) = listener.accept().await {
        // A health check does not wait for the name.
        let _ = stream.write_all(name.as_bytes()).await;
    }
}

fn ip(line: &str) -> String {
    namespaces::ip(line).expect("ip does it")
}

async fn ask(address: SocketAddr) -> Option<String> {
    let asking = async {
        let mut stream = TcpStream::connect(address).await.ok()?;
        let mut name = String::new();
        stream.read_to_string(&mut name).await.ok()?;
        Some(name)
    };
    timeout(DEADLINE, asking).await.expect("an answer in time")
}

async fn eventually(what: &str, mut good: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !good().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(timeout(DEADLINE, waiting).await.is_ok(), "{what}");
}

/// The test itself, in a network and a file system of its own.
async fn inside() {
    hide_names().expect("a folder over /run");
    ip("link set lo up");
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options {
        routes: RouteMode::Kernel,
        plane: PlaneSettings {
            drain: Duration::ZERO,
            ..PlaneSettings::default()
        },
        ..Options::of(folder.path().join("state.json"))
    };
    let local = LocalCloud::start(&options).await.expect("the cloud starts");
    let mut nodes = [1, 2].map(|number| NodeProcess::start(number).expect("the node starts"));
    let machines = nodes.each_ref().map(|node| {
        let spec = MachineSpec::named(&node.name).private(node.address());
        local.cloud().add_machine(spec).expect("a machine")
    });
    node_ports_are_served(&local, &machines, &mut nodes).await;
    kernel_routes_follow(&local, &machines, &nodes).await;
    local.close().await;
    assert_eq!(ip("route show proto 207"), "", "nothing of ours is left");
    assert!(ip("route show").contains("10.244.2.0/24 via 10.9.2.2"));
}

async fn node_ports_are_served(
    local: &LocalCloud,
    machines: &[Machine; 2],
    nodes: &mut [NodeProcess; 2],
) {
    let cloud = local.cloud();
    let targets = machines.iter().map(|machine| Target {
        at: TargetAt::Machine(machine.id),
        state: TargetState::Serving,
    });
    let new = NewBalancer {
        name: "web".to_owned(),
        listeners: vec![Listener {
            protocol: Protocol::Tcp,
            port: 80,
            target_port: NODE_PORT,
            health_check: HealthCheck {
                interval_seconds: 1,
                retries: 1,
                ..HealthCheck::default()
            },
        }],
        targets: targets.collect(),
        ..NewBalancer::default()
    };
    let balancer = cloud.add_balancer(new).expect("a balancer");
    cloud.settle().await.expect("it works");
    let address = balancer.addresses.first().expect("an address");
    let front = SocketAddr::new(*address, 80);
    let healthy = async || {
        let stats = local.stats().await;
        let targets = stats.balancers.iter().flat_map(|b| &b.ports);
        let targets = targets.flat_map(|port| &port.targets);
        targets.filter(|t| t.health == Health::Healthy).count()
    };
    eventually("both nodes are healthy", async || healthy().await == 2).await;
    let mut heard = [ask(front).await, ask(front).await];
    heard.sort();
    assert_eq!(
        heard,
        ["node-1", "node-2"].map(|name| Some(name.to_owned()))
    );
    let [_, second] = nodes;
    second.kill();
    eventually("one is left", async || healthy().await == 1).await;
    for _ in 0..4 {
        assert_eq!(ask(front).await.as_deref(), Some("node-1"));
    }
}

async fn kernel_routes_follow(
    local: &LocalCloud,
    machines: &[Machine; 2],
    nodes: &[NodeProcess; 2],
) {
    let cloud = local.cloud();
    ip("route add 10.244.2.0/24 via 10.9.2.2");
    for (node, machine) in nodes.iter().zip(machines) {
        let destination = node.pods().parse().expect("a network");
        let hop = Hop::Machine(machine.id);
        cloud
            .add_route(NewRoute { destination, hop })
            .expect("a route");
    }
    cloud.settle().await.expect("routed");
    let ours = ip("route show proto 207");
    assert_eq!(ours.trim(), "10.244.1.0/24 via 10.9.1.2 dev v1");
    let routes = local.stats().await.routes;
    assert!(routes.kernel, "{routes:?}");
    assert_eq!(
        (routes.installed.len(), routes.problems.len()),
        (1, 1),
        "{routes:?}"
    );
    let [first, _] = nodes;
    let pod = SocketAddr::new(first.pod(), NODE_PORT);
    assert_eq!(ask(pod).await.as_deref(), Some("node-1"), "by the route");
    let foreign = ip("route show 10.244.2.0/24");
    assert!(!foreign.contains("proto 207"), "{foreign}");
}
