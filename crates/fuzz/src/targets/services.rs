//! Services as people write them, all the way to the plan of each cloud.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloudkeel_api::{
    CloudProvider, ClusterIdentity, DesiredState, ErrorKind, KeyPlace, LoadBalancerSpec,
    ProviderContext, Target as Backend, TargetBy, TargetState, names,
};
use cloudkeel_controllers::service::spec::{Setting, balancer_ref_of, draft};
use cloudkeel_controllers::service::targets::node_selector;
use cloudkeel_controllers::view::{ServiceView, View as _};
use k8s_openapi::api::core::v1::Service;

use super::answers::{Cloud, Hetzner, Local, OpenStack};
use super::{node_of, owned, paused, registry};
use crate::target::{Check, Reader, Target};

pub(super) const TARGETS: &[Target] = &[Target::new(
    "service",
    "Services: their fields, the neutral annotations, those of each provider, to the plan",
    services,
    words,
    service,
)
.share(20)];

/// One Service per annotation, and one with many.
fn services() -> Vec<Vec<u8>> {
    let annotations = annotations();
    let one = |(name, value): (&String, &String)| with(&[(name.clone(), value.clone())].into());
    let each = annotations.iter().map(one);
    let bare = std::iter::once(with(&BTreeMap::new()));
    each.chain(bare).collect()
}

fn with(annotations: &BTreeMap<String, String>) -> Vec<u8> {
    let service = serde_json::json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": "default", "uid": "u-1", "resourceVersion": "1",
            "annotations": annotations},
        "spec": {"type": "LoadBalancer", "ipFamilies": ["IPv4"], "sessionAffinity": "None",
            "externalTrafficPolicy": "Local", "healthCheckNodePort": 31000,
            "loadBalancerSourceRanges": ["10.0.0.0/8"], "loadBalancerIP": "",
            "ports": [{"name": "http", "protocol": "TCP", "port": 80, "nodePort": 30080, "appProtocol": "http"}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
    });
    service.to_string().into_bytes()
}

/// Every annotation of every cloud, with a value that is often valid.
fn annotations() -> BTreeMap<String, String> {
    let own = registry().descriptors().into_iter().flat_map(|d| d.keys);
    let keys = own.chain(names::annotation_docs());
    let keys = keys.filter(|key| key.place == KeyPlace::Annotation);
    let value = |default: Option<&str>| default.unwrap_or("true").to_owned();
    keys.map(|key| (key.name.to_owned(), value(key.default)))
        .collect()
}

fn words() -> Vec<String> {
    let names = annotations().into_keys();
    let values = owned(&[
        "true",
        "false",
        "10s",
        "https",
        "tcp",
        "udp",
        "SCTP",
        "round_robin",
        "fsn1",
        "200-299",
        "0.0.0.0/0",
        "::/0",
        "a,b",
        "1.2.3.4",
        "pool in (a)",
        "Local",
        "Cluster",
        "65536",
        "80,443",
    ]);
    names.chain(values).collect()
}

/// A cloud, and the Nodes that are targets in it.
struct Ready {
    provider: Arc<dyn CloudProvider>,
    targets: BTreeMap<String, Backend>,
    /// It must live as long as the provider.
    _cloud: Box<dyn Cloud>,
}

async fn ready(cloud: Box<dyn Cloud>) -> Ready {
    let transport = cloud.transport();
    let provider = cloud.provider(transport).await.expect("a provider");
    let list = provider.instances().expect("instances").list().await;
    let list = list.expect("a list");
    let target = |instance| {
        let node = node_of(instance);
        let backend = Backend {
            node: node.clone().into(),
            by: TargetBy::Machine,
            state: TargetState::Serving,
        };
        (node.name, backend)
    };
    Ready {
        targets: list.instances().map(target).collect(),
        provider,
        _cloud: cloud,
    }
}

fn service() -> Reader {
    let runtime = paused();
    let clouds = runtime.block_on(async {
        [
            ready(Box::new(Hetzner::default())).await,
            ready(Box::new(Local::default())).await,
            ready(Box::new(OpenStack::default())).await,
        ]
    });
    Box::new(move |input| {
        let Ok(service) = serde_json::from_slice::<Service>(input) else {
            return Ok(());
        };
        let view = ServiceView::of(&service);
        for cloud in &clouds {
            runtime.block_on(read_service(&view, cloud))?;
        }
        Ok(())
    })
}

async fn read_service(view: &ServiceView, cloud: &Ready) -> Check {
    let cluster: ClusterIdentity = ProviderContext::detached("any").cluster;
    let Some(balancers) = cloud.provider.load_balancers() else {
        return Ok(());
    };
    let profile = balancers.profile(&balancer_ref_of(view, &cluster));
    let setting = Setting {
        cluster: &cluster,
        features: profile.features,
        health_checks: profile.health_check,
    };
    let selector = node_selector(view, balancers.node_selector(&view.annotations));
    let targets = selector.map(|_| cloud.targets.clone().into());
    let spec = match draft(view, targets, &setting) {
        Ok(draft) => {
            for warning in &draft.warnings {
                let _ = format!("{warning:?}");
            }
            draft.spec
        }
        Err(problems) => {
            let _ = problems.to_string();
            return Ok(());
        }
    };
    plan(&spec, cloud).await
}

/// A plan says the same twice, for nothing was done. A budget that is used up says nothing of the plan.
async fn plan(spec: &LoadBalancerSpec, cloud: &Ready) -> Check {
    let Some(balancers) = cloud.provider.load_balancers() else {
        return Ok(());
    };
    let say = async || match balancers.plan(DesiredState::Present(spec)).await {
        Ok(plan) => Some(plan.to_string()),
        Err(error) => {
            let throttled = matches!(error.kind(), ErrorKind::Throttled { .. });
            // Not its words: they name the request and how long it took.
            (!throttled).then(|| error.kind().to_string())
        }
    };
    match (say().await, say().await) {
        (Some(first), Some(second)) if first != second => {
            Err(format!("two plans: {first} {second}"))
        }
        _ => Ok(()),
    }
}
