//! A Service through the local provider, from its specification to its traffic.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cloudkeel_api::{
    BalancerRef, CloudProvider as _, ClusterIdentity, DesiredState, Ingress, Listener,
    LoadBalancerSpec, NodeFacts, Outcome, ProviderContext, ServiceRef, Target, TargetState,
};
use cloudkeel_local_cloud::simulated_cloud::{LocalId, MachineSpec, SimulatedCloud};
use cloudkeel_provider_local::{Config, LocalProvider, Wiring};

use crate::lab::{Backend, Front, Lab};

async fn provider(lab: &Lab) -> LocalProvider {
    let contact = lab.local.contact();
    let token = std::fs::read_to_string(&contact.token_file).expect("a token");
    let config = Config::new(contact.url.clone(), token);
    let context = ProviderContext::detached("local");
    let provider = LocalProvider::connect(&config, &context, Wiring::default());
    provider.await.expect("it connects")
}

/// The Node of a machine that a backend runs on.
fn node(lab: &Lab, backend: &Backend) -> NodeFacts {
    let spec = MachineSpec::named(backend.name).private(backend.address.ip());
    let machine = lab.local.cloud().add_machine(spec).expect("a machine");
    let id = LocalId::new(SimulatedCloud::PROJECT, machine.id);
    NodeFacts {
        name: backend.name.to_owned(),
        provider_id: Some(id.provider_id()),
        ..NodeFacts::default()
    }
}

fn spec(port: u16, node_port: u16) -> LoadBalancerSpec {
    let cluster = ClusterIdentity {
        name: "kubernetes".to_owned(),
        uid: None,
        pod_cidrs: vec![],
    };
    let service = ServiceRef {
        namespace: "default".to_owned(),
        name: "web".to_owned(),
        uid: "u-1".to_owned(),
    };
    LoadBalancerSpec {
        listeners: vec![Listener::tcp(port, node_port)],
        ..LoadBalancerSpec::plain(BalancerRef::of(cluster, service))
    }
}

fn aim(spec: &mut LoadBalancerSpec, node: &NodeFacts, state: TargetState) {
    let target = Target {
        state,
        ..Target::machine(node.clone())
    };
    spec.targets.insert(node.name.clone(), target);
}

/// Makes it so, and says where the Service is found.
async fn apply(provider: &LocalProvider, spec: &LoadBalancerSpec) -> std::net::IpAddr {
    let balancers = provider.load_balancers().expect("it has balancers");
    let outcome = balancers.apply(DesiredState::Present(spec)).await;
    match outcome.expect("it can be made so") {
        Outcome::Settled { status, .. } => match &*status.ingress {
            [Ingress::Ip { ip, .. }] => *ip,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_roll_under_a_service_and_no_request_is_lost() {
    let lab = Lab::new().await;
    let provider = provider(&lab).await;
    let mut backends = Backend::several(["a", "b", "c"]).await;
    let nodes: Vec<_> = backends.iter().map(|backend| node(&lab, backend)).collect();
    let mut spec = spec(8080, backends[0].address.port());
    aim(&mut spec, &nodes[0], TargetState::Serving);
    aim(&mut spec, &nodes[1], TargetState::Serving);
    let address = apply(&provider, &spec).await;
    let front = Front {
        id: lab.local.cloud().balancers()[0].id,
        address: (address, 8080).into(),
    };
    let done = Arc::new(AtomicBool::new(false));
    let (asked, lost) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let (done, asked, lost) = (Arc::clone(&done), Arc::clone(&asked), Arc::clone(&lost));
            tokio::spawn(async move {
                while !done.load(Ordering::Relaxed) {
                    let answered = front.ask().await.is_some();
                    asked.fetch_add(1, Ordering::Relaxed);
                    lost.fetch_add(usize::from(!answered), Ordering::Relaxed);
                }
            })
        })
        .collect();
    // Each node goes as a node goes: drained, removed, and only then down.
    for (leaving, coming) in [(0, 2), (1, 0), (2, 1)] {
        aim(&mut spec, &nodes[coming], TargetState::Serving);
        aim(&mut spec, &nodes[leaving], TargetState::Draining);
        assert_eq!(apply(&provider, &spec).await, address);
        spec.targets.remove(&nodes[leaving].name);
        assert_eq!(apply(&provider, &spec).await, address);
        let gone = backends[leaving].address;
        lab.until(&front, "it has finished", |targets| {
            targets.iter().all(|target| target.address != gone)
        })
        .await;
        backends[leaving].stop().await;
        let before = asked.load(Ordering::Relaxed);
        while asked.load(Ordering::Relaxed) < before + 50 {
            tokio::task::yield_now().await;
        }
        backends[leaving].start_again().await;
    }
    done.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.expect("the client ran");
    }
    let lost = lost.load(Ordering::Relaxed);
    assert_eq!(lost, 0, "of {} requests", asked.load(Ordering::Relaxed));
    let before = lab.local.cloud().calls().mutations();
    apply(&provider, &spec).await;
    let after = lab.local.cloud().calls().mutations();
    assert_eq!(after, before, "what is right is not touched");
    let balancers = provider.load_balancers().expect("it has balancers");
    let gone = balancers
        .apply(DesiredState::Absent(&spec.balancer_ref))
        .await;
    assert!(matches!(gone, Ok(Outcome::Gone { .. })), "{gone:?}");
    assert!(lab.local.stats().await.balancers.is_empty());
}
