//! What users do to Services and their balancers.

use anyhow::Result;
use cloudkeel_provider_local::TYPE;

use super::{Environment, service_name};
use crate::accounts::Account;
use crate::action::NO_SUCH_TYPE;

impl Environment {
    pub(super) async fn serve(&self, service: usize) -> Result<()> {
        let name = service_name(service);
        if !self.clouds.layout.has_services() || self.cluster.service(&name).await?.is_some() {
            return Ok(());
        }
        self.cluster.serve(&name, 80).await
    }

    /// Asks for a type of balancer by an annotation of the provider. Whether there is a Service to ask for it.
    pub(super) async fn annotate(&self, service: usize, value: Option<&str>) -> Result<bool> {
        let name = service_name(service);
        if !self.is_there(&name).await? {
            return Ok(false);
        }
        self.cluster
            .annotate_service(&name, TYPE.name(), value)
            .await?;
        Ok(true)
    }

    /// Services that ask for what does not exist ask for nothing any more.
    pub(crate) async fn mend_annotations(&self) -> Result<()> {
        for service in self.cluster.all_services().await? {
            let name = service.metadata.name.unwrap_or_default();
            let annotations = service.metadata.annotations.unwrap_or_default();
            if annotations
                .get(TYPE.name())
                .is_some_and(|it| it == NO_SUCH_TYPE)
            {
                self.cluster
                    .annotate_service(&name, TYPE.name(), None)
                    .await?;
            }
        }
        Ok(())
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
