//! A cluster with Nodes and Services, and its cloud.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, Result};
use cloudkeel_bench_arena::{Contestant, Stage};
use cloudkeel_testkit::cluster::ServiceBuilder;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client};

/// How many objects are made at once.
const AT_ONCE: usize = 16;
const NAMESPACE: &str = "default";

pub(crate) struct ServiceCluster {
    pub(crate) stage: Stage,
    services: usize,
    /// The machines of the Nodes that are there, by the Nodes' names.
    machines: BTreeMap<String, u64>,
}

impl ServiceCluster {
    /// Makes so many Nodes and Services without balancers, in the cloud of this contestant.
    pub(crate) async fn build(
        contestant: Contestant,
        nodes: usize,
        services: usize,
        latency: Duration,
    ) -> Result<Self> {
        let mut cluster = Self {
            stage: Stage::build_for(contestant).await?,
            services,
            machines: BTreeMap::new(),
        };
        for number in 0..nodes {
            cluster.join(&format!("old-{number:05}")).await?;
        }
        let client = cluster.client();
        let made = (0..services).map(|number| make_service(&client, number));
        futures::stream::iter(made)
            .buffer_unordered(AT_ONCE)
            .try_collect::<()>()
            .await?;
        cluster.stage.set_latency(latency);
        cluster.stage.reset_calls();
        Ok(cluster)
    }

    fn client(&self) -> Client {
        self.stage.client()
    }

    async fn join(&mut self, name: &str) -> Result<()> {
        let machine = self.stage.join(name).await?;
        self.machines.insert(name.to_owned(), machine);
        Ok(())
    }

    async fn leave(&mut self, name: &str) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.client());
        nodes.delete(name, &DeleteParams::default()).await?;
        if let Some(machine) = self.machines.remove(name) {
            let gone = self.stage.destroy(machine);
            gone.with_context(|| format!("the machine of {name}"))?;
        }
        Ok(())
    }

    /// Replaces every Node: a new one joins, an old one leaves, a pause.
    pub(crate) async fn replace_nodes(&mut self, pause: Duration) -> Result<()> {
        let old: Vec<_> = self.machines.keys().cloned().collect();
        for (number, name) in old.iter().enumerate() {
            self.join(&format!("new-{number:05}")).await?;
            self.leave(name).await?;
            tokio::time::sleep(pause).await;
        }
        Ok(())
    }

    /// Whether every Service has its address, and every balancer has the machines of today as targets.
    pub(crate) async fn is_served(&self) -> Result<bool> {
        let wanted: BTreeSet<_> = self.machines.values().copied().collect();
        let balancers = self.stage.targets();
        let are_right = balancers.iter().all(|targets| *targets == wanted);
        Ok(balancers.len() == self.services
            && are_right
            && self.with_address().await? == self.services)
    }

    /// How many Services have an address.
    async fn with_address(&self) -> Result<usize> {
        let services: Api<Service> = Api::namespaced(self.client(), NAMESPACE);
        let list = services.list(&ListParams::default()).await?;
        let has_address = |service: &&Service| {
            let status = service.status.as_ref();
            let balancer = status.and_then(|status| status.load_balancer.as_ref());
            balancer.is_some_and(|b| b.ingress.as_ref().is_some_and(|list| !list.is_empty()))
        };
        Ok(list.items.iter().filter(has_address).count())
    }
}

async fn make_service(client: &Client, number: usize) -> Result<()> {
    let name = format!("service-{number:05}");
    let service = ServiceBuilder::new(NAMESPACE, &name).port("http", 80);
    let made = service.create(client).await;
    made.map(drop)
        .with_context(|| format!("service {name} was not made"))
}
