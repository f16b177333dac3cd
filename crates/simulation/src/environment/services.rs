//! What users do to Services and their balancers.

use std::collections::BTreeSet;

use anyhow::Result;
use cloudkeel_api::names::PAUSED;
use cloudkeel_provider_local::SERVICE_UID;
use serde_json::json;

use super::{Environment, service_name};
use crate::accounts::Account;
use crate::action::Annotation;
use crate::convergence::is_released;
use crate::fixtures::is_foreign;
use crate::invariants::objects::has_finalizer;

impl Environment {
    /// In a cluster with both families, a Service has both or one.
    pub(super) async fn serve(&mut self, service: usize) -> Result<()> {
        let name = service_name(service);
        if !self.clouds.layout.has_services() || self.cluster.service(&name).await?.is_some() {
            return Ok(());
        }
        let has_both = self.topology.dual_stack && self.rng.chance(50);
        self.cluster.serve(&name, 80, has_both).await
    }

    /// Gives a Service an annotation, or takes it away. Whether there is such a Service.
    pub(super) async fn annotate(
        &self,
        service: usize,
        annotation: Annotation,
        value: Option<&str>,
    ) -> Result<bool> {
        let name = service_name(service);
        if !self.is_there(&name).await? {
            return Ok(false);
        }
        self.cluster
            .annotate_service(&name, annotation.key(), value)
            .await?;
        Ok(true)
    }

    pub(super) async fn pause_service(&self, service: usize) -> Result<()> {
        let name = service_name(service);
        if self.is_there(&name).await? {
            let yes = Some("true");
            self.cluster
                .annotate_service(&name, PAUSED.name(), yes)
                .await?;
        }
        Ok(())
    }

    /// Pauses end, and annotations with values that do not exist go.
    pub(crate) async fn mend_annotations(&self) -> Result<()> {
        for service in self.cluster.all_services().await? {
            let name = service.metadata.name.unwrap_or_default();
            let annotations = service.metadata.annotations.unwrap_or_default();
            if annotations.contains_key(PAUSED.name()) {
                self.cluster
                    .annotate_service(&name, PAUSED.name(), None)
                    .await?;
            }
            for annotation in Annotation::SHOWN {
                let value = annotations.get(annotation.key());
                if value.is_some_and(|value| annotation.is_invalid(value)) {
                    self.cluster
                        .annotate_service(&name, annotation.key(), None)
                        .await?;
                }
            }
        }
        Ok(())
    }

    /// The operator deletes what was released because it was protected or retained: until then it has the name of the next
    /// balancer of its Service. Likewise what no manager was shown before its Service was released.
    pub(crate) async fn delete_left_balancers(&self) -> Result<()> {
        let services = self.cluster.all_services().await?;
        let services = services.iter().map(|service| json!(service));
        let held = services.filter(has_finalizer);
        let held: BTreeSet<_> = held
            .filter_map(|service| Some(service["metadata"]["uid"].as_str()?.to_owned()))
            .collect();
        let is_left = |uid: &String| !held.contains(uid) && !is_foreign(uid);
        for account in self.clouds.layout.accounts() {
            let cloud = self.clouds.of(*account);
            for balancer in cloud.balancers() {
                let service = balancer.labels.get(SERVICE_UID);
                if is_released(&balancer) || service.is_some_and(is_left) {
                    cloud.drop_balancer(balancer.id)?;
                }
            }
        }
        Ok(())
    }

    /// From one family to both, and back.
    pub(super) async fn change_families(&self, service: usize) -> Result<()> {
        let name = service_name(service);
        if !self.topology.dual_stack || !self.is_there(&name).await? {
            return Ok(());
        }
        let found = self.cluster.service(&name).await?;
        let policy = found.and_then(|found| found.spec?.ip_family_policy);
        let is_single = policy.is_none_or(|policy| policy == "SingleStack");
        self.cluster.set_families(&name, is_single).await
    }

    pub(super) async fn change_ports(&mut self, service: usize) -> Result<()> {
        let name = service_name(service);
        let choices: [&[u16]; 4] = [&[80], &[80, 443], &[8080], &[443, 8080, 9000]];
        let ports = self.rng.one_of(&choices).unwrap_or(&[80]);
        if self.is_there(&name).await? {
            self.cluster.set_ports(&name, ports).await?;
        }
        Ok(())
    }

    pub(super) async fn change_type(&self, service: usize) -> Result<()> {
        let name = service_name(service);
        let Some(found) = self.cluster.service(&name).await? else {
            return Ok(());
        };
        let kind = found.spec.and_then(|spec| spec.type_);
        let other = match kind.as_deref() {
            Some("LoadBalancer") => "ClusterIP",
            _ => "LoadBalancer",
        };
        self.cluster.set_type(&name, other).await
    }

    pub(super) async fn delete_service(&self, service: usize) -> Result<()> {
        let name = service_name(service);
        if self.is_there(&name).await? {
            self.cluster.delete_service(&name).await?;
        }
        Ok(())
    }

    async fn is_there(&self, service: &str) -> Result<bool> {
        let found = self.cluster.service(service).await?;
        Ok(found.is_some_and(|service| service.metadata.deletion_timestamp.is_none()))
    }

    /// Another client changes a balancer.
    pub(super) async fn edit_balancer(&mut self, service: usize) -> Result<()> {
        let Some(found) = self.cluster.service(&service_name(service)).await? else {
            return Ok(());
        };
        let uid = found.metadata.uid.unwrap_or_default();
        let ours = |labels: &std::collections::BTreeMap<String, String>| {
            labels.values().any(|value| *value == uid)
        };
        let cloud = self.clouds.of(Account::First);
        let balancers = cloud.balancers();
        let Some(balancer) = balancers.iter().find(|balancer| ours(&balancer.labels)) else {
            return Ok(());
        };
        let how = self.rng.between(0, 2);
        cloud.edit_balancer(balancer.id, |balancer| match how {
            0 => balancer.listeners.clear(),
            1 => balancer.targets.truncate(1),
            _ => {
                for listener in &mut balancer.listeners {
                    listener.target_port ^= 1;
                }
            }
        })?;
        Ok(())
    }
}
