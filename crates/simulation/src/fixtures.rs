//! What is there before a run begins: the cloud, and things of others that no manager may touch.

use std::time::Duration;

use anyhow::Result;
use cloudkeel_testkit::simulated_cloud::wire::{Hop, NewBalancer, NewRoute};
use cloudkeel_testkit::simulated_cloud::{
    Latency, MachineSpec, RateLimit, Settings, SimulatedCloud,
};
use serde_json::json;

use crate::cluster::Cluster;
use crate::rng::Rng;
use crate::topology::Topology;

/// The project of another cluster, which a wrong credential sees.
pub(crate) const OTHER_PROJECT: &str = "other";

/// Whether a Service UID on a balancer is that of another cluster.
pub(crate) fn is_foreign(uid: &str) -> bool {
    uid.starts_with("foreign")
}

/// A network of our own project that others route.
pub(crate) const FOREIGN_NETWORK: &str = "192.168.7.0/24";

/// The cloud of a run: each is a little different.
pub(crate) fn settings(rng: &mut Rng) -> Settings {
    let rate_limit = rng.chance(20).then(|| RateLimit {
        burst: 40,
        refill: Duration::from_millis(500),
    });
    let mut features = default_settings().features;
    features.tells_project = rng.chance(50);
    Settings {
        features,
        seed: rng.seed(),
        page_size: u64::from(rng.between(2, 5)),
        latency: Latency {
            fixed: Duration::from_millis(u64::from(rng.between(1, 200))),
            jitter: Duration::from_millis(50),
        },
        rate_limit,
        action_duration: rng.seconds(0, 20),
        ..default_settings()
    }
}

pub(crate) fn default_settings() -> Settings {
    Settings::default()
}

/// Nodes of others in the cluster.
pub(crate) async fn add_foreign_nodes(cluster: &Cluster, topology: Topology) -> Result<()> {
    let foreign = json!({"spec": {"providerID": "elsewhere://1", "taints": null},
                         "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
    cluster
        .register("foreign", &topology.pod_cidrs(100), &foreign)
        .await?;
    let unmanaged = json!({"metadata": {"labels": {"cloudkeel.dev/unmanaged": "true"}}});
    cluster
        .register("unmanaged", &topology.pod_cidrs(101), &unmanaged)
        .await
}

/// Things of others in our project and in theirs.
pub(crate) fn add_foreign_resources(cloud: &SimulatedCloud) -> Result<()> {
    add_to_our_project(cloud)?;
    add_other_project(cloud)
}

fn add_to_our_project(cloud: &SimulatedCloud) -> Result<()> {
    let owner = [("cloudkeel.dev/service-uid", "foreign-1")];
    cloud.add_balancer(NewBalancer {
        name: "foreign".to_owned(),
        labels: owner.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        ..NewBalancer::default()
    })?;
    let router = [10, 9, 9, 9].into();
    cloud.add_machine(MachineSpec::named("router").private(router))?;
    cloud.add_route(NewRoute {
        destination: FOREIGN_NETWORK.parse()?,
        hop: Hop::Ip(router),
    })?;
    Ok(())
}

/// Another cluster, set up as most are: its Nodes have the names of ours, and its Pods the same networks.
fn add_other_project(cloud: &SimulatedCloud) -> Result<()> {
    cloud.add_project(OTHER_PROJECT);
    for (name, network) in [("node-0", "10.244.0.0/24"), ("stranger", "10.244.7.0/24")] {
        let machine = cloud.add_machine(MachineSpec::named(name).in_project(OTHER_PROJECT))?;
        let route = NewRoute {
            destination: network.parse()?,
            hop: Hop::Machine(machine.id),
        };
        cloud.add_route_to(OTHER_PROJECT, route)?;
    }
    Ok(())
}
