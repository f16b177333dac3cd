//! The test itself, in namespaces of its own.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::process::Command;

use cloudkeel_testkit::cluster::{
    NodeBuilder, ServiceBuilder, eventually, wait_for_node, wait_for_service,
};
use cloudkeel_testkit::control_plane::ControlPlane;
use cloudkeel_testkit::namespaces::{NodeProcess, hide_names, ip};
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::DeleteParams;
use kube::{Api, Client};

use crate::home::{DEADLINE, Home, Process};
use crate::node::NODE_PORT;

/// How often is asked where every answer counts.
const OFTEN: usize = 30;

pub(crate) async fn inside() {
    hide_names().expect("a folder over /run");
    ip("link set lo up").expect("loopback");
    let machines = [1, 2, 3].map(|number| NodeProcess::start(number).expect("the node starts"));
    let control_plane = ControlPlane::start().await.expect("a control plane");
    let client = control_plane.client();
    let kubeconfig = control_plane.kubeconfig_for("me", &["system:masters"]);
    let home = Home::new();
    register(&client, &machines).await;
    let mut manager = manager(&home, &kubeconfig);
    let address = service(&client).await;
    all_answer(&address, &["node-1", "node-2", "node-3"]).await;
    traffic_goes_on_without_a_node(&address, &machines).await;
    routes_come_and_go_with_their_nodes(&client, &machines).await;
    all_answer(&address, &["node-1", "node-3"]).await;

    manager.signal("TERM");
    assert_eq!(manager.ended().await, Some(0));
    all_answer(&address, &["node-1", "node-3"]).await;
    home.running().await;
    let stopped = home.run(&["local-cloud", "stop"]);
    assert!(stopped.status.success(), "{stopped:?}");
    assert!(home.status().iter().all(|cloud| cloud["is"] == "stopped"));
    assert_eq!(ask(&address), None, "the address is closed");
    let left = ip("route show proto 207").expect("routes");
    assert_eq!(left, "", "nothing of ours is left");
}

/// Two Nodes as k3s has them without its own cloud controller: they wait for theirs. One as kind has
/// them: with an ID of kind's.
async fn register(client: &Client, machines: &[NodeProcess; 3]) {
    for machine in machines {
        let mut node = NodeBuilder::new(&machine.name)
            .node_ip(machine.address())
            .pod_cidr(machine.pods());
        if machine.number == 3 {
            let id = format!("kind://docker/kind/{}", machine.name);
            node = node.provider_id(id).initialized();
        }
        node.create(client).await.expect("the node is made");
    }
}

/// The command of the documentation, with routes.
fn manager(home: &Home, kubeconfig: &Path) -> Process {
    let log = File::create(home.path("manager.log")).expect("a log file");
    let child = home
        .cloudkeel(&["--cloud-provider=local", "--cluster-cidr=10.244.0.0/16"])
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .stdout(log.try_clone().expect("a second handle"))
        .stderr(log)
        .spawn();
    Process(child.expect("the manager starts"))
}

/// A Service, and the address that it gets.
async fn service(client: &Client) -> String {
    let service = ServiceBuilder::new("default", "web");
    let service = service.port_through("http", 80, i32::from(NODE_PORT), 80);
    service.create(client).await.expect("the service is made");
    let served = wait_for_service(client, "default", "web", DEADLINE, |service| {
        address(service).is_some()
    });
    address(&served.await).expect("just seen")
}

fn address(service: &Service) -> Option<String> {
    let balancer = service.status.as_ref()?.load_balancer.as_ref()?;
    balancer.ingress.as_ref()?.first()?.ip.clone()
}

/// The name of the Node that answers there, if one does.
fn ask(address: &str) -> Option<String> {
    let output = Command::new("curl")
        .args(["--silent", "--max-time", "20"])
        .arg(format!("http://{address}/"))
        .output()
        .expect("curl runs");
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(answer)
}

/// Waits until these nodes answer, and only these.
async fn all_answer(address: &str, names: &[&str]) {
    let expected: BTreeSet<_> = names.iter().map(|name| Some((*name).to_owned())).collect();
    eventually("these nodes answer", DEADLINE, || async {
        let heard: BTreeSet<_> = (0..OFTEN).map(|_| ask(address)).collect();
        if heard == expected {
            Ok(Some(()))
        } else {
            Err(format!("{heard:?} instead of {expected:?}"))
        }
    })
    .await;
}

async fn traffic_goes_on_without_a_node(address: &str, machines: &[NodeProcess; 3]) {
    let [_, second, _] = machines;
    second.plug(false).expect("the cable is out");
    for number in 0..OFTEN {
        let who = ask(address);
        let expected = ["node-1", "node-3"].map(|name| Some(name.to_owned()));
        assert!(expected.contains(&who), "answer {number} is {who:?}");
    }
    second.plug(true).expect("the cable is in");
    all_answer(address, &["node-1", "node-2", "node-3"]).await;
}

async fn routes_come_and_go_with_their_nodes(client: &Client, machines: &[NodeProcess; 3]) {
    let [first, second, _] = machines;
    let is_ours = |node: &Node| {
        let spec = node.spec.as_ref();
        let id = spec.and_then(|spec| spec.provider_id.as_deref());
        id.is_some_and(|id| id.starts_with("local://"))
    };
    for machine in [first, second] {
        wait_for_node(client, &machine.name, DEADLINE, is_ours).await;
    }
    let leads = |machine: &NodeProcess| {
        let (network, hop, number) = (machine.pods(), machine.address(), machine.number);
        format!("{network} via {hop} dev v{number}")
    };
    routes_are(&[leads(first), leads(second)]).await;
    let pod = format!("{}:{NODE_PORT}", second.pod());
    assert_eq!(ask(&pod), Some(second.name.clone()), "by the route");
    let nodes: Api<Node> = Api::all(client.clone());
    let deleted = nodes.delete(&second.name, &DeleteParams::default()).await;
    deleted.expect("the node is deleted");
    routes_are(&[leads(first)]).await;
    assert_eq!(ask(&pod), None, "there is no way any more");
}

/// Waits until the kernel has these routes of ours, and no others.
async fn routes_are(expected: &[String]) {
    eventually("routes in the kernel", DEADLINE, || async {
        let shown = ip("route show proto 207").expect("routes");
        let routes: Vec<_> = shown.lines().map(str::trim).collect();
        if routes == expected {
            Ok(Some(()))
        } else {
            Err(format!("{routes:?} instead of {expected:?}"))
        }
    })
    .await;
}
