//! Disks.

use async_trait::async_trait;
use cloudkeel_api::{CloudError, VolumePlace, VolumeRef, Volumes};
use serde_json::Value;

use crate::client::Api;

/// The name of the CSI driver whose disks are ours.
pub(crate) const DRIVER: &str = "local.cloudkeel.dev";

/// The disks of the project.
pub(crate) struct LocalVolumes {
    api: Api,
}

impl LocalVolumes {
    pub(crate) const fn new(api: Api) -> Self {
        Self { api }
    }
}

#[async_trait]
impl Volumes for LocalVolumes {
    fn recognize(&self, name: &str, source: &str, content: &Value) -> Option<VolumeRef> {
        recognize(name, source, content)
    }

    async fn place(&self, volume: &VolumeRef) -> Result<VolumePlace, CloudError> {
        let volume = self.api.volume(&volume.disk).await?;
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
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_disks_of_our_driver_are_ours() {
        for (case, source, content, disk) in [
            (
                "ours",
                "csi",
                json!({"driver": DRIVER, "volumeHandle": "vol-1"}),
                Some("vol-1"),
            ),
            (
                "another driver",
                "csi",
                json!({"driver": "x", "volumeHandle": "vol-1"}),
                None,
            ),
            ("no handle", "csi", json!({"driver": DRIVER}), None),
            ("another kind", "hostPath", json!({"path": "/x"}), None),
        ] {
            let found = recognize("pv-1", source, &content).map(|volume| volume.disk);
            assert_eq!(found.as_deref(), disk, "{case}");
        }
    }
}
