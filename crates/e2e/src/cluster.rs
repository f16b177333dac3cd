//! The objects that the checks read and make.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::{Event, Namespace, Node, Pod, Service};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Error};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::Options;

/// The name of the namespace, and of everything in it.
pub(crate) const NAME: &str = "cloudkeel-e2e";

/// A Node with it is no target of a load balancer.
pub(crate) const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

const POLL_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) struct Cluster {
    pub(crate) nodes: Api<Node>,
    pub(crate) services: Api<Service>,
    pub(crate) events: Api<Event>,
    pods: Api<Pod>,
    namespaces: Api<Namespace>,
    options: Options,
}

impl Cluster {
    pub(crate) fn new(client: &Client, options: &Options) -> Self {
        Self {
            nodes: Api::all(client.clone()),
            services: Api::namespaced(client.clone(), NAME),
            events: Api::namespaced(client.clone(), NAME),
            pods: Api::namespaced(client.clone(), NAME),
            namespaces: Api::all(client.clone()),
            options: options.clone(),
        }
    }

    /// Tries until it succeeds; the error is that of the last attempt.
    pub(crate) async fn eventually<T, F: Future<Output = Result<T>>>(
        &self,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T> {
        let until = Instant::now() + self.options.timeout;
        loop {
            match attempt().await {
                Ok(value) => return Ok(value),
                Err(error) if Instant::now() >= until => {
                    let limit = self.options.timeout.as_secs();
                    return Err(error.context(format!("not within {limit} s")));
                }
                Err(_) => sleep(POLL_INTERVAL).await,
            }
        }
    }

    pub(crate) async fn all_nodes(&self) -> Result<Vec<Node>> {
        let nodes = self.nodes.list(&ListParams::default()).await;
        Ok(nodes.context("cannot list Nodes")?.items)
    }

    /// The namespace, the Pod if there is one, and the Service.
    pub(crate) async fn create(&self) -> Result<()> {
        let params = PostParams::default();
        let namespace = parse(json!({"metadata": {"name": NAME}}))?;
        match self.namespaces.create(&params, &namespace).await {
            Ok(_) => {}
            Err(Error::Api(status)) if status.code == 409 => {
                bail!(
                    "the namespace {NAME} exists: another run uses it, or left it. Delete it first"
                )
            }
            Err(error) => return Err(error).context(format!("cannot create the namespace {NAME}")),
        }
        if let Some(image) = &self.options.image {
            let pod = json!({
                "metadata": {"name": NAME, "labels": {"app": NAME}},
                "spec": {
                    "securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
                    "containers": [{
                        "name": "web", "image": image, "args": ["netexec", "--http-port=8080"],
                        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
                    }],
                },
            });
            let made = self.pods.create(&params, &parse(pod)?).await;
            made.context("cannot create the Pod")?;
        }
        let service = parse(json!({
            "metadata": {"name": NAME},
            "spec": {
                "type": "LoadBalancer",
                "selector": {"app": NAME},
                "ports": [{"name": "first", "port": 18080, "targetPort": 8080}],
            },
        }))?;
        let made = self.services.create(&params, &service).await;
        made.context("cannot create the Service")?;
        Ok(())
    }

    /// The address or host name that clients use.
    pub(crate) async fn address(&self) -> Result<String> {
        let service = self.services.get(NAME).await?;
        let status = service.status.and_then(|status| status.load_balancer);
        let ingress = status
            .and_then(|balancer| balancer.ingress)
            .unwrap_or_default();
        let published = ingress.into_iter().next();
        match published.and_then(|first| first.ip.or(first.hostname)) {
            Some(address) => Ok(address),
            None => bail!("no address: {}", self.last_warning().await),
        }
    }

    /// What the last Event that warns says of the Service.
    async fn last_warning(&self) -> String {
        let events = self.events.list(&ListParams::default()).await;
        let events = events.map(|list| list.items).unwrap_or_default();
        let mut warnings = events
            .iter()
            .filter(|it| it.type_.as_deref() == Some("Warning"));
        let last = warnings.next_back().and_then(|event| event.message.clone());
        last.unwrap_or_else(|| "no Event says why; does a replica lead?".to_owned())
    }

    pub(crate) async fn patch_service(&self, patch: &Value) -> Result<()> {
        let params = PatchParams::default();
        let patched = self
            .services
            .patch(NAME, &params, &Patch::Merge(patch))
            .await;
        patched.context("cannot change the Service")?;
        Ok(())
    }

    /// Sets the label that keeps a Node out of load balancers, or takes it off.
    pub(crate) async fn exclude(&self, node: &str, value: Value) -> Result<()> {
        let patch = json!({"metadata": {"labels": {EXCLUDED: value}}});
        let params = PatchParams::default();
        let patched = self.nodes.patch(node, &params, &Patch::Merge(patch)).await;
        patched.with_context(|| format!("cannot change the labels of Node {node}"))?;
        Ok(())
    }

    pub(crate) async fn delete_service(&self) -> Result<()> {
        ignore_missing(self.services.delete(NAME, &DeleteParams::default()).await)
    }

    pub(crate) async fn delete_namespace(&self) -> Result<()> {
        if self.options.image.is_some() {
            ignore_missing(self.pods.delete(NAME, &DeleteParams::default()).await)?;
        }
        ignore_missing(self.namespaces.delete(NAME, &DeleteParams::default()).await)
    }
}

fn ignore_missing<T>(deleted: kube::Result<T>) -> Result<()> {
    match deleted {
        Ok(_) => Ok(()),
        Err(Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn parse<T: serde::de::DeserializeOwned>(value: Value) -> Result<T> {
    serde_json::from_value(value).context("an object of the checks")
}
