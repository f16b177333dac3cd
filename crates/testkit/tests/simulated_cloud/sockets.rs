//! The same provider over real connections. The clock is real here, so nothing waits.

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    CloudProvider as _, CollectedEvents, DesiredState, ErrorKind, Existence, Outcome,
};
use cloudkeel_provider_local::{Config, LocalProvider, Wiring};
use cloudkeel_testkit::simulated_cloud::{
    Fault, MachineSpec, Operation, Served, Settings, SimulatedCloud,
};

use crate::support::{context, node_of, spec};

/// Long enough for a busy machine.
const PATIENT: Duration = Duration::from_secs(10);

/// For the one case without an answer.
const IMPATIENT: Duration = Duration::from_millis(500);

struct Online {
    cloud: SimulatedCloud,
    provider: LocalProvider,
    _served: Served,
}

async fn online(machines: usize, timeout: Duration) -> Online {
    let cloud = SimulatedCloud::new(Settings::default());
    cloud
        .add_machines(machines, |i| MachineSpec::named(format!("node-{i}")))
        .unwrap();
    let served = cloud.serve_on_loopback().await.unwrap();
    let context = context(&Arc::new(CollectedEvents::default()));
    let config = Config {
        timeout,
        ..Config::new(served.url(), SimulatedCloud::TOKEN)
    };
    let provider = LocalProvider::connect(&config, &context, Wiring::default())
        .await
        .unwrap();
    cloud.reset_calls();
    Online {
        cloud,
        provider,
        _served: served,
    }
}

#[tokio::test]
async fn machines_are_listed_and_proven_gone_over_a_socket() {
    let Online {
        cloud,
        provider,
        _served,
    } = online(120, PATIENT).await;
    let instances = provider.instances().unwrap();
    let list = instances.list().await.unwrap();
    assert_eq!(list.instances().len(), 120);
    let node = node_of(&cloud.machines()[0]);
    let id = node.provider_id.clone().unwrap();
    let known_instance = list.known_instance_besides(&id, |_| true);
    let found = instances.find(&node, known_instance.as_ref()).await;
    assert!(found.instance().is_some(), "{found:?}");
    cloud.destroy(cloud.machines()[0].id).unwrap();
    let found = instances.find(&node, known_instance.as_ref()).await;
    assert!(matches!(found, Existence::Gone(_)), "{found:?}");
}

#[tokio::test]
async fn the_scope_of_a_served_cloud_names_its_address() {
    let cloud = SimulatedCloud::new(Settings::default());
    cloud.add_machine(MachineSpec::named("node-0")).unwrap();
    let served = cloud.serve_on_loopback().await.unwrap();
    let context = context(&Arc::new(CollectedEvents::default()));
    let config = Config::new(served.url(), SimulatedCloud::TOKEN);
    let provider = LocalProvider::connect(&config, &context, Wiring::default());
    let provider = provider.await.unwrap();
    let scope = provider.check().await.unwrap();
    assert_eq!(scope.as_str(), format!("demo at {}", served.url()));
}

#[tokio::test]
async fn faults_over_a_socket_are_errors_and_never_proof() {
    for (fault, kind) in [
        (Fault::BrokenBefore, ErrorKind::Unavailable),
        (Fault::NoAnswer, ErrorKind::Timeout),
        (Fault::status(503), ErrorKind::Unavailable),
        (Fault::Html, ErrorKind::Malformed),
        (Fault::MalformedJson, ErrorKind::Malformed),
        (Fault::TruncatedPage, ErrorKind::Incomplete),
        (Fault::LostNextPage, ErrorKind::Incomplete),
    ] {
        let timeout = match fault {
            Fault::NoAnswer => IMPATIENT,
            _ => PATIENT,
        };
        let Online {
            cloud,
            provider,
            _served,
        } = online(60, timeout).await;
        cloud
            .faults()
            .always(Operation::ListMachines, fault.clone());
        let error = provider.instances().unwrap().list().await.unwrap_err();
        assert_eq!(error.kind(), kind, "{fault:?}: {error}");
    }
}

#[tokio::test]
async fn a_balancer_is_created_and_deleted_over_a_socket() {
    let Online {
        cloud,
        provider,
        _served,
    } = online(2, PATIENT).await;
    let spec = spec("u-1", &[80], cloud.machines().iter().map(node_of));
    let balancers = provider.load_balancers().unwrap();
    cloud
        .faults()
        .once(Operation::CreateBalancer, Fault::BrokenAfter);
    let error = balancers
        .apply(DesiredState::Present(&spec))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let outcome = balancers.apply(DesiredState::Present(&spec)).await.unwrap();
    assert!(matches!(outcome, Outcome::Settled { .. }), "{outcome:?}");
    assert_eq!(cloud.balancers().len(), 1);
    cloud.reset_calls();
    balancers.apply(DesiredState::Present(&spec)).await.unwrap();
    assert_eq!(cloud.calls().mutations(), 0);
    let outcome = balancers
        .apply(DesiredState::Absent(&spec.balancer_ref))
        .await
        .unwrap();
    assert!(matches!(outcome, Outcome::Gone { .. }), "{outcome:?}");
    assert!(cloud.balancers().is_empty());
}

#[tokio::test]
async fn a_cloud_that_does_not_listen_is_unavailable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let config = Config {
        timeout: IMPATIENT,
        ..Config::new(url, SimulatedCloud::TOKEN)
    };
    let context = context(&Arc::new(CollectedEvents::default()));
    let refused = LocalProvider::connect(&config, &context, Wiring::default()).await;
    let error = refused.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}
