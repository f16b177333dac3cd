//! Instances of the cloud, each with a kubelet that answers on its node ports.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cloudkeel_api::SystemClock;
use cloudkeel_embedded::{Health, Kubelet, KubeletConfig};
use kube::Client;
use tokio::time::sleep;

use crate::addresses::Block;
use crate::cloud::{Cloud, Place};
use crate::settings::BEAT;

/// The time between a power-off request and the end of the instance, as with a power button.
const REGISTRATION_GRACE: Duration = Duration::from_millis(200);

struct Member {
    machine: u64,
    kubelet: Kubelet,
}

/// The instances of the demo.
pub(crate) struct Fleet {
    client: Client,
    cloud: Arc<dyn Cloud>,
    block: Block,
    /// The number of the last instance that was created.
    made: Mutex<u8>,
    members: Mutex<BTreeMap<String, Member>>,
}

impl Fleet {
    pub(crate) fn new(client: Client, cloud: Arc<dyn Cloud>, block: Block) -> Self {
        Self {
            client,
            cloud,
            block,
            made: Mutex::new(0),
            members: Mutex::default(),
        }
    }

    /// The names of the existing instances.
    pub(crate) fn names(&self) -> Vec<String> {
        self.members().keys().cloned().collect()
    }

    /// Creates an instance, which joins the cluster; returns its name.
    pub(crate) async fn add(&self) -> Result<String, String> {
        let (number, address) = self.next_place()?;
        let name = format!("node-{number:02}");
        let machine = self.cloud.add_machine(Place {
            name: &name,
            number,
            address,
        })?;
        self.cloud.settle().await?;
        let config = KubeletConfig::new(&name, address)
            .pod_cidr(format!("10.244.{number}.0/24"))
            .beat_every(BEAT)
            .serve_ports();
        let kubelet = Kubelet::start(&self.client, Arc::new(SystemClock), config);
        let member = Member { machine, kubelet };
        self.members().insert(name.clone(), member);
        Ok(name)
    }

    /// A number that no instance has had, and its address. A number is not used up if the cloud rejects it.
    fn next_place(&self) -> Result<(u8, IpAddr), String> {
        let mut next = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let number = next.saturating_add(1);
        let address = self.block.machine(number)?;
        *next = number;
        Ok((number, address))
    }

    /// Stops an instance. The cloud still has it.
    pub(crate) async fn power_off(&self, name: &str) -> Result<(), String> {
        let machine = self.machine(name)?;
        self.cloud.power_off(machine)?;
        self.cloud.settle().await?;
        sleep(REGISTRATION_GRACE).await;
        self.set_health(name, Health::Off)
    }

    /// Starts an instance again.
    pub(crate) async fn power_on(&self, name: &str) -> Result<(), String> {
        let machine = self.machine(name)?;
        self.cloud.power_on(machine)?;
        self.set_health(name, Health::Ready)?;
        self.cloud.settle().await
    }

    /// Deletes an instance.
    pub(crate) async fn destroy(&self, name: &str) -> Result<(), String> {
        let machine = self.machine(name)?;
        self.cloud.destroy(machine)?;
        self.cloud.settle().await?;
        sleep(REGISTRATION_GRACE).await;
        let member = self.members().remove(name);
        if let Some(member) = member {
            member.kubelet.stop().await;
        }
        Ok(())
    }

    /// Makes the kubelet of an instance stop or resume reporting, while the instance runs.
    pub(crate) fn set_health(&self, name: &str, health: Health) -> Result<(), String> {
        let members = self.members();
        let member = members.get(name).ok_or_else(|| unknown(name))?;
        member.kubelet.set_health(health);
        Ok(())
    }

    fn machine(&self, name: &str) -> Result<u64, String> {
        let members = self.members();
        members
            .get(name)
            .map(|member| member.machine)
            .ok_or_else(|| unknown(name))
    }

    fn members(&self) -> MutexGuard<'_, BTreeMap<String, Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unknown(name: &str) -> String {
    format!("there is no machine {name} (any more)")
}

#[cfg(test)]
mod tests {
    use cloudkeel_embedded::EmbeddedApi;

    use super::*;
    use crate::args::CloudKind;

    #[tokio::test]
    async fn no_number_is_given_twice() {
        let (folder, block) = (tempfile::tempdir().unwrap(), Block::of_process(1));
        let cloud = crate::cloud::start(CloudKind::Local, folder.path(), block);
        let cloud = cloud.await.unwrap();
        let fleet = Fleet::new(EmbeddedApi::new().client("demo"), cloud, block);
        let given: Vec<u8> = (0..600)
            .filter_map(|_| fleet.next_place().ok())
            .map(|(number, _)| number)
            .collect();
        assert_eq!(given, (1..126).collect::<Vec<u8>>());
    }
}
