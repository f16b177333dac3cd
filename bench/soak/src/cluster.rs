//! A real API server, a simulated cloud, and what has to be true of them when nothing happens any more.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use cloudkeel_bench_arena::{Stage, requests};
use cloudkeel_testkit::cluster::ServiceBuilder;
use cloudkeel_testkit::simulated_cloud::MachineSpec;
use cloudkeel_testkit::simulated_cloud::wire::Machine;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::ListParams;
use kube::{Api, Client};

use crate::kubelets::Kubelets;
use crate::problems::Snapshot;

const NAMESPACE: &str = "default";

pub(crate) struct SoakCluster {
    pub(crate) stage: Stage,
    pub(crate) kubelets: Kubelets,
}

impl SoakCluster {
    /// So many machines whose Nodes have just registered, and so many new Services.
    pub(crate) async fn build(nodes: usize, services: usize, latency: Duration) -> Result<Self> {
        let stage = Stage::build().await?;
        let kubelets = Kubelets::start(stage.client());
        let cluster = Self { stage, kubelets };
        for number in 0..nodes {
            cluster.join(&node_name(number), number).await?;
        }
        for number in 0..services {
            cluster.make_service(number).await?;
        }
        cluster.stage.set_latency(latency);
        Ok(cluster)
    }

    pub(crate) fn client(&self) -> Client {
        self.stage.client()
    }

    pub(crate) fn services(&self) -> Api<Service> {
        Api::namespaced(self.client(), NAMESPACE)
    }

    pub(crate) fn nodes(&self) -> Api<Node> {
        Api::all(self.client())
    }

    /// A machine boots, and its kubelet registers. The number makes its Pod CIDR, so it is used once.
    pub(crate) async fn join(&self, name: &str, number: usize) -> Result<u64> {
        let machine = self.stage.cloud.add_machine(MachineSpec::named(name));
        let machine: Machine =
            machine.map_err(|refusal| anyhow!("no machine {name}: {refusal:?}"))?;
        self.kubelets.register(&machine, &pod_cidr(number)).await?;
        Ok(machine.id)
    }

    pub(crate) async fn make_service(&self, number: usize) -> Result<()> {
        let name = service_name(number);
        let service = ServiceBuilder::new(NAMESPACE, &name).port("http", 80);
        let made = service.create(&self.client()).await;
        made.map(drop)
            .with_context(|| format!("service {name} was not made"))
    }

    /// What is wrong now.
    pub(crate) async fn problems(&self) -> Result<Vec<String>> {
        let all = ListParams::default();
        let snapshot = Snapshot {
            nodes: self.nodes().list(&all).await?.items,
            services: self.services().list(&all).await?.items,
            machines: self.stage.cloud.machines(),
            balancers: self.stage.cloud.balancers(),
            routes: self.stage.cloud.routes(),
        };
        Ok(snapshot.problems())
    }

    /// How often Nodes were written so far, by all clients.
    pub(crate) async fn node_writes(&self) -> Result<u64> {
        Ok(requests(&self.client()).await?.node_writes)
    }
}

pub(crate) fn node_name(number: usize) -> String {
    format!("node-{number:05}")
}

pub(crate) fn service_name(number: usize) -> String {
    format!("service-{number:05}")
}

/// A network of 10.64.0.0/10 for each Node that ever joins.
fn pod_cidr(number: usize) -> String {
    let number = number % (64 * 256);
    format!("10.{}.{}.0/24", 64 + number / 256, number % 256)
}
