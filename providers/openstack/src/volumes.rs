//! Volumes of Cinder: in which zone they are.

use async_trait::async_trait;
use cloudkeel_api::{CloudError, Priority, VolumePlace, VolumeRef, Volumes};
use serde_json::Value;

use crate::client::Api;
use crate::instances::zone_label;
use crate::wire::compute::Volume;

/// The name of the Cinder CSI driver.
const CSI_DRIVER: &str = "cinder.csi.openstack.org";

/// The volumes of the project.
pub(crate) struct CinderVolumes {
    pub(crate) api: Api,
    pub(crate) region: Option<String>,
}

#[async_trait]
impl Volumes for CinderVolumes {
    fn recognize(&self, name: &str, source: &str, content: &Value) -> Option<VolumeRef> {
        let text = |key: &str| {
            content
                .get(key)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        let disk = match source {
            "cinder" => text("volumeID")?,
            "csi" if text("driver") == Some(CSI_DRIVER) => text("volumeHandle")?,
            _ => return None,
        };
        Some(VolumeRef {
            name: name.to_owned(),
            disk: disk.to_owned(),
        })
    }

    async fn place(&self, volume: &VolumeRef) -> Result<VolumePlace, CloudError> {
        let volume: Volume = self.api.get(&volume.disk, Priority::Urgent).await?;
        let zone = volume.availability_zone.as_deref().map(zone_label);
        Ok(VolumePlace {
            zones: zone.into_iter().collect(),
            region: self.region.clone(),
        })
    }
}
