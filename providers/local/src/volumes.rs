//! Disks.

use async_trait::async_trait;
use cloudkeel_api::{CloudError, VolumePlace, VolumeRef, Volumes};
use serde_json::Value;

use crate::client::{Api, requests};
use crate::wire::Volume;

/// The name of the CSI driver whose disks are ours.
pub(crate) const DRIVER: &str = "local.cloudkeel.dev";

/// The disks of the project.
pub(crate) struct LocalVolumes(pub(crate) Api);

#[async_trait]
impl Volumes for LocalVolumes {
    fn recognize(&self, name: &str, source: &str, content: &Value) -> Option<VolumeRef> {
        recognize(name, source, content)
    }

    async fn place(&self, volume: &VolumeRef) -> Result<VolumePlace, CloudError> {
        let volume: Volume = self.0.fetch(requests::volume(&volume.disk)).await?;
        Ok(VolumePlace {
            zones: volume.zones,
            region: Some(volume.region),
        })
    }
}

fn recognize(name: &str, source: &str, content: &Value) -> Option<VolumeRef> {
    let ours = source == "csi" && content.get("driver")?.as_str() == Some(DRIVER);
    ours.then_some(())?;
    Some(VolumeRef {
        name: name.to_owned(),
        disk: content.get("volumeHandle")?.as_str()?.to_owned(),
    })
}

#[cfg(test)]
mod tests;
