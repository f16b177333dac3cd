//! Nodes in network namespaces of their own: node ports behind a balancer, and routes of the kernel.
//!
//! It needs root and network namespaces, which is known only when it runs. So it has a `main` of its
//! own, which tells like every test whether it passed or was ignored, and why.
#![expect(
    clippy::expect_used,
    reason = "a test fails by panicking, with a sentence that says what was expected"
)]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use cloudkeel_local_cloud::simulated_cloud::MachineSpec;
use cloudkeel_local_cloud::simulated_cloud::wire::{
    HealthCheck, Hop, Listener, Machine, NewBalancer, NewRoute, Protocol, Target, TargetAt,
    TargetState,
};
use cloudkeel_local_cloud::{Health, LocalCloud, Options, PlaneSettings, RouteMode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

const NAME: &str = "nodes_in_namespaces_are_served_and_routed_to";
const ROLE: &str = "CLOUDKEEL_NAMESPACE_ROLE";
const NODE_PORT: u16 = 30_080;
const DEADLINE: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--list") {
        println!("{NAME}: test");
        return ExitCode::SUCCESS;
    }
    match std::env::var(ROLE).as_deref() {
        Ok("inside") => run(inside()),
        Ok(name) => run(node(name.to_owned())),
        Err(_) => outside(&words),
    }
}

fn run(what: impl Future<Output = ()>) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(what);
    ExitCode::SUCCESS
}

/// Whether the test runs, and how it ended, in the words of every other test.
fn outside(words: &[String]) -> ExitCode {
    let filter = words.iter().find(|word| !word.starts_with('-'));
    if filter.is_some_and(|filter| !NAME.contains(filter.as_str())) {
        println!("\nrunning 0 tests\n");
        return end(0, 0, 0);
    }
    println!("\nrunning 1 test");
    if let Err(why) = possible() {
        println!("test {NAME} ... ignored, {why}\n");
        return end(0, 0, 1);
    }
    let status = Command::new("unshare")
        .args(["--net", "--mount", "--"])
        .arg(std::env::current_exe().expect("this program"))
        .env(ROLE, "inside")
        .status()
        .expect("unshare starts");
    if status.success() {
        println!("test {NAME} ... ok\n");
        return end(1, 0, 0);
    }
    println!("test {NAME} ... FAILED\n");
    end(0, 1, 0)
}

fn end(passed: u8, failed: u8, ignored: u8) -> ExitCode {
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "test result: {verdict}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; \
         0 filtered out; finished in 0.00s\n"
    );
    ExitCode::from(failed)
}

fn possible() -> Result<(), String> {
    let attempts = [
        ("unshare", &["--net", "--mount", "true"][..]),
        ("ip", &["-V"]),
        ("mount", &["--version"]),
    ];
    for (program, arguments) in attempts {
        let output = Command::new(program).args(arguments).output();
        let output = output.map_err(|error| format!("needs `{program}`: {error}"))?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            let why = why.trim();
            return Err(format!("needs root and network namespaces: {why}"));
        }
    }
    Ok(())
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

/// A node that runs until this is dropped.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ip(line: &str) -> String {
    let output = Command::new("ip")
        .args(line.split_whitespace())
        .output()
        .expect("ip starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {line}: {told}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A namespace with a cable to ours, an address of the node and one of a pod.
fn start_node(number: u8) -> Node {
    let name = format!("node-{number}");
    for line in [
        format!("netns add {name}"),
        format!("link add v{number} type veth peer name eth0 netns {name}"),
        format!("addr add 10.9.{number}.1/24 dev v{number}"),
        format!("link set v{number} up"),
        format!("-n {name} addr add 10.9.{number}.2/24 dev eth0"),
        format!("-n {name} link set eth0 up"),
        format!("-n {name} link set lo up"),
        format!("-n {name} addr add 10.244.{number}.5/32 dev lo"),
    ] {
        ip(&line);
    }
    let child = Command::new("ip")
        .args(["netns", "exec", &name])
        .arg(std::env::current_exe().expect("this program"))
        .env(ROLE, &name)
        .stdin(Stdio::null())
        .spawn();
    Node(child.expect("the node starts"))
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
    // Names of namespaces are files; these go with ours.
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "tmpfs", "/run"])
        .status();
    assert!(mounted.expect("mount starts").success());
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
    let mut nodes = [start_node(1), start_node(2)];
    let machine = |number: u8| {
        let address = IpAddr::from([10, 9, number, 2]);
        let spec = MachineSpec::named(format!("node-{number}")).private(address);
        local.cloud().add_machine(spec).expect("a machine")
    };
    let machines = [machine(1), machine(2)];
    node_ports_are_served(&local, &machines, &mut nodes).await;
    kernel_routes_follow(&local, &machines).await;
    local.close().await;
    assert_eq!(ip("route show proto 207"), "", "nothing of ours is left");
    assert!(ip("route show").contains("10.244.2.0/24 via 10.9.2.2"));
}

async fn node_ports_are_served(local: &LocalCloud, machines: &[Machine; 2], nodes: &mut [Node; 2]) {
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
    second.0.kill().expect("the node dies");
    eventually("one is left", async || healthy().await == 1).await;
    for _ in 0..4 {
        assert_eq!(ask(front).await.as_deref(), Some("node-1"));
    }
}

async fn kernel_routes_follow(local: &LocalCloud, machines: &[Machine; 2]) {
    let cloud = local.cloud();
    ip("route add 10.244.2.0/24 via 10.9.2.2");
    let [first, second] = machines;
    for (third, machine) in [(1, first), (2, second)] {
        let destination = format!("10.244.{third}.0/24").parse().expect("a network");
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
    let pod = SocketAddr::from(([10, 244, 1, 5], NODE_PORT));
    assert_eq!(ask(pod).await.as_deref(), Some("node-1"), "by the route");
    let foreign = ip("route show 10.244.2.0/24");
    assert!(!foreign.contains("proto 207"), "{foreign}");
}
