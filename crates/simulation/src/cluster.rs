//! What kubelets, controllers of the cluster and users do to its objects.

use anyhow::Result;
use cloudkeel_controllers::wellknown::UNINITIALIZED_TAINT;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The cluster, as all clients but the managers see and change it. Their requests never fail.
#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
}

impl Cluster {
    pub(crate) const fn new(client: Client) -> Self {
        Self { client }
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    fn services(&self) -> Api<Service> {
        Api::namespaced(self.client.clone(), "default")
    }

    fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), "kube-node-lease")
    }

    /// A kubelet registers its Node, which gets these Pod CIDRs.
    pub(crate) async fn register(
        &self,
        name: &str,
        pod_cidrs: &[String],
        more: &Value,
    ) -> Result<()> {
        let mut node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name},
            "spec": {
                "podCIDR": pod_cidrs.first(), "podCIDRs": pod_cidrs,
                "taints": [{"key": UNINITIALIZED_TAINT, "value": "true", "effect": "NoSchedule"}],
            },
            "status": {"conditions": [condition("True")]},
        });
        merge(&mut node, more);
        let node = serde_json::from_value(node)?;
        self.nodes().create(&PostParams::default(), &node).await?;
        Ok(())
    }

    /// The kubelet is heard.
    pub(crate) async fn heartbeat(&self, name: &str, now: Timestamp) -> Result<()> {
        let renewed = format!("{now:.6}");
        let spec =
            json!({"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": renewed});
        let patch = Patch::Merge(json!({"spec": spec}));
        let leases = self.leases();
        match leases.patch(name, &PatchParams::default(), &patch).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => {
                let lease = json!({"metadata": {"name": name}, "spec": spec});
                let lease = serde_json::from_value(lease)?;
                leases.create(&PostParams::default(), &lease).await?;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A kubelet without a lease is heard.
    pub(crate) async fn report_status(&self, name: &str, now: Timestamp) -> Result<()> {
        let mut ready = condition("True");
        merge(&mut ready, &json!({"lastHeartbeatTime": now.to_string()}));
        let patch = Patch::Strategic(json!({"status": {"conditions": [ready]}}));
        let nodes = self.nodes();
        nodes
            .patch_status(name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    /// Whether Pods may be scheduled to a Node.
    pub(crate) async fn cordon(&self, node: &str, is_closed: bool) -> Result<()> {
        self.change_node(node, json!({"spec": {"unschedulable": is_closed}}))
            .await
    }

    /// What the cluster thinks of the kubelet.
    pub(crate) async fn set_ready(&self, name: &str, status: &str) -> Result<()> {
        let patch = json!({"status": {"conditions": [condition(status)]}});
        let patch = Patch::Strategic(patch);
        self.nodes()
            .patch_status(name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    /// Sets a label, or takes it away.
    pub(crate) async fn label(&self, node: &str, key: &str, value: Option<&str>) -> Result<()> {
        self.change_node(node, json!({"metadata": {"labels": {key: value}}}))
            .await
    }

    /// Sets an annotation, or takes it away.
    pub(crate) async fn annotate(&self, node: &str, key: &str, value: Option<&str>) -> Result<()> {
        self.change_node(node, json!({"metadata": {"annotations": {key: value}}}))
            .await
    }

    /// Adds a taint if it is not there, and removes it if it is.
    pub(crate) async fn toggle_taint(&self, node: &str, key: &str) -> Result<()> {
        let Some(found) = self.nodes().get_opt(node).await? else {
            return Ok(());
        };
        let had = found.spec.and_then(|spec| spec.taints).unwrap_or_default();
        let mut taints: Vec<Value> = had
            .iter()
            .filter(|taint| taint.key != key)
            .map(|taint| json!(taint))
            .collect();
        if taints.len() == had.len() {
            taints.push(json!({"key": key, "effect": "NoSchedule"}));
        }
        let version = found.metadata.resource_version;
        let body = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": taints}});
        self.change_node(node, body).await
    }

    async fn change_node(&self, node: &str, body: Value) -> Result<()> {
        let patch = Patch::Merge(body);
        self.nodes()
            .patch(node, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    pub(crate) async fn node(&self, name: &str) -> Result<Option<Node>> {
        Ok(self.nodes().get_opt(name).await?)
    }

    pub(crate) async fn all_nodes(&self) -> Result<Vec<Node>> {
        all(self.nodes()).await
    }

    pub(crate) async fn all_services(&self) -> Result<Vec<Service>> {
        all(self.services()).await
    }

    pub(crate) async fn service(&self, name: &str) -> Result<Option<Service>> {
        Ok(self.services().get_opt(name).await?)
    }

    /// A Service with one port, which wants a balancer.
    pub(crate) async fn serve(&self, name: &str, port: u16, has_both: bool) -> Result<()> {
        let service = json!({
            "metadata": {"name": name},
            "spec": {
                "type": "LoadBalancer",
                "ipFamilyPolicy": family_policy(has_both),
                "selector": {"app": name},
                "ports": [{"name": "main", "port": port, "protocol": "TCP"}],
            },
        });
        let service = serde_json::from_value(service)?;
        self.services()
            .create(&PostParams::default(), &service)
            .await?;
        Ok(())
    }

    /// Puts another list of ports in place of the present one.
    pub(crate) async fn set_ports(&self, name: &str, ports: &[u16]) -> Result<()> {
        let ports: Vec<_> = ports
            .iter()
            .map(|port| json!({"name": format!("p{port}"), "port": port, "protocol": "TCP"}))
            .collect();
        self.change_service(name, json!({"spec": {"ports": ports}}))
            .await
    }

    /// Sets an annotation of a Service, or takes it away.
    pub(crate) async fn annotate_service(
        &self,
        name: &str,
        key: &str,
        value: Option<&str>,
    ) -> Result<()> {
        self.change_service(name, json!({"metadata": {"annotations": {key: value}}}))
            .await
    }

    pub(crate) async fn set_type(&self, name: &str, kind: &str) -> Result<()> {
        self.change_service(name, json!({"spec": {"type": kind}}))
            .await
    }

    /// Gives a Service addresses of both families, or of one.
    pub(crate) async fn set_families(&self, name: &str, has_both: bool) -> Result<()> {
        let policy = family_policy(has_both);
        self.change_service(name, json!({"spec": {"ipFamilyPolicy": policy}}))
            .await
    }

    async fn change_service(&self, name: &str, body: Value) -> Result<()> {
        let patch = Patch::Merge(body);
        self.services()
            .patch(name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    pub(crate) async fn delete_node(&self, name: &str) -> Result<()> {
        match self.nodes().delete(name, &DeleteParams::default()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) async fn delete_service(&self, name: &str) -> Result<()> {
        self.services()
            .delete(name, &DeleteParams::default())
            .await?;
        Ok(())
    }
}

async fn all<K>(api: Api<K>) -> Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    Ok(api.list(&ListParams::default()).await?.items)
}

const fn family_policy(has_both: bool) -> &'static str {
    if has_both {
        "PreferDualStack"
    } else {
        "SingleStack"
    }
}

fn condition(status: &str) -> Value {
    json!({"type": "Ready", "status": status, "reason": "Simulated"})
}

fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more.clone(),
    }
}
